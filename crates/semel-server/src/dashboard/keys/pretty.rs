//! JSON in lines, for people. Nothing else is changed: members stay in their order, and numbers as they were written.

use serde::de::IgnoredAny;

/// JSON on one line, in lines; anything else as it is.
pub(super) fn pretty(text: &str) -> String {
    let is_structure = text.trim_start().starts_with(['{', '[']);
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    if !is_structure || text.trim().contains('\n') || !is_json() {
        return text.to_owned();
    }
    let (mut lines, mut depth, mut before) = (String::with_capacity(text.len()), 0_usize, ' ');
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in text.trim().chars() {
        if is_quoted {
            (is_quoted, is_escaped) = (is_escaped || c != '"', !is_escaped && c == '\\');
            lines.push(c);
            before = c;
            continue;
        }
        match c {
            ' ' | '\t' | '\r' => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !matches!(before, '{' | '[') {
                    new_line(&mut lines, depth);
                }
            }
            _ if matches!(before, '{' | '[' | ',') => new_line(&mut lines, depth),
            _ => {}
        }
        lines.push(c);
        match c {
            '"' => is_quoted = true,
            '{' | '[' => depth = depth.saturating_add(1),
            ':' => lines.push(' '),
            _ => {}
        }
        // The end of a string is no bracket, whatever it holds.
        before = c;
    }
    lines
}

fn new_line(lines: &mut String, depth: usize) {
    lines.push('\n');
    // Whatever is deeper than a page is wide stays at its edge.
    lines.extend(std::iter::repeat_n("  ", depth.min(32)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_gets_lines_and_keeps_its_order_and_its_numbers() {
        let text = r#"{"z": 1.10, "a": [1,{}, []], "s": "{\"a\": [1, 2]}\\", "e": "[" ,"b":true}"#;
        let lines = concat!(
            "{\n  \"z\": 1.10,\n  \"a\": [\n    1,\n    {},\n    []\n  ],\n",
            "  \"s\": \"{\\\"a\\\": [1, 2]}\\\\\",\n  \"e\": \"[\",\n  \"b\": true\n}"
        );
        assert_eq!(pretty(text), lines);
    }

    #[test]
    fn what_is_no_json_or_has_lines_already_stays_as_it_is() {
        for text in ["", "paid", "{not json", "[1,\n2]", "12", "\"text\"", "{'a': 1}"] {
            assert_eq!(pretty(text), text);
        }
    }

    #[test]
    fn depth_costs_no_more_than_its_length() {
        let text = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(pretty(&text).len() < text.len() * 70);
    }
}
