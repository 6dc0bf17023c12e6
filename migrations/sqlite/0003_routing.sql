-- Routes: the one that a key's calls take, and the one that a request took.
--
-- Columns are added and nothing is rewritten: rows from before have the defaults, and keep every byte. SQLite checks a
-- `strict` table once for each column that it gets. That reads the table and writes nothing: 1.6 s for a million
-- requests (635 MB) in memory, and as long as the disk takes to read them once when they are not.

-- Whose calls they are: rules go by it. Null: nobody's in particular.
alter table keys add column project text;

-- Which route its calls take unless they name another. Null: its project's, or the default one. A name, not a
-- reference: routes stand in the configuration, which may lose this one and get it back.
alter table keys add column route text;

-- `default`, or a route's name. Empty: the request never got that far, or is older than routes.
alter table requests add column route text not null default '';

-- Label of the variant that an A/B test drew.
alter table requests add column variant text;

-- Both stand behind `verdicts`, which is longer, and which lists do not read. That costs nothing as long as a row
-- fits its page, which it does up to some thirty targets. Beyond, a list has to follow what overflows to reach them:
-- 200 rows of which every other has 80 targets took 1.5 ms instead of 0.8, and 23 instead of 4 when nothing was in
-- memory. Before `verdicts` they could only stand in a new copy of the table: 16 s for that million, twice the room on
-- disk, and nothing to be written meanwhile. The log is searched by route as it is by model and target, without an
-- index that each request would pay for.
