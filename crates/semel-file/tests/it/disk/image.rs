//! A whole disk as a value: operations are done to it, and a power cut makes another of it.

use std::io;

use super::content::Content;
use super::names::Names;
use super::operation::{FileNumber, Operation};
use super::survival::Survival;
use crate::dice::Dice;

/// Names and files, with what would be lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    names: Names,
    files: Vec<Content>,
}

impl Image {
    /// Does one operation.
    pub(crate) fn apply(&mut self, operation: &Operation) -> io::Result<()> {
        match operation {
            Operation::Create { name } => {
                if let Some(file) = self.names.get(name) {
                    self.files[file].set_bytes(0);
                } else {
                    self.names.set(name, Some(self.files.len()));
                    self.files.push(Content::default());
                }
            }
            Operation::Rename { from, to } => {
                let file = self.find(from)?;
                self.names.set(to, Some(file));
                self.names.set(from, None);
            }
            Operation::Remove { name } => {
                self.find(name)?;
                self.names.set(name, None);
            }
            Operation::SyncNames => self.names.sync(),
            Operation::Write { file, offset, bytes } => self.files[*file].write(*offset, bytes),
            Operation::SetBytes { file, bytes } => self.files[*file].set_bytes(*bytes),
            Operation::Sync { file } => self.files[*file].sync(),
        }
        Ok(())
    }

    /// The file of this name.
    pub(crate) fn find(&self, name: &str) -> io::Result<FileNumber> {
        self.names.get(name).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, name.to_owned()))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&String, FileNumber)> {
        self.names.iter()
    }

    pub(crate) fn bytes(&self, file: FileNumber) -> &[u8] {
        self.files[file].bytes()
    }

    /// The disk with one byte changed by nobody.
    pub(crate) fn flipped(&self, file: FileNumber, offset: usize, mask: u8) -> Self {
        let mut image = self.clone();
        image.files[file].flip(offset, mask);
        image
    }

    /// The disk as it is found after a power cut that keeps what chance will.
    pub(crate) fn cut(&self, dice: &mut Dice) -> Self {
        self.cut_to(Survival::draw(dice), dice)
    }

    /// The disk as it is found after a power cut.
    pub(crate) fn cut_to(&self, survival: Survival, dice: &mut Dice) -> Self {
        let files = self.files.iter().map(|file| file.cut(survival, dice)).collect();
        Self { names: self.names.cut(survival, dice), files }
    }
}
