//! semel on PostgreSQL.
