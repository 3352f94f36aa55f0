//! CRC-32 as in gzip and PNG (reflected polynomial `0xedb88320`).

const TABLE: [u32; 256] = table();

/// Returns the checksum of some bytes.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        let entry = TABLE.get(usize::from(low ^ byte)).copied().unwrap_or_default();
        (crc >> 8) ^ entry
    })
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut rest: &mut [u32] = &mut table;
    let mut byte = 0;
    while let [entry, tail @ ..] = rest {
        let mut crc: u32 = byte;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        *entry = crc;
        byte += 1;
        rest = tail;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn gives_the_published_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
