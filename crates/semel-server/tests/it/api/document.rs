//! The OpenAPI document and its page.

use std::collections::BTreeSet;

use http::Method;
use serde_json::Value;

use super::server::Server;

/// Every `$ref` in the document.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn operations(document: &Value) -> Vec<(String, Method, &Value)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            found.push((path.clone(), method.to_uppercase().parse().unwrap(), operation));
        }
    }
    found
}

/// What is wrong with a document; empty if nothing is.
fn wrong(document: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if !document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1.")) {
        wrong.push("no version 3.1".to_owned());
    }
    let mut found = Vec::new();
    references(document, &mut found);
    for reference in found {
        if reference.strip_prefix('#').and_then(|path| document.pointer(path)).is_none() {
            wrong.push(format!("{reference} leads nowhere"));
        }
    }
    let mut ids = BTreeSet::new();
    for (path, _, operation) in operations(document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        if id.is_empty() || !ids.insert(id) {
            wrong.push(format!("{path} has no operationId of its own"));
        }
        let named: Vec<&str> = path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        for name in named {
            if !parameters
                .iter()
                .any(|one| one["name"] == name && one["in"] == "path" && one["required"] == true)
            {
                wrong.push(format!("{path} does not describe {name}"));
            }
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            if response["description"].as_str().unwrap_or_default().is_empty()
                || response["content"].is_null()
            {
                wrong.push(format!("{path} says nothing about {status}"));
            }
        }
    }
    wrong
}

#[tokio::test]
async fn the_document_is_well_formed_and_describes_what_is_served() {
    let server = Server::start().await;
    let document = server.look("/openapi.json").await;
    assert_eq!(wrong(&document), Vec::<String>::new());
    let mut broken = document.clone();
    broken["paths"]["/v1/claim"]["post"]["operationId"] = "complete".into();
    broken["paths"]["/v1/claim"]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"] =
        "#/components/schemas/Nothing".into();
    assert_eq!(wrong(&broken).len(), 2, "the check would see it: {:?}", wrong(&broken));
    assert!(operations(&document).len() >= 23, "{}", operations(&document).len());
    for (path, method, operation) in operations(&document) {
        let path = path.replace("{id}", &"0".repeat(64));
        if operation["operationId"] == "events" {
            continue;
        }
        let answered = server.method(method.clone(), &path).await;
        assert_ne!(answered.status, 405, "{method} {path}");
        let is_documented = operation["responses"].get(answered.status.to_string()).is_some();
        assert!(is_documented, "{method} {path} answered {}: {}", answered.status, answered.text);
        let other = if method == Method::GET { Method::DELETE } else { Method::PUT };
        assert_eq!(server.method(other, &path).await.status, 405, "{path} has no other method");
    }
}

#[tokio::test]
async fn every_refusal_is_described_with_an_example() {
    let server = Server::start().await;
    let document = server.look("/openapi.json").await;
    for (path, method, operation) in operations(&document) {
        let statuses: Vec<_> =
            operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
        for status in ["200", "400", "401", "403", "404", "405", "421", "429", "500", "503"] {
            assert!(statuses.contains(&status), "{method} {path} does not describe {status}");
        }
        assert_eq!(statuses.contains(&"415"), method == Method::POST, "{method} {path}");
        let problem = &operation["responses"]["503"]["content"]["application/problem+json"];
        assert_eq!(
            (&problem["example"]["status"], &problem["example"]["code"]),
            (&503.into(), &"unavailable".into())
        );
    }
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
}

#[tokio::test]
async fn the_page_shows_every_endpoint_and_holds_no_script() {
    let server = Server::start().await;
    let page = server.get("/docs").await;
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    for (path, _, operation) in operations(&server.look("/openapi.json").await) {
        assert!(page.text.contains(&format!("<code>{path}</code>")), "{path}");
        assert!(page.text.contains(&format!("id={}", operation["operationId"])), "{path}");
    }
    for word in ["permit_id", "wait_ms", "remembered_until", "id=\"problem-unknown\""] {
        assert!(page.text.contains(word), "{word}");
    }
    for word in ["<script", "style=", "onclick", "http://", "https://"] {
        assert!(!page.text.contains(word), "{word}");
    }
    assert_eq!(server.get("/docs.css").await.headers["content-type"], "text/css; charset=utf-8");
}
