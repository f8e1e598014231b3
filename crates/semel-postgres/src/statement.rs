//! The statements, as text. The list of columns is in one place ([`ASKED`]), and so is the way a row is stamped.

use std::sync::LazyLock;

use semel::record::StateKind;
use semel::store::Scan;
use tokio_postgres::types::Type;

use crate::row::{ASKED, CLAIMED, COMPLETED, UNCHANGING, shown};

/// Where processes hear of records that settled.
pub(crate) const CHANNEL: &str = "semel_settled";

/// The moment of a statement, the same wherever it says so: when the server got it. That is before its snapshot, so what
/// it finds may be a little younger; the reader of an answer takes the later of the two.
pub(crate) const NOW: &str = "statement_timestamp()";

/// Wakes callers that wait for a record that settled. Only if there are any: every commit that notifies waits for all
/// others that do.
const NOTIFY: &str = "CASE WHEN state <> 'running' \
     AND (SELECT EXISTS (SELECT FROM semel_waiters WHERE until > statement_timestamp())) \
     THEN pg_notify('semel_settled', encode(id, 'hex'))::text END";

/// The texts that are sent over and over, each built once.
static SWAP_BATCH: LazyLock<String> = LazyLock::new(swap_batch);
pub(crate) static INSERT_ONE: LazyLock<String> = LazyLock::new(|| insert_one(parameter));
pub(crate) static UPDATE_ONE: LazyLock<String> = LazyLock::new(|| update_one(parameter));
static INSERT_CLAIM: LazyLock<String> = LazyLock::new(|| insert_one(|column| parameter_of(&CLAIMED, column)));
static UPDATE_COMPLETED: LazyLock<String> =
    LazyLock::new(|| update_one(|column| parameter_of(&COMPLETED, column)));
pub(crate) static LOOK: LazyLock<String> = LazyLock::new(look);
static LOAD: LazyLock<String> = LazyLock::new(load);
/// The types of the plain parameters of [`INSERT_ONE`] and [`UPDATE_ONE`].
pub(crate) static PARAMETER_TYPES: LazyLock<Vec<Type>> =
    LazyLock::new(|| ASKED.iter().map(|(_, kind)| type_of(kind)).collect());
static CLAIM_TYPES: LazyLock<Vec<Type>> = LazyLock::new(|| types_of(&CLAIMED));
static COMPLETED_TYPES: LazyLock<Vec<Type>> = LazyLock::new(|| types_of(&COMPLETED));
/// The types that the arrays of [`SWAP_BATCH`] have in this database: of an element, and of the array.
pub(crate) const SWAP_TYPES: &str = "SELECT 'semel_swap'::regtype::oid, 'semel_swap[]'::regtype::oid";

/// A statement that is sent over and over: sessions that may, prepare it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    InsertOne,
    UpdateOne,
    InsertClaim,
    UpdateCompleted,
    SwapBatch,
    Load,
    Sweep,
    Moment,
    Barrier,
}

impl Known {
    pub(crate) const ALL: [Self; 9] = [
        Self::InsertOne,
        Self::UpdateOne,
        Self::InsertClaim,
        Self::UpdateCompleted,
        Self::SwapBatch,
        Self::Load,
        Self::Sweep,
        Self::Moment,
        Self::Barrier,
    ];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::InsertOne => &INSERT_ONE,
            Self::UpdateOne => &UPDATE_ONE,
            Self::InsertClaim => &INSERT_CLAIM,
            Self::UpdateCompleted => &UPDATE_COMPLETED,
            Self::SwapBatch => &SWAP_BATCH,
            Self::Load => &LOAD,
            Self::Sweep => SWEEP,
            Self::Moment => MOMENT,
            Self::Barrier => BARRIER,
        }
    }

    /// The types of its parameters, where `arrays` are those of a batch.
    pub(crate) fn types(self, arrays: &[Type; 2]) -> &[Type] {
        match self {
            Self::InsertOne | Self::UpdateOne => &PARAMETER_TYPES,
            Self::InsertClaim => &CLAIM_TYPES,
            Self::UpdateCompleted => &COMPLETED_TYPES,
            Self::SwapBatch => arrays,
            Self::Load => &[Type::BYTEA_ARRAY],
            Self::Sweep => &[Type::INT8],
            Self::Moment | Self::Barrier => &[],
        }
    }

    /// Whether it can change a record.
    pub(crate) fn writes(self) -> bool {
        match self {
            Self::InsertOne
            | Self::UpdateOne
            | Self::InsertClaim
            | Self::UpdateCompleted
            | Self::SwapBatch => true,
            Self::Load | Self::Sweep | Self::Moment | Self::Barrier => false,
        }
    }
}

/// Any number of swaps, each on its own: a record that is absent is inserted, one at the expected version is replaced,
/// and of all others the current row comes back. Its parameters are two arrays of `semel_swap`: those that expect no
/// record, and those that expect a version. Its columns: id, version (null for a loser), now, row (null for a winner, or
/// if there is none).
///
/// An id without an answer lost a race: another caller wrote between this statement's snapshot and its write. Ask again.
///
/// - An absent record is looked up before anything is tried: `ON CONFLICT DO UPDATE` would lock and log also where it
///   changes nothing, and replays are the many.
/// - `DO NOTHING` is for the one who inserts after the look: the row is then not in this snapshot, and cannot be shown.
/// - The version in the condition of the update is what counts: under READ COMMITTED the server looks at it again once
///   it has the row's lock.
/// - A number is drawn from the sequence only for what is going to be inserted, and for what expects a version: drawing
///   alone would make a replay wait for the disk.
/// - Arrays of one type, and not one array a column: the server goes through each array with a function and a buffer of
///   its own. What lost is looked up only if there is any.
fn swap_batch() -> String {
    let from = |column: &str| format!("a.{column}");
    format!(
        "WITH inserted AS (\
             INSERT INTO semel_records ({columns}) SELECT {inserted} \
             FROM (SELECT a.*, nextval('semel_version') AS next FROM unnest($1::semel_swap[]) a \
                   WHERE NOT EXISTS (SELECT FROM semel_records found WHERE found.id = a.id)) a \
             ON CONFLICT (id) DO NOTHING RETURNING id, version), \
         updated AS (\
             UPDATE semel_records r SET {updated} \
             FROM (SELECT a.*, nextval('semel_version') AS next FROM unnest($2::semel_swap[]) a) a \
             WHERE r.id = a.id AND r.version = a.expected RETURNING r.id, r.version, r.state) \
         SELECT id, version, {NOW}, NULL::record, NULL FROM inserted \
         UNION ALL SELECT id, version, {NOW}, NULL, {NOTIFY} FROM updated \
         UNION ALL SELECT a.id, NULL, {NOW}, CASE WHEN r.id IS NOT NULL THEN {row} END, NULL \
         FROM (SELECT id, expected FROM unnest($1::semel_swap[]) \
               UNION ALL SELECT id, expected FROM unnest($2::semel_swap[])) a \
         LEFT JOIN semel_records r ON r.id = a.id \
         WHERE (SELECT count(*) FROM inserted) + (SELECT count(*) FROM updated) \
                   < cardinality($1::semel_swap[]) + cardinality($2::semel_swap[]) \
             AND r.version IS DISTINCT FROM a.expected",
        columns = columns().collect::<Vec<_>>().join(", "),
        inserted = columns().map(|column| written(column, from)).collect::<Vec<_>>().join(", "),
        updated = changes(from),
        row = shown("r"),
    )
}

/// One swap of an absent record, with plain parameters; answered like [`swap_batch`]. It wakes no caller: none waits for a
/// record that was not there.
fn insert_one(from: impl Fn(&str) -> String + Copy) -> String {
    format!(
        "WITH won AS (\
             INSERT INTO semel_records ({columns}) SELECT {inserted} \
             FROM (SELECT nextval('semel_version') AS next \
                   WHERE NOT EXISTS (SELECT FROM semel_records WHERE id = $1)) a \
             ON CONFLICT (id) DO NOTHING RETURNING id, version) \
         SELECT id, version, {NOW}, NULL::record FROM won \
         UNION ALL SELECT id, NULL, {NOW}, {row} FROM semel_records r WHERE id = $1",
        columns = columns().collect::<Vec<_>>().join(", "),
        inserted = columns().map(|column| written(column, from)).collect::<Vec<_>>().join(", "),
        row = shown("r"),
    )
}

/// One swap of a record at a version, likewise.
fn update_one(from: impl Fn(&str) -> String + Copy) -> String {
    format!(
        "WITH won AS (\
             UPDATE semel_records r SET {updated} FROM (SELECT nextval('semel_version') AS next) a \
             WHERE r.id = $1 AND r.version = $2 RETURNING r.id, r.version, r.state) \
         SELECT id, version, {NOW}, NULL::record, {NOTIFY} FROM won \
         UNION ALL SELECT a.id, NULL, {NOW}, CASE WHEN r.id IS NOT NULL THEN {row} END, NULL \
         FROM (SELECT $1::bytea AS id) a LEFT JOIN semel_records r ON r.id = a.id \
         WHERE r.version IS DISTINCT FROM $2",
        updated = changes(from),
        row = shown("r"),
    )
}

/// The type of a column.
fn type_of(kind: &str) -> Type {
    match kind {
        "bytea" => Type::BYTEA,
        "bigint" => Type::INT8,
        "integer" => Type::INT4,
        "interval" => Type::INTERVAL,
        "timestamptz" => Type::TIMESTAMPTZ,
        "uuid" => Type::UUID,
        "jsonb" => Type::JSONB,
        _ => Type::TEXT,
    }
}

/// The types of these columns of [`ASKED`], in its order.
fn types_of(columns: &[&str]) -> Vec<Type> {
    let wanted = ASKED.iter().filter(|(column, _)| columns.contains(column));
    wanted.map(|(_, kind)| type_of(kind)).collect()
}

/// A column of [`ASKED`] as a plain parameter, where there is one for each.
fn parameter(column: &str) -> String {
    parameter_of(&ASKED.map(|(column, _)| column), column)
}

/// The same where there are parameters for these columns only, in the order of [`ASKED`]; others are null.
fn parameter_of(columns: &[&str], column: &str) -> String {
    let mut sent = ASKED.iter().filter(|(asked, _)| columns.contains(asked));
    match sent.position(|(asked, _)| *asked == column) {
        Some(place) => format!("${}", place.saturating_add(1)),
        None => "NULL".into(),
    }
}

/// The changes of an update of `r`. None of an indexed column, if it can be: the server then writes neither an index nor
/// most of the row again, if the page has room for it. So a record may be swept a little later than it could be, by one part
/// in 256 of the time for which it is kept: that of a complete ends a lease before that of its claim.
fn changes(from: impl Fn(&str) -> String + Copy) -> String {
    let changing = columns().filter(|column| !UNCHANGING.contains(column));
    let value = |column: &str| {
        let value = written(column, from);
        match column {
            "keep_until" => format!(
                "CASE WHEN r.keep_until BETWEEN {value} AND {value} + {} / 256 THEN r.keep_until ELSE {value} END",
                from("keep")
            ),
            _ => value,
        }
    };
    changing.map(|column| format!("{column} = {}", value(column))).collect::<Vec<_>>().join(", ")
}

/// The columns of a record: what is asked for, and what only the server can know.
fn columns() -> impl Iterator<Item = &'static str> {
    let asked =
        ASKED.into_iter().map(|(column, _)| column).filter(|column| !matches!(*column, "expected" | "keep"));
    asked.chain(["version", "changed_at", "keep_until", "grant_fence"])
}

/// A column's value: what was asked for, or, where the draft left it open, this write's own moment or version.
fn written(column: &str, from: impl Fn(&str) -> String) -> String {
    let asked = from(column);
    match column {
        "version" => "next".into(),
        "changed_at" => NOW.into(),
        "keep_until" => format!("{NOW} + {}", from("keep")),
        "first_seen_at" | "since" | "granted_at" => format!("coalesce({asked}, {NOW})"),
        "leased_at" => format!("CASE WHEN {} IS NOT NULL THEN coalesce({asked}, {NOW}) END", from("lease")),
        "fence" => format!("coalesce({asked}, next)"),
        "grant_fence" => written("fence", from),
        "pardoned" | "mismatches" | "duplicates" => format!("coalesce({asked}, 0)"),
        "scope" => format!("string_to_array({asked}, chr(31))"),
        _ => asked,
    }
}

/// One row, answered like a swap that lost.
fn look() -> String {
    format!(
        "SELECT a.id, NULL::bigint, {NOW}, CASE WHEN r.id IS NOT NULL THEN {} END \
         FROM (SELECT $1::bytea AS id) a LEFT JOIN semel_records r ON r.id = a.id",
        shown("r")
    )
}

/// The moment alone.
const MOMENT: &str = "SELECT statement_timestamp()";

/// A commit that waits for the synchronous standby, and changes no table: whatever was visible before it is on the standby
/// once it is back. Its column: the oldest transaction that was not over when it began.
const BARRIER: &str = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM \
     (SELECT pg_logical_emit_message(true, 'semel', '')) AS waited";

/// Raises versions above all that a former primary gave out: a promoted standby may lack its last ones. Once for each
/// timeline of each server; a number for each of 4,294,967,296 writes that the standby may have missed, and no number that
/// the clock has passed, so that they grow also over a restored backup.
pub(crate) fn raise_versions(system: i64, timeline: u32) -> String {
    format!(
        "WITH first AS (\
             INSERT INTO semel_timelines (system, timeline) VALUES ({system}, {timeline}) \
             ON CONFLICT (system, timeline) DO NOTHING RETURNING 1) \
         SELECT setval('semel_version', greatest(nextval('semel_version') + 4294967296, \
             (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)) FROM first"
    )
}

/// The rows of some ids, if there are any: place, now, row.
fn load() -> String {
    format!(
        "SELECT a.place, {NOW}, CASE WHEN r.id IS NOT NULL THEN {} END \
         FROM unnest($1::bytea[]) WITH ORDINALITY AS a(id, place) LEFT JOIN semel_records r ON r.id = a.id",
        shown("r")
    )
}

/// Removes what is past its keep: now, how many. Rows that others hold are left to them, so any number of processes
/// may sweep. It does not wait for the disk: a record past its keep that a crash brings back means the same as none.
const SWEEP: &str = "WITH unhurried AS MATERIALIZED (\
         SELECT set_config('synchronous_commit', 'off', true)), \
     due AS MATERIALIZED (\
         SELECT id FROM semel_records WHERE keep_until <= statement_timestamp() \
         ORDER BY keep_until LIMIT $1 FOR UPDATE SKIP LOCKED), \
     gone AS (DELETE FROM semel_records r USING due WHERE r.id = due.id RETURNING 1) \
     SELECT statement_timestamp(), (SELECT count(*) FROM gone) FROM unhurried";

/// A page in the order of ids: now, the id where looking ended (null: at the end), id and row (null if none is to be
/// shown).
/// Parameters: after, how many to look at, how many to show, then what [`scan_conditions`] says.
pub(crate) fn scan(scan: &Scan) -> String {
    format!(
        "WITH look AS MATERIALIZED (SELECT \
             (SELECT id FROM semel_records WHERE id > $1 {narrowed} ORDER BY id OFFSET $2 LIMIT 1) AS edge) \
         SELECT {NOW}, look.edge, r.id, r.shown FROM look LEFT JOIN LATERAL (\
             SELECT id, {shown} AS shown FROM semel_records r \
             WHERE id > $1 {narrowed} AND (look.edge IS NULL OR id <= look.edge) AND {conditions} \
             ORDER BY id LIMIT $3) r ON true",
        narrowed = narrowed(scan),
        shown = shown("r"),
        conditions = scan_conditions(scan),
    )
}

/// What an index answers: records that are held, or will be once their lease lapses, are kept for ever, and few others are.
fn narrowed(scan: &Scan) -> &'static str {
    if scan.filter.states == [StateKind::Held] { "AND keep_until IS NULL" } else { "" }
}

/// Whether a row is in this state at the statement's moment. A run whose lease lapsed under `hold` is held.
fn is_in(state: StateKind) -> String {
    let lapsed = format!("r.lapse = 'hold' AND r.leased_at + r.lease <= {NOW}");
    match state {
        StateKind::Running => format!("r.state = 'running' AND NOT ({lapsed})"),
        StateKind::Held => format!("r.state = 'held' OR (r.state = 'running' AND {lapsed})"),
        StateKind::Done | StateKind::Released => format!("r.state = '{}'", state.as_str()),
    }
}

/// What has to be looked at, row by row. Its parameters, in this order: scope, operation, name, first seen before.
fn scan_conditions(scan: &Scan) -> String {
    let filter = &scan.filter;
    let mut parameter = 4..;
    let mut conditions = Vec::new();
    let mut add = |wanted: bool, condition: &str| {
        if wanted && let Some(n) = parameter.next() {
            conditions.push(condition.replace('$', &format!("${n}")));
        }
    };
    add(!filter.scope.is_empty(), "r.scope[1:cardinality($::text[])] = $::text[]");
    add(filter.operation.is_some(), "r.operation = $::text");
    add(filter.name.is_some(), "r.name = $::text");
    add(filter.first_seen_before.is_some(), "r.first_seen_at < $::timestamptz");
    let states: Vec<_> = filter.states.iter().map(|state| format!("({})", is_in(*state))).collect();
    if !states.is_empty() {
        conditions.push(format!("({})", states.join(" OR ")));
    }
    conditions.insert(0, "true".into());
    conditions.join(" AND ")
}
