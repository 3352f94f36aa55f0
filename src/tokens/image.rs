//! How large an image is, from the head of its bytes.

use crate::message::{Media, MediaSource};

/// Returns width and height in pixels where they are known and not zero.
pub(super) fn pixels(media: &Media) -> Option<(u32, u32)> {
    let side = |name| media.fields.get(name)?.to::<u32>().ok();
    let stated = side("width").zip(side("height"));
    let found = stated.or_else(|| match &media.source {
        MediaSource::Base64(data) => read(data),
        MediaSource::Url(url) => read(url.split_once(";base64,")?.1),
        MediaSource::Reference(_) => None,
    });
    found.filter(|(width, height)| *width > 0 && *height > 0)
}

/// Returns true where base64 holds the head of an image that this module reads.
pub(super) fn is_image(base64: &str) -> bool {
    // The first bytes of PNG, JPEG, GIF and RIFF in base64.
    ["iVBORw0KGgo", "/9j/", "R0lGODlh", "R0lGODdh", "UklGR"]
        .iter()
        .any(|head| base64.starts_with(head))
}

fn read(base64: &str) -> Option<(u32, u32)> {
    let bytes = &mut decoded(base64);
    let head: [u8; 4] = take(bytes)?;
    match &head {
        b"\x89PNG" => png(bytes),
        b"GIF8" => gif(bytes),
        b"RIFF" => webp(bytes),
        [0xff, 0xd8, 0xff, marker] => jpeg(bytes, *marker),
        _ => None,
    }
}

fn png(bytes: &mut impl Iterator<Item = u8>) -> Option<(u32, u32)> {
    // The rest of the signature, and length and name of the first chunk.
    let head: [u8; 12] = take(bytes)?;
    let [width, height] = [u32::from_be_bytes(take(bytes)?), u32::from_be_bytes(take(bytes)?)];
    head.ends_with(b"IHDR").then_some((width, height))
}

fn gif(bytes: &mut impl Iterator<Item = u8>) -> Option<(u32, u32)> {
    let _version: [u8; 2] = take(bytes)?;
    let [width, height] = [u16::from_le_bytes(take(bytes)?), u16::from_le_bytes(take(bytes)?)];
    Some((width.into(), height.into()))
}

fn webp(bytes: &mut impl Iterator<Item = u8>) -> Option<(u32, u32)> {
    let head: [u8; 12] = take(bytes)?;
    let _length: [u8; 4] = take(bytes)?;
    let [_, _, _, _, name @ ..] = head;
    match &name {
        b"WEBPVP8 " => {
            let [_, _, _, 0x9d, 0x01, 0x2a] = take(bytes)? else { return None };
            let [width, height] =
                [u16::from_le_bytes(take(bytes)?), u16::from_le_bytes(take(bytes)?)];
            Some((u32::from(width & 0x3fff), u32::from(height & 0x3fff)))
        }
        b"WEBPVP8L" => {
            let [0x2f] = take(bytes)? else { return None };
            let bits = u32::from_le_bytes(take(bytes)?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"WEBPVP8X" => {
            let _flags: [u8; 4] = take(bytes)?;
            // Three bytes each, one less than the side.
            let side =
                |[low, middle, high]: [u8; 3]| u32::from_le_bytes([low, middle, high, 0]) + 1;
            Some((side(take(bytes)?), side(take(bytes)?)))
        }
        _ => None,
    }
}

/// Looks for the frame header, behind whatever the camera wrote before it.
fn jpeg(bytes: &mut impl Iterator<Item = u8>, marker: u8) -> Option<(u32, u32)> {
    let mut marker = marker;
    loop {
        match marker {
            // Fill bytes, and marks that stand alone.
            0xff => marker = bytes.next()?,
            0x01 | 0xd0..=0xd8 => {
                bytes.find(|byte| *byte == 0xff)?;
                marker = bytes.next()?;
            }
            0xd9 | 0xda => return None,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let _length_and_depth: [u8; 3] = take(bytes)?;
                let [height, width] =
                    [u16::from_be_bytes(take(bytes)?), u16::from_be_bytes(take(bytes)?)];
                return Some((width.into(), height.into()));
            }
            _ => {
                let length = u16::from_be_bytes(take(bytes)?);
                for _ in 2..length {
                    bytes.next()?;
                }
                bytes.find(|byte| *byte == 0xff)?;
                marker = bytes.next()?;
            }
        }
    }
}

/// Profiles and thumbnails stand before the size in a JPEG; more than this is
/// not read.
const HEAD: usize = 256 * 1024;

/// Decodes base64 as far as it is asked for.
fn decoded(base64: &str) -> impl Iterator<Item = u8> {
    let mut sextets = base64.bytes().take(HEAD).map_while(|byte| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        })
    });
    let mut held: (u32, u32) = (0, 0);
    std::iter::from_fn(move || {
        while held.1 < 8 {
            held = (held.0 << 6 | u32::from(sextets.next()?), held.1 + 6);
        }
        held.1 -= 8;
        u8::try_from(held.0 >> held.1 & 0xff).ok()
    })
}

fn take<const N: usize>(bytes: &mut impl Iterator<Item = u8>) -> Option<[u8; N]> {
    let mut taken = [0; N];
    for byte in &mut taken {
        *byte = bytes.next()?;
    }
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::{decoded, is_image, pixels};
    use crate::message::{Fields, Media, MediaKind, MediaSource, RawJson};

    fn encoded(bytes: &[u8]) -> String {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let all = chunk.iter().fold(0, |all, byte| all << 8 | u32::from(*byte));
            let bits = 8 * chunk.len();
            let all = all << (24 - bits);
            for n in 0..=chunk.len() {
                text.push(LETTERS[(all >> (18 - 6 * n) & 63) as usize].into());
            }
        }
        text
    }

    fn size(bytes: &[u8]) -> Option<(u32, u32)> {
        pixels(&Media::new(MediaKind::Image, MediaSource::Base64(encoded(bytes))))
    }

    #[test]
    fn base64_is_decoded_as_it_was_encoded() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in 250..=256 {
            let text = encoded(&bytes[..len]);
            assert_eq!(decoded(&text).collect::<Vec<_>>(), bytes[..len]);
        }
    }

    #[test]
    fn sizes_are_read_from_the_heads_of_files() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x07\x80\0\0\x04\x38\x08\x06\0\0\0";
        let gif = b"GIF89a\x40\x01\xf0\x00\xf7\0\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xe1\0\x06\xff\xc0zz\xff\xc2\0\x11\x08\x02\x58\x03\x20\x03";
        let vp8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\x03\x58\x02";
        let vp8l = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x1f\xc3\x95\0\0";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0";
        assert_eq!(size(png), Some((1_920, 1_080)));
        assert_eq!(size(gif), Some((320, 240)));
        assert_eq!(size(jpeg), Some((800, 600)));
        assert_eq!(size(vp8), Some((800, 600)));
        assert_eq!(size(vp8l), Some((800, 600)));
        assert_eq!(size(extended), Some((800, 600)));
        for head in [&png[..], gif, jpeg, vp8, vp8l, extended] {
            assert!(is_image(&encoded(head)));
            for len in 0..head.len() - 9 {
                assert_eq!(size(&head[..len]), None, "a torn head says nothing");
            }
        }
        assert_eq!((size(b"%PDF-1.7"), size(b"")), (None, None));
    }

    #[test]
    fn stated_sizes_count() {
        let mut image = Media::image_url("https://example.org/a.png");
        assert_eq!(pixels(&image), None);
        let mut fields = Fields::EMPTY;
        fields.push("width", RawJson::parse("800").unwrap());
        fields.push("height", RawJson::parse("600").unwrap());
        image.fields = fields;
        assert_eq!(pixels(&image), Some((800, 600)));
        image.fields.take("height");
        image.fields.push("height", RawJson::parse("0").unwrap());
        assert_eq!(pixels(&image), None);
    }
}
