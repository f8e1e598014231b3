//! Breadth first through every state, so that the first broken promise comes with its shortest story.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::moves::{Move, World};
use super::rules::Broken;
use super::state::State;

/// What a search that broke no promise went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Searched {
    pub(super) states: usize,
    pub(super) transitions: usize,
    pub(super) depth: usize,
}

/// A broken promise, and what happened up to it.
#[derive(Clone, Debug)]
pub(super) struct Story {
    pub(super) broken: Broken,
    pub(super) moves: Vec<Move>,
}

pub(super) fn search(world: &mut World) -> Result<Searched, Story> {
    let first = State::first(world.bounds.callers, world.bounds.mishaps);
    let mut seen: HashSet<State, BuildHasherDefault<Mix>> = HashSet::default();
    seen.insert(first);
    let mut states = vec![first];
    let mut came_by: Vec<(usize, Move)> = vec![(0, Move::Tick)];
    let (mut transitions, mut depth, mut level_end) = (0, 0, 1);
    let mut moves = Vec::new();
    let mut at = 0;
    while at < states.len() {
        if at == level_end {
            (depth, level_end) = (depth + 1, states.len());
        }
        world.moves(&states[at], &mut moves);
        for (step, next) in moves.drain(..) {
            transitions += 1;
            let next = next.map_err(|broken| Story { broken, moves: story(&came_by, at, step) })?;
            if seen.insert(next) {
                states.push(next);
                came_by.push((at, step));
            }
        }
        at += 1;
    }
    Ok(Searched { states: states.len(), transitions, depth })
}

fn story(came_by: &[(usize, Move)], mut at: usize, last: Move) -> Vec<Move> {
    let mut moves = vec![last];
    while at > 0 {
        let (before, step) = came_by[at];
        moves.push(step);
        at = before;
    }
    moves.reverse();
    moves
}

/// Mixes the small numbers that a state is made of; states are compared whole, so this need only be quick.
#[derive(Default)]
struct Mix(u64);

impl Mix {
    fn mix(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.mix(u64::from(value));
    }

    fn write_isize(&mut self, value: isize) {
        self.mix(value.cast_unsigned() as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
}
