//! Every shape there is.

use super::shape::Shape;
use super::{chunks, codings, lengths, lines, refused, second};

/// All of them, fresh: no two share a mark or a key.
pub(super) fn all() -> Vec<Shape> {
    [
        codings::shapes(),
        lengths::shapes(),
        chunks::shapes(),
        lines::shapes(),
        refused::shapes(),
        second::shapes(),
    ]
    .concat()
}

/// How many there are.
pub fn shapes() -> usize {
    all().len()
}

/// So many: every so-many-th of all, or all of them again and again.
pub(super) fn some(count: usize) -> Vec<Shape> {
    let mut shapes = all();
    while shapes.len() < count {
        shapes.extend(all());
    }
    let have = shapes.len();
    let is_wanted = |at: usize| (at + 1) * count / have > at * count / have;
    shapes.into_iter().enumerate().filter(|(at, _)| is_wanted(*at)).map(|(_, shape)| shape).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn there_are_more_than_two_hundred_and_no_two_are_alike() {
        let shapes = all();
        let names: HashSet<_> = shapes.iter().map(|shape| &shape.name).collect();
        assert!(names.len() == shapes.len() && shapes.len() > 200, "{} of {}", names.len(), shapes.len());
        for count in [1, 50, shapes.len(), shapes.len() + 7] {
            assert_eq!(some(count).len(), count);
        }
    }

    #[test]
    fn every_shape_hides_a_request_of_its_own() {
        for shape in all() {
            let text = String::from_utf8_lossy(&shape.bytes).into_owned();
            let of_its_own = text.contains(&shape.of("smuggled")) && text.contains(&shape.mark);
            assert!(of_its_own, "{}", shape.name);
        }
    }
}
