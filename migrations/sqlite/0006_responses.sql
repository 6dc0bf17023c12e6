-- Answers of OpenAI's Responses, kept for their callers: to be read again, and to be carried on from by name.
--
-- A call that names an earlier answer means all that was said until then. An upstream which has no Responses keeps nothing,
-- and one that has them keeps only what it made itself; so what was said is kept here, each turn in a row of its own that
-- names the one before it.

create table responses
(
    -- As the caller knows it: the upstream's own id, or one that was made here.
    id            text primary key not null,
    -- Whose it is: a key's id, or what stands for the master key or for nobody. No foreign key, as in `sessions`.
    owner         text    not null,
    -- Which target made it.
    target        text,
    -- The target speaks Responses itself, and so knows the id.
    native        integer not null,
    -- As the caller asked for it.
    model         text    not null,
    created_at_ms integer not null,
    -- What it goes on from: the id of another answer, which may not be here, or of a conversation that only the vendor has.
    -- Null: it is the first turn.
    previous      text,
    -- JSON array of the items that this call brought. Those of the turns before are in their rows.
    input         text    not null,
    -- JSON array of the items of the answer.
    output        text    not null,
    -- The answer as the caller got it, with [] for its output. Empty: it was deleted, and so are its items. The row is kept
    -- until it expires, so that its id means the same to everybody: nothing.
    response      text    not null,
    expires_at_ms integer not null
) strict;

-- The sweep looks for what has expired, and for nothing else.
create index responses_by_expiry on responses (expires_at_ms);
