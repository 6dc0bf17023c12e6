-- The request log: one row per request, one per attempt, and the sums that spare everyone a scan.
--
-- Rows come in hundreds per transaction at thousands a second, so each index costs as much as the row itself. The key
-- grows with time (inserts land at the end, pages by cursor need nothing else) and each index below says what it is for.

create table requests
(
    -- Milliseconds when the record was complete << 12 | sequence. Grows in the order of writing, and is never smaller than
    -- arrived_at_ms << 12: a lower bound on time is a range of ids. Below 2^53 until 2039, so that JavaScript can hold it.
    id                integer primary key not null,
    -- `X-Request-ID`, 32 hex digits. Not unique: callers may send their own.
    request_id        text    not null,
    arrived_at_ms     integer not null,
    -- `chat`, `embeddings`, …
    surface           text    not null,
    stream            integer not null,
    -- As the caller asked for it.
    model             text    not null,
    -- As it was sent to the upstream that answered or was tried last.
    upstream_model    text,
    provider          text,
    target            text,
    -- HTTP status that the caller got.
    status            integer not null,
    -- `success`, `error`, `rejected`, `partial`, `client_cancelled`.
    outcome           text    not null,
    error_code        text,
    -- Redacted before it came here.
    error_message     text,
    -- Token counts: null is "not reported", which is not zero.
    prompt_tokens     integer,
    completion_tokens integer,
    total_tokens      integer,
    cached_tokens     integer,
    reasoning_tokens  integer,
    -- The counts are our estimate.
    usage_estimated   integer not null,
    duration_us       integer not null,
    -- From arrival to the first content of a stream.
    first_token_us    integer,
    -- Inside the gateway, waits for upstreams not counted.
    overhead_us       integer not null,
    -- No foreign key: the row outlives the key.
    key_id            text,
    -- The key's name at that time.
    key_name          text,
    -- Answered by the built-in `demo` provider.
    simulated         integer not null,
    -- How many rows of `attempts` belong to it, so that a list needs no join.
    attempts_count    integer not null,
    -- JSON array, one entry per configured target. The longest column stands last: lists do not read it, and what
    -- overflows the page is then never touched.
    verdicts          text    not null
) strict;

-- "What happened to request X?": a support case begins with an id from a header. Ids that grow with time (ours do: UUID v7
-- without its hyphens) land at the end of it; scattered ones cost about as much as everything else together.
create index requests_by_request_id on requests (request_id);

-- "What does this key do?": one key among many is rare in the log; the id keeps its rows in the order they are listed in.
create index requests_by_key on requests (key_id, id);

-- "What fails?": the list an operator opens first. Partial, because failures are few; a healthy gateway never writes it.
create index requests_failed on requests (id) where outcome <> 'success';

create table attempts
(
    request_row    integer not null references requests (id) on delete cascade,
    -- Counted from 1 over the whole request.
    number         integer not null,
    target         text    not null,
    provider       text    not null,
    model          text    not null,
    -- `success`, or the kind of failure.
    outcome        text    not null,
    -- HTTP status of the upstream; null when it never answered.
    status         integer,
    -- From the request's arrival to this call.
    started_us     integer not null,
    -- From this call to its end.
    latency_us     integer not null,
    -- From this call to its first content.
    first_token_us integer,
    error          text,
    -- Read by request only, and written in the order of this key.
    primary key (request_row, number)
) strict, without rowid;

-- Sums per minute of arrival, moved in the transaction that writes the rows. They answer "how many" and draw the charts.
create table traffic_minutes
(
    -- arrived_at_ms / 60,000.
    minute            integer primary key not null,
    requests          integer not null,
    -- Those with an outcome other than `success`.
    failed            integer not null,
    prompt_tokens     integer not null,
    completion_tokens integer not null,
    -- Greatest id among this minute's requests. A request is written when it ends, hours after it arrived at worst: this is
    -- what turns an upper bound on time into an exact range of ids.
    last_id           integer not null
) strict;
