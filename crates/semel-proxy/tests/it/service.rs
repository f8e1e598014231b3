//! Services behind the proxy: one that is scripted byte by byte, and one that tells what it was asked.

use std::ops::Deref;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use test_http::{Line, Upstream};

/// A service, and how often somebody connected to it.
pub(crate) struct Service(Upstream);

impl Deref for Service {
    type Target = Upstream;

    fn deref(&self) -> &Upstream {
        &self.0
    }
}

impl Service {
    /// Every connection is one run of the script.
    pub(crate) async fn scripted<F, R>(script: F) -> Self
    where
        F: Fn(Line) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        Self(Upstream::scripted(script).await)
    }

    /// Answers every request with its own head and body, as text.
    pub(crate) async fn mirror() -> Self {
        Self::routed(Router::new().fallback(mirrored)).await
    }

    pub(crate) async fn routed(router: Router) -> Self {
        Self(Upstream::serving(async |listener| axum::serve(listener, router).await.expect("serves")).await)
    }
}

async fn mirrored(request: Request) -> String {
    let (parts, body) = request.into_parts();
    let shown = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}: {}\n", value.to_str().expect("is text"))
    };
    let headers: Vec<_> = parts.headers.iter().map(shown).collect();
    let body = to_bytes(Body::new(body), 1 << 20).await.expect("is whole");
    let body = std::str::from_utf8(&body).expect("is text");
    format!("{} {} {:?}\n{}\n{body}", parts.method, parts.uri, parts.version, headers.concat())
}
