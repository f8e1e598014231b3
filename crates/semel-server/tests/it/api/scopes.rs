//! Roles and scopes: what each may, and that nobody leaves theirs.

use serde_json::json;

use super::server::{Server, claim, memory, tokens};

async fn server() -> Server {
    Server::on(memory().await, tokens(&["", "acme", "other"])).await
}

#[tokio::test]
async fn nobody_is_answered_without_a_token_that_is_known() {
    let server = server().await;
    for asked in [server.with_token("semel_wrong"), server.with_token("")] {
        let answered = asked.post("/v1/claim", claim("a").to_string()).await;
        assert_eq!(answered.problem(), (401, "unauthorized".to_owned()));
        assert_eq!(answered.headers["www-authenticate"], "Bearer");
    }
    for path in ["/v1/record?operation=o&name=n", "/v1/records", "/v1/stats", "/v1/events", "/v1/offsets"] {
        assert_eq!(server.get(path).await.problem(), (401, "unauthorized".to_owned()), "{path}");
    }
    for path in ["/openapi.json", "/docs"] {
        assert_eq!(server.get(path).await.status, 200, "{path} is open");
    }
}

#[tokio::test]
async fn a_role_may_what_it_is_for_and_nothing_else() {
    let server = server().await;
    let (work, read, operate) = (
        server.with_token("semel_work_acme"),
        server.with_token("semel_read_acme"),
        server.with_token("semel_operate_acme"),
    );
    let run = work.decide("/v1/claim", &claim("a")).await;
    for asked in [&read, &operate] {
        let answered = asked.post("/v1/claim", claim("b").to_string()).await;
        assert_eq!(answered.problem(), (403, "forbidden".to_owned()));
        let settle = json!({"permit": run["permit"]}).to_string();
        assert_eq!(asked.post("/v1/complete", settle).await.problem().0, 403);
    }
    work.decide("/v1/complete", &json!({"permit": run["permit"], "outcome": {"json": "secret"}})).await;
    let path = "/v1/record?scope=acme&operation=charge&name=a";
    assert_eq!(work.look(path).await["record"]["outcome"]["json"], "secret");
    assert_eq!(operate.look(path).await["record"]["outcome"]["json"], "secret");
    let hidden = read.get(path).await;
    assert!(!hidden.text.contains("secret") && hidden.text.contains("\"bytes\":8"), "{}", hidden.text);
    assert_eq!(work.get("/v1/records").await.problem().0, 403, "no directory of keys without `read`");
    assert_eq!(work.get("/v1/stats").await.problem().0, 403);
    let release = format!("/v1/records/{}/release", run["id"].as_str().unwrap());
    for asked in [&work, &read] {
        assert_eq!(asked.post(&release, json!({"reason": "x"}).to_string()).await.problem().0, 403);
    }
    assert_eq!(operate.decide(&release, &json!({"reason": "x"})).await["decision"], "not_held");
}

#[tokio::test]
async fn nobody_sees_or_touches_what_is_outside_their_scope() {
    let server = server().await;
    let (acme, other) = (server.with_token("semel_work_acme"), server.with_token("semel_work_other"));
    let run = acme.decide("/v1/claim", &claim("a")).await;
    let permit = json!({"permit": run["permit"]}).to_string();
    let record_once = super::server::with(claim("b"), json!({"outcome": {}})).to_string();
    for (path, body) in [
        ("/v1/claim", claim("a").to_string()),
        ("/v1/claim", json!({"operation": "charge", "name": "a"}).to_string()),
        ("/v1/record_once", record_once),
        ("/v1/complete", permit.clone()),
        ("/v1/release", permit.clone()),
        ("/v1/renew", permit.clone()),
        ("/v1/resume", permit.clone()),
    ] {
        assert_eq!(other.post(path, body).await.problem(), (403, "forbidden".to_owned()), "{path}");
    }
    let batch = other
        .decide(
            "/v1/claim/batch",
            &json!({"items": [claim("a"), {"scope": ["other"], "operation": "o", "name": "n"}]}),
        )
        .await;
    assert_eq!(
        (&batch["answers"][0]["problem"]["code"], &batch["answers"][1]["decision"]),
        (&json!("forbidden"), &json!("run"))
    );
    let id = run["id"].as_str().unwrap();
    let (reads, operates) = (server.with_token("semel_read_other"), server.with_token("semel_operate_other"));
    assert_eq!(reads.get(&format!("/v1/records/{id}")).await.problem(), (404, "not_found".to_owned()));
    assert_eq!(reads.get("/v1/record?scope=acme&operation=charge&name=a").await.problem().0, 403);
    assert_eq!(reads.get("/v1/records?scope=acme").await.problem().0, 403);
    assert_eq!(reads.get("/v1/receipts?scope=acme&pipeline=p").await.problem().0, 403);
    assert_eq!(reads.get("/v1/offsets?scope=acme&pipeline=p").await.problem().0, 403);
    let listed = reads.get("/v1/records").await.text;
    assert!(listed.contains("\"other\"") && !listed.contains("\"acme\""), "{listed}");
    assert_eq!(reads.look("/v1/stats").await["decisions"], json!(null));
    let release =
        operates.post(&format!("/v1/records/{id}/release"), json!({"reason": "x"}).to_string()).await;
    assert_eq!(release.problem(), (404, "not_found".to_owned()));
    assert_eq!(
        server.with_token("semel_work_").decide("/v1/renew", &json!({"permit": run["permit"]})).await["decision"],
        "renewed"
    );
}

#[tokio::test]
async fn a_quota_counts_every_ask_of_a_batch() {
    let digest = semel_server::access::TokenDigest::of("semel_t");
    let text = format!(
        "[[token]]\nname = \"t\"\ndigest = \"{digest}\"\nrole = \"work\"\nasks_per_second = 1\nasks_burst = 10\n"
    );
    let tokens = semel_server::access::Tokens::parse(&text, "tokens.toml").unwrap();
    let owner = Server::on(memory().await, tokens).await;
    let server = owner.with_token("semel_t");
    let items: Vec<_> = (0..9).map(|number| claim(&number.to_string())).collect();
    server.decide("/v1/claim/batch", &json!({"items": items})).await;
    let answered = server.post("/v1/claim/batch", json!({"items": items}).to_string()).await;
    assert_eq!(answered.problem(), (429, "quota_exceeded".to_owned()));
    assert!(answered.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
}
