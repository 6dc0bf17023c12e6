-- What a translation did to a call, and what more is counted of an answer.
--
-- Columns are added to the log and nothing is rewritten. As 0003 says, that reads the table once for each.

-- JSON array of what became of the fields of a call that was translated; '' when nothing was. A row with a course has them
-- there: the same call to the same target loses the same fields every time.
alter table requests add column notes text not null default '';
alter table courses add column notes text not null default '';

-- Token counts, as those of 0002.
alter table requests add column cache_write_tokens integer;
alter table requests add column audio_prompt_tokens integer;
alter table requests add column audio_completion_tokens integer;
