//! The page: every endpoint, what it is asked and what it answers.

use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use super::schema::{kind, members, prose};
use crate::api::problem::Code;

/// The document as a page, without any script.
pub(super) fn rendered(document: &Value) -> Markup {
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
