//! What an operator settles a held record with.

use bytes::Bytes;
use http::StatusCode;
use semel::record::Record;
use semel::{Error, ErrorKind, Outcome, Resolution, Result};
use semel_http::{HttpRecord, Reply};

/// What a held record is settled with.
#[derive(Clone, Debug)]
pub enum Settlement {
    /// The effect landed, and the client gets this response.
    Response(SuppliedResponse),
    /// The effect landed, with this outcome: for records that no HTTP request made.
    Outcome(Outcome),
    /// The effect did not land: the next claim runs.
    Release {
        /// Why, in words for people.
        reason: Box<str>,
    },
}

/// A response that an operator supplies.
#[derive(Clone, Debug, Default)]
pub struct SuppliedResponse {
    /// The status, such as 201.
    pub status: u16,
    /// Names and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Settlement {
    /// How the engine settles this record, or why it must not: retries must get what the operator says they get.
    pub fn resolution(&self, record: &Record) -> Result<Resolution> {
        match (self, HttpRecord::of(record).is_some()) {
            (Self::Release { reason }, _) => Ok(Resolution::Release { reason: reason.clone() }),
            (Self::Response(response), true) => Ok(Resolution::Done(response.outcome()?)),
            (Self::Outcome(outcome), false) => Ok(Resolution::Done(outcome.clone())),
            (Self::Outcome(_), true) => Err(invalid(
                "retries of this key get HTTP responses, and an outcome that is none would answer them 409 outcome_not_kept; \
                 give the response: its status, headers and body",
            )),
            (Self::Response(_), false) => Err(invalid(
                "no HTTP request made this key, so its callers could not read a response; give the outcome itself",
            )),
        }
    }
}

impl From<Resolution> for Settlement {
    fn from(resolution: Resolution) -> Self {
        match resolution {
            Resolution::Done(outcome) => Self::Outcome(outcome),
            Resolution::Release { reason } => Self::Release { reason },
        }
    }
}

impl SuppliedResponse {
    /// A header as people write it: `Location: /charges/7`.
    pub fn header_line(line: &str) -> std::result::Result<(String, String), String> {
        match line.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(format!("`{line}` is not a header; write 'Location: /charges/7'")),
        }
    }

    /// Whether there is a header of this name.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// The response, if a retry would get exactly it.
    pub fn reply(&self) -> Result<Reply> {
        let status = StatusCode::from_u16(self.status)
            .map_err(|_| invalid(&format!("{} is not an HTTP status; use 200 to 599", self.status)))?;
        if !self.body.is_empty() && !self.has_header("content-type") {
            return Err(invalid(
                "the response has a body and no content-type, so a client cannot read it; add the header `Content-Type`",
            ));
        }
        let mut reply = Reply::new(status, self.body.clone());
        for (name, value) in &self.headers {
            reply =
                reply.header(name, value).map_err(|error| invalid(&format!("header `{name}`: {error}")))?;
        }
        reply.replayable_outcome()?;
        Ok(reply)
    }

    /// The outcome that retries are answered with.
    pub fn outcome(&self) -> Result<Outcome> {
        self.reply()?.replayable_outcome()
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[&str], body: &str) -> SuppliedResponse {
        let headers = headers.iter().map(|line| SuppliedResponse::header_line(line).expect("is a header"));
        SuppliedResponse { status, headers: headers.collect(), body: body.to_owned().into() }
    }

    #[test]
    fn h58_what_a_retry_could_not_get_exactly_is_refused() {
        for (bad, named) in [
            (response(99, &[], ""), "99"),
            (response(103, &[], ""), "103"),
            (response(204, &["Content-Type: text/plain"], "x"), "204"),
            (response(200, &[], "x"), "Content-Type"),
            (response(200, &["Set-Cookie: a=b"], ""), "set-cookie"),
            (response(200, &["Content-Length: 3"], ""), "content-length"),
            (response(200, &["a b: c"], ""), "a b"),
        ] {
            let error = bad.outcome().expect_err("is refused").to_string();
            assert!(error.contains(named), "{named}: {error}");
        }
        let good = response(201, &["Location: /charges/7", "Content-Type: application/json"], "{}");
        assert!(good.outcome().is_ok());
    }

    #[test]
    fn a_line_without_a_colon_is_no_header() {
        assert!(SuppliedResponse::header_line("Location /charges/7").is_err());
        assert!(SuppliedResponse::header_line(": x").is_err());
    }
}
