//! What a request must look like that everybody reads the same way: the service judges what the proxy sends it.

/// Fields that say where a message ends, or whom it is for: not to be said after it.
const NOT_IN_TRAILERS: [&str; 4] = ["content-length", "transfer-encoding", "host", "idempotency-key"];

/// Why others might read this head in another way; nothing if nobody could.
pub(super) fn faults(head: &[u8], trailers: &[u8]) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(head) = head.strip_suffix(b"\r\n\r\n") else { return vec!["its head has no end".to_owned()] };
    let mut lines = split(head).into_iter();
    request_line(lines.next().unwrap_or_default(), &mut faults);
    let fields: Vec<_> = lines.filter_map(|line| field(line, &mut faults)).collect();
    framing(&fields, &mut faults);
    for line in split(trailers.strip_suffix(b"\r\n").unwrap_or(trailers)) {
        if line.is_empty() {
            continue;
        }
        let name = field(line, &mut faults).map(|(name, _)| name).unwrap_or_default();
        if NOT_IN_TRAILERS.contains(&name.as_str()) {
            faults.push(format!("`{name}` in a trailer"));
        }
    }
    faults
}

/// Lines that end as they should: what ends otherwise stays in one, and is seen there.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut lines, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(2).position(|here| here == b"\r\n") {
        lines.push(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    lines.push(rest);
    lines
}

fn request_line(line: &[u8], faults: &mut Vec<String>) {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words.as_slice() else {
        return faults.push(format!("its first line is `{}`", line.escape_ascii()));
    };
    if method.is_empty() || !method.iter().all(|byte| is_token(*byte)) {
        faults.push(format!("its method is `{}`", method.escape_ascii()));
    }
    if !target.starts_with(b"/") && *target != b"*" || !target.iter().all(u8::is_ascii_graphic) {
        faults.push(format!("its target is `{}`", target.escape_ascii()));
    }
    if *version != b"HTTP/1.1" {
        faults.push(format!("its version is `{}`", version.escape_ascii()));
    }
}

fn field(line: &[u8], faults: &mut Vec<String>) -> Option<(String, String)> {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        faults.push(format!("a line `{}`", line.escape_ascii()));
        return None;
    };
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        faults.push(format!("a field named `{}`", name.escape_ascii()));
    }
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        faults.push(format!("a value `{}`", value.escape_ascii()));
    }
    let text = |bytes| String::from_utf8_lossy(bytes).to_ascii_lowercase();
    Some((text(name), text(value)))
}

/// One host, and one way to find the end.
fn framing(fields: &[(String, String)], faults: &mut Vec<String>) {
    let of = |name: &str| -> Vec<&str> {
        fields.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect()
    };
    let (hosts, lengths, codings) = (of("host"), of("content-length"), of("transfer-encoding"));
    if hosts.len() != 1 {
        faults.push(format!("{} hosts", hosts.len()));
    }
    if lengths.len() > 1 || lengths.iter().any(|length| !length.bytes().all(|byte| byte.is_ascii_digit())) {
        faults.push(format!("lengths {lengths:?}"));
    }
    if !codings.is_empty() && codings != ["chunked"] {
        faults.push(format!("codings {codings:?}"));
    }
    if !codings.is_empty() && !lengths.is_empty() {
        faults.push("a length and chunks".to_owned());
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_all_read_alike_has_no_fault() {
        for fields in ["", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\nX:\ta b\r\n"] {
            let head = format!("POST /a?b=%0d HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            assert_eq!(faults(head.as_bytes(), b"X-Sum: 1\r\n"), [] as [String; 0]);
        }
    }

    #[test]
    fn every_way_to_be_read_in_two_ways_is_a_fault() {
        for fields in [
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding : chunked\r\n",
            "X: a\r\n Transfer-Encoding: chunked\r\n",
            "X: a\nTransfer-Encoding: chunked\r\n",
            "X: a\rTransfer-Encoding: chunked\r\n",
            "X: \0\r\n",
            "Host: other\r\n",
            "no colon\r\n",
        ] {
            let head = format!("POST /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            assert!(!faults(head.as_bytes(), b"").is_empty(), "{fields:?}");
        }
        assert!(!faults(b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", b"").is_empty());
        assert!(!faults(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", b"Content-Length: 1\r\n").is_empty());
    }
}
