//! Lengths, said well and badly.

use super::shape::{Draft, Kind, Right, Shape};

/// Lengths that are none, or several: `N` stands for the real one.
const BENT: [&str; 34] = [
    "Content-Length: 0\r\nContent-Length: N\r\n",
    "Content-Length: N\r\nContent-Length: 0\r\n",
    "Content-Length: N\r\nContent-Length: 3\r\n",
    "Content-Length: 0, N\r\n",
    "Content-Length: N, 0\r\n",
    "Content-Length: N,\r\n",
    "Content-Length: N 0\r\n",
    "Content-Length: N\r\ncontent-length: 1\r\n",
    "Content-Length: -N\r\n",
    "Content-Length: +N\r\n",
    "Content-Length: 0xN\r\n",
    "Content-Length: NN0000000000000000000000\r\n",
    "Content-Length: 18446744073709551616\r\n",
    "Content-Length: 18446744073709551615\r\n",
    "Content-Length: 9223372036854775808\r\n",
    "Content-Length: N.0\r\n",
    "Content-Length: Ne0\r\n",
    "Content-Length: N;a=b\r\n",
    "Content-Length: \"N\"\r\n",
    "Content-Length: N_0\r\n",
    "Content-Length: Nb\r\n",
    "Content-Length: N\0\r\n",
    "Content-Length: \0N\r\n",
    "Content-Length: \u{b}N\r\n",
    "Content-Length: N\u{b}\r\n",
    "Content-Length: \u{661}N\r\n",
    "Content-Length:\r\n",
    "Content-Length: \r\n",
    "Content-Length : N\r\n",
    "Content-Length\t: N\r\n",
    "Content-Length\0: N\r\n",
    "Content Length: N\r\n",
    "\u{b}Content-Length: N\r\n",
    "Content-Length N\r\n",
];

/// Lengths that everybody reads alike, or refuses.
const FINE: [&str; 8] = [
    "Content-Length: N\r\n",
    "content-length:N\r\n",
    "Content-Length:\tN\t\r\n",
    "Content-Length: 000N\r\n",
    "Content-Length: 00000000000000000000000000000N\r\n",
    "Content-Length: N\r\nContent-Length: N\r\n",
    "Content-Length: N, N\r\n",
    "Content-Length: N\r\nX-Content-Length: 0\r\nContent_Length: 0\r\n",
];

pub(super) fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for kind in Kind::ALL {
        shapes.extend(BENT.map(|lines| shape(kind, lines, false)));
        shapes.extend(FINE.map(|lines| shape(kind, lines, true)));
    }
    shapes
}

fn shape(kind: Kind, lines: &str, is_fine: bool) -> Shape {
    let draft = Draft::new(kind);
    let hidden = draft.hidden();
    // No name has a capital N in it.
    let lines = lines.replace('N', &hidden.len().to_string());
    let right = if is_fine { Right::Passed(hidden.clone().into_bytes()) } else { Right::Refused };
    let name = format!("CL {}", lines.escape_debug());
    draft.with(&name, lines.as_bytes(), hidden.as_bytes(), right)
}
