//! stub
use crate::json::JsonPath;
use http::{HeaderMap, Method, Uri};
pub(crate) fn fingerprint(
    _: &Method,
    _: &Uri,
    _: &HeaderMap,
    b: &[u8],
    _: &[JsonPath],
) -> semel::Fingerprint {
    semel::Fingerprint::of_parts([b])
}
