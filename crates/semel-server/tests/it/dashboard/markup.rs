//! Whether a page is clean: no script, no style and no handler inside it, and nothing from elsewhere.

/// Every element that pages are made of.
const ELEMENTS: &[&str] = &[
    "!doctype",
    "html",
    "head",
    "meta",
    "title",
    "link",
    "script",
    "body",
    "a",
    "header",
    "div",
    "svg",
    "circle",
    "span",
    "nav",
    "ul",
    "li",
    "p",
    "form",
    "input",
    "button",
    "main",
    "footer",
    "section",
    "h1",
    "h2",
    "h3",
    "noscript",
    "strong",
    "time",
    "figure",
    "figcaption",
    "path",
    "ol",
    "bdi",
    "dl",
    "dt",
    "dd",
    "code",
    "label",
    "fieldset",
    "legend",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "pre",
    "select",
    "option",
    "textarea",
];

pub(crate) fn assert_clean(page: &str, html: &str) {
    if let Some(dirt) = dirt(html) {
        panic!("{page} has {dirt} in {html}");
    }
}

/// What should not be in a page, if anything is.
fn dirt(html: &str) -> Option<String> {
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with('/') {
            continue;
        }
        let (tag, behind) = split_tag(rest)?;
        let (name, attributes) = attributes(tag);
        if !ELEMENTS.contains(&name.to_ascii_lowercase().as_str()) {
            return Some(format!("the element <{name}>"));
        }
        if name == "script" && !behind.starts_with("</script>") {
            return Some("a script inside".to_owned());
        }
        for (name, value) in attributes {
            let is_address = matches!(name.as_str(), "href" | "src" | "action");
            if name.starts_with("on") || name == "style" || (is_address && !is_own(&value)) {
                return Some(format!("{name}={value:?}"));
            }
        }
        rest = behind;
    }
    None
}

fn is_own(address: &str) -> bool {
    address.starts_with('#') || (address.starts_with('/') && !address.starts_with("//"))
}

/// A tag up to its `>`, which may stand in quotes before, and what is behind it.
fn split_tag(text: &str) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// The name of a tag, and its attributes.
fn attributes(tag: &str) -> (&str, Vec<(String, String)>) {
    let (name, mut rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
    let mut found = Vec::new();
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let attribute = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        let mut value = "";
        if let Some(quoted) = rest.strip_prefix("=\"") {
            let end = quoted.find('"').unwrap_or(quoted.len());
            value = &quoted[..end];
            rest = quoted.get(end + 1..).unwrap_or("");
        } else if rest.starts_with('=') {
            // An attribute without quotes is none of ours.
            return (name, vec![("on".to_owned(), rest.to_owned())]);
        }
        found.push((attribute, value.to_owned()));
    }
    (name, found)
}

#[test]
fn dirt_in_a_page_is_seen() {
    for dirty in [
        "<p onclick=\"x\">a</p>",
        "<script>alert(1)</script>",
        "<script src=\"/assets/a.js\">x</script>",
        "<script src=\"//evil.example/a.js\"></script>",
        "<p style=\"color:red\">a</p>",
        "<img src=\"/x\">",
        "<a href=\"javascript:alert(1)\">a</a>",
        "<a href=\"https://evil.example\">a</a>",
        "<p class=\"a>b\" ONCLICK=\"x\">",
        "<p class=x>",
        "<style>p{}</style>",
    ] {
        assert!(dirt(dirty).is_some(), "{dirty}");
    }
    assert_eq!(
        dirt("<!DOCTYPE html><p class=\"a\" hidden>&lt;script&gt; <a href=\"/keys?a=1\">x</a></p>"),
        None
    );
}
