//! Several layers on one store: services kept apart by their scope, and routes of one service with rules of their own.

use axum::Router;
use semel::Semel;
use semel::store::MemoryStore;
use semel_http::{IdempotencyLayer, KeyPresence, KeyScope, Principal, Settings};

use super::shop::{Shop, ask, assert_outlives_a_hang_up, assert_promises, charge_to};

fn layer_of(semel: &Semel, settings: Settings) -> IdempotencyLayer {
    IdempotencyLayer::with_settings(semel.clone(), Principal::header("authorization"), settings).unwrap()
}

fn scoped(name: &str) -> Settings {
    Settings { scope: vec![name.to_owned()], ..Settings::default() }
}

#[tokio::test]
async fn two_services_with_scopes_of_their_own_share_a_store_and_no_keys() {
    let semel = Semel::new(MemoryStore::new());
    for name in ["orders", "payments"] {
        let shop = Shop::new();
        let layer = layer_of(&semel, scoped(name));
        let at = shop.serve(shop.routes().layer(layer.clone())).await;
        assert_promises(at, "/charges", &shop).await;
        assert_outlives_a_hang_up(at, "/slow", &shop, &layer).await;
    }
}

/// The mistake that scopes avoid: the second service answers with what the first one did, and charges nothing.
#[tokio::test]
async fn two_services_without_scopes_on_one_store_answer_for_each_other() {
    let semel = Semel::new(MemoryStore::new());
    let (orders, payments) = (Shop::new(), Shop::new());
    let at_orders = orders.serve(orders.routes().layer(layer_of(&semel, Settings::default()))).await;
    let at_payments = payments.serve(payments.routes().layer(layer_of(&semel, Settings::default()))).await;
    ask(at_orders, &charge_to("/charges", "k")).await.ran(201);
    assert!(ask(at_payments, &charge_to("/charges", "k")).await.is_replay());
    assert_eq!((orders.charges(), payments.charges()), (1, 0));
}

#[tokio::test]
async fn two_instances_of_one_service_on_one_store_run_a_key_once() {
    let semel = Semel::new(MemoryStore::new());
    let shop = Shop::new();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let at = shop.serve(shop.routes().layer(layer_of(&semel, scoped("payments")))).await;
        answers.push(ask(at, &charge_to("/charges", "k")).await);
    }
    answers[0].ran(201);
    super::shop::assert_same_answer(&answers[1], &answers[0]);
    assert_eq!(shop.charges(), 1);
}

#[tokio::test]
async fn two_layers_in_one_app_have_rules_of_their_own_and_share_a_callers_keys() {
    let semel = Semel::new(MemoryStore::new());
    let shop = Shop::new();
    let mut strict = Settings::default();
    strict.profile.rules.key = KeyPresence::Required;
    let strict = shop.routes().layer(layer_of(&semel, strict));
    let lenient = shop.routes().layer(layer_of(&semel, Settings::default()));
    let app = Router::new().nest_service("/strict", strict).nest_service("/lenient", lenient);
    let at = shop.serve(app).await;
    let without_key = |path| test_http::Request::json(path, "{}").from("alice");
    ask(at, &without_key("/strict/charges")).await.refused(400, "key_missing");
    ask(at, &without_key("/lenient/charges")).await.ran(201);
    assert_promises(at, "/strict/charges", &shop).await;
}

#[tokio::test]
async fn keys_scoped_by_route_are_free_on_every_route() {
    let shop = Shop::new();
    let mut settings = Settings::default();
    settings.profile.rules.scope = KeyScope::Route;
    let app = Router::new().nest("/a", shop.routes()).nest("/b", shop.routes());
    let at = shop.serve(app.layer(layer_of(&Semel::new(MemoryStore::new()), settings))).await;
    ask(at, &charge_to("/a/charges", "k")).await.ran(201);
    ask(at, &charge_to("/b/charges", "k")).await.ran(201);
    assert!(ask(at, &charge_to("/a/charges", "k")).await.is_replay());
    assert_eq!(shop.charges(), 2);
}

#[tokio::test]
async fn the_same_layer_twice_around_a_route_is_as_good_as_once() {
    let shop = Shop::new();
    let layer = layer_of(&Semel::new(MemoryStore::new()), Settings::default());
    let at = shop.serve(shop.routes().layer(layer.clone()).layer(layer)).await;
    assert_promises(at, "/charges", &shop).await;
}

#[tokio::test]
async fn a_refusal_of_an_inner_layer_is_not_kept_by_the_outer_one() {
    let shop = Shop::new();
    let semel = Semel::new(MemoryStore::new());
    // The inner layer takes keys of one character only.
    let mut inner = scoped("inner");
    inner.profile.key.chars_max = 1;
    let routes = shop.routes().layer(layer_of(&semel, inner)).layer(layer_of(&semel, Settings::default()));
    let at = shop.serve(routes).await;
    for _ in 0..2 {
        let refused = ask(at, &charge_to("/charges", "long")).await;
        assert!(!refused.is_replay(), "a refusal was kept");
        refused.refused(400, "key_malformed");
    }
    ask(at, &charge_to("/charges", "s")).await.ran(201);
}
