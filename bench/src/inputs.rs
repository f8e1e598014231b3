//! What every contestant is given, the same for all: texts, a request's digest, an outcome, an order.

pub(crate) const SCOPE: &str = "acme";
pub(crate) const OPERATION: &str = "charge";
pub(crate) const BODY_BYTES: usize = 150;
/// How many bytes of text a key has: tenant, kind of work, name.
pub(crate) const KEY_BYTES: usize = SCOPE.len() + OPERATION.len() + NAME_BYTES;

const NAME_BYTES: usize = 13;
/// Seven digits, the first of which may be any of [`FIRST_DIGITS`].
pub(crate) const NAMES_MAX: u64 = 62_000_000;
const FIRST_DIGITS: [u8; 62] = *b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The name of one key, `order-0000042`, as a request would bring it: made without an allocation, so that
/// contestants are not measured by how names are made.
pub(crate) struct Name([u8; NAME_BYTES]);

impl Name {
    pub(crate) fn of(number: u64) -> Self {
        let mut text = *b"order-0000000";
        let mut rest = number;
        for digit in text.iter_mut().rev().take(6) {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        let first = usize::try_from(rest).ok().and_then(|place| FIRST_DIGITS.get(place));
        text[NAME_BYTES - 7] = first.copied().unwrap_or(b'-');
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// The digest of the request for one key; it is not computed in a window.
pub(crate) fn digest(number: u64) -> [u8; 32] {
    let mut digest = [0x5e; 32];
    digest[..8].copy_from_slice(&number.to_le_bytes());
    digest
}

/// The same digest in hex, as a request that was digested earlier would bring it.
pub(crate) struct HexDigest([u8; 64]);

impl HexDigest {
    pub(crate) fn of(number: u64) -> Self {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        let mut text = *b"00000000000000005e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e";
        for (pair, byte) in text.chunks_exact_mut(2).zip(number.to_le_bytes()) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 0xf)];
        }
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// What every run produces: the response of a small JSON API.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn new() -> Self {
        let headers = [
            ("content-type", "application/json"),
            ("location", "/v1/charges/ch_1P8x2eJ4nQ"),
            ("x-request-id", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        ];
        Self {
            status: 201,
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            body: vec![b'{'; BODY_BYTES],
        }
    }

    /// All of it as bytes, each part behind its length: the outcome of those who keep bytes. Made once, as the
    /// response itself is, so that making a response is not measured.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut bytes = self.status.to_le_bytes().to_vec();
        let texts = self.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
        for part in texts.chain([self.body.as_slice()]) {
            bytes.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

/// The place of `turn` in an order that visits every key below `keys` once, and neighbours far apart.
pub(crate) fn scattered(turn: u64, keys: u64) -> u64 {
    let bits = u64::BITS - keys.saturating_sub(1).leading_zeros();
    let mask = (1_u64 << bits) - 1;
    let half = bits.div_ceil(2);
    let mut place = turn % keys;
    // A permutation of the next power of two, walked until it lands below `keys`.
    loop {
        place = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
        place ^= place >> half;
        place = place.wrapping_mul(0xbf58_476d_1ce4_e5b9) & mask;
        place ^= place >> half;
        if place < keys {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_number_in_seven_digits() {
        assert_eq!(Name::of(42).as_str(), "order-0000042");
        assert_eq!(Name::of(1_500_000).as_str(), "order-1500000");
        assert_eq!(Name::of(9_999_999).as_str(), "order-9999999");
        assert_eq!(Name::of(10_000_000).as_str(), "order-a000000");
        assert_eq!(Name::of(NAMES_MAX - 1).as_str(), "order-Z999999");
    }

    #[test]
    fn the_hex_is_that_of_the_digest() {
        let of = HexDigest::of(0x2a_00ff);
        let pairs = of.as_str().as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        assert_eq!(bytes, digest(0x2a_00ff));
    }

    #[test]
    fn an_encoded_response_has_every_part() {
        let bytes = Response::new().encoded();
        let texts = "content-typeapplication/jsonlocation/v1/charges/ch_1P8x2eJ4nQx-request-id".len();
        assert_eq!(bytes.len(), 2 + 7 * 4 + texts + 36 + BODY_BYTES);
    }

    #[test]
    fn the_order_visits_every_key_once() {
        for keys in [1_000, 1_024, 1_500] {
            let mut seen: Vec<_> = (0..keys).map(|turn| scattered(turn, keys)).collect();
            assert_ne!(seen[..3], [0, 1, 2]);
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..keys), "{keys}");
        }
    }
}
