//! What has a canonical form, what has none, and what is left out of it.

use super::*;

fn form(text: &str) -> Option<String> {
    without(text, &[])
}

fn without(text: &str, paths: &[&str]) -> Option<String> {
    let paths: Vec<JsonPath> = paths.iter().map(|path| path.parse().unwrap()).collect();
    canonical(text.as_bytes(), &paths).map(|form| String::from_utf8(form).unwrap())
}

#[test]
fn member_order_and_white_space_do_not_matter() {
    let sorted = r#"{"a":{"x":[],"y":{}},"b":[1,{"c":null,"d":true}],"é":false}"#;
    for text in [
        sorted,
        "{\"é\":false, \"b\" : [ 1.0 ,\t{\"d\":true,\"c\":null}\n] ,\r\n\"a\":{\"y\":{ },\"x\":[ ]}} ",
        r#" {"b":[1e0,{"d":true,"c":null}],"\u0061":{"y":{},"x":[]},"\u00e9":false}"#,
    ] {
        assert_eq!(form(text).as_deref(), Some(sorted), "{text}");
    }
}

#[test]
fn what_means_something_else_has_another_form() {
    let texts = [
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "\"\"",
        "\"0\"",
        "\"null\"",
        "[]",
        "{}",
        "[null]",
        "[[]]",
        "[{}]",
        "[0,1]",
        "[1,0]",
        r#"{"a":null}"#,
        r#"{"a":1}"#,
        r#"{"a":"1"}"#,
        r#"{"b":1}"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":[1]}"#,
    ];
    for (i, a) in texts.iter().enumerate() {
        for (j, b) in texts.iter().enumerate() {
            assert_eq!(form(a).unwrap() == form(b).unwrap(), i == j, "{a} and {b}");
        }
    }
}

#[test]
fn text_that_is_no_json_has_no_form() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "[1}",
        "{\"a\":1]",
        "tru",
        "nul",
        "truee",
        "1 2",
        "[1]]",
        "{}{}",
        "\u{feff}1",
        "\u{a0}1",
        "//x\n1",
        "[1]\0",
        "[\u{b}1]",
    ] {
        assert_eq!(form(text), None, "{text:?}");
    }
    assert_eq!(canonical(b"\"\xff\"", &[]), None);
    assert_eq!(canonical(b"[\"\xc3\"]", &[]), None);
}

#[test]
fn duplicate_members_have_no_form_however_they_are_written() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"a":1}"#,
        r#"{"b":1,"a":2,"b":3,"c":4}"#,
        r#"{"a":1,"\u0061":1}"#,
        r#"[{"x":{"q":0,"p":0,"q":0}}]"#,
        r#"{"\n":1,"\u000a":2}"#,
        r#"{"":1,"":2}"#,
        r#"{"/":1,"\/":2}"#,
    ] {
        assert_eq!(form(text), None, "{text}");
    }
    assert!(form(r#"[{"a":1},{"a":1}]"#).is_some());
    assert!(form(r#"{"a":{"a":1},"b":{"a":1}}"#).is_some());
}

#[test]
fn nesting_is_bounded_at_one_hundred_and_twenty_eight() {
    let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(form(&arrays(128)).is_some() && form(&objects(128)).is_some());
    assert!(form(&arrays(129)).is_none() && form(&objects(129)).is_none());
    assert!(form(&"[".repeat(1_000_000)).is_none());
}

#[test]
fn numbers_that_a_double_would_merge_leave_the_text_without_a_form() {
    assert!(form(r#"{"amount":9007199254740992}"#).is_some());
    for number in ["9007199254740993", "1e400", "1e-400", "0.123456789012345678"] {
        assert_eq!(form(&format!("{{\"amount\":{number}}}")), None, "{number}");
    }
}

#[test]
fn what_is_left_out_does_not_count() {
    for (text, paths, expected) in [
        (r#"{"a":1,"t":2}"#, &["$.t"][..], r#"{"a":1}"#),
        (r#"{"t":2,"a":1}"#, &["$.t"], r#"{"a":1}"#),
        (r#"{"a":1}"#, &["$.t"], r#"{"a":1}"#),
        (r#"{"t":2}"#, &["$.t"], "{}"),
        (r#"{"a":{"t":{"x":[1,2]},"b":0},"t":3}"#, &["$.a.t"], r#"{"a":{"b":0},"t":3}"#),
        (
            r#"{"items":[{"at":1,"n":1},{"n":2},{"at":3}],"at":4}"#,
            &["$.items[*].at"],
            r#"{"at":4,"items":[{"n":1},{"n":2},{}]}"#,
        ),
        (r#"{"list":[1,2,3]}"#, &["$.list[0]"], r#"{"list":[2,3]}"#),
        (r#"{"list":[1,2,3]}"#, &["$.list[0]", "$.list[2]"], r#"{"list":[2]}"#),
        (r#"{"list":{"0":1}}"#, &["$.list[0]"], r#"{"list":{"0":1}}"#),
        ("[1,[2],{}]", &["$[*]"], "[]"),
        (r#"[{"id":1,"m":2},{"m":3,"id":4}]"#, &["$[*].id"], r#"[{"m":2},{"m":3}]"#),
        (r#"{"b":{"id":1},"a":{"id":2,"c":3}}"#, &["$.*.id"], r#"{"a":{"c":3},"b":{}}"#),
        (r#"{"a b":1,"c":{"\u0064":2}}"#, &["$['a b']", "$.c.d"], r#"{"c":{}}"#),
        (r#"{"a":{"b":1},"b":2}"#, &["$.b", "$.a"], "{}"),
        (r#"{"a":{"x":1},"b":{"x":1}}"#, &["$.a.x"], r#"{"a":{},"b":{"x":1}}"#),
        ("[[1,2],[3,4]]", &["$[1][0]"], "[[1,2],[4]]"),
        ("7", &["$.a"], "7"),
    ] {
        assert_eq!(without(text, paths).as_deref(), Some(expected), "{text} without {paths:?}");
    }
}

#[test]
fn what_is_left_out_need_only_be_json() {
    let odd = r#"{"t":{"n":9007199254740993,"n":1e400,"s":"\ud800"},"a":1}"#;
    assert_eq!(form(odd), None);
    assert_eq!(without(odd, &["$.t"]).as_deref(), Some(r#"{"a":1}"#));
    assert_eq!(without(r#"{"t":{,},"a":1}"#, &["$.t"]), None);
    assert_eq!(without(r#"{"t":1,"t":2}"#, &["$.t"]), None);
    assert_eq!(without(r#"{"t":1,"a":0,"t":2}"#, &["$.t"]), None);
}

#[test]
fn objects_out_of_order_inside_one_another_are_all_put_in_order() {
    let text = r#"{"z":{"y":{"x":1,"w":[{"v":1,"u":2},3]},"a":{}},"b":{"d":1,"c":{"f":1,"e":2}},"a":0}"#;
    let sorted = r#"{"a":0,"b":{"c":{"e":2,"f":1},"d":1},"z":{"a":{},"y":{"w":[{"u":2,"v":1},3],"x":1}}}"#;
    assert_eq!(form(text).as_deref(), Some(sorted));
}
