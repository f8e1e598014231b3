//! Disks that fail: at every call that changes something, at every read, for want of room, and under many callers.

mod full_disk;
mod nth_change;
mod nth_read;
mod threaded;
