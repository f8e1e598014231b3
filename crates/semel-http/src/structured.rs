//! Structured field values (RFC 8941, RFC 9651): the one kind that a key is, a String with parameters.

use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;

use sfv::visitor::{Ignored, ItemVisitor, ParameterVisitor, parameter_visitor_with};
use sfv::{BareItemFromInput, Parser};

/// Why a value is no String.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoString {
    /// It is no structured field item at all.
    Malformed,
    /// It is an item, but a number, a token or another that is no String.
    OtherItem,
}

impl fmt::Display for NoString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the value is no structured field item",
            Self::OtherItem => "the value is a structured field item, but no String: put it in double quotes",
        })
    }
}

impl Error for NoString {}

/// The text of a String item. Parameters after it have to be well-formed, and are ignored.
///
/// ```
/// use semel_http::structured::string;
///
/// assert_eq!(string(br#""8e03978e-40d5";v=1"#).as_deref(), Ok("8e03978e-40d5"));
/// assert!(string(br#""8e03978e"#).is_err());
/// ```
pub fn string(value: &[u8]) -> Result<Cow<'_, str>, NoString> {
    match Parser::new(value).parse_item_with_visitor(Text) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(NoString::OtherItem),
        Err(_) => Err(NoString::Malformed),
    }
}

/// Takes the text of a String, and nothing of other items.
struct Text;

impl<'de> ItemVisitor<'de> for Text {
    type Out = Option<Cow<'de, str>>;
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = Self::Out>, Self::Error> {
        let text = match item {
            BareItemFromInput::String(Cow::Borrowed(text)) => Some(Cow::Borrowed(text.as_str())),
            BareItemFromInput::String(Cow::Owned(text)) => Some(Cow::Owned(text.into())),
            BareItemFromInput::Integer(_)
            | BareItemFromInput::Decimal(_)
            | BareItemFromInput::Boolean(_)
            | BareItemFromInput::Token(_)
            | BareItemFromInput::ByteSequence(_)
            | BareItemFromInput::Date(_)
            | BareItemFromInput::DisplayString(_) => None,
        };
        Ok(parameter_visitor_with(Ignored, move |()| Ok(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_every_kind_are_read_and_ignored() {
        let values = [
            "1",
            "-7",
            "1.5",
            "\"a;b\"",
            "tok/en:*",
            ":cHJldGVuZA==:",
            "::",
            "?0",
            "@1659578233",
            "%\"f%c3%bc\"",
        ];
        for value in values {
            assert_eq!(string(format!("\"k\";v={value}").as_bytes()).as_deref(), Ok("k"), "{value}");
            assert_eq!(string(format!("\"k\"; a;v={value};*b=2").as_bytes()).as_deref(), Ok("k"), "{value}");
        }
    }

    #[test]
    fn a_malformed_parameter_spoils_the_value() {
        let values = [
            "",
            "1.",
            "1.2345",
            "1234567890123456",
            "-",
            "\"a",
            "\"\\n\"",
            ":a",
            ":*:",
            "?2",
            "?",
            "@",
            "@1.5",
            "%\"%C3\"",
            "%\"%ff\"",
            "%a",
            "(1)",
            ",",
            "é",
        ];
        for value in values {
            let text = format!("\"k\";v={value}");
            assert_eq!(string(text.as_bytes()), Err(NoString::Malformed), "{value}");
        }
        for text in [
            "\"k\";",
            "\"k\";A=1",
            "\"k\" ;a=1",
            "\"k\";a =1",
            "\"k\";a= 1",
            "\"k\";1",
            "\"k\"x",
            "\"k\"\"l\"",
        ] {
            assert_eq!(string(text.as_bytes()), Err(NoString::Malformed), "{text}");
        }
    }

    #[test]
    fn an_item_of_another_kind_is_told_from_no_item() {
        for text in ["1", "1.5", "token", ":YQ==:", "?1", "@1", "%\"a\"", "token;a=1"] {
            assert_eq!(string(text.as_bytes()), Err(NoString::OtherItem), "{text}");
        }
        for text in ["", " ", "'a'", "(\"a\")", "\"a\", \"b\"", "8e03-1"] {
            assert_eq!(string(text.as_bytes()), Err(NoString::Malformed), "{text}");
        }
    }
}
