//! Requests that the proxy answers itself, with bodies that it may not have read: the next request must not be read from them.

use super::shape::{Before, Draft, Kind, REQUEST_BYTES_MAX, Right, Shape};
use crate::attacks::ask::Framing;

/// Bodies: none to speak of, one that fits into a packet, and some that do not fit into buffers.
const TIMES: [usize; 4] = [1, 20, 500, 20_000];

pub(super) fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for framing in [Framing::Length, Framing::Chunks] {
        for times in TIMES {
            for expects in ["", "Expect: 100-continue\r\n"] {
                shapes.extend(all(framing, times, expects));
            }
        }
    }
    shapes
}

fn all(framing: Framing, times: usize, expects: &str) -> [Shape; 5] {
    let fits = hidden_bytes() * times <= REQUEST_BYTES_MAX;
    let or_too_large = |status: &'static [u16]| if fits { status } else { &[400, 409, 413, 422] };
    let bent = |name: &str, fields: &str, right: &'static [u16]| {
        shape(&format!("{name} {expects:?}"), framing, times, &format!("{expects}{fields}"), right)
    };
    [
        bent("two keys", "Idempotency-Key: two\r\n", or_too_large(&[400])),
        bent("a key that is none", "Idempotency-Key: a,b\r\n", or_too_large(&[400])),
        bent("replayed", "", if fits { &[201] } else { &[413] }).after(Before::Done),
        bent("mismatch", "", or_too_large(&[422])).after(Before::OtherDone),
        bent("mismatch with what runs", "", or_too_large(&[422])).after(Before::OtherRunning),
    ]
}

fn hidden_bytes() -> usize {
    Draft::new(Kind::Covered).hidden().len()
}

fn shape(name: &str, framing: Framing, times: usize, fields: &str, right: &'static [u16]) -> Shape {
    let draft = Draft::new(Kind::Covered);
    let hidden = draft.hidden().repeat(times);
    let (length, body) = match framing {
        Framing::Length => (format!("Content-Length: {}\r\n", hidden.len()), hidden),
        Framing::Chunks => {
            let body = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
            ("Transfer-Encoding: chunked\r\n".to_owned(), body)
        }
    };
    let lines = format!("{length}{fields}");
    let name = format!("answered: {name}, {framing:?}, {times} hidden");
    draft.with(&name, lines.as_bytes(), body.as_bytes(), Right::Answered(right))
}
