//! Disks that fail: at every call that changes something, at every read, for want of room, while a segment is prepared,
//! and under many callers.

mod full_disk;
mod nth_change;
mod nth_read;
mod preparing;
mod threaded;
