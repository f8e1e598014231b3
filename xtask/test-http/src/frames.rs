//! HTTP/2 as frames, written by hand: no library sends what must not be sent.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Kinds of frames.
pub const DATA: u8 = 0;
/// Fields of a head or of trailers.
pub const HEADERS: u8 = 1;
/// The end of one stream.
pub const RST_STREAM: u8 = 3;
/// What a side allows.
pub const SETTINGS: u8 = 4;
/// A request that the other side did not make.
pub const PUSH_PROMISE: u8 = 5;
/// A question whether the other side is there.
pub const PING: u8 = 6;
/// The end of a connection.
pub const GOAWAY: u8 = 7;
/// Room for more data.
pub const WINDOW_UPDATE: u8 = 8;
/// More fields.
pub const CONTINUATION: u8 = 9;

/// Flag of `DATA` and `HEADERS`: nothing follows on this stream.
pub const END_STREAM: u8 = 1;
/// Flag of `SETTINGS` and `PING`: an answer to one.
pub const ACK: u8 = 1;
/// Flag of `HEADERS`: no more fields follow.
pub const END_HEADERS: u8 = 4;

/// The reason of a reset or the end of a connection: all is well.
pub const NO_ERROR: u32 = 0;
/// The stream is given up.
pub const CANCEL: u32 = 8;
/// Nothing was done with the stream.
pub const REFUSED_STREAM: u32 = 7;
/// Something unforeseen.
pub const INTERNAL_ERROR: u32 = 2;

/// What a client's connection starts with.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The largest frame that everybody takes.
pub const FRAME_BYTES_MAX: usize = 16_384;

/// One frame as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its kind.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 for the connection.
    pub stream: u32,
    /// What is in it.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The next one; `None` at the end of the connection.
    pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> Option<Self> {
        let mut head = [0_u8; 9];
        from.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
        from.read_exact(&mut payload).await.ok()?;
        Some(Self { kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff, payload })
    }

    /// Whether nothing follows on its stream.
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// Whether it is of this kind, on this stream.
    pub fn is(&self, kind: u8, stream: u32) -> bool {
        (self.kind, self.stream) == (kind, stream)
    }

    /// The reason of a reset or of the end of a connection.
    pub fn reason(&self) -> Option<u32> {
        let at = match self.kind {
            RST_STREAM => 0,
            GOAWAY => 4,
            _ => return None,
        };
        self.payload.get(at..at + 4).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes)
    }
}

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    with_length(payload.len(), kind, flags, stream, payload)
}

/// A frame that says another length than it has.
pub fn with_length(length: usize, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).unwrap_or_default().to_be_bytes();
    let head = length.into_iter().skip(1).chain([kind, flags]).chain(stream.to_be_bytes());
    head.chain(payload.iter().copied()).collect()
}

/// Fields on a stream, as they are and in their order.
pub fn headers(stream: u32, fields: &[(&str, &str)], flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &block(fields))
}

/// Fields as a header block.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| literal(name.as_bytes(), value.as_bytes())).collect()
}

/// The end of one stream.
pub fn reset(stream: u32, reason: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &reason.to_be_bytes())
}

/// The end of a connection, after which streams above `last` were not looked at.
pub fn go_away(last: u32, reason: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), reason.to_be_bytes()].concat())
}

/// Room for more data.
pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// One setting.
pub fn setting(id: u16, value: u32) -> Vec<u8> {
    let payload: Vec<u8> = id.to_be_bytes().into_iter().chain(value.to_be_bytes()).collect();
    frame(SETTINGS, 0, 0, &payload)
}

/// A field that is not remembered, in plain letters.
pub fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let text = |text: &[u8]| [length(text.len()), text.to_vec()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// A number with a prefix of seven bits.
fn length(number: usize) -> Vec<u8> {
    let byte = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
    if number < 127 {
        return vec![byte(number)];
    }
    let (mut bytes, mut rest) = (vec![127], number - 127);
    while rest >= 128 {
        bytes.push(byte(rest % 128 + 128));
        rest /= 128;
    }
    bytes.push(byte(rest));
    bytes
}

/// The server's side of a connection: takes the preface, and says what it allows. `None` if the client left.
pub async fn accept(line: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<()> {
    let mut preface = [0; PREFACE.len()];
    line.read_exact(&mut preface).await.ok()?;
    assert_eq!(&preface, PREFACE, "the client speaks HTTP/2");
    line.write_all(&frame(SETTINGS, 0, 0, &[])).await.ok()
}

/// Reads up to the end of the next request, and answers what belongs to the connection: its stream.
pub async fn next_request(line: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<u32> {
    loop {
        let frame = Frame::read(line).await?;
        match frame.kind {
            SETTINGS | PING if frame.flags & ACK == 0 => {
                let payload: &[u8] = if frame.kind == PING { &frame.payload } else { &[] };
                line.write_all(&self::frame(frame.kind, ACK, 0, payload)).await.ok()?;
            }
            _ if frame.ends_stream() => return Some(frame.stream),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_has_them() {
        assert_eq!(length(10), [10]);
        // RFC 7541, C.1.2: 1337 with a prefix of five bits is 31, 154, 10; with seven bits it is this.
        assert_eq!(length(1_337), [127, 186, 9]);
    }

    #[tokio::test]
    async fn a_frame_is_read_as_it_was_written() {
        let bytes = [go_away(3, REFUSED_STREAM), reset(5, CANCEL)].concat();
        let mut bytes = bytes.as_slice();
        let first = Frame::read(&mut bytes).await.unwrap();
        assert!(first.is(GOAWAY, 0) && first.reason() == Some(REFUSED_STREAM));
        let second = Frame::read(&mut bytes).await.unwrap();
        assert!(second.is(RST_STREAM, 5) && second.reason() == Some(CANCEL));
        assert_eq!(Frame::read(&mut bytes).await, None);
    }
}
