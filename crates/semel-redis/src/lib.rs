//! semel on Redis.
