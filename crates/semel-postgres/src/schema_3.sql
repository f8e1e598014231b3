-- The timelines of the servers that this database has lived on. A promotion begins a new one, and the process that sees it
-- first raises semel_version: a standby that was promoted may lack the last numbers that its primary gave out.
CREATE TABLE semel_timelines (
    system   bigint      NOT NULL,
    timeline integer     NOT NULL,
    seen_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (system, timeline)
);

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
