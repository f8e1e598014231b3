//! The parts of a scope, as they are typed.

/// The parts of a scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope(pub(super) Vec<Box<str>>);

/// Splits at each `/` that no `\` stands before.
pub(super) fn scope(text: &str) -> Result<Scope, String> {
    semel_ops::format::scope::parse(text).map(Scope)
}
