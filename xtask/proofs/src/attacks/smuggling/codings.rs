//! Transfer codings, said well and badly: alone, with a length that agrees with another end, and the other way round.

use super::shape::{Draft, Kind, Right, Shape};

/// Lines that mean chunks, however they are written.
const CHUNKED: [&str; 8] = [
    "Transfer-Encoding: chunked\r\n",
    "transfer-encoding: CHUNKED\r\n",
    "TRANSFER-ENCODING: Chunked\r\n",
    "Transfer-Encoding:chunked\r\n",
    "Transfer-Encoding:\tchunked\r\n",
    "Transfer-Encoding:   chunked  \r\n",
    "Transfer-Encoding: chunked\t\r\n",
    "Transfer-Encoding: , chunked\r\n",
];

/// Lines that mean nothing that anybody could rely on.
const BENT: [&str; 28] = [
    "Transfer-Encoding : chunked\r\n",
    "Transfer-Encoding\t: chunked\r\n",
    "Transfer-Encoding: xchunked\r\n",
    "Transfer-Encoding: chunkedx\r\n",
    "Transfer-Encoding: chunk\r\n",
    "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: chunked, chunked\r\n",
    "Transfer-Encoding: chunked, gzip\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Transfer-Encoding: \"chunked\"\r\n",
    "Transfer-Encoding: 'chunked'\r\n",
    "Transfer-Encoding: chunked;q=1\r\n",
    "Transfer-Encoding: chunked foo\r\n",
    "Transfer-Encoding: foo chunked\r\n",
    "Transfer-Encoding:\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
    "Transfer-Encoding: \u{b}chunked\r\n",
    "Transfer-Encoding: \u{c}chunked\r\n",
    "Transfer-Encoding: chunked\0\r\n",
    "Transfer-Encoding: chu\rnked\r\n",
    "Transfer-Encoding: \u{a0}chunked\r\n",
    "Transfer-Encoding\0: chunked\r\n",
    "Transfer-Encoding\u{b}: chunked\r\n",
    "\u{b}Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding chunked\r\n",
];

/// Where the length and the chunks end apart.
#[derive(Clone, Copy)]
enum Apart {
    /// Chunks alone.
    Alone,
    /// The length covers everything, chunks end before the hidden request.
    LengthLonger,
    /// Chunks cover everything, the length ends before the hidden request.
    LengthShorter,
}

pub(super) fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for kind in Kind::ALL {
        for apart in [Apart::Alone, Apart::LengthLonger, Apart::LengthShorter] {
            shapes.extend(CHUNKED.map(|line| shape(kind, apart, line, true)));
            shapes.extend(BENT.map(|line| shape(kind, apart, line, false)));
        }
    }
    shapes
}

fn shape(kind: Kind, apart: Apart, line: &str, is_chunked: bool) -> Shape {
    let draft = Draft::new(kind);
    let hidden = draft.hidden();
    let chunked = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
    let (class, length, body, decoded) = match apart {
        Apart::Alone => ("TE", None, chunked, hidden),
        Apart::LengthLonger => {
            let body = format!("0\r\n\r\n{hidden}");
            ("CL.TE", Some(body.len()), body, String::new())
        }
        Apart::LengthShorter => {
            let size_line = chunked.find('\n').map_or(0, |at| at + 1);
            ("TE.CL", Some(size_line), chunked, hidden)
        }
    };
    let length = length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
    let right = if is_chunked { Right::Passed(decoded.into_bytes()) } else { Right::Refused };
    let name = format!("{class} {}", line.escape_debug());
    // Which comes first is a way to be read, too.
    let lines =
        if line.len().is_multiple_of(2) { format!("{length}{line}") } else { format!("{line}{length}") };
    draft.with(&name, lines.as_bytes(), body.as_bytes(), right)
}
