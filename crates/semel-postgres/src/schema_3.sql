-- The timelines of the servers that this database has lived on. A promotion begins a new one, and the process that sees it
-- first raises semel_version: a standby that was promoted may lack the last numbers that its primary gave out.
CREATE TABLE semel_timelines (
    system   bigint      NOT NULL,
    timeline integer     NOT NULL,
    seen_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (system, timeline)
);

-- A swap, as batches of them are sent. A release that needs other fields makes another type: processes of this one go on
-- sending this.
CREATE TYPE semel_swap AS (
    id                  bytea,
    expected            bigint,
    keep                interval,
    scope               text,
    operation           text,
    name                text,
    state               text,
    attempt             integer,
    pardoned            bigint,
    lapse               text,
    retention           interval,
    fingerprint         bytea,
    first_seen_at       timestamptz,
    first_event         text,
    mismatches          bigint,
    mismatched          bytea,
    duplicates          bigint,
    last_seen_at        timestamptz,
    permit_id           uuid,
    fence               bigint,
    owner               text,
    since               timestamptz,
    leased_at           timestamptz,
    lease               interval,
    reason              text,
    steps               bytea,
    outcome_kind        text,
    outcome             bytea,
    primary_reference   text,
    secondary_reference text,
    details             text,
    granted_at          timestamptz,
    probed_at           timestamptz,
    label               text,
    past_attempts       jsonb,
    outcome_references  jsonb
);

-- Room in every page for the rows that are in it to be completed where they are: indexes are then not written again. Only
-- for pages that are filled from now on.
ALTER TABLE semel_records SET (fillfactor = 50);

-- Roles that may write records need no new grant by hand.
DO $$
DECLARE
    writer text;
BEGIN
    FOR writer IN
        SELECT DISTINCT CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
        FROM pg_class, aclexplode(relacl)
        WHERE pg_class.oid = 'semel_records'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT ON semel_timelines TO %s', writer);
        EXECUTE format('GRANT USAGE, UPDATE ON SEQUENCE semel_version TO %s', writer);
    END LOOP;
END $$;
