//! Which version of HTTP a client speaks that did not say so in a handshake.

use std::io;

use bytes::Bytes;
use tokio::io::AsyncReadExt;

use crate::plain_or_tls::PlainOrTls;

/// What every connection of HTTP/2 starts with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Reads until it is clear what the client speaks; what was read must be read again by whoever speaks it. `None` if
/// the client left without a word.
pub(crate) async fn read(wire: &mut PlainOrTls) -> io::Result<Option<(Protocol, Bytes)>> {
    let mut bytes = [0_u8; PREFACE.len()];
    let mut length = 0_usize;
    while let Some(room) = bytes.get_mut(length..) {
        let read = wire.read(room).await?;
        if read == 0 && length == 0 {
            return Ok(None);
        }
        length = length.saturating_add(read);
        let so_far = bytes.get(..length).unwrap_or_default();
        if read == 0 || !PREFACE.starts_with(so_far) {
            return Ok(Some((Protocol::Http1, Bytes::copy_from_slice(so_far))));
        }
        if length == PREFACE.len() {
            break;
        }
    }
    Ok(Some((Protocol::Http2, Bytes::from_static(PREFACE))))
}
