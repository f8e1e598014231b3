//! Canonical JSON on texts that dice make: what means the same has one form, what does not has another.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use semel_http::json::canonical;
use semel_http::structured::string;
use tokio::time::Instant;

/// A JSON value that can be written in many ways.
#[derive(Clone, Debug)]
enum Json {
    Word(&'static str),
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Characters whose order in UTF-8, in UTF-16 and in escapes differs.
const CHARACTERS: [char; 14] =
    ['a', 'b', 'é', '€', '"', '\\', '\n', '\u{1}', '/', '😀', '\u{e000}', '\u{ffff}', '\u{7f}', ' '];

fn text(dice: &mut SmallRng) -> String {
    let length = dice.random_range(0..5);
    (0..length).map(|_| *CHARACTERS.choose(dice).unwrap()).collect()
}

fn json(dice: &mut SmallRng, depth: usize) -> Json {
    match dice.random_range(0..if depth == 0 { 3 } else { 5 }) {
        0 => Json::Word(["null", "true", "false"].choose(dice).unwrap()),
        1 => Json::Number(dice.random_range(-1_000_000..1_000_000)),
        2 => Json::Text(text(dice)),
        3 => Json::List((0..dice.random_range(0..4)).map(|_| json(dice, depth - 1)).collect()),
        _ => {
            let mut members: Vec<(String, Json)> = Vec::new();
            for _ in 0..dice.random_range(0..5) {
                let name = text(dice);
                if members.iter().all(|(other, _)| *other != name) {
                    members.push((name, json(dice, depth - 1)));
                }
            }
            Json::Object(members)
        }
    }
}

/// Writes a value, in one of the many ways there are.
fn write(json: &Json, dice: &mut SmallRng, out: &mut String) {
    let space = *["", "", " ", "\n\t", "\r\n "].choose(dice).unwrap();
    out.push_str(space);
    match json {
        Json::Word(word) => out.push_str(word),
        Json::Number(number) => match dice.random_range(0..4) {
            0 => out.push_str(&format!("{number}.0")),
            1 => out.push_str(&format!("{number}e0")),
            2 => out.push_str(&format!("{number}00E-2")),
            _ => out.push_str(&number.to_string()),
        },
        Json::Text(text) => write_text(text, dice, out),
        Json::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write(item, dice, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.shuffle(dice);
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(space);
                write_text(name, dice, out);
                out.push(':');
                write(member, dice, out);
            }
            out.push('}');
        }
    }
    out.push_str(space);
}

fn write_text(text: &str, dice: &mut SmallRng, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        if character < ' ' || "\"\\".contains(character) || dice.random_bool(0.3) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04X}"));
            }
        } else {
            out.push(character);
        }
    }
    out.push('"');
}

/// Changes one scalar or one name, if there is any.
fn changed(json: &mut Json, dice: &mut SmallRng) -> bool {
    match json {
        Json::Word(word) => *word = if *word == "null" { "true" } else { "null" },
        Json::Number(number) => *number += 1,
        Json::Text(text) => text.push('x'),
        Json::List(items) => return items.choose_mut_one(dice).is_some_and(|item| changed(item, dice)),
        Json::Object(members) => {
            return members.choose_mut_one(dice).is_some_and(|(name, member)| {
                if dice.random_bool(0.3) {
                    name.push('x');
                    return true;
                }
                changed(member, dice)
            });
        }
    }
    true
}

trait ChooseOne<T> {
    fn choose_mut_one(&mut self, dice: &mut SmallRng) -> Option<&mut T>;
}

impl<T> ChooseOne<T> for Vec<T> {
    fn choose_mut_one(&mut self, dice: &mut SmallRng) -> Option<&mut T> {
        if self.is_empty() {
            return None;
        }
        let at = dice.random_range(0..self.len());
        self.get_mut(at)
    }
}

fn form(json: &Json, dice: &mut SmallRng) -> Vec<u8> {
    let mut text = String::new();
    write(json, dice, &mut text);
    canonical(text.as_bytes(), &[]).unwrap_or_else(|| panic!("no form: {text}"))
}

#[test]
fn one_meaning_has_one_form_and_another_has_another() {
    let mut dice = SmallRng::seed_from_u64(8_785);
    let mut differed = 0;
    for _ in 0..20_000 {
        let mut value = json(&mut dice, 4);
        let first = form(&value, &mut dice);
        assert_eq!(form(&value, &mut dice), first, "written another way: {value:?}");
        assert_eq!(canonical(&first, &[]).as_ref(), Some(&first), "not a fixed point: {value:?}");
        let parsed: serde_json::Value = serde_json::from_slice(&first).unwrap();
        let mut original = String::new();
        write(&value, &mut dice, &mut original);
        let expected: serde_json::Value = serde_json::from_str(&original).unwrap();
        assert!(same(&parsed, &expected), "{parsed} is not {expected}");
        if changed(&mut value, &mut dice) {
            differed += 1;
            // A changed name may be that of another member, and then there is no form at all.
            let mut text = String::new();
            write(&value, &mut dice, &mut text);
            assert_ne!(canonical(text.as_bytes(), &[]), Some(first), "{value:?}");
        }
    }
    assert!(differed > 10_000, "only {differed} were changed");
}

/// Equality of what another parser reads, with numbers as doubles.
fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (a, b) {
        (Number(a), Number(b)) => a.as_f64() == b.as_f64(),
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Object(a), Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[test]
fn arbitrary_bytes_never_panic_and_have_a_form_only_if_they_are_json() {
    let mut dice = SmallRng::seed_from_u64(9_651);
    let alphabet = b"{}[]\":,0123456789.eE+-\\utrfnalsbd \n\t;=?@%:*\x00\x1f\x7f\xc3\xa9\xff'()";
    let (mut forms, mut strings) = (0, 0);
    for _ in 0..100_000 {
        let length = dice.random_range(0..12);
        let bytes: Vec<u8> = (0..length).map(|_| *alphabet.choose(&mut dice).unwrap()).collect();
        if let Some(form) = canonical(&bytes, &[]) {
            forms += 1;
            assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok(), "{bytes:?} is no JSON");
            assert_eq!(canonical(&form, &[]), Some(form));
        }
        let mut quoted = b"\"".to_vec();
        quoted.extend_from_slice(&bytes);
        if dice.random_bool(0.5) {
            quoted.extend_from_slice(b"\";a=");
            quoted.extend_from_slice(&bytes);
        }
        strings += usize::from(string(&quoted).is_ok());
    }
    assert!(
        forms > 1_000 && strings > 100,
        "{forms} texts were JSON, {strings} Strings: the dice try nothing"
    );
}

#[test]
fn json_that_another_parser_reads_has_a_form_unless_a_rule_says_why_not() {
    let mut dice = SmallRng::seed_from_u64(7);
    for _ in 0..20_000 {
        let value = json(&mut dice, 3);
        let mut text = String::new();
        write(&value, &mut dice, &mut text);
        assert!(canonical(text.as_bytes(), &[]).is_some(), "{text}");
        // One byte changed: both read it, or neither, but for names that became duplicates.
        let mut bytes = text.into_bytes();
        let at = dice.random_range(0..bytes.len());
        bytes[at] = *b"{}[]\":,0e.\\ tx".choose(&mut dice).unwrap();
        let ours = canonical(&bytes, &[]).is_some();
        let theirs = serde_json::from_slice::<serde_json::Value>(&bytes).is_ok();
        assert!(!ours || theirs, "{} is no JSON", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn time_grows_with_the_size_of_a_text_and_not_with_its_square() {
    // Each level is out of order, so a way that moves bytes once a level would move all of them 128 times.
    let filler = "x".repeat(24_000);
    let mut nested = "0".to_owned();
    for _ in 0..127 {
        nested = format!("{{\"z\":{nested},\"a\":\"{filler}\"}}");
    }
    // A way that looks at all the rest for every value takes minutes for these.
    let many: Vec<String> = (0..200_000).rev().map(|n| format!("\"\\t{n:06}\": {n}.5 ")).collect();
    let many = format!("{{{}}}", many.join(","));
    let list = format!("[{}0]", "[{}, \"a\\u0041\", -1e2, null ], ".repeat(100_000));
    let commas = format!("{{\"a\":1{}", ",".repeat(2_000_000));
    let began = Instant::now();
    for text in [nested, many, list] {
        let form = canonical(text.as_bytes(), &[]).unwrap();
        assert_eq!(canonical(&form, &["$.b[*].c".parse().unwrap()]), Some(form));
    }
    assert_eq!(canonical(commas.as_bytes(), &[]), None);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?} for some ten megabytes");
}

#[test]
fn the_two_integers_that_a_double_merges_stay_two() {
    let of = |amount: &str| canonical(format!("{{\"amount\":{amount}}}").as_bytes(), &[]);
    // The one has a form, the other is compared as it is.
    assert!(of("9007199254740992").is_some());
    assert_eq!(of("9007199254740993"), None);
    // The control: a parser of doubles cannot tell them apart.
    let doubles = ["9007199254740992", "9007199254740993"].map(|text| text.parse::<f64>().unwrap());
    assert_eq!(doubles[0].to_bits(), doubles[1].to_bits());
}
