//! What RFC 9112 has a word on, bent: status lines, interim answers, fields, lengths, codings, chunks and ends.

use super::case::{Case, Means};

/// The body of most answers. What follows its first word looks like another answer.
const BODY: &str = "charged HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle";

fn must() -> Means {
    Means::Must(BODY.into())
}

fn body() -> Means {
    Means::Body(BODY.into())
}

fn nothing() -> Means {
    Means::Nothing
}

fn empty() -> Means {
    Means::Body(Vec::new())
}

fn length() -> String {
    format!("Content-Length: {}", BODY.len())
}

fn chunked() -> String {
    format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len())
}

pub(super) fn cases() -> Vec<Case> {
    [
        status_lines(),
        interim(),
        fields(),
        lengths(),
        both(),
        codings(),
        chunks(),
        bodiless(),
        ends(),
        cut_short(),
    ]
    .concat()
}

fn status_lines() -> Vec<Case> {
    [
        ("HTTP/1.1 200 OK\r\n", must()),
        ("HTTP/1.0 200 OK\r\n", must()),
        ("HTTP/1.1 200 \r\n", body()),
        ("HTTP/1.1 200\r\n", body()),
        ("HTTP/1.1 999 Odd\r\n", body()),
        ("HTTP/1.1 200 caf\u{e9}\r\n", body()),
        ("HTTP/1.1 200 OK\n", body()),
        ("\r\nHTTP/1.1 200 OK\r\n", body()),
        ("HTTP/1.2 200 OK\r\n", body()),
        ("HTTP/1.1  200 OK\r\n", body()),
        ("HTTP/1.1\t200 OK\r\n", body()),
        ("HTTP/2.0 200 OK\r\n", nothing()),
        ("HTTP/0.9 200 OK\r\n", nothing()),
        ("http/1.1 200 OK\r\n", nothing()),
        ("HTTP/1.1 20 OK\r\n", nothing()),
        ("HTTP/1.1 2000 OK\r\n", nothing()),
        ("HTTP/1.1 099 OK\r\n", nothing()),
        ("HTTP/1.1 +200 OK\r\n", nothing()),
        ("HTTP/1.1 abc OK\r\n", nothing()),
        ("HTTP/1.1 200 O\0K\r\n", nothing()),
        ("HTTP/1.1 200 O\rK\r\n", nothing()),
        ("ICY 200 OK\r\n", nothing()),
        ("GET / HTTP/1.1\r\n", nothing()),
        (" HTTP/1.1 200 OK\r\n", nothing()),
        ("\0", nothing()),
        ("", nothing()),
    ]
    .map(|(line, means)| {
        Case::http1(&format!("status line {line:?}"), format!("{line}{}\r\n\r\n{BODY}", length()), means)
    })
    .into()
}

fn interim() -> Vec<Case> {
    let last = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n{BODY}", length());
    let before = [
        ("100", "HTTP/1.1 100 Continue\r\n\r\n".to_owned(), must()),
        ("103 with a field", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_owned(), must()),
        ("199", "HTTP/1.1 199 Odd\r\n\r\n".to_owned(), body()),
        ("100 with a length", "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n".to_owned(), body()),
        ("102 with chunks", "HTTP/1.1 102 On\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), body()),
        ("1000 times 102", "HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000), body()),
        ("101 that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(), nothing()),
        (
            "101 to HTTP/2",
            "HTTP/1.1 101 On\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n".to_owned(),
            nothing(),
        ),
    ];
    let mut cases: Vec<_> = before
        .map(|(name, before, means)| {
            Case::http1(&format!("interim {name}"), format!("{before}{last}"), means)
        })
        .into();
    let flood = "HTTP/1.1 102 Processing\r\n\r\n".repeat(20_000);
    cases.push(Case::http1("interim answers and no last one", flood, nothing()));
    cases
}

fn fields() -> Vec<Case> {
    let big = format!("X: {}\r\n", "x".repeat(1 << 20));
    let many = "X: y\r\n".repeat(5_000);
    let lines = [
        ("one more", "X: y\r\n", must()),
        ("empty value", "X:\r\n", must()),
        ("no space", "X:y\r\n", must()),
        ("tab", "X:\ty\r\n", body()),
        ("not ASCII", "X: caf\u{e9}\r\n", body()),
        ("folded", "X: a\r\n b\r\n", body()),
        ("folded length", "X: a\r\n Content-Length: 3\r\n", body()),
        ("bare LF", "X: y\nY: z\n", body()),
        ("bare LF before a length", "X: y\nContent-Length: 3\r\n", nothing()),
        ("bare CR", "X: y\rContent-Length: 3\r\n", nothing()),
        ("NUL in a value", "X: a\0b\r\n", nothing()),
        ("NUL in a name", "X\0: y\r\n", nothing()),
        ("space before the colon", "X : y\r\n", body()),
        ("no colon", "X y\r\n", nothing()),
        ("no name", ": y\r\n", nothing()),
        ("space in a name", "X Y: z\r\n", nothing()),
        ("leading space", " X: y\r\n", body()),
        ("names the length", "Connection: content-length\r\n", body()),
        ("names nothing", "Connection: ,, ,\r\n", body()),
        ("upgrade", "Connection: upgrade\r\nUpgrade: h2c\r\n", body()),
        ("cookies", "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n", must()),
        ("says that it replays", "Idempotent-Replayed: true\r\n", body()),
        ("a megabyte", &big, body()),
        ("five thousand", &many, body()),
    ];
    let case = |(name, lines, means): (&str, &str, Means)| {
        let bytes = format!("HTTP/1.1 200 OK\r\n{lines}{}\r\n\r\n{BODY}", length());
        Case::http1(&format!("fields: {name}"), bytes, means)
    };
    lines.map(case).into()
}

fn lengths() -> Vec<Case> {
    let exact = BODY.len();
    let values = [
        (format!("0{exact}"), body()),
        (format!("{exact}, {exact}"), body()),
        (format!("{exact}\r\nContent-Length: {exact}"), body()),
        (format!(" {exact} "), must()),
        (format!("+{exact}"), nothing()),
        (format!("-{exact}"), nothing()),
        (format!("{exact}.0"), nothing()),
        (format!("{exact}, 3"), nothing()),
        (format!("3\r\nContent-Length: {exact}"), nothing()),
        (format!("{exact}\r\nContent-Length: 3"), nothing()),
        (format!("{exact};q=1"), nothing()),
        (format!("0x{exact:x}"), nothing()),
        (format!("{exact} 3"), nothing()),
        ("18446744073709551615".to_owned(), nothing()),
        ("18446744073709551616".to_owned(), nothing()),
        ("99999".to_owned(), nothing()),
        (String::new(), nothing()),
        (",".to_owned(), nothing()),
        ("seven".to_owned(), nothing()),
        ("7".to_owned(), Means::Body(b"charged".to_vec())),
        ("0".to_owned(), empty()),
    ];
    let case = |(value, means): (String, Means)| {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\n{BODY}");
        Case::http1(&format!("length {value:?}"), bytes, means).staying()
    };
    values.map(case).into()
}

/// RFC 9112, 6.3: chunks go before a length.
fn both() -> Vec<Case> {
    let heads = [
        "Content-Length: 7\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 7",
        "content-length: 7\r\ntransfer-encoding: CHUNKED",
        "Content-Length: 7\r\nContent-Length: 7\r\nTransfer-Encoding: chunked",
        "Content-Length: 7\r\nTransfer-Encoding: chunked\r\nContent-Length: 9",
        "Content-Length: seven\r\nTransfer-Encoding: chunked",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "Content-Length: 9999\r\nTransfer-Encoding: chunked",
        "Content-Length: 7\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked",
    ];
    let case = |head: &str| {
        let bytes = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{}", chunked());
        Case::http1(&format!("length and chunks: {head:?}"), bytes, body()).staying()
    };
    heads.into_iter().map(case).collect()
}

fn codings() -> Vec<Case> {
    let values = [
        ("Chunked", must()),
        ("chunked ", body()),
        (", chunked", body()),
        ("chunked,", body()),
        ("gzip, chunked", nothing()),
        ("gzip\r\nTransfer-Encoding: chunked", nothing()),
        ("chunked, chunked", nothing()),
        ("chunked\r\nTransfer-Encoding: chunked", nothing()),
        ("chunked, gzip", nothing()),
        ("identity", nothing()),
        ("chunked, identity", nothing()),
        ("identity, chunked", nothing()),
        ("xchunked", nothing()),
        ("chunked;q=1", nothing()),
        ("\"chunked\"", nothing()),
        ("", nothing()),
        ("\u{b}chunked", nothing()),
    ];
    let mut cases: Vec<_> = values
        .map(|(value, means)| {
            let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {value}\r\n\r\n{}", chunked());
            Case::http1(&format!("coding {value:?}"), bytes, means)
        })
        .into();
    for name in ["Transfer-Encoding ", "Transfer_Encoding", "Transfer-Encoding\t"] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{name}: chunked\r\n{}\r\n\r\n{BODY}", length());
        cases.push(Case::http1(&format!("coding by the name {name:?}"), bytes, body()));
    }
    let old = format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}", chunked());
    cases.push(Case::http1("coding in HTTP/1.0", old, nothing()));
    cases
}

fn chunks() -> Vec<Case> {
    let size = format!("{:x}", BODY.len());
    let long = "x".repeat(1 << 20);
    let streams = [
        ("one", chunked(), must()),
        ("upper case", format!("{}\r\n{BODY}\r\n0\r\n\r\n", size.to_uppercase()), must()),
        ("zeros before", format!("000{size}\r\n{BODY}\r\n000\r\n\r\n"), body()),
        ("an extension", format!("{size};a=b\r\n{BODY}\r\n0;c\r\n\r\n"), body()),
        ("a quoted extension", format!("{size};a=\"b;c\"\r\n{BODY}\r\n0\r\n\r\n"), body()),
        ("a long extension", format!("{size};{long}\r\n{BODY}\r\n0\r\n\r\n"), body()),
        ("space after the size", format!("{size} \r\n{BODY}\r\n0\r\n\r\n"), body()),
        ("space before the size", format!(" {size}\r\n{BODY}\r\n0\r\n\r\n"), body()),
        ("bare LF after the size", format!("{size}\n{BODY}\r\n0\r\n\r\n"), body()),
        ("bare LF in an extension", format!("{size};a\nb\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("bare LF after the data", format!("{size}\r\n{BODY}\n0\r\n\r\n"), nothing()),
        ("0x", format!("0x{size}\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("a sign", format!("+{size}\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("a minus", format!("-{size}\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("no number", format!("zz\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("no size", format!("\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("17 digits", format!("fffffffffffffffff\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("16 digits", format!("ffffffffffffffff\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("shorter than its data", format!("5\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("longer than its data", format!("fff\r\n{BODY}\r\n0\r\n\r\n"), nothing()),
        ("nothing after the data", format!("{size}\r\n{BODY}0\r\n\r\n"), nothing()),
        ("no last chunk", format!("{size}\r\n{BODY}\r\n"), nothing()),
        ("no end of the last chunk", format!("{size}\r\n{BODY}\r\n0\r\n"), nothing()),
        ("trailers", format!("{size}\r\n{BODY}\r\n0\r\nX-Sum: 1\r\n\r\n"), must()),
        (
            "forbidden trailers",
            format!("{size}\r\n{BODY}\r\n0\r\nContent-Length: 3\r\nSet-Cookie: a\r\n\r\n"),
            body(),
        ),
        ("trailers without an end", format!("{size}\r\n{BODY}\r\n0\r\nX-Sum: 1\r\n"), nothing()),
        ("a trailer without a colon", format!("{size}\r\n{BODY}\r\n0\r\nX-Sum\r\n\r\n"), nothing()),
        ("a megabyte of trailers", format!("{size}\r\n{BODY}\r\n0\r\nX: {long}\r\n\r\n"), body()),
        ("thousand trailers", format!("{size}\r\n{BODY}\r\n0\r\n{}\r\n", "X: y\r\n".repeat(1_000)), body()),
        (
            "bytes after the end",
            format!("{}HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle", chunked()),
            body(),
        ),
    ];
    let case = |(name, stream, means): (&str, String, Means)| {
        let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{stream}");
        Case::http1(&format!("chunks: {name}"), bytes, means)
    };
    streams.map(case).into()
}

/// Answers that have no body, whatever they say.
fn bodiless() -> Vec<Case> {
    let framed = |first: &str| {
        [
            format!("{first}{}\r\n\r\n{BODY}", length()),
            format!("{first}Transfer-Encoding: chunked\r\n\r\n{}", chunked()),
        ]
    };
    let mut cases = Vec::new();
    for (name, bytes) in ["length", "chunks"].into_iter().zip(framed("HTTP/1.1 204 No Content\r\n")) {
        cases.push(Case::http1(&format!("204 with {name}"), bytes, empty()).staying());
    }
    for (name, bytes) in ["length", "chunks"].into_iter().zip(framed("HTTP/1.1 304 Not Modified\r\n")) {
        cases.push(Case::http1(&format!("304 with {name}"), bytes, empty()).staying());
    }
    for (name, bytes) in ["length", "chunks"].into_iter().zip(framed("HTTP/1.1 200 OK\r\n")) {
        cases.push(Case::http1(&format!("HEAD with {name}"), bytes, empty()).for_head().staying());
    }
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n";
    cases.push(Case::http1("HEAD with length and chunks and no body", both, empty()).for_head().staying());
    let odd = "HTTP/1.1 200 OK\r\nContent-Length: +7, 9\r\n\r\n";
    cases.push(Case::http1("HEAD with two lengths", odd, empty()).for_head().staying());
    cases
}

fn ends() -> Vec<Case> {
    let whole = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n{BODY}", length());
    let twice = format!("{whole}HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle");
    vec![
        Case::http1("two answers to one request", twice.clone(), body()).staying(),
        Case::http1("two answers, then the end", twice, body()),
        Case::http1("bytes after the body", format!("{whole}\r\n\r\n\0\0junk"), body()).staying(),
        Case::http1("until the end", format!("HTTP/1.1 200 OK\r\n\r\n{BODY}"), must()),
        Case::http1(
            "until the end, which does not come",
            format!("HTTP/1.1 200 OK\r\n\r\n{BODY}"),
            nothing(),
        )
        .staying(),
        Case::http1("the end alone", "", nothing()),
        Case::http1("nothing at all", "", nothing()).staying(),
        Case::http1("before the request is read", whole.clone(), body()).at_once(),
        Case::http1("before the request is read, and stays", whole, body()).at_once().staying(),
        Case::http1("a TLS alert", b"\x15\x03\x01\0\x02\x02\x46".to_vec(), nothing()),
        Case::http1("frames of HTTP/2", b"\0\0\0\x04\0\0\0\0\0".to_vec(), nothing()),
    ]
}

/// The connection ends at each byte of an answer.
fn cut_short() -> Vec<Case> {
    let framings = [
        ("length", "HTTP/1.1 201 Made\r\nContent-Length: 8\r\n\r\nabcdefgh"),
        (
            "chunks",
            "HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\ndefgh\r\n0\r\nX: y\r\n\r\n",
        ),
    ];
    let cases = framings.into_iter().flat_map(|(name, whole)| {
        (1..whole.len()).step_by(2).map(move |cut| {
            let part = whole.get(..cut).unwrap_or_default();
            Case::http1(&format!("{name}: cut after {cut} bytes"), part, nothing())
        })
    });
    cases.collect()
}
