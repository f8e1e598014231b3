//! What a handler says about its own response.

/// What a handler says about its own response, as a response extension. It goes before the rules of the route.
///
/// ```
/// use http::Response;
/// use semel_http::Settle;
///
/// let mut response = Response::new("come back later");
/// response.extensions_mut().insert(Settle::Release);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Keep it, whatever its status: retries get it.
    Keep,
    /// Do not keep it: nothing happened that must not happen again, and a retry runs.
    Release,
    /// Do not keep it, and let nobody run again until a person decides.
    Hold,
    /// Nobody knows what happened: the lease lapses, and the lapse policy decides.
    Unknown,
    /// The handler completed the permit itself, in a transaction of its own.
    Completed,
}
