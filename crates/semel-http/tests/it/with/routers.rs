//! axum's routers: merged, nested, with fallbacks, and `layer` beside `route_layer`.

use axum::Router;
use axum::routing::post;

use semel_http::{KeyPresence, KeyScope, Route, Rules, Settings};

use super::shop::{Shop, ask, assert_outlives_a_hang_up, assert_promises, charge_to, layer, layer_with};

#[tokio::test]
async fn a_layer_on_one_of_two_merged_routers_covers_only_its_routes() {
    let (shop, uncovered) = (Shop::new(), Shop::new());
    let layer = layer();
    let reports = Router::new().nest("/reports", uncovered.routes());
    let app = Router::new().merge(shop.routes().layer(layer.clone())).merge(reports);
    let at = shop.serve(app).await;
    assert_promises(at, "/charges", &shop).await;
    assert_outlives_a_hang_up(at, "/slow", &shop, &layer).await;
    for _ in 0..2 {
        ask(at, &charge_to("/reports/charges", "k")).await.ran(201);
    }
    assert_eq!(uncovered.charges(), 2, "no layer is around these routes");
}

#[tokio::test]
async fn a_layer_around_merged_routers_covers_the_routes_of_both() {
    let (shop, other) = (Shop::new(), Shop::new());
    let others = Router::new().nest("/other", other.routes());
    let at = shop.serve(Router::new().merge(shop.routes()).merge(others).layer(layer())).await;
    assert_promises(at, "/charges", &shop).await;
    // A caller has one set of keys for all routes, so the key of another route is a mismatch.
    ask(at, &charge_to("/other/charges", "promise")).await.refused(422, "mismatch");
    ask(at, &charge_to("/other/charges", "other")).await.ran(201);
    assert_eq!(other.charges(), 1);
}

#[tokio::test]
async fn routes_added_after_the_layer_are_not_covered() {
    let shop = Shop::new();
    let late = shop.clone();
    let app =
        Router::new().layer(layer()).route("/late", post(move || async move { late.charge().to_string() }));
    let at = shop.serve(app).await;
    for _ in 0..2 {
        ask(at, &charge_to("/late", "k")).await.ran(200);
    }
    assert_eq!(shop.charges(), 2);
}

#[tokio::test]
async fn a_layer_around_nested_routers_tells_their_paths_apart() {
    let shop = Shop::new();
    let layer = layer();
    let app = Router::new().nest("/a", shop.routes()).nest("/b", shop.routes()).layer(layer.clone());
    let at = shop.serve(app).await;
    assert_promises(at, "/a/charges", &shop).await;
    assert_outlives_a_hang_up(at, "/a/slow", &shop, &layer).await;
    ask(at, &charge_to("/b/charges", "promise")).await.refused(422, "mismatch");
}

/// axum strips the prefix before the layer sees the request; the layer looks at the path that the client sent.
#[tokio::test]
async fn a_layer_inside_nested_routers_tells_their_paths_apart_too() {
    let shop = Shop::new();
    let layer = layer();
    let routes = || shop.routes().layer(layer.clone());
    let at = shop.serve(Router::new().nest("/a", routes()).nest("/b", routes())).await;
    assert_promises(at, "/a/charges", &shop).await;
    assert_outlives_a_hang_up(at, "/a/slow", &shop, &layer).await;
    ask(at, &charge_to("/b/charges", "promise")).await.refused(422, "mismatch");
}

#[tokio::test]
async fn keys_scoped_by_route_inside_nested_routers_are_free_under_each_prefix() {
    let shop = Shop::new();
    let mut settings = Settings::default();
    settings.profile.rules.scope = KeyScope::Route;
    let routes = shop.routes().layer(layer_with(settings));
    let at = shop.serve(Router::new().nest("/a", routes.clone()).nest("/b", routes)).await;
    for path in ["/a/charges", "/b/charges"] {
        ask(at, &charge_to(path, "k")).await.ran(201);
        assert!(ask(at, &charge_to(path, "k")).await.is_replay());
    }
    assert_eq!(shop.charges(), 2);
}

/// Rules for a path name it as the client does.
#[tokio::test]
async fn rules_for_a_path_inside_a_nested_router_name_the_whole_path() {
    let shop = Shop::new();
    let rules = Rules { key: KeyPresence::Required, ..Rules::default() };
    let route = Route { path: "/a/charges".to_owned(), rules };
    let layer = layer_with(Settings { routes: vec![route], ..Settings::default() });
    let at = shop.serve(Router::new().nest("/a", shop.routes().layer(layer))).await;
    let without_key = test_http::Request::json("/a/charges", "{}").from("alice");
    ask(at, &without_key).await.refused(400, "key_missing");
    assert_promises(at, "/a/charges", &shop).await;
}

/// `POST /nothing-here` twice with one key: whether the second answer was a replay, and how often the fallback ran.
async fn unknown_path_twice(app: impl FnOnce(Router) -> Router) -> (bool, usize) {
    let (shop, strays) = (Shop::new(), Shop::new());
    let counted = strays.clone();
    let fallback = move || async move { (http::StatusCode::NOT_FOUND, counted.charge().to_string()) };
    let at = shop.serve(app(shop.routes().fallback(fallback))).await;
    assert_promises(at, "/charges", &shop).await;
    ask(at, &charge_to("/nothing-here", "stray")).await.ran(404);
    let second = ask(at, &charge_to("/nothing-here", "stray")).await;
    assert_eq!(second.status, 404);
    (second.is_replay(), strays.charges())
}

#[tokio::test]
async fn route_layer_leaves_the_fallback_alone() {
    assert_eq!(unknown_path_twice(|app| app.route_layer(layer())).await, (false, 2));
}

/// The reason for `route_layer`: a 404 is kept as any other answer, also after the route exists.
#[tokio::test]
async fn layer_keeps_the_404_of_the_fallback_too() {
    assert_eq!(unknown_path_twice(|app| app.layer(layer())).await, (true, 1));
}
