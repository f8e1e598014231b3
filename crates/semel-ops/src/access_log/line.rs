//! What a line of the access log says.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use semel::RecordId;
use semel::clock::Timestamp;
use serde_json::{Map, Value};

use crate::format::moment::rfc3339;

/// The longest path that is written whole.
const PATH_BYTES_MAX: usize = 1_024;

/// One line: what is `None` is left out, except the status.
#[derive(Clone, Copy, Debug)]
pub struct AccessLine<'a> {
    /// The client's address; behind trusted proxies the one that they wrote.
    pub peer: IpAddr,
    /// The method.
    pub method: &'a str,
    /// Without its query, which may hold anything.
    pub path: &'a str,
    /// `None` if the client left before there was an answer.
    pub status: Option<u16>,
    /// What was decided, in one word.
    pub decision: Option<&'a str>,
    /// Why, if semel answered by itself.
    pub code: Option<&'a str>,
    /// The record, if the request is about one.
    pub key: Option<RecordId>,
    /// The name and the role of the caller's token.
    pub token: Option<(&'a str, &'a str)>,
    /// The id that the client or a gateway gave the request.
    pub request_id: Option<&'a str>,
    /// From the head of the request to the last byte of the answer.
    pub took: Duration,
    /// How long the upstream took for the head of its answer.
    pub upstream_took: Option<Duration>,
    /// Whether all of the answer was handed over.
    pub is_whole: bool,
}

impl AccessLine<'_> {
    /// The line for people, its end included.
    pub fn text(&self, now: Timestamp) -> Vec<u8> {
        let mut line = Vec::with_capacity(192);
        let (peer, method, path) = (self.peer, self.method, shown(self.path));
        // Writing into memory does not fail.
        let _ = write!(line, "{} {peer} {method} {path} ", rfc3339(now));
        let _ = match self.status {
            Some(status) => write!(line, "{status}"),
            None => write!(line, "-"),
        };
        for word in [self.decision, self.code].into_iter().flatten() {
            let _ = write!(line, " {word}");
        }
        if let Some(key) = self.key {
            let _ = write!(line, " key={}", key.short());
        }
        if let Some((name, role)) = self.token {
            let _ = write!(line, " token={} role={role}", name.escape_debug());
        }
        if let Some(id) = self.request_id {
            let _ = write!(line, " request_id={id}");
        }
        let _ = write!(line, " {}", millis(self.took));
        if let Some(took) = self.upstream_took {
            let _ = write!(line, " upstream {}", millis(took));
        }
        if !self.is_whole {
            line.extend_from_slice(b" broken-off");
        }
        line.push(b'\n');
        line
    }

    /// The line as JSON, its end included.
    pub fn json(&self, now: Timestamp) -> Vec<u8> {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        put("time", rfc3339(now).into());
        put("peer", self.peer.to_string().into());
        put("method", self.method.into());
        put("path", shown(self.path).into());
        put("status", self.status.into());
        let words = [("decision", self.decision), ("code", self.code)];
        for (name, word) in words.into_iter().filter_map(|(name, word)| Some((name, word?))) {
            put(name, word.into());
        }
        if let Some(key) = self.key {
            put("key", key.short().to_string().into());
        }
        if let Some((name, role)) = self.token {
            put("token", name.into());
            put("role", role.into());
        }
        if let Some(id) = self.request_id {
            put("request_id", id.into());
        }
        put("ms", as_millis(self.took).into());
        if let Some(took) = self.upstream_took {
            put("upstream_ms", as_millis(took).into());
        }
        put("whole", self.is_whole.into());
        let mut line = Value::Object(members).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

fn shown(path: &str) -> &str {
    path.get(..path.floor_char_boundary(PATH_BYTES_MAX)).unwrap_or_default()
}

fn millis(span: Duration) -> String {
    if span < Duration::from_millis(10) {
        format!("{:.1} ms", span.as_secs_f64() * 1e3)
    } else {
        format!("{} ms", span.as_millis())
    }
}

fn as_millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e5).round() / 1e2
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: AccessLine<'_> = AccessLine {
        peer: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
        method: "POST",
        path: "/charges",
        status: Some(409),
        decision: Some("busy"),
        code: Some("in_flight"),
        key: None,
        token: None,
        request_id: None,
        took: Duration::from_micros(1_540),
        upstream_took: Some(Duration::from_millis(12)),
        is_whole: true,
    };

    fn text(line: &AccessLine<'_>) -> String {
        String::from_utf8(line.text(Timestamp::from_micros(1_000_000))).expect("is text")
    }

    fn json(line: &AccessLine<'_>) -> Value {
        serde_json::from_slice(&line.json(Timestamp::from_micros(1_000_000))).expect("is JSON")
    }

    #[test]
    fn a_line_has_what_is_known_and_nothing_else() {
        let start = "1970-01-01T00:00:01.000000Z 192.0.2.1 POST /charges 409 busy in_flight";
        assert_eq!(text(&LINE), format!("{start} 1.5 ms upstream 12 ms\n"));
        let known = json(&LINE);
        assert_eq!(known["time"], "1970-01-01T00:00:01.000000Z");
        assert_eq!((&known["ms"], &known["upstream_ms"]), (&1.54.into(), &12.0.into()));
        for name in ["key", "token", "role", "request_id"] {
            assert!(known.get(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_line_has_the_key_the_token_and_the_request_id() {
        let key = semel::Key::new("http", "secret").expect("is a key").id();
        let line = AccessLine {
            key: Some(key),
            token: Some(("billing", "work")),
            request_id: Some("req-7"),
            upstream_took: None,
            ..LINE
        };
        let digest = key.short().to_string();
        let end = format!(" key={digest} token=billing role=work request_id=req-7 1.5 ms\n");
        assert!(text(&line).ends_with(&end), "{}", text(&line));
        let json = json(&line);
        assert_eq!((&json["key"], &json["token"]), (&digest.into(), &"billing".into()));
        assert_eq!((&json["role"], &json["request_id"]), (&"work".into(), &"req-7".into()));
    }

    #[test]
    fn an_answer_that_did_not_get_out_whole_is_broken_off() {
        let gone = AccessLine { status: None, decision: Some("gone"), code: None, is_whole: false, ..LINE };
        assert!(text(&gone).contains(" - gone ") && text(&gone).ends_with(" broken-off\n"));
        assert_eq!((&json(&gone)["status"], &json(&gone)["whole"]), (&Value::Null, &false.into()));
    }

    #[test]
    fn a_long_path_is_cut() {
        let path = format!("/{}", "é".repeat(PATH_BYTES_MAX));
        let shown = json(&AccessLine { path: &path, ..LINE })["path"].as_str().map(str::len);
        assert_eq!(shown, Some(PATH_BYTES_MAX - 1));
    }

    #[test]
    fn a_name_of_a_token_does_not_end_its_line() {
        assert_eq!(text(&AccessLine { token: Some(("a\nb", "work")), ..LINE }).lines().count(), 1);
    }
}
