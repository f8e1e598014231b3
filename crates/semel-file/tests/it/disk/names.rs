//! Which name stands for which file: now, and after a power cut.

use std::collections::BTreeMap;

use super::operation::FileNumber;
use super::survival::Survival;
use crate::dice::Dice;

/// The names of a disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    present: BTreeMap<String, FileNumber>,
    durable: BTreeMap<String, FileNumber>,
    /// What each name became since the last sync, in order.
    changes: BTreeMap<String, Vec<Option<FileNumber>>>,
}

impl Names {
    pub(crate) fn get(&self, name: &str) -> Option<FileNumber> {
        self.present.get(name).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, FileNumber)> {
        self.present.iter().map(|(name, file)| (name, *file))
    }

    /// Lets a name stand for a file, or for none.
    pub(crate) fn set(&mut self, name: &str, file: Option<FileNumber>) {
        put(&mut self.present, name, file);
        self.changes.entry(name.to_owned()).or_default().push(file);
    }

    pub(crate) fn sync(&mut self) {
        self.durable.clone_from(&self.present);
        self.changes.clear();
    }

    /// As they are found after a power cut: each name on its own.
    pub(crate) fn cut(&self, survival: Survival, dice: &mut Dice) -> Self {
        let mut found = self.durable.clone();
        for (name, changes) in &self.changes {
            let lasting = survival.of(changes.len(), dice);
            if let Some(last) = lasting.checked_sub(1) {
                put(&mut found, name, changes[last]);
            }
        }
        Self { present: found.clone(), durable: found, changes: BTreeMap::new() }
    }
}

fn put(names: &mut BTreeMap<String, FileNumber>, name: &str, file: Option<FileNumber>) {
    match file {
        Some(file) => names.insert(name.to_owned(), file),
        None => names.remove(name),
    };
}
