//! What an OpenAPI document promises.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An OpenAPI document.
#[derive(Clone, Debug)]
pub struct Document(Value);

/// One method of one path.
#[derive(Clone, Debug)]
pub struct Operation {
    /// In capitals.
    pub method: String,
    /// With names in braces.
    pub path: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Value>,
    /// By status, and then by media type.
    pub(super) answers: BTreeMap<String, BTreeMap<String, Value>>,
}

/// A part of a path, or of a query.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) is_in_path: bool,
    pub(super) is_required: bool,
    pub(super) schema: Value,
}

impl Document {
    /// Of this JSON, which must look like one.
    pub fn new(value: Value) -> Result<Self> {
        let version = value.get("openapi").and_then(Value::as_str).unwrap_or_default();
        ensure!(version.starts_with("3."), "this is no OpenAPI document of version 3");
        ensure!(value.pointer("/info/title").is_some(), "the document has no title");
        let document = Self(value);
        ensure!(!document.operations()?.is_empty(), "the document has no operations");
        Ok(document)
    }

    /// Every method of every path.
    pub fn operations(&self) -> Result<Vec<Operation>> {
        let paths = self.0.get("paths").and_then(Value::as_object).context("the document has no paths")?;
        let mut all = Vec::new();
        for (path, item) in paths {
            for method in METHODS {
                if let Some(described) = item.get(method) {
                    all.push(
                        self.operation(method, path, described)
                            .with_context(|| format!("{method} {path}"))?,
                    );
                }
            }
        }
        Ok(all)
    }

    fn operation(&self, method: &str, path: &str, described: &Value) -> Result<Operation> {
        let answers = described.get("responses").and_then(Value::as_object).context("no responses")?;
        let by_media = |answer: &Value| {
            let content = self.resolved(answer).get("content").and_then(Value::as_object);
            let schema = |(kind, media): (&String, &Value)| {
                (kind.clone(), media.get("schema").cloned().unwrap_or(Value::Bool(true)))
            };
            content.map(|content| content.iter().map(schema).collect()).unwrap_or_default()
        };
        let parameters = described.get("parameters").and_then(Value::as_array);
        let body = described.get("requestBody").map(|body| self.resolved(body));
        Ok(Operation {
            method: method.to_uppercase(),
            path: path.to_owned(),
            parameters: parameters.into_iter().flatten().filter_map(|found| self.parameter(found)).collect(),
            body: body.and_then(|body| body.pointer("/content/application~1json/schema").cloned()),
            answers: answers.iter().map(|(status, answer)| (status.clone(), by_media(answer))).collect(),
        })
    }

    fn parameter(&self, found: &Value) -> Option<Parameter> {
        let found = self.resolved(found);
        let place = found.get("in")?.as_str()?;
        Some(Parameter {
            name: found.get("name")?.as_str()?.to_owned(),
            is_in_path: place == "path",
            is_required: found.get("required").and_then(Value::as_bool).unwrap_or(false),
            schema: found.get("schema").cloned().unwrap_or(Value::Bool(true)),
        })
    }

    /// What a reference stands for; everything else stands for itself.
    pub(super) fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let mut value = value;
        // Longer chains of references are circles.
        for _ in 0..16 {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { break };
            let Some(found) = reference.strip_prefix('#').and_then(|path| self.0.pointer(path)) else {
                break;
            };
            value = found;
        }
        value
    }

    /// References to what is nowhere in the document.
    pub fn dangling(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.find_dangling(&self.0, &mut found);
        found
    }

    fn find_dangling(&self, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                    let target = reference.strip_prefix('#').and_then(|path| self.0.pointer(path));
                    found.extend(target.is_none().then(|| reference.to_owned()));
                }
                members.values().for_each(|member| self.find_dangling(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| self.find_dangling(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The same without one status of one operation: what it must not be taken for.
    #[must_use]
    pub(super) fn without(&self, operation: &Operation, status: u16) -> Self {
        let mut value = self.0.clone();
        let path = operation.path.replace('~', "~0").replace('/', "~1");
        let answers = format!("/paths/{path}/{}/responses", operation.method.to_lowercase());
        if let Some(answers) = value.pointer_mut(&answers).and_then(Value::as_object_mut) {
            answers.remove(&status.to_string());
        }
        Self(value)
    }
}

impl Operation {
    /// Method and path.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// The members of an object; none of anything else.
pub(super) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
