//! What is done to a disk, one entry a call that changes something.

/// The number of a file, which it keeps whatever it is called.
pub(crate) type FileNumber = usize;

/// One call that changes something, or makes a change last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A name for a new file; or, if the name is taken, the end of that file's content.
    Create {
        name: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Remove {
        name: String,
    },
    SyncNames,
    Write {
        file: FileNumber,
        offset: usize,
        bytes: Vec<u8>,
    },
    SetBytes {
        file: FileNumber,
        bytes: usize,
    },
    Sync {
        file: FileNumber,
    },
}
