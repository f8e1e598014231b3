//! Responses in a row of bytes.

/// One response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether all of it is there.
    pub(crate) is_whole: bool,
    /// How many bytes it took.
    pub(crate) bytes: usize,
}

impl Answer {
    /// The value of a field, if it is there once or more: the first.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// An answer of which only the body can be read: what it says of itself.
    pub(crate) fn of_body(body: Vec<u8>) -> Self {
        let text = String::from_utf8_lossy(&body).into_owned();
        let after = |name: &str| text.split_once(name).map(|(_, after)| after);
        let target = after("\"for\":\"").and_then(|after| after.split_once('"')).map(|(target, _)| target);
        let fields = target.map(|target| ("saw".to_owned(), format!("- {target}"))).into_iter().collect();
        let status =
            after("\"status\":").and_then(|after| after.get(..3)).and_then(|status| status.parse().ok());
        let status = status.unwrap_or(if target.is_some() { 201 } else { 400 });
        Self { status, fields, body, is_whole: true, bytes: 0 }
    }

    /// Whether it is a stored answer.
    pub(crate) fn is_replay(&self) -> bool {
        self.field("idempotent-replayed") == Some("true")
    }

    /// The machine-readable code of a refusal.
    pub(crate) fn code(&self) -> Option<String> {
        let body = String::from_utf8_lossy(&self.body);
        let (_, after) = body.split_once("\"code\":\"")?;
        after.split_once('"').map(|(code, _)| code.to_owned())
    }

    /// The first answer in these bytes; `None` if not even a head is there. Interim answers are left out.
    pub(crate) fn first(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        loop {
            let mut answer = head(rest)?;
            let skipped = bytes.len().saturating_sub(rest.len());
            if (100..200).contains(&answer.status) && answer.status != 101 {
                rest = rest.get(answer.bytes..)?;
                continue;
            }
            let after = rest.get(answer.bytes..).unwrap_or_default();
            let (body, length, is_whole) = body(&answer, after);
            answer.bytes += length + skipped;
            (answer.body, answer.is_whole) = (body, is_whole);
            return Some(answer);
        }
    }
}

/// Every answer in these bytes, and what follows the last whole one.
pub(crate) fn answers(mut bytes: &[u8]) -> (Vec<Answer>, Vec<u8>) {
    let mut all = Vec::new();
    while let Some(answer) = Answer::first(bytes).filter(|answer| answer.is_whole) {
        bytes = bytes.get(answer.bytes..).unwrap_or_default();
        all.push(answer);
    }
    (all, bytes.to_vec())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|here| here == wanted)
}

fn head(bytes: &[u8]) -> Option<Answer> {
    let end = find(bytes, b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
    let mut lines = text.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    Some(Answer { status, fields, bytes: end + 4, ..Answer::default() })
}

/// The body, how many bytes it takes, and whether it is all there.
fn body(answer: &Answer, bytes: &[u8]) -> (Vec<u8>, usize, bool) {
    if matches!(answer.status, 101 | 204 | 304) {
        return (Vec::new(), 0, true);
    }
    if answer.field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return chunks(bytes);
    }
    // Without a length it goes on to the end of the line: what there is.
    let Some(length) = answer.field("content-length") else { return (bytes.to_vec(), bytes.len(), true) };
    let length = length.parse().unwrap_or(usize::MAX);
    let there = bytes.get(..length);
    (there.unwrap_or(bytes).to_vec(), length.min(bytes.len()), there.is_some())
}

fn chunks(bytes: &[u8]) -> (Vec<u8>, usize, bool) {
    let (mut at, mut body) = (0, Vec::new());
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(end) = find(rest, b"\r\n") else { return (body, bytes.len(), false) };
        let size = rest.get(..end).map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        let size = size.split(';').next().unwrap_or_default();
        let Ok(size) = usize::from_str_radix(size, 16) else { return (body, bytes.len(), false) };
        let Some(chunk) = rest.get(end + 2..).and_then(|rest| rest.get(..size)) else {
            return (body, bytes.len(), false);
        };
        body.extend_from_slice(chunk);
        at += end + 2 + size + 2;
        if at > bytes.len() {
            return (body, bytes.len(), false);
        }
        if size == 0 {
            return (body, at, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_a_row_are_told_apart() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 204 No\r\n\r\n\
            HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nHTTP/1.1 2";
        let (answers, rest) = answers(bytes);
        let found: Vec<_> = answers.iter().map(|answer| (answer.status, answer.body.as_slice())).collect();
        assert_eq!(found, [(200, b"ab".as_slice()), (204, b""), (201, b"abc")]);
        assert_eq!(rest, b"HTTP/1.1 2");
    }

    #[test]
    fn an_answer_that_breaks_off_is_not_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for cut in 0..whole.len() {
            assert!(!Answer::first(&whole[..cut]).is_some_and(|answer| answer.is_whole), "{cut}");
        }
        assert!(Answer::first(whole).unwrap().is_whole);
    }

    #[test]
    fn a_refusal_says_its_code() {
        let answer = Answer { body: br#"{"status":409,"code":"in_flight"}"#.to_vec(), ..Answer::default() };
        assert_eq!(answer.code().as_deref(), Some("in_flight"));
    }
}
