//! Strings of attackers in every place that a caller can write to: nothing runs, and every page is made of the same parts.

use serde_json::{Value, json};
use test_http::blocking::Client;
use test_http::{Browser, Page, encoded};

use super::corpus::strings;
use super::pages::Stage;

/// The records of one string.
struct Written {
    held: String,
    done: String,
    running: String,
}

/// Writes a string as scope, operation, name, owner, reason, event and outcome.
fn write(client: &mut Client, text: &str) -> Written {
    let claim = |operation: &str| json!({ "scope": [text], "operation": operation, "name": text, "owner": text, "first_event": text, "lease_ms": 3_600_000 });
    let operation = |suffix: &str| {
        let fits: String = text.chars().take(400).collect();
        format!("{fits}{suffix}").trim().to_owned()
    };
    let running = client.call("/v1/claim", &claim(text)).expect("is claimed");
    let held = client.call("/v1/claim", &claim(&operation(" h"))).expect("is claimed");
    client.call("/v1/hold", &json!({ "permit": held["permit"], "reason": text })).expect("is held");
    let done = client.call("/v1/claim", &claim(&operation(" d"))).expect("is claimed");
    client
        .call("/v1/step", &json!({ "permit": done["permit"], "name": text, "json": text }))
        .expect("is stored");
    // A kind has 64 bytes at most.
    let kind: String = text.chars().take(16).collect();
    let outcome = json!({ "kind": kind.trim(), "json": { text: text }, "references": [{ "kind": text, "id": text }], "details": { text: [text] } });
    client.call("/v1/complete", &json!({ "permit": done["permit"], "outcome": outcome })).expect("is done");
    let id = |told: &Value| told["id"].as_str().expect("has an id").to_owned();
    Written { held: id(&held), done: id(&done), running: id(&running) }
}

/// What a page must be made of, and that nothing happens in it.
fn look(stage: &Stage, page: &Page, path: &str, text: &str) -> Value {
    stage.go(page, path);
    let trips = page.trips().expect("is watched");
    assert_eq!(trips, Vec::<String>::new(), "{text} in {path}");
    page.shape().expect("has a shape")
}

fn paths(written: &Written) -> [String; 5] {
    [
        format!("/keys/{}", written.held),
        format!("/keys/{}", written.done),
        format!("/keys/{}", written.running),
        format!("/keys/{}/resolve", written.held),
        format!("/keys/{}/release", written.running),
    ]
}

/// A search for the string, which the page shows again in its form.
fn search(text: &str) -> String {
    let text = encoded(text);
    format!("/keys?scope={text}&operation={text}&name={text}&state=running")
}

/// What happens now is told to an open overview, which shows it as it comes.
fn hear(stage: &Stage, page: &Page, all: &[(Written, String)]) {
    stage.go(page, "/");
    page.until("the page to listen", "document.querySelector('#live-status')?.textContent === 'Live'")
        .expect("listens");
    for (_, text) in all.iter().step_by(9) {
        let claim = json!({ "scope": [text], "operation": text, "name": text });
        stage.client().call("/v1/claim", &claim).expect("is busy");
    }
    page.until("what was told", "document.querySelectorAll('#feed li').length > 5").expect("is shown");
    assert_eq!(page.trips().expect("is watched"), Vec::<String>::new());
    assert_eq!(page.eval("[...document.querySelectorAll('#feed li')].every(line => line.querySelectorAll('*').length === 4)").expect("is counted"), true);
}

#[test]
fn nothing_of_a_hundred_hostile_strings_runs_and_no_page_is_made_of_other_parts() {
    let stage = Stage::start();
    let mut client = stage.client();
    let harmless = write(&mut client, "harmless");
    let all: Vec<_> = strings().into_iter().map(|text| (write(&mut client, &text), text)).collect();
    let browser = Browser::start().expect("the browser starts");
    let page = stage.page(&browser);
    let wanted = paths(&harmless).map(|path| look(&stage, &page, &path, "harmless"));
    let found_wanted = look(&stage, &page, &search("harmless"), "harmless");
    for (number, (written, text)) in all.iter().enumerate() {
        // The two pages with everything in them for each; those that ask, and the one of a run, for some.
        let pages = if number % 5 == 0 { 5 } else { 2 };
        for (path, wanted) in paths(written).iter().zip(&wanted).take(pages) {
            assert_eq!(&look(&stage, &page, path, text), wanted, "{text} in {path}");
        }
        // A slash in a scope parts it, where people write scopes: then nothing is found, which looks otherwise.
        let found = look(&stage, &page, &search(text), text);
        assert!(text.contains('/') || found == found_wanted, "{text}: {found} and not {found_wanted}");
    }
    hear(&stage, &page, &all);
    for path in [
        "/",
        "/attention",
        "/keys",
        "/keys?state=held",
        "/keys?state=running",
        "/keys?state=done",
        "/actions?action=resolve&match=all",
        "/actions?action=release&match=all",
        "/pipelines",
    ] {
        look(&stage, &page, path, "all of them");
        assert!(
            page.count("main").expect("is counted") == 1 && page.count("h1").expect("is counted") == 1,
            "{path}"
        );
    }
}

#[test]
fn a_hostile_string_in_a_path_or_a_login_is_told_of_and_does_not_run() {
    let stage = Stage::start();
    let browser = Browser::start().expect("the browser starts");
    let page = stage.page(&browser);
    for text in strings().iter().step_by(4) {
        let text = encoded(text);
        for path in [
            format!("/keys/{text}"),
            format!("/{text}"),
            format!("/keys?after={text}&older_than={text}&state={text}"),
            format!("/login?next={text}"),
        ] {
            stage.go(&page, &path);
            // A page that is not there is an error to the browser, and so is a refusal; what it must not have is trips.
            let trips = page.trips().expect("is watched");
            let told: Vec<_> =
                trips.iter().filter(|trip| !trip.contains("Failed to load resource")).collect();
            assert!(told.is_empty(), "{path}: {told:?}");
            assert!(page.url().expect("is somewhere").starts_with(&stage.server.url("/")), "{path}");
        }
    }
}
