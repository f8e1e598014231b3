//! What the help says at its end.

/// Which stores there are.
pub(super) const STORES: &str = "Stores:\n  \
    file:FOLDER                       on this machine's disk, for one process (default file:./semel-data)\n  \
    postgres://USER@HOST/DATABASE     shared by many machines; the password in the URL, or in PGPASSWORD\n  \
    redis://HOST, rediss://HOST       shared by many machines, with TLS\n  \
    redis+cluster://HOST,HOST         a Redis Cluster; redis+sentinel://HOST for Sentinel\n  \
    memory:                           inside this process: only for bench";

/// What to try first.
pub(super) const EXAMPLES: &str = "Examples:\n  \
    semel demo                                       see it work, in a few seconds\n  \
    semel proxy --upstream http://127.0.0.1:3000     safe retries for any HTTP service\n  \
    semel serve                                      keys for workers in every language, and a dashboard\n  \
    semel consume --source file:orders.jsonl --pipeline billing --exec ./bill
  \
    semel stats                                      how many records, and which are stuck?\n  \
    semel keys list --state held                     what waits for a person\n  \
    semel keys show 3f2a9c0d                         everything about one of them\n  \
    semel --store postgres://db/semel check          does the store keep its promise?\n  \
    semel bench --store memory: --keys 1000000       what can a store do here?\n\n\
    Ends with code 0 if all went well, 1 if something is wrong or could not be done, 2 if the arguments\n\
    mean nothing. `semel help COMMAND` explains every option and every number.";
