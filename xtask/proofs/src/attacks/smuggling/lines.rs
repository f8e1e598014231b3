//! First lines and fields, written well and badly; whom a request is for; and what a connection is told beside it.

use super::shape::{Draft, Kind, Right, Shape};

/// More than any head may be.
const LONG: usize = 300_000;

pub(super) fn shapes() -> Vec<Shape> {
    let of = |kind| [first_lines(kind), hosts(kind), fields(kind), connections(kind), long(kind)].concat();
    Kind::ALL.into_iter().flat_map(of).collect()
}

/// A request with a body, of which the first line is another.
fn first(kind: Kind, name: &str, line: &str, is_fine: bool) -> Shape {
    let draft = Draft::new(kind);
    let hidden = draft.hidden();
    let line = line.replace("~M", kind.method()).replace("~T", &draft.target());
    let length = hidden.len();
    let head = format!("{line}Host: api.test\r\n{}Content-Length: {length}\r\n\r\n{hidden}", draft.usual());
    let right = if is_fine { Right::Passed(hidden.into_bytes()) } else { Right::Refused };
    draft.whole(&format!("first line: {name}"), head.into_bytes(), right)
}

fn first_lines(kind: Kind) -> Vec<Shape> {
    let bent = [
        ("HTTP/0.9", "~M ~T\r\n"),
        ("no version, LF", "~M ~T\n"),
        ("version 2.0", "~M ~T HTTP/2.0\r\n"),
        ("version 1.10", "~M ~T HTTP/1.10\r\n"),
        ("version 01.1", "~M ~T HTTP/01.1\r\n"),
        ("version with a letter after it", "~M ~T HTTP/1.1x\r\n"),
        ("version half said", "~M ~T HTTP/1.\r\n"),
        ("version in small letters", "~M ~T http/1.1\r\n"),
        ("version of another protocol", "~M ~T ICAP/1.1\r\n"),
        ("two targets", "~M ~T /smuggled/x HTTP/1.1\r\n"),
        ("a request in the target", "~M ~T HTTP/1.1 HTTP/1.1\r\n"),
        ("NUL in the target", "~M ~T\0 HTTP/1.1\r\n"),
        ("CR in the target", "~M ~T\r/x HTTP/1.1\r\n"),
        ("tab in the target", "~M ~T\tx HTTP/1.1\r\n"),
        ("no method", " ~T HTTP/1.1\r\n"),
        ("method with a colon", "~M: ~T HTTP/1.1\r\n"),
        ("method with NUL", "~M\0 ~T HTTP/1.1\r\n"),
        ("method in brackets", "(~M) ~T HTTP/1.1\r\n"),
        ("target that is a name", "~M shape HTTP/1.1\r\n"),
        ("target that is empty", "~M  HTTP/1.1\r\n"),
        ("target of another protocol", "~M ftp://api.test~T HTTP/1.1\r\n"),
    ];
    let fine = [
        ("empty line before", "\r\n~M ~T HTTP/1.1\r\n"),
        ("empty lines before", "\r\n\r\n~M ~T HTTP/1.1\r\n"),
        ("LF before", "\n~M ~T HTTP/1.1\r\n"),
        ("LF alone", "~M ~T HTTP/1.1\n"),
        ("version 1.2", "~M ~T HTTP/1.2\r\n"),
        ("version 1.0", "~M ~T HTTP/1.0\r\n"),
        ("two spaces", "~M  ~T HTTP/1.1\r\n"),
        ("tabs", "~M\t~T\tHTTP/1.1\r\n"),
        ("space at the end", "~M ~T HTTP/1.1 \r\n"),
        ("line end in the target, escaped", "~M ~T?a=%0d%0aHost:%20other HTTP/1.1\r\n"),
        ("request in the target, escaped", "~M ~T?a=%20HTTP/1.1%0d%0a%0d%0aGET%20/smuggled HTTP/1.1\r\n"),
        ("absolute target", "~M http://api.test~T HTTP/1.1\r\n"),
        ("absolute target of another host", "~M http://other.test~T HTTP/1.1\r\n"),
        ("absolute target with a user", "~M http://u:p@api.test~T HTTP/1.1\r\n"),
        ("absolute target with https", "~M https://api.test~T HTTP/1.1\r\n"),
        ("target with two slashes", "~M //other.test~T HTTP/1.1\r\n"),
        ("target with dots", "~M /a/..~T HTTP/1.1\r\n"),
        ("target with a fragment", "~M ~T#smuggled HTTP/1.1\r\n"),
        ("target with a backslash", "~M ~T\\smuggled HTTP/1.1\r\n"),
        ("target with high bytes", "~M ~T?\u{e9} HTTP/1.1\r\n"),
    ];
    let bent = bent.map(|(name, line)| first(kind, name, line, false));
    bent.into_iter().chain(fine.map(|(name, line)| first(kind, name, line, true))).collect()
}

/// A request with a body that is for these hosts.
fn hosts(kind: Kind) -> Vec<Shape> {
    let bent = [
        ("two", "Host: api.test\r\nHost: other.test\r\n"),
        ("two alike", "Host: api.test\r\nHost: api.test\r\n"),
        ("none", ""),
        ("with a space", "Host: api.test other.test\r\n"),
        ("with a path", "Host: api.test/smuggled\r\n"),
        ("with two ports", "Host: api.test:80:81\r\n"),
        ("with a port that is none", "Host: api.test:8x\r\n"),
        ("with a user", "Host: u@api.test\r\n"),
        ("list", "Host: api.test, other.test\r\n"),
        ("with a space before the colon", "Host : other.test\r\nHost: api.test\r\n"),
        ("with NUL", "Host: api.test\0\r\n"),
        ("with high bytes", "Host: api\u{e9}.test\r\n"),
    ];
    let shape = |(name, lines): (&str, &str)| {
        let draft = Draft::new(kind);
        let hidden = draft.hidden();
        let (line, usual, length) = (draft.first_line(), draft.usual(), hidden.len());
        let bytes = format!("{line}{lines}{usual}Content-Length: {length}\r\n\r\n{hidden}").into_bytes();
        // It is clear where it ends, so the next may be read; its own answer is no.
        draft.whole(&format!("host: {name}"), bytes, Right::Answered(&[400, 421]))
    };
    bent.map(shape).into()
}

/// A field that hides chunks from some: the length covers all, chunks would end before the hidden request.
fn fields(kind: Kind) -> Vec<Shape> {
    let bent = [
        ("without a colon", "X\r\n"),
        ("without a name", ": x\r\n"),
        ("with a space in its name", "X Y: z\r\n"),
        ("with a bracket in its name", "X(Y): z\r\n"),
        ("with high bytes in its name", "Transfer\u{ad}Encoding: chunked\r\n"),
        ("with CR in its name", "X\rTransfer-Encoding: chunked\r\n"),
        ("with NUL in its name", "X\0: z\r\n"),
    ];
    let fine = [
        ("folded", "X: a\r\n Transfer-Encoding: chunked\r\n"),
        ("folded with a tab", "X: a\r\n\tTransfer-Encoding: chunked\r\n"),
        ("folded twice", "X: a\r\n b\r\n Transfer-Encoding: chunked\r\n"),
        ("CR in a value", "X: a\rTransfer-Encoding: chunked\r\n"),
        ("two CR", "X: a\r\r\n"),
        ("NUL in a value", "X: a\0b\r\n"),
        ("control in a value", "X: a\u{1}b\r\n"),
        ("another name", "Transfer_Encoding: chunked\r\nX-Transfer-Encoding: chunked\r\n"),
        ("next line of Unicode", "X: a\u{85}Transfer-Encoding: chunked\r\n"),
        ("line separator of Unicode", "X: a\u{2028}Transfer-Encoding: chunked\r\n"),
        ("letters that look alike", "X: \u{560d}\u{560a}Transfer-Encoding: chunked\r\n"),
    ];
    let shape = |name: &str, line: &str, is_fine: bool| {
        let draft = Draft::new(kind);
        let body = format!("0\r\n\r\n{}", draft.hidden());
        let lines = format!("Content-Length: {}\r\n{line}", body.len());
        let right = if is_fine { Right::Passed(body.clone().into_bytes()) } else { Right::Refused };
        draft.with(&format!("field: {name}"), lines.as_bytes(), body.as_bytes(), right)
    };
    let mut shapes: Vec<_> = bent.map(|(name, line)| shape(name, line, false)).into();
    shapes.extend(fine.map(|(name, line)| shape(name, line, true)));
    shapes.extend([folded(kind, "Content-Length:\r\n ~"), folded(kind, "Content-Length: ~\r\n ")]);
    shapes.extend([
        line_fed(kind, "X: a\nTransfer-Encoding: chunked\r\n"),
        line_fed(kind, "Transfer-Encoding: chunked\n"),
    ]);
    shapes
}

/// A length in a line that is folded: put together, it is the length.
fn folded(kind: Kind, line: &str) -> Shape {
    let draft = Draft::new(kind);
    let hidden = draft.hidden();
    let lines = format!("{}\r\n", line.replace('~', &hidden.len().to_string()));
    let right = Right::Passed(hidden.clone().into_bytes());
    draft.with(&format!("field: {}", line.escape_debug()), lines.as_bytes(), hidden.as_bytes(), right)
}

/// A line feed ends a line for some: then there are a length and chunks, and chunks go first.
fn line_fed(kind: Kind, line: &str) -> Shape {
    let draft = Draft::new(kind);
    let body = format!("0\r\n\r\n{}", draft.hidden());
    let lines = format!("Content-Length: {}\r\n{line}", body.len());
    draft.with(
        &format!("field: {}", line.escape_debug()),
        lines.as_bytes(),
        body.as_bytes(),
        Right::Passed(Vec::new()),
    )
}

/// What a connection is told beside a request: none of it may change where the request ends.
fn connections(kind: Kind) -> Vec<Shape> {
    let lines = [
        "Connection: content-length\r\n",
        "Connection: keep-alive, Content-Length, host\r\n",
        "Connection: host\r\n",
        "Connection: idempotency-key\r\n",
        "Connection: transfer-encoding\r\n",
        "Connection: authorization\r\n",
        "Connection: close, x\r\nX: y\r\n",
        "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n",
        "TE: trailers\r\nConnection: TE\r\n",
        "Expect: 100-continue\r\n",
        "Expect: 200-ok\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
        "Content-Encoding: chunked\r\n",
        "Content-Type: multipart/byteranges; boundary=a\r\n",
    ];
    let by_length = |line: &str| {
        let draft = Draft::new(kind);
        let hidden = draft.hidden();
        let lines = format!("Content-Length: {}\r\n{line}", hidden.len());
        let right = Right::Passed(hidden.clone().into_bytes());
        draft.with(&format!("length and {}", line.escape_debug()), lines.as_bytes(), hidden.as_bytes(), right)
    };
    let by_chunks = |line: &str| {
        let draft = Draft::new(kind);
        let hidden = draft.hidden();
        let body = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
        let lines = format!("Transfer-Encoding: chunked\r\n{line}");
        let right = Right::Passed(hidden.into_bytes());
        draft.with(&format!("chunks and {}", line.escape_debug()), lines.as_bytes(), body.as_bytes(), right)
    };
    let mut shapes: Vec<_> = lines.map(by_length).into();
    shapes.extend(lines.map(by_chunks));
    shapes.extend([old(kind, "", "keep-alive"), old(kind, "Content-Length: 5\r\n", "keep-alive")]);
    shapes
}

/// HTTP/1.0 knows no chunks: refused, or read by them and closed.
fn old(kind: Kind, length: &str, connection: &str) -> Shape {
    let draft = Draft::new(kind);
    let hidden = draft.hidden();
    let line =
        format!("{} {} HTTP/1.0\r\nHost: api.test\r\n{}", kind.method(), draft.target(), draft.usual());
    let fields = format!("Connection: {connection}\r\n{length}Transfer-Encoding: chunked\r\n\r\n");
    let bytes = format!("{line}{fields}{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len()).into_bytes();
    let name = format!("HTTP/1.0 with chunks {}", length.escape_debug());
    draft.whole(&name, bytes, Right::Passed(hidden.into_bytes()))
}

/// Heads without end.
fn long(kind: Kind) -> Vec<Shape> {
    let lines = [
        ("a value", format!("X: {}\r\n", "a".repeat(LONG))),
        ("a name", format!("{}: x\r\n", "a".repeat(LONG))),
        ("many fields", "X-Many: aaaaaaaaaa\r\n".repeat(LONG / 20)),
    ];
    let field = |(name, line): (&str, String)| {
        let draft = Draft::new(kind);
        let hidden = draft.hidden();
        let lines = format!("Content-Length: {}\r\n{line}", hidden.len());
        draft.with(&format!("too long: {name}"), lines.as_bytes(), hidden.as_bytes(), Right::Refused)
    };
    let mut shapes: Vec<_> = lines.map(field).into();
    shapes.push(first(kind, "too long", &format!("~M ~T?{} HTTP/1.1\r\n", "a".repeat(LONG)), false));
    shapes
}
