//! Small programs that show semel at work; each is a file in `src/bin`.
//!
//! - `charge_once`: clients that retry, and a charge that happens once all the same.
//! - `take_over`: a worker that dies half-way, and the one that goes on after it.
