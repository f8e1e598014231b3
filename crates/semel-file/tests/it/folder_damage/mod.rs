//! What people and tools do to a folder: every file cut, zeroed, removed, swapped, replaced by an older copy.
//!
//! - `sample`: stores worth damaging, closed and killed. `damage`: what is done to a file.
//! - `verdict`: what open, verify, repair and the count of records may say about it: whole, or refused with the file's
//!   name and the next step; never silently less.
//! - `table`: every file with every damage. `copies`: whole folders, copied and restored. `rights`: files that may not
//!   be read.

mod copies;
mod damage;
mod rights;
mod sample;
mod table;
mod verdict;
