//! What RFC 9113 has a word on, bent: fields, ends of streams, lengths, frames that have no place, and windows.

use super::case::{Case, Means};
use crate::frames::{
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_BYTES_MAX, GOAWAY, HEADERS, INTERNAL_ERROR,
    NO_ERROR, PING, PUSH_PROMISE, REFUSED_STREAM, SETTINGS, WINDOW_UPDATE, block, frame, go_away, headers,
    literal, reset, setting, window_update, with_length,
};

const BODY: &[u8] = b"charged";
const OK: &[(&str, &str)] = &[(":status", "200")];
const PADDED: u8 = 8;
const PRIORITY: u8 = 2;

fn body() -> Means {
    Means::Body(BODY.to_vec())
}

fn must() -> Means {
    Means::Must(BODY.to_vec())
}

/// A head with these fields, and the body.
fn with(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    [headers(stream, fields, 0), frame(DATA, END_STREAM, stream, BODY)].concat()
}

fn whole(stream: u32) -> Vec<u8> {
    with(stream, OK)
}

/// These frames after a head, in place of a body.
fn after_head(stream: u32, rest: &[Vec<u8>]) -> Vec<u8> {
    [headers(stream, OK, 0), rest.concat()].concat()
}

pub(super) fn cases() -> Vec<Case> {
    [fields(), interim_and_trailers(), lengths(), ends(), misplaced(), of_the_connection(), sizes()].concat()
}

type Row = (&'static str, fn(u32) -> Vec<u8>, Means);

fn staying(rows: Vec<Row>) -> Vec<Case> {
    rows.into_iter().map(|(name, frames, means)| Case::http2(name, frames, means).staying()).collect()
}

fn fields() -> Vec<Case> {
    staying(vec![
        ("as it should be", whole, must()),
        ("a name in upper case", |s| with(s, &[(":status", "200"), ("X-Up", "y")]), Means::Nothing),
        ("no status", |s| with(s, &[("x", "y")]), Means::Nothing),
        ("two statuses", |s| with(s, &[(":status", "200"), (":status", "201")]), Means::Nothing),
        ("a status after a field", |s| with(s, &[("x", "y"), (":status", "200")]), Means::Nothing),
        ("status 20", |s| with(s, &[(":status", "20")]), Means::Nothing),
        ("status abc", |s| with(s, &[(":status", "abc")]), Means::Nothing),
        ("status 101", |s| with(s, &[(":status", "101")]), Means::Nothing),
        ("status 099", |s| with(s, &[(":status", "099")]), Means::Nothing),
        ("a path", |s| with(s, &[(":status", "200"), (":path", "/")]), body()),
        ("an unknown pseudo field", |s| with(s, &[(":status", "200"), (":odd", "y")]), Means::Nothing),
        ("connection", |s| with(s, &[(":status", "200"), ("connection", "close")]), body()),
        (
            "transfer-encoding",
            |s| with(s, &[(":status", "200"), ("transfer-encoding", "chunked")]),
            Means::Nothing,
        ),
        ("keep-alive", |s| with(s, &[(":status", "200"), ("keep-alive", "timeout=1")]), body()),
        ("upgrade", |s| with(s, &[(":status", "200"), ("upgrade", "h2c")]), body()),
        (
            "CRLF in a value",
            |s| with(s, &[(":status", "200"), ("x", "a\r\ncontent-length: 3")]),
            Means::Nothing,
        ),
        ("LF in a value", |s| with(s, &[(":status", "200"), ("x", "a\nb")]), Means::Nothing),
        ("NUL in a value", |s| with(s, &[(":status", "200"), ("x", "a\0b")]), Means::Nothing),
        ("CRLF in a name", |s| with(s, &[(":status", "200"), ("x\r\ny", "z")]), Means::Nothing),
        ("a colon in a name", |s| with(s, &[(":status", "200"), ("x:y", "z")]), Means::Nothing),
        ("a space in a name", |s| with(s, &[(":status", "200"), ("x y", "z")]), Means::Nothing),
        ("an empty name", |s| with(s, &[(":status", "200"), ("", "z")]), Means::Nothing),
        ("spaces around a value", |s| with(s, &[(":status", "200"), ("x", " y ")]), body()),
        ("not ASCII", |s| with(s, &[(":status", "200"), ("x", "caf\u{e9}")]), body()),
        ("garbage for fields", |s| frame(HEADERS, END_HEADERS | END_STREAM, s, &[0xff; 40]), Means::Nothing),
        ("a reference to nothing", |s| frame(HEADERS, END_HEADERS, s, &[0x80 | 0x7e]), Means::Nothing),
    ])
}

fn interim_and_trailers() -> Vec<Case> {
    staying(vec![
        (
            "an early hint",
            |s| [headers(s, &[(":status", "103"), ("link", "</a>")], 0), whole(s)].concat(),
            must(),
        ),
        ("an early hint that ends it", |s| headers(s, &[(":status", "103")], END_STREAM), Means::Nothing),
        (
            "a hundred early hints",
            |s| [headers(s, &[(":status", "103")], 0).repeat(100), whole(s)].concat(),
            body(),
        ),
        (
            "trailers",
            |s| after_head(s, &[frame(DATA, 0, s, BODY), headers(s, &[("x-sum", "1")], END_STREAM)]),
            must(),
        ),
        (
            "forbidden trailers",
            |s| {
                after_head(
                    s,
                    &[
                        frame(DATA, 0, s, BODY),
                        headers(s, &[("content-length", "3"), ("set-cookie", "a")], END_STREAM),
                    ],
                )
            },
            body(),
        ),
        (
            "trailers with a status",
            |s| after_head(s, &[frame(DATA, 0, s, BODY), headers(s, &[(":status", "200")], END_STREAM)]),
            body(),
        ),
        (
            "trailers that end nothing",
            |s| after_head(s, &[frame(DATA, 0, s, BODY), headers(s, &[("x", "1")], 0)]),
            Means::Nothing,
        ),
        (
            "data after trailers",
            |s| {
                after_head(
                    s,
                    &[
                        frame(DATA, 0, s, BODY),
                        headers(s, &[("x", "1")], END_STREAM),
                        frame(DATA, END_STREAM, s, b"more"),
                    ],
                )
            },
            body(),
        ),
    ])
}

fn lengths() -> Vec<Case> {
    staying(vec![
        ("its length", |s| with(s, &[(":status", "200"), ("content-length", "7")]), must()),
        ("a longer length", |s| with(s, &[(":status", "200"), ("content-length", "9")]), Means::Nothing),
        ("a shorter length", |s| with(s, &[(":status", "200"), ("content-length", "3")]), Means::Nothing),
        (
            "a length of nothing",
            |s| with(s, &[(":status", "200"), ("content-length", "0")]),
            Means::Body(Vec::new()),
        ),
        (
            "a length and no body",
            |s| headers(s, &[(":status", "200"), ("content-length", "7")], END_STREAM),
            Means::Nothing,
        ),
        (
            "two lengths",
            |s| with(s, &[(":status", "200"), ("content-length", "7"), ("content-length", "3")]),
            Means::Nothing,
        ),
        (
            "a length twice",
            |s| with(s, &[(":status", "200"), ("content-length", "7"), ("content-length", "7")]),
            body(),
        ),
        ("a list of lengths", |s| with(s, &[(":status", "200"), ("content-length", "7, 7")]), body()),
        ("a signed length", |s| with(s, &[(":status", "200"), ("content-length", "+7")]), Means::Nothing),
        ("zeros before a length", |s| with(s, &[(":status", "200"), ("content-length", "007")]), body()),
        (
            "a length that is none",
            |s| with(s, &[(":status", "200"), ("content-length", "seven")]),
            Means::Nothing,
        ),
        ("204 with a body", |s| with(s, &[(":status", "204")]), Means::Body(Vec::new())),
        ("304 with a body", |s| with(s, &[(":status", "304")]), Means::Body(Vec::new())),
    ])
}

fn ends() -> Vec<Case> {
    let rows: Vec<Row> = vec![
        ("refused", |s| reset(s, REFUSED_STREAM), Means::Nothing),
        ("reset", |s| reset(s, CANCEL), Means::Nothing),
        ("reset without a fault", |s| reset(s, NO_ERROR), Means::Nothing),
        ("reset after the head", |s| after_head(s, &[reset(s, INTERNAL_ERROR)]), Means::Nothing),
        ("refused after the head", |s| after_head(s, &[reset(s, REFUSED_STREAM)]), Means::Nothing),
        (
            "reset within the body",
            |s| after_head(s, &[frame(DATA, 0, s, b"char"), reset(s, CANCEL)]),
            Means::Nothing,
        ),
        (
            "reset without a fault within the body",
            |s| after_head(s, &[frame(DATA, 0, s, b"char"), reset(s, NO_ERROR)]),
            Means::Nothing,
        ),
        ("reset after the end", |s| [whole(s), reset(s, NO_ERROR)].concat(), body()),
        ("data after the end", |s| [whole(s), frame(DATA, END_STREAM, s, b"more")].concat(), body()),
        ("a second head after the end", |s| [whole(s), whole(s)].concat(), body()),
        ("nothing", |_| Vec::new(), Means::Nothing),
        ("a head and nothing", |s| headers(s, OK, 0), Means::Nothing),
        ("part of a body and nothing", |s| after_head(s, &[frame(DATA, 0, s, b"char")]), Means::Nothing),
        ("gone before the stream", |_| go_away(0, NO_ERROR), Means::Nothing),
        ("gone before the stream by a fault", |_| go_away(0, INTERNAL_ERROR), Means::Nothing),
        ("gone after the stream", |s| go_away(s, NO_ERROR), Means::Nothing),
        ("gone after the stream by a fault", |s| go_away(s, INTERNAL_ERROR), Means::Nothing),
        ("gone, and answered", |s| [go_away(s, NO_ERROR), whole(s)].concat(), body()),
        ("gone before the stream, and answered", |s| [go_away(0, NO_ERROR), whole(s)].concat(), body()),
        (
            "gone twice, the second time later",
            |s| [go_away(0, NO_ERROR), go_away(s, NO_ERROR)].concat(),
            Means::Nothing,
        ),
    ];
    let closing = rows
        .clone()
        .into_iter()
        .map(|(name, frames, means)| Case::http2(&format!("{name}, then the end"), frames, means));
    closing.collect::<Vec<_>>().into_iter().chain(staying(rows)).collect()
}

fn misplaced() -> Vec<Case> {
    staying(vec![
        ("data before the head", |s| [frame(DATA, 0, s, BODY), whole(s)].concat(), Means::Nothing),
        ("data of no stream", |s| [frame(DATA, 0, 0, BODY), whole(s)].concat(), body()),
        (
            "data of a stream that nobody opened",
            |s| [frame(DATA, END_STREAM, s + 20, BODY), whole(s)].concat(),
            body(),
        ),
        ("a head of a stream that nobody opened", |s| [whole(s + 20), whole(s)].concat(), body()),
        ("a head of a stream of the server", |s| [whole(2), whole(s)].concat(), body()),
        (
            "a promise",
            |s| {
                let payload = [
                    2_u32.to_be_bytes().to_vec(),
                    block(&[(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")]),
                ]
                .concat();
                [frame(PUSH_PROMISE, END_HEADERS, s, &payload), whole(s)].concat()
            },
            body(),
        ),
        (
            "more fields of no head",
            |s| [frame(CONTINUATION, END_HEADERS, s, &block(OK)), whole(s)].concat(),
            body(),
        ),
        (
            "data inside a head",
            |s| [frame(HEADERS, 0, s, &block(OK)), frame(DATA, END_STREAM, s, BODY)].concat(),
            Means::Nothing,
        ),
        (
            "a ping inside a head",
            |s| [frame(HEADERS, 0, s, &block(OK)), frame(PING, 0, 0, &[0; 8]), whole(s)].concat(),
            Means::Nothing,
        ),
        (
            "a head in three parts",
            |s| {
                let fields = block(&[(":status", "200"), ("x", "y")]);
                let (first, rest) = fields.split_at(3);
                [
                    frame(HEADERS, 0, s, first),
                    frame(CONTINUATION, 0, s, rest),
                    frame(CONTINUATION, END_HEADERS, s, &[]),
                    frame(DATA, END_STREAM, s, BODY),
                ]
                .concat()
            },
            must(),
        ),
        (
            "a head without an end",
            |s| [frame(HEADERS, 0, s, &block(OK)), frame(CONTINUATION, 0, s, &[]).repeat(5_000)].concat(),
            Means::Nothing,
        ),
    ])
}

fn of_the_connection() -> Vec<Case> {
    staying(vec![
        ("an unknown frame", |s| [frame(0xfa, 0xff, s, b"odd"), whole(s)].concat(), must()),
        ("a priority", |s| [frame(PRIORITY, 0, s, &[0, 0, 0, 0, 1]), whole(s)].concat(), body()),
        ("an answer to no ping", |s| [frame(PING, 1, 0, &[0; 8]), whole(s)].concat(), body()),
        ("a thousand pings", |s| [frame(PING, 0, 0, &[0; 8]).repeat(1_000), whole(s)].concat(), body()),
        ("a thousand settings", |s| [frame(SETTINGS, 0, 0, &[]).repeat(1_000), whole(s)].concat(), body()),
        ("settings of a stream", |s| [frame(SETTINGS, 0, s, &[]), whole(s)].concat(), body()),
        ("answer to no settings", |s| [frame(SETTINGS, 1, 0, &[]), whole(s)].concat(), body()),
        ("an end of a stream", |s| [frame(GOAWAY, 0, s, &[0; 8]), whole(s)].concat(), body()),
        (
            "text of HTTP/1.1",
            |_| b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncharged".to_vec(),
            Means::Nothing,
        ),
    ])
}

fn sizes() -> Vec<Case> {
    staying(vec![
        (
            "a frame that is too large",
            |s| after_head(s, &[frame(DATA, END_STREAM, s, &vec![b'x'; FRAME_BYTES_MAX + 1])]),
            Means::Nothing,
        ),
        (
            "a frame that says too much",
            |s| after_head(s, &[with_length(100, DATA, END_STREAM, s, BODY)]),
            Means::Nothing,
        ),
        (
            "a head of a megabyte",
            |s| {
                let fields = [block(OK), literal(b"x", &vec![b'x'; 1 << 20])].concat();
                let parts: Vec<_> = fields.chunks(FRAME_BYTES_MAX).collect();
                let last = parts.len() - 1;
                let part = |(at, part): (usize, &&[u8])| {
                    let (kind, flags) = (
                        if at == 0 { HEADERS } else { CONTINUATION },
                        if at == last { END_HEADERS } else { 0 },
                    );
                    frame(kind, flags, s, part)
                };
                [parts.iter().enumerate().flat_map(part).collect(), frame(DATA, END_STREAM, s, BODY)].concat()
            },
            body(),
        ),
        (
            "thousand empty frames",
            |s| after_head(s, &[frame(DATA, 0, s, &[]).repeat(1_000), frame(DATA, END_STREAM, s, BODY)]),
            body(),
        ),
        ("padding", |s| after_head(s, &[frame(DATA, END_STREAM | PADDED, s, b"\x02charged\0\0")]), must()),
        (
            "more padding than there is",
            |s| after_head(s, &[frame(DATA, END_STREAM | PADDED, s, b"\xffcharged")]),
            Means::Nothing,
        ),
        ("a window of nothing", |s| [window_update(s, 0), whole(s)].concat(), body()),
        ("a window of nothing for all", |s| [window_update(0, 0), whole(s)].concat(), body()),
        (
            "a window over its bound",
            |s| [window_update(s, 0x7fff_ffff), window_update(s, 0x7fff_ffff), whole(s)].concat(),
            body(),
        ),
        ("a window over its bound for all", |s| [window_update(0, 0x7fff_ffff), whole(s)].concat(), body()),
        ("a short window frame", |s| [frame(WINDOW_UPDATE, 0, s, &[0]), whole(s)].concat(), body()),
        ("a short reset", |s| frame(crate::frames::RST_STREAM, 0, s, &[0]), Means::Nothing),
        ("a short ping", |s| [frame(PING, 0, 0, &[0; 3]), whole(s)].concat(), body()),
        ("frames of one byte", |s| [setting(5, 1), whole(s)].concat(), body()),
        ("a first window over its bound", |s| [setting(4, 0x8000_0000), whole(s)].concat(), body()),
        ("no stream at all", |s| [setting(3, 0), whole(s)].concat(), body()),
        ("half a setting", |s| [frame(SETTINGS, 0, 0, &[0, 4, 0]), whole(s)].concat(), body()),
    ])
}
