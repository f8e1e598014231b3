//! What a page was asked for, and addresses of other pages.

use std::fmt::Write;

/// A query as it came: names may come more than once.
pub(super) type Pairs = Vec<(String, String)>;

/// What may stand in a query as it is.
const UNRESERVED: &[u8] = b"-._~";

/// Percent-encoded, so that it is one value whatever is in it.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || UNRESERVED.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The address of a page with this query; what is empty is left out.
pub(super) fn address<'a>(path: &str, query: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut address = path.to_owned();
    let mut joint = '?';
    for (name, value) in query.into_iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(address, "{joint}{name}={}", encode(value));
        joint = '&';
    }
    address
}

/// A page of this server that somebody may be sent back to. Anything else could be anybody's.
pub(super) fn own_page(wanted: &str) -> &str {
    let is_path = wanted.starts_with('/') && !wanted.starts_with("//");
    let is_plain = wanted.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_path && is_plain { wanted } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_value_never_ends_it() {
        assert_eq!(
            address("/keys", [("scope", "a&b=c/d"), ("name", ""), ("state", "held")]),
            "/keys?scope=a%26b%3Dc%2Fd&state=held"
        );
        assert_eq!(address("/keys", []), "/keys");
        assert_eq!(encode("é\"<"), "%C3%A9%22%3C");
    }

    #[test]
    fn nobody_is_sent_to_another_server() {
        for foreign in
            ["//evil.example", "https://evil.example", "/\\evil.example", "", "keys", "/a\r\nb", "/\u{e9}"]
        {
            assert_eq!(own_page(foreign), "/", "{foreign}");
        }
        assert_eq!(own_page("/keys?state=held"), "/keys?state=held");
    }
}
