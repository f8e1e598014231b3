//! stub
#[derive(Clone, Debug)]
pub struct Principal {}
impl Principal {
    pub fn header(_: &str) -> Self {
        Self {}
    }
    pub(crate) fn caller(&self, _: &http::request::Parts) -> Option<Caller> {
        Some(Caller("x".into()))
    }
}
#[derive(Clone, Debug)]
pub struct Caller(String);
impl Caller {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
