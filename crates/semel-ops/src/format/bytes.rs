//! Sizes, and bytes that are no text.

use std::fmt::Write;

/// How many bytes a line of a dump shows.
const LINE_BYTES: usize = 16;

/// `150 B`, `12.5 KiB`, `3.0 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.iter().find(|(_, bits)| bytes >> bits > 0) {
        None => format!("{bytes} B"),
        Some((unit, bits)) => {
            let tenths = u128::from(bytes).saturating_mul(10) >> bits;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

/// Offset, bytes in hex, and what of them is text.
pub fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (number, line) in bytes.chunks(LINE_BYTES).enumerate() {
        let mut hex = String::new();
        for (at, byte) in line.iter().enumerate() {
            let gap = if at == LINE_BYTES / 2 { "  " } else { " " };
            let _ = write!(hex, "{gap}{byte:02x}");
        }
        let plain = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' };
        let read: String = line.iter().map(plain).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:08x} {hex:<50} |{read}|", number.saturating_mul(LINE_BYTES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!([size(0), size(1_023), size(1_024), size(1_536)], ["0 B", "1023 B", "1.0 KiB", "1.5 KiB"]);
        assert_eq!([size(5 << 20), size(u64::MAX)], ["5.0 MiB", "16777215.9 TiB"]);
    }

    #[test]
    fn a_dump_shows_every_byte_where_it_is() {
        let dump = dump(&(0..20).map(|n| n + 0x3a).collect::<Vec<u8>>());
        let lines: Vec<_> = dump.lines().collect();
        let first = "00000000  3a 3b 3c 3d 3e 3f 40 41  42 43 44 45 46 47 48 49  |:;<=>?@ABCDEFGHI|";
        assert_eq!((lines[0], lines.len()), (first, 2));
        assert!(
            lines[1].starts_with("00000010  4a 4b 4c 4d ") && lines[1].ends_with(" |JKLM|"),
            "{}",
            lines[1]
        );
    }
}
