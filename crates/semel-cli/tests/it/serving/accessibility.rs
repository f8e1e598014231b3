//! Every page under axe-core, light and dark: no violation. And a key is resolved with the keyboard alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use proofs::scene;
use serde_json::{Value, json};
use test_http::{Browser, Page, Screen};

use super::pages::Stage;

/// The release of axe-core that pages are checked with, from npm.
const AXE: &str = "axe-core@4.14.0";
const RECORDS: usize = 200;

/// The script, fetched once for this target folder.
fn axe() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
    let script = folder.join("package/axe.min.js");
    if !script.is_file() {
        std::fs::create_dir_all(&folder).expect("a folder for axe-core");
        let packed = Command::new("npm").args(["pack", "--silent", AXE]).current_dir(&folder).output();
        let packed = packed.expect("npm is installed: apt-get install npm");
        assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
        let archive = PathBuf::from(String::from_utf8_lossy(&packed.stdout).trim());
        let unpacked = Command::new("tar").arg("xzf").arg(archive).current_dir(&folder).status();
        assert!(unpacked.expect("tar is installed").success());
    }
    std::fs::read_to_string(script).expect("is there")
}

/// What axe-core says is wrong with this page: the rule, and the elements.
fn violations(page: &Page, axe: &str) -> Vec<String> {
    page.eval(&format!("{axe};0")).expect("is loaded");
    let found = page.eval(
        "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.map(v => \
         v.id + ': ' + v.nodes.map(n => n.target.join(' ') + ' ' + n.any.map(a => a.message).join('; ')).join(' | ')))",
    );
    let found = found.expect("answers");
    found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn paths(scene: &scene::Scene) -> Vec<String> {
    let first = |ids: &[String]| ids.first().cloned().expect("there is one");
    let (held, running, done) = (first(&scene.held), first(&scene.running), first(&scene.done));
    let mut paths =
        ["/", "/attention", "/attention?reason=no-such-reason", "/keys", "/keys?sort=age&state=held"]
            .map(str::to_owned)
            .to_vec();
    paths.extend(["/keys?operation=none", "/keys?state=what", "/pipelines", "/keys/none"].map(str::to_owned));
    paths.extend(["release", "resolve"].map(|action| format!("/actions?action={action}&match=all")));
    paths.extend([&held, &running, &done].map(|id| format!("/keys/{id}")));
    paths.extend(["release", "resolve"].map(|action| format!("/keys/{held}/{action}")));
    paths
}

#[test]
fn axe_finds_no_violation_on_any_page_light_or_dark() {
    let (stage, axe) = (Stage::start(), axe());
    let scene = scene::fill(&mut stage.client(), RECORDS).expect("is filled");
    let browser = Browser::start().expect("the browser starts");
    let mut found = Vec::new();
    for screen in Screen::ALL {
        browser.forget().expect("nobody is logged in");
        let page = browser.page(screen).expect("a window opens");
        page.go(&stage.server.url("/login")).expect("opens");
        found.extend(
            violations(&page, &axe).into_iter().map(|wrong| format!("/login {}: {wrong}", screen.name)),
        );
        page.log_in(&stage.person).expect("is logged in");
        for path in paths(&scene) {
            stage.go(&page, &path);
            let wrong = violations(&page, &axe);
            found.extend(wrong.into_iter().map(|wrong| format!("{path} {}: {wrong}", screen.name)));
        }
    }
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

/// The control: what axe-core is there for is found.
#[test]
fn axe_finds_a_button_without_a_name_and_text_that_is_too_pale() {
    let (stage, axe) = (Stage::start(), axe());
    let browser = Browser::start().expect("the browser starts");
    let page = stage.page(&browser);
    stage.go(&page, "/attention");
    let spoil = "(() => { document.querySelector('main').append(document.createElement('button')); \
         document.querySelector('main p').setAttribute('class', 'x'); \
         const e = document.querySelector('main p'); e.style.setProperty('color', '#eee'); })()";
    page.eval(spoil).expect("is spoiled");
    let found = violations(&page, &axe).join("\n");
    assert!(found.contains("button-name") && found.contains("color-contrast"), "{found}");
}

/// Presses Tab until the element of this selector has the focus, then Enter.
fn tab_to_and_press(page: &Page, selector: &str) {
    const TABS_MAX: usize = 200;
    for _ in 0..TABS_MAX {
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
            page.call("Input.dispatchKeyEvent", &key).expect("is pressed");
        }
        let is_there = format!("document.activeElement?.matches({}) ?? false", Value::from(selector));
        if page.eval(&is_there).expect("is asked") == true {
            return page.enter().expect("is pressed");
        }
    }
    panic!("{selector} cannot be reached with Tab: {}", page.text().unwrap_or_default());
}

#[test]
fn a_held_key_is_released_with_the_keyboard_alone() {
    let stage = Stage::start();
    let mut client = stage.client();
    let held = client.call("/v1/claim", &json!({ "operation": "charge", "name": "order-1" })).expect("runs");
    client.call("/v1/hold", &json!({ "permit": held["permit"], "reason": "hung up" })).expect("is held");
    let browser = Browser::start().expect("the browser starts");
    let page = stage.page(&browser);
    stage.go(&page, "/attention");
    page.until("the key", "!!document.querySelector('[data-test=key-row]')").expect("is listed");
    tab_to_and_press(&page, "[data-test=key-row] a[href$='/release']");
    page.until("the question", "!!document.querySelector('[data-test=confirm]')").expect("asks first");
    tab_to_and_press(&page, "[data-test=confirm]");
    page.until("what was done", "!!document.querySelector('[data-test=flash]')").expect("says so");
    let again = client.call("/v1/claim", &json!({ "operation": "charge", "name": "order-1" })).expect("runs");
    assert_eq!(again["decision"], "run", "{again}");
}
