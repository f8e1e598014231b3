//! The OpenAPI document, and a page for people that is made of it: every endpoint, what it is asked and what it answers. Both
//! are made once, when somebody first asks.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use super::openapi::{Looked, description};
use super::problem::Code;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(description()).unwrap_or_default());
static JSON: LazyLock<Bytes> = LazyLock::new(|| DOCUMENT.to_string().into());
static PAGE: LazyLock<Bytes> = LazyLock::new(|| rendered(&DOCUMENT).into_string().into());

/// See this document
#[utoipa::path(get, path = "/openapi.json", tag = "server", operation_id = "openapi", security(()),
    responses((status = 200, description = "An OpenAPI document.", body = serde_json::Value), Looked))]
pub(super) async fn document() -> Response {
    sent("application/json", JSON.clone())
}

/// Read this document
#[utoipa::path(get, path = "/docs", tag = "server", operation_id = "docs", security(()),
    responses((status = 200, description = "A page.", body = String, content_type = "text/html"), Looked))]
pub(super) async fn page() -> Response {
    sent("text/html; charset=utf-8", PAGE.clone())
}

/// How the page looks.
pub(super) async fn style() -> Response {
    sent("text/css; charset=utf-8", Bytes::from_static(include_bytes!("docs/style.css")))
}

/// Another release says something else: nobody keeps it for long.
fn sent(media_type: &'static str, text: Bytes) -> Response {
    ([(CONTENT_TYPE, media_type), (CACHE_CONTROL, "max-age=60")], text).into_response()
}

/// The document as a page, without any script.
fn rendered(document: &Value) -> Markup {
    let description = document.pointer("/info/description").and_then(Value::as_str).unwrap_or_default();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "semel: the claim API" }
                link rel="stylesheet" href="/docs.css";
            }
            body {
                header {
                    h1 { "The claim API" }
                    @for paragraph in description.split("\n\n") { p { (prose(paragraph)) } }
                    p { "The same for programs: " a href="/openapi.json" { "/openapi.json" } ". The dashboard: " a href="/" { "/" } "." }
                }
                nav aria-label="Endpoints" { @for tag in tags(document) { (contents(document, tag)) } }
                main {
                    @for tag in tags(document) { (section(document, tag)) }
                    (problems())
                }
            }
        }
    }
}

fn contents(document: &Value, tag: &Value) -> Markup {
    html! {
        h2 { (text(tag, "name")) }
        ul { @for operation in operations(document, tag) {
            li { a href={ "#" (operation.id()) } { span.method { (operation.method) } " " code { (operation.path) } } }
        } }
    }
}

fn section(document: &Value, tag: &Value) -> Markup {
    html! {
        section {
            h2 { (text(tag, "name")) }
            p { (prose(text(tag, "description"))) }
            @for operation in operations(document, tag) { (operation.shown(document)) }
        }
    }
}

fn problems() -> Markup {
    html! {
        section {
            h2 { "problems" }
            p { "Errors are " code { "application/problem+json" } ". Rely on " code { "code" } "; " code { "detail" } " is for people." }
            @for code in Code::ALL {
                article id={ "problem-" (code.as_str()) } {
                    h3 { code { (code.as_str()) } " " span.method { (code.status().as_u16()) } }
                    p.what { (code.title()) ". " (prose(code.means())) }
                }
            }
        }
    }
}

/// One endpoint.
struct Operation<'a> {
    method: String,
    path: &'a str,
    said: &'a Value,
}

impl Operation<'_> {
    fn id(&self) -> &str {
        text(self.said, "operationId")
    }

    fn shown(&self, document: &Value) -> Markup {
        let body = self.said.pointer("/requestBody/content/application~1json/schema");
        html! {
            article id=(self.id()) {
                h3 { span.method { (self.method) } " " code { (self.path) } }
                p { strong { (prose(text(self.said, "summary"))) "." } }
                @if !text(self.said, "description").is_empty() { p { (prose(text(self.said, "description"))) } }
                (self.parameters(document))
                @if let Some(body) = body { h4 { "Asked" } (members(document, body)) }
                h4 { "Answered" }
                @for (status, response) in self.responses() {
                    @if status == "200" { (answer(document, response)) }
                }
                p.what { "Refused with "
                    @for (status, _) in self.responses().filter(|(status, _)| *status != "200") { code { (status) } " " }
                }
            }
        }
    }

    fn parameters(&self, document: &Value) -> Markup {
        let parameters = self.said.get("parameters").and_then(Value::as_array);
        html! {
            @if let Some(parameters) = parameters {
                h4 { "In the URL" }
                table {
                    thead { tr { th { "name" } th { "kind" } th { "meaning" } } }
                    tbody { @for parameter in parameters {
                        tr {
                            td { code { (text(parameter, "name")) }
                                @if parameter.get("required") == Some(&Value::Bool(true)) { span.must title="must be there" { " *" } } }
                            td { (parameter.get("schema").map(|schema| kind(document, schema)).unwrap_or_default()) }
                            td { (prose(text(parameter, "description"))) }
                        }
                    } }
                }
            }
        }
    }

    fn responses(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.said.get("responses").and_then(Value::as_object).into_iter().flatten()
    }
}

fn answer(document: &Value, response: &Value) -> Markup {
    let contents = response.get("content").and_then(Value::as_object).into_iter().flatten();
    html! {
        p.what { (prose(text(response, "description"))) }
        @for (media_type, content) in contents {
            @if media_type != "application/json" { p { code { (media_type) } } }
            @if let Some(schema) = content.get("schema") { (members(document, schema)) }
            @for example in examples(content) { pre { code { (example) } } }
        }
    }
}

/// What an answer may look like.
fn examples(content: &Value) -> Vec<String> {
    let many = content.get("examples").and_then(Value::as_object).into_iter().flatten();
    let many = many.filter_map(|(_, example)| example.get("value"));
    content.get("example").into_iter().chain(many).map(shown).collect()
}

fn shown(example: &Value) -> String {
    example.as_str().map_or_else(|| serde_json::to_string_pretty(example).unwrap_or_default(), str::to_owned)
}

fn tags(document: &Value) -> impl Iterator<Item = &Value> {
    document.get("tags").and_then(Value::as_array).into_iter().flatten()
}

fn operations<'a>(document: &'a Value, tag: &'a Value) -> impl Iterator<Item = Operation<'a>> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    let all = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, said)| Operation { method: method.to_uppercase(), path, said })
    });
    all.filter(move |operation| operation.said.pointer("/tags/0") == tag.get("name"))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The schema that this one refers to, or itself.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let referred = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    referred.and_then(|path| document.pointer(path)).unwrap_or(schema)
}

/// A sentence of the document, with what it has between backticks as code.
fn prose(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

/// The members of an object, a line each; the alternatives of a choice, one after the other.
fn members(document: &Value, schema: &Value) -> Markup {
    let schema = resolved(document, schema);
    let alternatives = list(schema, "oneOf");
    if !alternatives.is_empty() {
        return html! { @for alternative in alternatives { (members(document, alternative)) } };
    }
    let parts: Vec<&Value> = match list(schema, "allOf") {
        [] => vec![schema],
        parts => parts.iter().map(|part| resolved(document, part)).collect(),
    };
    let described = schema.get("description").or_else(|| parts.first()?.get("description"));
    html! {
        @if let Some(text) = described.and_then(Value::as_str) { p.what { (prose(text)) } }
        @if parts.iter().any(|part| part.get("properties").is_some()) {
            table {
                thead { tr { th { "member" } th { "kind" } th { "meaning" } } }
                tbody {
                    @for part in &parts { @for (name, member) in properties(part) {
                        tr {
                            td { code { (name) } @if is_required(part, name) { span.must title="must be there" { " *" } } }
                            td { (kind(document, member)) }
                            td { (prose(&meaning(document, member))) }
                        }
                    } }
                }
            }
        }
    }
}

/// In a few words, what kind of value it is.
fn kind(document: &Value, schema: &Value) -> String {
    if let Some(word) = list(schema, "enum").first().and_then(Value::as_str) {
        let words: Vec<_> = list(schema, "enum").iter().filter_map(Value::as_str).collect();
        return if words.len() > 1 { words.join(" | ") } else { format!("\"{word}\"") };
    }
    if schema.get("$ref").is_some() {
        let resolved = resolved(document, schema);
        let is_named = ["properties", "allOf", "$ref"].iter().any(|member| resolved.get(member).is_some());
        return if is_named { name_of(schema).to_owned() } else { kind(document, resolved) };
    }
    for choice in ["oneOf", "anyOf"] {
        let kinds: Vec<_> = list(schema, choice).iter().map(|one| kind(document, one)).collect();
        if !kinds.is_empty() {
            return kinds.join(" | ");
        }
    }
    let types = match schema.get("type") {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => "any JSON".to_owned(),
    };
    match schema.get("items") {
        Some(items) => format!("{types} of {}", kind(document, items)),
        None => types,
    }
}

fn meaning(document: &Value, member: &Value) -> String {
    let own = member.get("description").and_then(Value::as_str);
    own.or_else(|| resolved(document, member).get("description")?.as_str()).unwrap_or_default().to_owned()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn is_required(schema: &Value, name: &str) -> bool {
    list(schema, "required").iter().any(|required| required == name)
}

fn name_of(schema: &Value) -> &str {
    schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()).unwrap_or("object")
}

fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
