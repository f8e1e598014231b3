//! Which part of a JSON body is meant: `$.client_time`.

/// Which part of a JSON body is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    text: Box<str>,
}
