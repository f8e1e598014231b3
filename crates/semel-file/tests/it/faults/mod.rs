//! Disks that fail: at every call that changes something, at every read, and for want of room.

mod full_disk;
mod nth_change;
mod nth_read;
