//! Style, script and icon, embedded in the binary. The digest in a name lets browsers keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use sha2::{Digest, Sha256};

/// For a year, and never asked for again meanwhile.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Something that pages need.
pub(super) struct Asset {
    path: String,
    media_type: &'static str,
    text: &'static str,
}

pub(super) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("style", "css", "text/css; charset=utf-8", include_str!("assets/style.css")));
pub(super) static LIVE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("live", "js", "text/javascript; charset=utf-8", include_str!("assets/live.js"))
});
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("assets/icon.svg")));

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, text: &'static str) -> Self {
        let digest = <[u8; 32]>::from(Sha256::digest(text.as_bytes()));
        let digest = digest.iter().take(8).fold(0_u64, |digest, byte| digest << 8 | u64::from(*byte));
        Self { path: format!("/assets/{name}.{digest:016x}.{extension}"), media_type, text }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

/// Answers with an asset. They hold nothing secret: the page where people log in needs them, too.
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let found = [&STYLE, &LIVE, &ICON].into_iter().find(|asset| asset.path.ends_with(&format!("/{name}")));
    match found {
        Some(asset) => {
            let headers = [
                (CONTENT_TYPE, asset.media_type),
                (CACHE_CONTROL, FOR_EVER),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (headers, asset.text).into_response()
        }
        // Of another release, which this server does not have; nobody may remember that.
        None => {
            (StatusCode::NOT_FOUND, [(CACHE_CONTROL, "no-store")], "there is no such asset\n").into_response()
        }
    }
}
