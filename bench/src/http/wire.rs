//! Requests and answers as bytes: written by filling in numbers, read with as little as it takes to find a mistake.

use anyhow::{Context, Result, bail, ensure};

use super::api::{CHARGES, Charge, FIRST_RUN, ORDER, Order};

/// How many callers there are: request `n` is that of caller `n % CALLERS`, in its `Authorization` and in its session.
pub(super) const CALLERS: u64 = 1_000;
pub(super) const SESSION_COOKIE: &str = "session";
/// What a header that says "this is a replay" is called, here and by others.
const REPLAYED: [&str; 2] = ["idempotent-replayed", "idempotency-replayed"];
const NUMBER: &str = "############";
const CALLER: &str = "****";
/// A session is known by 16 bytes in base64. Whoever has such a cookie has a session: nobody needs to log in.
const SESSION: &str = "AAAAAAAAAAAAAAAAA****A";
const RUN_DIGITS: usize = 10;

/// The digits of one run of the handler.
pub(super) type Run = [u8; RUN_DIGITS];

/// The request of a window, the same for every contestant but for the key.
#[derive(Clone, Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
    numbers_at: Vec<usize>,
    callers_at: Vec<usize>,
}

impl Request {
    pub(super) fn new(has_key: bool) -> Result<Self> {
        let body = serde_json::to_string(&order(NUMBER))?;
        let key = if has_key {
            format!("Idempotency-Key: 8e03978e-40d5-4d2c-9a1b-{NUMBER}\r\n")
        } else {
            String::new()
        };
        let text = format!(
            "POST {CHARGES} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer caller-{CALLER}\r\n\
             Cookie: {SESSION_COOKIE}={SESSION}\r\n{key}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let (numbers_at, callers_at) = (places(&text, NUMBER), places(&text, CALLER));
        Ok(Self { bytes: text.into_bytes(), numbers_at, callers_at })
    }

    /// The request with this number.
    pub(super) fn of(&mut self, number: u64) -> &[u8] {
        fill(&mut self.bytes, &self.numbers_at, NUMBER.len(), number);
        fill(&mut self.bytes, &self.callers_at, CALLER.len(), number % CALLERS);
        &self.bytes
    }
}

/// The answer that every request must have.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    body: Vec<u8>,
    numbers_at: Vec<usize>,
    run_at: usize,
}

impl Answer {
    pub(super) fn new() -> Result<Self> {
        let text = serde_json::to_string(&Charge::of(order(NUMBER), FIRST_RUN))?;
        let run_at = text.find(&FIRST_RUN.to_string()).context("an answer has the number of its run")?;
        let numbers_at = places(&text, NUMBER);
        Ok(Self { body: text.into_bytes(), numbers_at, run_at })
    }

    /// Whether this is the whole right answer to the request with this number; which run it is of is taken from it.
    pub(super) fn run(&mut self, number: u64, body: &[u8]) -> Result<Run> {
        fill(&mut self.body, &self.numbers_at, NUMBER.len(), number);
        let digits = self.run_at..self.run_at + RUN_DIGITS;
        let found = body.get(digits.clone()).filter(|run| run.iter().all(u8::is_ascii_digit));
        let Some(found) = found else { bail!("request {number} was answered with {}", shown(body)) };
        self.body[digits].copy_from_slice(found);
        ensure!(self.body == body, "request {number} was answered with {}", shown(body));
        Ok(<Run>::try_from(found)?)
    }
}

/// The start of an answer, up to its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) is_replay: bool,
    /// Where the body starts.
    pub(crate) bytes: usize,
    pub(crate) body_bytes: usize,
}

impl Head {
    /// Reads it, if all of it is there.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>> {
        let mut head = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(line_end) = line.strip_suffix(b"\r\n") else { return Ok(None) };
            if head.bytes == 0 {
                let status = line_end.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
                head.status = number(status.with_context(|| format!("no status in {}", shown(line)))?)?;
            }
            head.bytes += line.len();
            if line_end.is_empty() {
                return Ok(Some(head));
            }
            head.note(line_end)?;
        }
        Ok(None)
    }

    fn note(&mut self, line: &[u8]) -> Result<()> {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return Ok(()) };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            self.body_bytes = number(value)?;
        } else if REPLAYED.iter().any(|replayed| name.eq_ignore_ascii_case(replayed.as_bytes())) {
            self.is_replay = value == b"true";
        }
        Ok(())
    }
}

fn number<N: std::str::FromStr>(digits: &[u8]) -> Result<N> {
    let text = std::str::from_utf8(digits)?;
    text.parse().ok().with_context(|| format!("{text} is no number"))
}

/// Bytes for people.
pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn order(number: &str) -> Order {
    Order { name: format!("{ORDER}{number}"), amount: 4_200, currency: "eur".to_owned() }
}

fn places(text: &str, mark: &str) -> Vec<usize> {
    text.match_indices(mark).map(|(at, _)| at).collect()
}

/// Writes a number with leading zeros at each of these places.
fn fill(bytes: &mut [u8], places: &[usize], digits: usize, number: u64) {
    for at in places {
        let mut rest = number;
        for digit in bytes[*at..at + digits].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Option<Head> {
        Head::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_request_bears_its_number_in_key_and_body_and_its_caller() {
        let mut request = Request::new(true).unwrap();
        let text = shown(request.of(12_042));
        assert_eq!(text.matches("000000012042").count(), 2, "{text}");
        assert!(
            text.contains("Bearer caller-0042\r\n") && text.contains("=AAAAAAAAAAAAAAAAA0042A\r\n"),
            "{text}"
        );
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(text.contains(&format!("Content-Length: {}\r\n", body.len())), "{text}");
        assert!(!shown(Request::new(false).unwrap().of(1)).contains("Idempotency"));
    }

    #[test]
    fn a_head_is_read_once_all_of_it_is_there() {
        let text = "HTTP/1.1 201 Created\r\nContent-Length: 7\r\nidempotent-replayed: true\r\n\r\nabcdefg";
        let whole = Head { status: 201, is_replay: true, bytes: text.len() - 7, body_bytes: 7 };
        assert_eq!(head(text), Some(whole));
        for end in 0..whole.bytes {
            assert_eq!(head(&text[..end]), None, "{end}");
        }
        assert!(!head("HTTP/1.1 201 Created\r\nIdempotency-Replayed: false\r\n\r\n").unwrap().is_replay);
        assert!(Head::read(b"HTTP/1.0 teapot\r\n\r\n").is_err());
    }

    #[test]
    fn an_answer_to_another_request_or_cut_short_is_wrong() {
        let charge = |number: &str| serde_json::to_vec(&Charge::of(order(number), FIRST_RUN + 9)).unwrap();
        let (right, mut answer) = (charge("000000000042"), Answer::new().unwrap());
        assert!((190..=230).contains(&right.len()), "{}", right.len());
        assert_eq!(answer.run(42, &right).unwrap(), *b"1000000009");
        for wrong in [&right[..right.len() - 1], &[], charge("000000000043").as_slice()] {
            assert!(answer.run(42, wrong).is_err(), "{}", shown(wrong));
        }
        assert!(answer.run(43, &right).is_err());
    }
}
