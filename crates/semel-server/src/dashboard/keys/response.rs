//! A stored HTTP response as a page shows it: status line, headers, and the body by its media type. What is shown of it is decided
//! in `semel_ops::format::response`, for all surfaces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};
use semel_http::{Reply, StoredResponse};

use crate::dashboard::parts::nothing;
use semel_ops::format::bytes::size;
use semel_ops::format::response::{BodyShown, ResponseShown};

/// The largest image that a page holds.
const IMAGE_BYTES_MAX: usize = 256 << 10;

/// Status and media type, for those who may not see content.
pub(super) fn summary(response: &StoredResponse) -> Markup {
    html! {
        @if response.status().is_some() { div { dt { "Status" } dd { (ResponseShown::of(response).status_line()) } } }
        @if let Some(media_type) = response.content_type() { div { dt { "Content type" } dd { bdi { (media_type) } } } }
    }
}

/// All of a kept response.
pub(super) fn whole(reply: &Reply) -> Markup {
    let response = ResponseShown::whole(reply);
    html! {
        div.response data-test="response" {
            p.status-line { "HTTP " (response.status_line()) }
            (headers(&response.headers))
            (body(&response.body, response.is_cut, reply.body()))
            @if !response.trailers.is_empty() { h3 { "Trailers" } (headers(&response.trailers)) }
        }
    }
}

/// Bytes without a media type.
pub(super) fn content(bytes: &[u8]) -> Markup {
    let (shown, is_cut) = BodyShown::untyped(bytes);
    body(&shown, is_cut, bytes)
}

fn headers(headers: &[(String, String)]) -> Markup {
    html! {
        dl.headers {
            @for (name, value) in headers { div { dt { (name) } dd { bdi { (value) } } } }
        }
    }
}

fn body(shown: &BodyShown, is_cut: bool, bytes: &[u8]) -> Markup {
    html! {
        @match shown {
            BodyShown::Json(text) | BodyShown::Text(text) | BodyShown::Binary { hex: text } => {
                div.content tabindex="0" role="region" aria-label="Content" { pre { (text) } }
            }
            BodyShown::Form(fields) => { (form(fields)) }
            BodyShown::Image { media_type, .. } => { (image(media_type, bytes)) }
            BodyShown::Empty => { (nothing("There is no body.")) }
            BodyShown::NotKept => { (nothing("The body was not stored.")) }
        }
        @if is_cut { p.muted { (what_is_cut(shown, bytes.len())) } }
    }
}

fn what_is_cut(shown: &BodyShown, all: usize) -> String {
    let all = size(all as u64);
    if let BodyShown::Text(text) = shown {
        return format!("The first {} of {all}.", size(text.len() as u64));
    }
    format!("Only the beginning is shown; all of it has {all}.")
}

fn image(media_type: &str, bytes: &[u8]) -> Markup {
    let size = size(bytes.len() as u64);
    if bytes.len() > IMAGE_BYTES_MAX {
        return nothing(&format!("An image ({media_type}, {size}), too large for this page: download it."));
    }
    html! {
        p.thumbnail {
            img src={ "data:" (media_type) ";base64," (STANDARD.encode(bytes)) } alt={ "The body of the response, an image of " (size) };
        }
    }
}

fn form(fields: &[(String, String)]) -> Markup {
    html! {
        div.table-box tabindex="0" role="region" aria-label="Fields of the form" {
            table {
                thead { tr { th scope="col" { "Field" } th scope="col" { "Value" } } }
                tbody { @for (name, value) in fields { tr { th scope="row" { bdi { (name) } } td { bdi { (value) } } } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn shown(media_type: &str, body: &'static [u8]) -> String {
        let reply = Reply::new(StatusCode::CREATED, body).header("content-type", media_type);
        whole(&reply.expect("is a header")).into_string()
    }

    #[test]
    fn h66_a_body_is_shown_by_its_media_type() {
        assert!(shown("application/json", b"{\"id\":7}").contains("{\n  &quot;id&quot;: 7\n}"));
        assert!(shown("application/x-www-form-urlencoded", b"to=M%C3%BCller+AG&x=%zz").contains("Müller AG"));
        assert!(shown("image/png", b"\x89PNG").contains("src=\"data:image/png;base64,iVBORw==\""));
        assert!(shown("application/pdf", b"\xff\xfe").contains("ff fe"));
        assert!(shown("text/plain", b"").contains("no body"));
    }

    #[test]
    fn an_svg_is_text_and_never_an_image() {
        let html = shown("image/svg+xml", b"<svg onload=alert(1)>");
        assert!(html.contains("&lt;svg") && !html.contains("<img"), "{html}");
    }
}
