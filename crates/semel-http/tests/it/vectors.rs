//! The public test vectors: structured field Strings and items, and canonical JSON.

use std::borrow::Cow;
use std::path::PathBuf;
use std::{env, fs};

use semel_http::json::canonical;
use semel_http::structured::{NoString, string};
use serde::Deserialize;
use serde_json::Value;

/// Where the vectors are. They are not part of this repository, so a test without them says that it did not run.
fn folder(test: &str) -> Option<PathBuf> {
    let folder = env::var_os("SEMEL_VECTORS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: {test} needs the public test vectors; set SEMEL_VECTORS to their folder");
    }
    folder
}

/// One case of `structured-fields/*.json`.
#[derive(Deserialize)]
struct Case {
    name: String,
    raw: Vec<String>,
    #[serde(default)]
    must_fail: bool,
    #[serde(default)]
    can_fail: bool,
    #[serde(default)]
    expected: Value,
}

impl Case {
    /// What is read of the value, several lines joined as HTTP joins them.
    fn read(&self) -> Result<Cow<'static, str>, NoString> {
        let value = self.raw.join(", ");
        string(value.as_bytes()).map(|text| Cow::Owned(text.into_owned()))
    }
}

fn cases(file: &str) -> Option<Vec<Case>> {
    let path = folder(file)?.join("structured-fields").join(file);
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(serde_json::from_slice(&text).unwrap())
}

#[test]
fn every_structured_field_string_is_read_as_the_vectors_say() {
    let Some(cases) = cases("string.json") else { return };
    assert!(!cases.is_empty());
    for case in &cases {
        let read = case.read();
        if case.must_fail {
            assert_eq!(read, Err(NoString::Malformed), "{}", case.name);
        } else {
            let text = case.expected[0].as_str().unwrap();
            // In one value, lines that were joined are one String. A key in two lines is refused elsewhere.
            assert!(read.as_deref() == Ok(text) || case.can_fail && read.is_err(), "{}: {read:?}", case.name);
        }
    }
    println!("{} Strings", cases.len());
}

#[test]
fn items_that_are_no_strings_are_told_from_values_that_are_no_items() {
    let Some(cases) = cases("item.json") else { return };
    assert!(!cases.is_empty());
    for case in &cases {
        let expected = match case.must_fail {
            true => Err(NoString::Malformed),
            // What was read is a good item, and its kind is not ours.
            false if case.expected[0].is_number() => Err(NoString::OtherItem),
            false => Ok(Cow::Borrowed(case.expected[0].as_str().unwrap())),
        };
        assert_eq!(case.read(), expected, "{}", case.name);
    }
    println!("{} items", cases.len());
}

#[test]
fn canonical_json_is_what_the_vectors_say_byte_for_byte() {
    let Some(folder) = folder("jcs") else { return };
    let mut count = 0;
    for entry in fs::read_dir(folder.join("jcs/input")).unwrap() {
        let input = entry.unwrap().path();
        let output = folder.join("jcs/output").join(input.file_name().unwrap());
        let expected = fs::read(output).unwrap();
        let written = canonical(&fs::read(&input).unwrap(), &[]);
        let text = written.as_deref().map(String::from_utf8_lossy);
        assert_eq!(text, Some(String::from_utf8_lossy(&expected)), "{}", input.display());
        assert_eq!(written, Some(expected.clone()));
        assert_eq!(canonical(&expected, &[]), written, "{} is not a fixed point", input.display());
        count += 1;
    }
    assert!(count > 0, "there are no inputs");
    println!("{count} texts");
}
