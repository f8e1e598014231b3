//! Arbitrary and damaged bytes: never a panic, and what is read is written back as it was.

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use semel::codec::{decode, encode};

use super::samples::{payload, samples, samples_2, sealed};

const INPUTS: u32 = 200_000;

#[test]
fn no_input_makes_the_reader_panic() {
    let mut random = SmallRng::seed_from_u64(0x5e3e1);
    let samples: Vec<Vec<u8>> = samples()
        .into_iter()
        .map(|(_, bytes, _)| bytes)
        .chain(samples_2().into_iter().map(|(_, record)| encode(&record).unwrap()))
        .collect();
    let mut accepted = 0;
    for _ in 0..INPUTS {
        let sample = &samples[random.random_range(0..samples.len())];
        let input = match random.random_range(0..8_u8) {
            0 => arbitrary(&mut random),
            1 => sealed(random.random_range(1..=2), &arbitrary(&mut random)),
            2 => damaged(&mut random, sample),
            _ => sealed(sample[4], &damaged(&mut random, payload(sample))),
        };
        if let Ok(record) = decode(&input) {
            let written = encode(&record).unwrap();
            // What is read from format 1 is written as format 2; of format 2 there is one spelling.
            let is_same = if input[4] == 2 { written == input } else { decode(&written).unwrap() == record };
            assert!(is_same, "{input:?}");
            accepted += 1;
        }
    }
    println!("fuzz: {INPUTS} inputs, {accepted} accepted");
    assert!(accepted > INPUTS / 100, "the damage is too coarse to reach the inner parts");
}

fn arbitrary(random: &mut SmallRng) -> Vec<u8> {
    let mut bytes = vec![0; random.random_range(0..64)];
    random.fill_bytes(&mut bytes);
    bytes
}

/// A few bytes changed, inserted, removed or repeated.
fn damaged(random: &mut SmallRng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..5_u8) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes.insert(at, random.random()),
            3 if bytes.len() > 1 => _ = bytes.remove(at),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}
