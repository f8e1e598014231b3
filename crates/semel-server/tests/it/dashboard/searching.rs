//! Keys are found.

use semel::{Key, Outcome};

use super::visit::{Browser, done, held, open, path};

#[tokio::test]
async fn a_key_is_found_by_its_parts_and_goes_straight_to_its_page() {
    let server = open().await;
    let semel = &server.served().semel;
    let key = Key::scoped(["acme", "e/u"], "charge", "order 1042").expect("is one");
    done(semel, &key, Outcome::success("1")).await;
    done(semel, &Key::new("charge", "order-2").expect("is one"), Outcome::success("1")).await;
    let mut browser = Browser::at(&server);
    let id = key.id().to_string();
    for page in [
        "/keys?scope=acme%2Fe%5C%2Fu&operation=charge&name=order%201042".to_owned(),
        format!("/keys?name={id}"),
        format!("/keys?name=%20{}%20", &id[..8]),
    ] {
        let answer = browser.get(&page).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some(path(&key).as_str())), "{page}");
    }
    for (page, rows) in [
        ("/keys?scope=acme", 1),
        ("/keys?name=order%201042", 1),
        ("/keys?operation=charge", 2),
        ("/keys?operation=charge&name=order-3", 0),
        ("/keys?older_than=1h", 0),
        ("/keys?state=held&state=running", 0),
        ("/keys?state=held&state=done", 2),
        ("/keys?name=00000000", 0),
        ("/keys", 2),
    ] {
        let answer = browser.get(page).await;
        assert_eq!(answer.text().matches("data-test=\"key-row\"").count(), rows, "{page}");
    }
}

#[tokio::test]
async fn what_cannot_be_searched_for_is_told_beside_what_was_typed() {
    let server = open().await;
    let mut browser = Browser::at(&server);
    for (page, said) in [
        ("/keys?older_than=soon", "no span of time"),
        ("/keys?scope=a%2F%2Fb", "a part of the scope is empty"),
        ("/keys?after=zz", "is no id"),
    ] {
        let answer = browser.get(page).await;
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains(said), "{page}: {}", answer.text());
    }
    assert!(browser.get("/keys?older_than=soon").await.text().contains("value=\"soon\""));
}

#[tokio::test]
async fn a_key_that_is_not_there_is_a_page_with_a_way_on() {
    let server = open().await;
    let mut browser = Browser::at(&server);
    for page in
        ["/keys/abc", "/keys/0000000000000000000000000000000000000000000000000000000000000000", "/nowhere"]
    {
        let answer = browser.get(page).await;
        assert_eq!(answer.status, 404, "{page}");
        assert!(answer.text().contains("<main"), "{page}");
    }
}

#[tokio::test]
async fn the_life_of_a_key_is_told() {
    let server = open().await;
    let key = Key::new("charge", "order-1").expect("is one");
    held(&server.served().semel, &key, "nobody knows").await;
    let answer = Browser::at(&server).get(&path(&key)).await;
    for said in [
        "First seen",
        "Held",
        "nobody knows",
        "Held until an operator decides",
        "hold: an operator decides",
        "1d once settled",
    ] {
        assert!(answer.text().contains(said), "{said}");
    }
}
