-- Courses: what many requests have in common is kept once.
--
-- Of what is known of a request, most is the same as of thousands of others: what was asked for, which target was sent
-- what, what became of each of the others. Written out in every row it was more than half of the file, of what goes
-- through the write-ahead log, and of the CPU time of both. A row with a course has only what is its own, and where the
-- table demands a value for the rest, '' or 0, which means nothing. A row without one has everything, as before, and its
-- attempts stand in `attempts`: those that are older than courses, and those that are like no other (see
-- `writer/courses.rs`). Whoever reads takes a column from the course if there is one, and from the row otherwise.
--
-- Columns are added and nothing is rewritten. As 0003 says, that reads the table once for each. With what is done for the
-- keys below it takes 2.7 s for a million requests in memory.

create table courses
(
    -- Named by rows of `requests`. No foreign key there, for it would be looked up for every row: the writer names what it
    -- has put here, and nothing is ever deleted.
    id              integer primary key not null,
    -- From here on as in `requests`.
    surface         text    not null,
    stream          integer not null,
    model           text    not null,
    upstream_model  text,
    provider        text,
    target          text,
    route           text    not null,
    variant         text,
    status          integer not null,
    error_code      text,
    error_message   text,
    usage_estimated integer not null,
    simulated       integer not null,
    verdicts        text    not null,
    -- JSON array of the attempts that were made, with 0 for their times.
    attempts        text    not null
) strict;

-- The writer looks a course up when it has seen it for the second time since its start.
create index courses_by_model on courses (model, target);

alter table requests add column course integer;

-- Times of the attempts of a request that has a course, in their order: JSON array of [started_us, latency_us,
-- first_token_us]. Such a request has no rows in `attempts`.
alter table requests add column attempt_times text;

-- When a key was used, in moments of about a quarter of a second: `id >> 20` of its requests.
--
-- "What does this key do?" was answered by an index with an entry for each request, scattered over as many places as there
-- are keys: it cost more than the row. This has an entry for each moment in which a key was used at all, however often.
-- Whoever asks goes through a key's moments, newest first, and in each through the few rows that were written in it.
create table key_moments
(
    -- Empty: no key.
    key_id text    not null,
    moment integer not null,
    primary key (key_id, moment)
) strict, without rowid;

-- In the order of the index that goes.
insert into key_moments (key_id, moment)
select distinct coalesce(key_id, ''), id >> 20 from requests;

drop index requests_by_key;
