-- One record a key, readable with psql. Only semel writes here: a hand that changes a row must also give it a new
-- version (nextval('semel_version')), or processes that know the old one will not notice.

-- Numbers every write of every record. It only grows, also over records that are gone. No cache: a number that one
-- process drew ahead would come after a greater one.
CREATE SEQUENCE semel_version AS bigint CACHE 1;

CREATE TABLE semel_records (
    version              bigint      NOT NULL,
    fence                bigint,                -- the version of the write that granted the run
    mismatches           bigint      NOT NULL,  -- requests with this key and another fingerprint
    pardoned             bigint      NOT NULL,  -- attempts that no longer count against the bound
    duplicates           bigint      NOT NULL,  -- claims that were answered without a run
    first_seen_at        timestamptz NOT NULL,
    changed_at           timestamptz NOT NULL,
    since                timestamptz NOT NULL,  -- granted, settled or held at
    leased_at            timestamptz,
    last_seen_at         timestamptz,           -- the last duplicate
    keep_until           timestamptz,           -- may be swept from then on; null: never
    permit_id            uuid,                  -- whoever knows it may settle: as secret as a password
    lease                interval,
    retention            interval    NOT NULL,
    attempt              integer     NOT NULL,
    id                   bytea       NOT NULL,  -- SHA-256 over the length-prefixed parts of the key
    scope                text[]      NOT NULL,
    operation            text        NOT NULL,
    name                 text        NOT NULL,
    state                text        NOT NULL,
    lapse                text        NOT NULL,  -- what a lapsed lease means
    fingerprint          bytea,
    owner                text,
    reason               text,                  -- why it was released or is held
    first_event          text,
    mismatched           bytea,                 -- the first eight other fingerprints, 32 bytes each
    steps                bytea,                 -- finished steps: name and value, each with its length before it
    outcome_kind         text,
    outcome              bytea,
    primary_reference    text,
    secondary_reference  text,
    details              text,                  -- JSON

    CONSTRAINT semel_records_id PRIMARY KEY (id),
    -- A running record has a lease, a done one an outcome; never both. In few words: the server reads them anew for
    -- every statement.
    CONSTRAINT semel_records_state CHECK (
        num_nonnulls(lease, outcome, reason) = 1
        AND CASE WHEN lease IS NOT NULL THEN state = 'running' WHEN outcome IS NOT NULL THEN state = 'done'
            ELSE state IN ('released', 'held') END),
    CONSTRAINT semel_records_lapse CHECK (lapse IN ('rerun', 'hold'))
);

-- What a sweep looks for.
CREATE INDEX semel_records_keep_until ON semel_records (keep_until) WHERE keep_until IS NOT NULL;
-- What somebody has to look at. Few, so the many pay nothing for it.
CREATE INDEX semel_records_held ON semel_records (id) WHERE state = 'held';

-- Processes in which somebody waits for a record to settle. Nothing is lost if a crash empties it: they also look by
-- themselves.
CREATE UNLOGGED TABLE semel_waiters (
    process uuid        NOT NULL PRIMARY KEY,
    until   timestamptz NOT NULL
);
