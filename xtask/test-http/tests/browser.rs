//! The browser on pages of our own: it starts, does what a person does, and notices what must not happen.

use test_http::{Browser, Screen, encoded};

fn page_of(html: &str) -> String {
    format!("data:text/html;charset=utf-8,{}", encoded(html))
}

#[test]
fn a_page_is_seen_clicked_filled_and_pictured() {
    let browser = Browser::start().unwrap();
    let page = browser.page(Screen::PHONE).unwrap();
    page.go(&page_of("<meta name=viewport content='width=device-width'><input id=a><button onclick='b.textContent = a.value'>go</button><p id=b>")).unwrap();
    page.fill("#a", "once").unwrap();
    page.click("button").unwrap();
    page.until("the text", "b.textContent === 'once'").unwrap();
    assert_eq!(page.eval("innerWidth").unwrap(), 390);
    assert!(page.picture().unwrap().starts_with(b"\x89PNG"));
    assert!(page.click("#none").is_err());
    let dark = browser.page(Screen::ALL[1]).unwrap();
    assert_eq!(dark.eval("matchMedia('(prefers-color-scheme: dark)').matches").unwrap(), true);
}

#[test]
fn a_page_that_inserts_what_it_was_given_trips_the_watch() {
    let browser = Browser::start().unwrap();
    let page = browser.page(Screen::DESKTOP).unwrap();
    page.watch().unwrap();
    page.go(&page_of("<main><h1>harmless</h1></main>")).unwrap();
    assert_eq!(page.trips().unwrap(), Vec::<String>::new());
    for unsafe_one in [
        "<script>semelCanary()</script>",
        "<img src=x onerror=semelCanary()>",
        "<svg onload=alert(1)>",
        "<a href=' javascript:semelCanary()'>x</a>",
        "<iframe srcdoc=x></iframe>",
        "<meta http-equiv=content-security-policy content=\"script-src 'none'\"><script>semelCanary()</script>",
        "<p style='position:fixed'>",
    ] {
        page.go(&page_of(&format!("<main><h1>{unsafe_one}</h1></main>"))).unwrap();
        assert!(!page.trips().unwrap().is_empty(), "{unsafe_one}");
    }
}
