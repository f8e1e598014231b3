-- What contract 2 adds to a record. Columns without a default, so that the server only notes them and rewrites no row.
--
-- Processes of 0.1 that are still connected leave these columns alone when they write a row. What is in them therefore
-- counts only while grant_fence equals fence: then it was written for the grant that the row still speaks of.
ALTER TABLE semel_records
    ADD COLUMN IF NOT EXISTS grant_fence        bigint,       -- the grant that these columns were written for
    ADD COLUMN IF NOT EXISTS granted_at         timestamptz,  -- when the run that the state speaks of was granted
    ADD COLUMN IF NOT EXISTS probed_at          timestamptz,  -- held: when a claim last asked whether the effect landed
    ADD COLUMN IF NOT EXISTS label              text,         -- what the work is, in words for people
    ADD COLUMN IF NOT EXISTS past_attempts      jsonb,        -- attempts before this one; from and until in microseconds
    ADD COLUMN IF NOT EXISTS outcome_references jsonb;        -- done: what was created, [{"kind": "charge", "id": "ch_1"}]
