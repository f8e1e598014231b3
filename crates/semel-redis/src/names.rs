//! What the keys in Redis are called, and which of them must lie together.

use semel::RecordId;

/// How many tags there are: the first three hex digits of a record's id.
pub(crate) const TAGS: u16 = 4_096;
/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// The part of a key's name that decides where a cluster keeps it. Tags are in the order of the ids that they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag(u16);

impl Tag {
    pub(crate) const FIRST: Self = Self(0);

    pub(crate) fn of(id: &RecordId) -> Self {
        let [first, second, ..] = *id.as_bytes();
        Self(u16::from_be_bytes([first, second]) >> 4)
    }

    /// All of them, from this one on and around.
    pub(crate) fn around(self) -> impl Iterator<Item = Self> {
        (self.0..TAGS).chain(0..self.0).map(Self)
    }

    /// This one and all behind it.
    pub(crate) fn onwards(self) -> impl Iterator<Item = Self> {
        (self.0..TAGS).map(Self)
    }

    pub(crate) fn index(self) -> u16 {
        self.0
    }

    pub(crate) fn at(index: u16) -> Self {
        Self(index % TAGS)
    }

    /// The slot of a cluster that holds this tag's keys.
    pub(crate) fn slot(self) -> u16 {
        crc16(format!("{:03x}", self.0).as_bytes()) % SLOTS
    }
}

/// CRC-16/XMODEM, by which a cluster spreads its keys.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc: u16, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// The names of all keys under one prefix.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: Box<str>,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Where a record is.
    pub(crate) fn record(&self, id: &RecordId) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().map_or('0', char::from);
        let mut name = self.start(Tag::of(id));
        name.push_str(":r:");
        for byte in id.as_bytes() {
            name.push(digit(byte >> 4));
            name.push(digit(byte & 0x0f));
        }
        name
    }

    /// Where a tag's ids are, by when they are past their keep.
    pub(crate) fn due(&self, tag: Tag) -> String {
        let mut name = self.start(tag);
        name.push_str(":due");
        name
    }

    /// Where one server has the due ids of all tags, until a scan moves them to the sets of their tags.
    pub(crate) fn common_due(&self) -> String {
        format!("{}:new", self.prefix)
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Where the last version is.
    pub(crate) fn counter(&self) -> String {
        format!("{}:v", self.prefix)
    }

    /// Where a cluster has the last version of a tag: a counter for all would lie on one server.
    pub(crate) fn counter_of(&self, tag: Tag) -> String {
        let mut name = self.start(tag);
        name.push_str(":v");
        name
    }

    /// A key that a readiness check writes, for the master of this tag.
    pub(crate) fn ready(&self, tag: Tag) -> String {
        let mut name = self.start(tag);
        name.push_str(":ready");
        name
    }

    /// A key that no server has.
    pub(crate) fn never_there(&self) -> String {
        let mut name = self.start(Tag::FIRST);
        name.push_str(":none");
        name
    }

    fn start(&self, tag: Tag) -> String {
        use std::fmt::Write;
        let mut name = String::with_capacity(self.prefix.len().saturating_add(80));
        name.push_str(&self.prefix);
        // Writing to a string does not fail.
        let _ = write!(name, ":{{{:03x}}}", tag.0);
        name
    }
}

/// The id that a name or a member of a sorted set spells.
pub(crate) fn id_from_hex(hex: &[u8]) -> Option<RecordId> {
    let mut bytes = [0; 32];
    if hex.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(RecordId::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(first: [u8; 2]) -> RecordId {
        let mut bytes = [0xab; 32];
        bytes[..2].copy_from_slice(&first);
        RecordId::from_bytes(bytes)
    }

    #[test]
    fn a_record_lies_beside_its_tags_other_keys() {
        let names = Names::new("semel");
        let id = id([0x1f, 0x3c]);
        let name = names.record(&id);
        assert_eq!(name, format!("semel:{{1f3}}:r:{id}"));
        assert_eq!(names.due(Tag::of(&id)), "semel:{1f3}:due");
        assert_eq!(id_from_hex(&name.as_bytes()[name.len() - 64..]), Some(id));
        assert_eq!(id_from_hex(b"1f"), None);
        assert_eq!(id_from_hex(&[b'x'; 64]), None);
    }

    #[test]
    fn tags_are_in_the_order_of_ids() {
        let (low, high) = (id([0x1f, 0x3f]), id([0x1f, 0x40]));
        assert!(low < high && Tag::of(&low) < Tag::of(&high));
        assert_eq!(Tag::of(&low), Tag(0x1f3));
    }

    #[test]
    fn a_walk_around_passes_every_tag_once() {
        let tags: Vec<_> = Tag(4_000).around().collect();
        assert_eq!((tags.len(), tags[0], tags[4_095]), (4_096, Tag(4_000), Tag(3_999)));
        assert_eq!(Tag(4_000).onwards().count(), 96);
    }

    #[test]
    fn slots_are_the_ones_that_redis_computes() {
        // The check value of CRC-16/XMODEM.
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }
}
