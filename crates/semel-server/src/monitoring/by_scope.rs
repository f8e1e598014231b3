//! Something for each scope that somebody may ask for.

use std::collections::HashMap;

use semel::clock::Timestamp;
use semel::record::Record;

use semel_ops::lookup::Counted;

/// How many of the oldest are remembered for each scope.
const OLDEST_MAX: usize = 50;
/// How many scopes are counted at most. Tokens are written by people: there are never so many.
const SCOPES_MAX: usize = 4_096;

/// A tree of scopes: a record finds those that it belongs to in as many looks as its own scope has parts, however many
/// are counted.
#[derive(Debug)]
pub(super) struct ByScope<T> {
    root: Node<T>,
    wanted: usize,
}

#[derive(Debug)]
struct Node<T> {
    here: Option<T>,
    below: HashMap<Box<str>, Self>,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self { here: None, below: HashMap::new() }
    }
}

impl<T> Default for ByScope<T> {
    fn default() -> Self {
        Self { root: Node::default(), wanted: 0 }
    }
}

impl<T: Default> ByScope<T> {
    /// From now on there is something for this scope, unless there are too many.
    pub(super) fn want(&mut self, scope: &[Box<str>]) {
        if self.get(scope).is_some() || self.wanted >= SCOPES_MAX {
            return;
        }
        let node =
            scope.iter().fold(&mut self.root, |node, part| node.below.entry(part.clone()).or_default());
        node.here = Some(T::default());
        self.wanted = self.wanted.saturating_add(1);
    }
}

impl<T> ByScope<T> {
    /// What there is for this scope.
    pub(super) fn get(&self, scope: &[Box<str>]) -> Option<&T> {
        let node = scope.iter().try_fold(&self.root, |node, part| node.below.get(part))?;
        node.here.as_ref()
    }

    /// The same scopes, with nothing counted.
    pub(super) fn emptied(&self) -> ByScope<Counted> {
        ByScope { root: self.root.map_ref(&|_| Counted::default()), wanted: self.wanted }
    }

    /// The same scopes with something else for each; told whether it is the one of everything.
    pub(super) fn map<U>(self, each: impl Fn(bool, T) -> U) -> ByScope<U> {
        let Node { here, below } = self.root;
        let below = below.into_iter().map(|(part, node)| (part, node.map(&|here| each(false, here))));
        ByScope {
            root: Node { here: here.map(|here| each(true, here)), below: below.collect() },
            wanted: self.wanted,
        }
    }
}

impl<T: Default> ByScope<T> {
    /// Takes over what was found out meanwhile; keeps scopes that were wanted meanwhile.
    pub(super) fn replace(&mut self, found: Self) {
        let before = std::mem::replace(self, found);
        self.adopt(&before.root, &mut Vec::new());
    }

    fn adopt(&mut self, node: &Node<T>, scope: &mut Vec<Box<str>>) {
        if node.here.is_some() {
            self.want(scope);
        }
        for (part, node) in &node.below {
            scope.push(part.clone());
            self.adopt(node, scope);
            scope.pop();
        }
    }
}

impl ByScope<Counted> {
    /// Counts a record for each scope that it belongs to.
    pub(super) fn add(&mut self, record: &Record, now: Timestamp) {
        let mut node = &mut self.root;
        node.count(record, now);
        for part in record.key.scope() {
            let Some(below) = node.below.get_mut(part) else { return };
            below.count(record, now);
            node = below;
        }
    }
}

impl Node<Counted> {
    fn count(&mut self, record: &Record, now: Timestamp) {
        if let Some(counted) = &mut self.here {
            counted.add(record, now, OLDEST_MAX);
        }
    }
}

impl<T> Node<T> {
    fn map_ref<U>(&self, each: &impl Fn(&T) -> U) -> Node<U> {
        Node {
            here: self.here.as_ref().map(each),
            below: self.below.iter().map(|(part, node)| (part.clone(), node.map_ref(each))).collect(),
        }
    }

    fn map<U>(self, each: &impl Fn(T) -> U) -> Node<U> {
        Node {
            here: self.here.map(each),
            below: self.below.into_iter().map(|(part, node)| (part, node.map(each))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(parts: &[&str]) -> Vec<Box<str>> {
        parts.iter().map(|part| (*part).into()).collect()
    }

    #[test]
    fn only_what_was_wanted_is_there() {
        let mut tree = ByScope::<u8>::default();
        tree.want(&scope(&["acme", "eu"]));
        assert_eq!(tree.get(&scope(&["acme", "eu"])), Some(&0));
        assert_eq!(tree.get(&scope(&["acme"])), None);
        assert_eq!(tree.get(&[]), None);
    }

    #[test]
    fn a_scope_that_was_wanted_during_a_walk_is_not_forgotten_by_it() {
        let mut tree = ByScope::<u8>::default();
        tree.want(&scope(&["acme"]));
        let walked = tree.emptied().map(|_, _| 7);
        tree.want(&scope(&["zeta", "eu"]));
        tree.replace(walked);
        assert_eq!((tree.get(&scope(&["acme"])), tree.get(&scope(&["zeta", "eu"]))), (Some(&7), Some(&0)));
    }

    #[test]
    fn there_are_never_more_scopes_than_the_bound() {
        let mut tree = ByScope::<u8>::default();
        for number in 0..=SCOPES_MAX {
            tree.want(&[number.to_string().into()]);
        }
        assert_eq!((tree.wanted, tree.get(&[SCOPES_MAX.to_string().into()])), (SCOPES_MAX, None));
    }
}
