//! A person on call finds a held key among many, resolves it, and sees the count change in another window.

use std::thread::sleep;
use std::time::Duration;

use proofs::scene;
use serde_json::{Value, json};
use test_http::{Browser, Page};

use super::pages::Stage;

const RECORDS: usize = 100_000;
/// Longer than a change takes to be seen.
const QUIET: Duration = Duration::from_secs(4);

/// The number in the first element with this hook, however it is written.
fn count(page: &Page, hook: &str) -> Option<u64> {
    let text = page.eval(&format!("document.querySelector('[data-test={hook}]')?.textContent ?? ''")).ok()?;
    text.as_str()?.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok()
}

fn until_held(page: &Page, wanted: usize) {
    let text = "document.querySelector('[data-test=held-count]')?.textContent.replace(/\\D/g, '')";
    page.until(&format!("{wanted} held"), &format!("{text} === '{wanted}'"))
        .expect("the count changes by itself");
}

#[test]
fn a_held_key_is_found_among_many_and_resolved_and_its_count_changes_in_another_window() {
    let stage = Stage::start();
    let held = scene::fill(&mut stage.client(), RECORDS).expect("is filled").held.len();
    let browser = Browser::start().expect("the browser starts");
    let overview = stage.page(&browser);
    stage.go(&overview, "/");
    until_held(&overview, held);
    // Whoever loads the page again would see the right count anyway.
    overview.eval("window.semelNeverReloaded = true").expect("is marked");

    let page = stage.page(&browser);
    stage.go(&page, "/keys");
    find(&page);
    page.until(
        "the key's page",
        "document.querySelector('[data-test=key-state]')?.textContent.includes('held')",
    )
    .expect("opens");

    // The control: nothing was done yet, and nothing changes.
    sleep(QUIET);
    assert_eq!(count(&overview, "held-count"), Some(held as u64), "nobody did anything");

    page.click("a[href$='/resolve'], [href$='/resolve']").expect("there is a way to resolve it");
    page.until("the confirmation", "!!document.querySelector('[data-test=confirm]')").expect("asks first");
    assert_eq!(count(&overview, "held-count"), Some(held as u64), "a question alone does nothing");
    resolve(&page);
    page.until("what was done", "!!document.querySelector('[data-test=flash]')").expect("says so");
    until_held(&overview, held - 1);
    assert_eq!(overview.eval("window.semelNeverReloaded").expect("is asked"), Value::Bool(true));
    assert_eq!(overview.trips().expect("is watched"), Vec::<String>::new());
    let told = stage.client().call(
        "/v1/claim",
        &json!({ "scope": ["acme", "eu"], "operation": "payout", "name": "2026-11-10", "request": { "amount": 1_999, "currency": "eur" } }),
    );
    let told = told.expect("is answered");
    assert_eq!(told["decision"], "replay", "{told}");
    assert_eq!(told["outcome"]["json"]["paid"], true, "{told}");
}

/// Searches for one held key by scope, name and state; a page that did not look through the whole store offers to go on.
fn find(page: &Page) {
    const PAGES_MAX: usize = 200;
    page.fill("[name=scope]", "acme/eu").expect("there is a field");
    page.click("[name=state][value=held]").expect("there is a box");
    page.fill("[name=name]", "2026-11-10").expect("there is a field");
    page.enter().expect("is sent");
    page.until("an answer", "location.search.includes('2026-11-10') && document.readyState === 'complete'")
        .expect("comes");
    for _ in 0..PAGES_MAX {
        if page.count("[data-test=key-row]").expect("is counted") == 1 {
            return page.click("[data-test=key-row] a").expect("there is a link");
        }
        let before = page.url().expect("is somewhere");
        page.click("a[rel=next]").expect("there is more to look through");
        let is_next = format!("location.href !== {before:?} && document.readyState === 'complete'");
        page.until("the next page", &is_next).expect("comes");
    }
    panic!("the key was not found in {PAGES_MAX} pages");
}

/// Settles it with an outcome, as a person fills in the form.
fn resolve(page: &Page) {
    page.eval("(() => { const done = document.querySelector('[name=how][value=done]'); if (done && done.type === 'radio') done.checked = true; })()")
        .expect("can be chosen");
    page.fill("[name=outcome]", "{\"paid\":true}").expect("there is a field");
    page.eval("(() => { const why = document.querySelector('[name=reason]'); if (why && !why.value) why.value = 'seen at the bank'; })()")
        .expect("can be said");
    page.click("[data-test=confirm]").expect("there is a button");
}
