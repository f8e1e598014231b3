//! The requests of a window and their answers, as bytes: written by filling in numbers, checked byte for byte.

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};

use super::layers::{CHARGES, Charge, FIRST_RUN, ORDER, Order, RUNS};
use crate::clients::{self, Client, Connection, Head, Plan, lossy};
use crate::report::Sample;

/// How many callers there are: request `n` is that of caller `n % CALLERS`, in its `Authorization` and in its session.
pub(super) const CALLERS: u64 = 1_000;
pub(super) const SESSION_COOKIE: &str = "session";
pub(super) const REPLAYED_KEYS: u64 = 1_000;
const NUMBER: &str = "############";
const CALLER: &str = "****";
/// A session id is 16 bytes in base64. A caller with such a cookie has a session, without a login.
const SESSION: &str = "AAAAAAAAAAAAAAAAA****A";
const RUN_DIGITS: usize = 10;
const CREATED: u16 = 201;
const OK: u16 = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    None,
    New,
    /// One of a thousand keys that are done.
    Done,
}

impl Keys {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::None => "no key",
            Self::New => "new keys",
            Self::Done => "replays",
        }
    }
}

/// What a window found, and how many requests it used.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) sample: Sample,
    /// How often the handler must have run, from its start to the end of the window.
    pub(super) runs: u64,
    pub(super) next: u64,
}

/// Sends for a while. No two windows use the same numbers, as some stores outlive them: `first` is the first of this one.
pub(super) fn window(plan: Plan, connections: u64, keys: Keys, first: u64) -> Result<Window> {
    let done = RefCell::new(vec![None; usize::try_from(REPLAYED_KEYS)?]);
    let shared = Rc::new(Shared { keys, first, next: Cell::new(first), done });
    let client = |_| {
        let (request, answer) = (Request::new(keys != Keys::None)?, Answer::new()?);
        Ok(Charger { shared: Rc::clone(&shared), request, answer })
    };
    let clients = (0..connections).map(client).collect::<Result<Vec<_>>>()?;
    let sample = clients::window(plan, clients)?;
    let prepared = if keys == Keys::Done { REPLAYED_KEYS } else { 0 };
    let sent = shared.next.get() - first - prepared;
    let runs = if keys == Keys::Done { REPLAYED_KEYS } else { sent };
    Ok(Window { sample, runs, next: first + REPLAYED_KEYS.max(sent) })
}

struct Shared {
    keys: Keys,
    first: u64,
    next: Cell<u64>,
    /// Which run each key that is done had.
    done: RefCell<Vec<Option<Run>>>,
}

struct Charger {
    shared: Rc<Shared>,
    request: Request,
    answer: Answer,
}

impl Charger {
    fn next(&self) -> u64 {
        self.shared.next.replace(self.shared.next.get() + 1)
    }

    /// Sends a request, and returns which run its answer is of, and whether it is a replay.
    async fn ask(&mut self, connection: &mut Connection, number: u64) -> Result<(Run, bool)> {
        let (head, body) = connection.ask(self.request.of(number), CREATED).await?;
        Ok((self.answer.run(number, body)?, head.is_replay))
    }
}

impl Client for Charger {
    /// Runs every key that is to be replayed once, all connections together.
    async fn prepare(&mut self, connection: &mut Connection) -> Result<()> {
        let first = self.shared.first;
        while self.shared.keys == Keys::Done && self.shared.next.get() < first + REPLAYED_KEYS {
            let number = self.next();
            let (run, is_replay) = self.ask(connection, number).await?;
            ensure!(!is_replay, "key {number} was replayed before it ran");
            self.shared.done.borrow_mut()[usize::try_from(number - first)?] = Some(run);
        }
        Ok(())
    }

    async fn turn(&mut self, connection: &mut Connection) -> Result<u64> {
        let (turn, first) = (self.next(), self.shared.first);
        if self.shared.keys == Keys::Done {
            let number = first + turn % REPLAYED_KEYS;
            let (run, is_replay) = self.ask(connection, number).await?;
            let first_run = self.shared.done.borrow()[usize::try_from(number - first)?];
            let is_right = is_replay && Some(run) == first_run;
            ensure!(is_right, "key {number} is not that of its first run: {run:?}");
        } else {
            let (_, is_replay) = self.ask(connection, turn).await?;
            ensure!(!is_replay, "request {turn} was replayed before it ran");
        }
        Ok(1)
    }
}

pub(super) fn runs(port: u16) -> Result<u64> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let request = format!("GET {RUNS} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let Some(head) = Head::read(&bytes)?.filter(|head| head.status == OK) else {
        bail!("the count of runs was answered with {}", lossy(&bytes));
    };
    lossy(&bytes[head.bytes..]).parse().context("the count of runs is not a number")
}

type Run = [u8; RUN_DIGITS];

/// Text with marks, in whose places numbers are written with leading zeros.
struct Template {
    bytes: Vec<u8>,
    numbers_at: Vec<usize>,
    callers_at: Vec<usize>,
}

impl Template {
    fn new(text: String) -> Self {
        let places = |mark: &str| text.match_indices(mark).map(|(at, _)| at).collect();
        let (numbers_at, callers_at) = (places(NUMBER), places(CALLER));
        Self { bytes: text.into_bytes(), numbers_at, callers_at }
    }

    fn fill(&mut self, number: u64) {
        let marks =
            [(&self.numbers_at, NUMBER.len(), number), (&self.callers_at, CALLER.len(), number % CALLERS)];
        for (places, digits, number) in marks {
            for at in places {
                let mut rest = number;
                for digit in self.bytes[*at..at + digits].iter_mut().rev() {
                    *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
                    rest /= 10;
                }
            }
        }
    }
}

/// The request of a window, the same for every contestant but for the key.
struct Request(Template);

impl Request {
    fn new(has_key: bool) -> Result<Self> {
        let body = serde_json::to_string(&order(NUMBER))?;
        let key = format!("Idempotency-Key: 8e03978e-40d5-4d2c-9a1b-{NUMBER}\r\n");
        Ok(Self(Template::new(format!(
            "POST {CHARGES} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer caller-{CALLER}\r\n\
             Cookie: {SESSION_COOKIE}={SESSION}\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            if has_key { key.as_str() } else { "" },
            body.len()
        ))))
    }

    fn of(&mut self, number: u64) -> &[u8] {
        self.0.fill(number);
        &self.0.bytes
    }
}

struct Answer {
    body: Template,
    run_at: usize,
}

impl Answer {
    fn new() -> Result<Self> {
        let text = serde_json::to_string(&Charge::of(order(NUMBER), FIRST_RUN))?;
        let run_at = text.find(&FIRST_RUN.to_string()).context("an answer has the number of its run")?;
        Ok(Self { body: Template::new(text), run_at })
    }

    /// Checks the whole answer to the request with this number, and returns which run it is of.
    fn run(&mut self, number: u64, body: &[u8]) -> Result<Run> {
        self.body.fill(number);
        let digits = self.run_at..self.run_at + RUN_DIGITS;
        let found = body.get(digits.clone()).filter(|run| run.iter().all(u8::is_ascii_digit));
        let Some(found) = found else { bail!("request {number} was answered with {}", lossy(body)) };
        self.body.bytes[digits].copy_from_slice(found);
        ensure!(self.body.bytes == body, "request {number} was answered with {}", lossy(body));
        Ok(<Run>::try_from(found)?)
    }
}

fn order(number: &str) -> Order {
    Order { name: format!("{ORDER}{number}"), amount: 4_200, currency: "eur".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_bears_its_number_in_key_and_body_and_its_caller() {
        let mut request = Request::new(true).unwrap();
        let text = lossy(request.of(12_042));
        assert_eq!(text.matches("000000012042").count(), 2, "{text}");
        assert!(
            text.contains("Bearer caller-0042\r\n") && text.contains("=AAAAAAAAAAAAAAAAA0042A\r\n"),
            "{text}"
        );
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(text.contains(&format!("Content-Length: {}\r\n", body.len())), "{text}");
        assert!(!lossy(Request::new(false).unwrap().of(1)).contains("Idempotency"));
    }

    #[test]
    fn an_answer_to_another_request_or_cut_short_is_wrong() {
        let charge = |number: &str| serde_json::to_vec(&Charge::of(order(number), FIRST_RUN + 9)).unwrap();
        let (right, mut answer) = (charge("000000000042"), Answer::new().unwrap());
        assert!((190..=230).contains(&right.len()), "{}", right.len());
        assert_eq!(answer.run(42, &right).unwrap(), *b"1000000009");
        for wrong in [&right[..right.len() - 1], &[], charge("000000000043").as_slice()] {
            assert!(answer.run(42, wrong).is_err(), "{}", lossy(wrong));
        }
        assert!(answer.run(43, &right).is_err());
    }
}
