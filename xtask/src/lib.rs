//! What the project's commands are made of: other programs are run, and installed where they are missing.

pub mod needs;
pub mod run;
