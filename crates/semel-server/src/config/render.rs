//! What a file means for a claim server, as a file that means the same.

use semel_config::render::{Lines, quoted, sized, table, timed};
use semel_listen::ServerTls;

use super::server::{ServerMeaning, TOKENS_VARIABLE, TokensFrom};
use crate::serve::{Bounds, Timeouts};

pub(super) fn written(meaning: &ServerMeaning) -> String {
    let settings = &meaning.settings;
    let mut text = table("", vec![("store", meaning.store.line(&settings.store))]);
    text.push_str(&table("[server]", server(meaning)));
    let tls = settings.tls.as_ref().map(ServerTls::lines).unwrap_or_default();
    text.push_str(&table("[server.tls]", tls));
    text.push_str(&table("[server.bounds]", bounds(&settings.bounds)));
    text.push_str(&table("[server.timeouts]", timeouts(&settings.timeouts)));
    text
}

fn server(meaning: &ServerMeaning) -> Lines {
    let settings = &meaning.settings;
    let mut lines = vec![("listen", quoted(settings.listen))];
    let count = settings.tokens.len();
    match &meaning.tokens {
        TokensFrom::Nowhere => {}
        TokensFrom::File(path) => {
            lines.push(("tokens", format!("{} # {count} of them", quoted(path.display()))));
        }
        TokensFrom::Variable => {
            lines.push((
                "# tokens",
                format!("in the environment variable {TOKENS_VARIABLE}, {count} of them"),
            ));
        }
    }
    if let Some(audit) = &settings.audit {
        lines.push(("audit", quoted(audit.display())));
    }
    if let Some(otlp) = &meaning.otlp {
        lines.push(("otlp", quoted(otlp)));
    }
    lines
}

fn bounds(bounds: &Bounds) -> Lines {
    vec![
        ("connections_max", bounds.connections_max.to_string()),
        ("connections_per_peer_max", bounds.connections_per_peer_max.to_string()),
        ("in_flight_max", bounds.in_flight_max.to_string()),
        ("waiting_max", bounds.waiting_max.to_string()),
        ("head_bytes_max", sized(bounds.head_bytes_max as u64)),
        ("streams_max", bounds.streams_max.to_string()),
    ]
}

fn timeouts(timeouts: &Timeouts) -> Lines {
    [
        ("handshake", timeouts.handshake),
        ("head", timeouts.head),
        ("body", timeouts.body),
        ("body_idle", timeouts.body_idle),
        ("drain", timeouts.drain),
    ]
    .map(|(name, span)| (name, timed(span)))
    .into()
}
