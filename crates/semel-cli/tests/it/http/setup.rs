//! What a front is told: the text of a config file, the same for the layer and for the proxy.

use std::fmt::Write;

/// A config file, but for where to listen, what is behind, and where outcomes are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    top: String,
    rules: String,
    rest: String,
    probe: Option<String>,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A line before every table.
    pub(crate) fn top(mut self, line: &str) -> Self {
        writeln!(self.top, "{line}").expect("is text");
        self
    }

    /// A line of the rules of every route.
    pub(crate) fn rule(mut self, line: &str) -> Self {
        writeln!(self.rules, "{line}").expect("is text");
        self
    }

    /// A probe of every route. The proxy sends it to the service; the function of the layer asks the service by itself.
    pub(crate) fn probe(mut self, path: &str, headers: &[&str], timeout: &str) -> Self {
        self.probe = Some(path.to_owned());
        self.rule(&format!("probe = {{ path = \"{path}\", headers = {headers:?}, timeout = \"{timeout}\" }}"))
    }

    /// The path of the probe.
    pub(crate) fn probe_path(&self) -> Option<&str> {
        self.probe.as_deref()
    }

    /// A table with its lines.
    pub(crate) fn table(mut self, name: &str, lines: &str) -> Self {
        write!(self.rest, "\n[{name}]\n{lines}\n").expect("is text");
        self
    }

    /// A route with rules of its own.
    pub(crate) fn route(mut self, path: &str, lines: &str) -> Self {
        write!(self.rest, "\n[[route]]\npath = \"{path}\"\n{lines}\n").expect("is text");
        self
    }

    /// The whole file, with these lines at its top.
    pub(crate) fn text(&self, top: &str) -> String {
        let Self { top: more, rules, rest, .. } = self;
        format!("{top}{more}\n[rules]\n{rules}{rest}")
    }
}
