//! Pages stay fast however many records there are.

use std::collections::HashSet;
use std::time::Duration;

use semel::{Claim, Key, Outcome};
use tokio::time::Instant;

use super::visit::{Browser, count_on, held, open, path, until};

const RECORDS: usize = 100_000;
/// A page looks for 300 ms; the rest is for a busy machine and an unoptimised build.
const PAGE_MAX: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_records_do_not_slow_a_page_down() {
    let server = open().await;
    let semel = &server.served().semel;
    let outcome = Outcome::success("1");
    for number in 0..RECORDS {
        let key = Key::scoped(["acme"], "charge", &number.to_string()).expect("is one");
        semel.record_once(Claim::new(&key), outcome.clone()).await.map(drop).expect("is recorded");
    }
    let stuck = Key::scoped(["globex"], "ship", "parcel-1").expect("is one");
    held(semel, &stuck, "lapsed").await;
    server.served().census.look_soon();
    let mut browser = Browser::at(&server);
    until(&mut browser, "/", |html| count_on(html, "done") == 100_000 && count_on(html, "held") == 1).await;

    for page in
        ["/", "/keys", "/keys?state=held", "/keys?operation=nothing", "/keys?older_than=1h", "/pipelines"]
    {
        let started_at = Instant::now();
        let answer = browser.get(page).await;
        let took = started_at.elapsed();
        assert!(answer.status == 200 && took < PAGE_MAX, "{page} took {took:?}");
        assert!(
            answer.text().matches("data-test=\"key-row\"").count() <= 50 && answer.body.len() < 200_000,
            "{page}"
        );
    }
    assert!(browser.get("/").await.text().contains(&format!("href=\"{}\"", path(&stuck))));
    assert!(
        goes_on_until_found(&mut browser, "/keys?state=held", &path(&stuck)).await,
        "the held one is found by going on"
    );
    pages_follow_one_another(&mut browser).await;
}

/// Follows "go on" until a page has what is looked for.
async fn goes_on_until_found(browser: &mut Browser, first: &str, wanted: &str) -> bool {
    let mut page = first.to_owned();
    for _ in 0..1_000 {
        let html = browser.get(&page).await.text().to_owned();
        if html.contains(&format!("href=\"{wanted}\"")) {
            return true;
        }
        match next(&html) {
            Some(next) => page = next,
            None => return false,
        }
    }
    false
}

async fn pages_follow_one_another(browser: &mut Browser) {
    let (mut page, mut seen) = ("/keys".to_owned(), HashSet::new());
    for _ in 0..5 {
        let html = browser.get(&page).await.text().to_owned();
        let rows: Vec<_> =
            html.split("<a class=\"key\" href=\"").skip(1).map(|rest| rest[..70].to_owned()).collect();
        assert_eq!(rows.len(), 50);
        assert!(rows.into_iter().all(|row| seen.insert(row)), "no key is on two pages");
        page = next(&html).expect("there are more");
    }
}

fn next(html: &str) -> Option<String> {
    let link = html.split("rel=\"next\"").next().filter(|before| before.len() < html.len())?;
    let address = link.rsplit("href=\"").next()?.split('"').next()?;
    Some(address.replace("&amp;", "&"))
}
