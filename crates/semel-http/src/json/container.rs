//! The objects and arrays that are open while a text is read: their members so far, and which of them do not count.

use std::cmp::Ordering;

use super::canonical::Shape;
use super::order;
use super::path::{Child, JsonPath};
use super::pieces::{Piece, Rebuilt};

/// The open containers, outermost first.
pub(super) struct Containers<'a> {
    open: Vec<Container>,
    /// The members of all of them, one after the other: an allocation for each object would cost more than to read it.
    members: Vec<Member>,
    left_out: &'a [JsonPath],
    /// How many steps of each path led to where we are.
    steps_taken: Vec<usize>,
    /// How many containers were open when a child that does not count began.
    left_out_from: Option<usize>,
}

struct Container {
    shape: Shape,
    /// Where it was written.
    from: usize,
    members_from: usize,
    children: usize,
    /// Whether its members have to be written anew: in another order, or not all of them.
    is_rebuilt: bool,
}

/// A member or an element, and where it was written.
struct Member {
    from: usize,
    name_to: usize,
    to: usize,
    counts: bool,
}

impl Member {
    /// The inside of its name.
    fn name<'w>(&self, written: &'w [u8]) -> &'w [u8] {
        match written.get(self.from..self.name_to) {
            Some([b'"', inside @ .., b'"']) => inside,
            _ => &[],
        }
    }
}

impl<'a> Containers<'a> {
    pub(super) fn new(left_out: &'a [JsonPath]) -> Self {
        Self {
            open: Vec::with_capacity(8),
            members: Vec::with_capacity(16),
            left_out,
            steps_taken: vec![0; left_out.len()],
            left_out_from: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// What kind the innermost is.
    pub(super) fn shape(&self) -> Option<Shape> {
        self.open.last().map(|container| container.shape)
    }

    /// Whether what is read now does not count.
    pub(super) fn is_left_out(&self) -> bool {
        self.left_out_from.is_some()
    }

    pub(super) fn open(&mut self, shape: Shape, from: usize) {
        let members_from = self.members.len();
        self.open.push(Container { shape, from, members_from, children: 0, is_rebuilt: false });
    }

    /// Notes a member whose name was written at `from..name_to`. `None` if there was one of its name just before.
    pub(super) fn begin_member(&mut self, from: usize, name_to: usize, written: &[u8]) -> Option<()> {
        if self.is_left_out() {
            return Some(());
        }
        let member = Member { from, name_to, to: name_to, counts: true };
        let name = member.name(written);
        let container = self.open.last_mut()?;
        if let Some(before) = self.members.get(container.members_from..)?.last() {
            match order::compare(before.name(written), name) {
                Ordering::Less => {}
                Ordering::Equal => return None,
                Ordering::Greater => container.is_rebuilt = true,
            }
        }
        let counts = self.counts(&Child::Member(name));
        self.note(Member { counts, ..member });
        Some(())
    }

    /// Notes an element that will be written at `from`.
    pub(super) fn begin_element(&mut self, from: usize) {
        // Elements stay in their order, so nobody asks for them unless some can be left out.
        if self.is_left_out() || self.left_out.is_empty() {
            return;
        }
        let Some(array) = self.open.last_mut() else { return };
        let index = array.children;
        array.children = index.saturating_add(1);
        let counts = self.counts(&Child::Element(index));
        self.note(Member { from, name_to: from, to: from, counts });
    }

    fn note(&mut self, member: Member) {
        if !member.counts {
            self.left_out_from = Some(self.open.len());
            if let Some(container) = self.open.last_mut() {
                container.is_rebuilt = true;
            }
        }
        self.members.push(member);
    }

    /// Whether a child of the innermost container counts. Takes one more step of the paths that lead on through it.
    fn counts(&mut self, child: &Child<'_>) -> bool {
        let level = self.open.len().saturating_sub(1);
        let mut counts = true;
        for (path, taken) in self.left_out.iter().zip(&mut self.steps_taken) {
            if *taken < level {
                continue;
            }
            // Whatever an earlier child led to, this one leads elsewhere.
            *taken = level;
            let Some((step, more)) = path.steps_from(level) else { continue };
            if step.leads_to(child) {
                *taken = level.saturating_add(1);
                counts &= !more.is_empty();
            }
        }
        counts
    }

    /// Notes that the child's value was written, up to `to`.
    pub(super) fn end_child(&mut self, to: usize) {
        if self.left_out_from.is_some_and(|depth| depth != self.open.len()) {
            return;
        }
        self.left_out_from = None;
        let Some(container) = self.open.last() else { return };
        if let Some([.., member]) = self.members.get_mut(container.members_from..) {
            member.to = to;
        }
    }

    /// Closes the innermost container. `None` if two of its members have one name.
    pub(super) fn close(&mut self, written: &[u8], rebuilt: &mut Rebuilt) -> Option<()> {
        let container = self.open.pop()?;
        if container.is_rebuilt {
            let members = self.members.get_mut(container.members_from..)?;
            if container.shape == Shape::Object {
                members.sort_unstable_by(|a, b| order::compare(a.name(written), b.name(written)));
                if members.windows(2).any(|pair| matches!(pair, [a, b] if a.name(written) == b.name(written)))
                {
                    return None;
                }
            }
            let counted = members.iter().filter(|member| member.counts);
            let pieces = counted.map(|member| Piece { from: member.from, to: member.to });
            rebuilt.push(container.shape, Piece { from: container.from, to: written.len() }, pieces);
        }
        self.members.truncate(container.members_from);
        Some(())
    }
}
