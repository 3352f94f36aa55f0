//! What images, audio and files cost.

use super::{Tokens, image::pixels, model::Family};
use crate::message::{Media, MediaKind};

/// What images, audio and files cost, wherever their bytes are: never their
/// base64 as text.
///
/// An image costs by its pixels where its size is known: from the head of its
/// bytes (PNG, JPEG, GIF, WebP), or from its fields `width` and `height`. All
/// else costs a flat number of tokens. Alt text is not sent to a model and
/// costs nothing.
///
/// # Default
///
/// 1,000 tokens for an image of unknown size, 1,500 for audio, 3,000 for any
/// other file; images of known size by the rules that OpenAI (85 tokens, and
/// 170 for each tile of 512 pixels, once scaled to 2,048 by 768) and Anthropic
/// (a token for each 750 pixels, once scaled to 1,568) publish, whichever is
/// more.
///
/// # Example
///
/// ```
/// use session_compaction::{Media, MediaCosts};
///
/// let costs = MediaCosts::default();
/// let photo = Media::image_url("https://example.org/cat.png");
/// assert_eq!(costs.of(&photo).count(), 1_000);
///
/// // A head that says 512 by 512 pixels.
/// let icon = Media::image_url(
///     "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAgAAAAIACAYAAAD0eNT6",
/// );
/// assert_eq!(costs.of(&icon).count(), 350);
/// assert_eq!(costs.with_image(300).by_pixels(false).of(&icon).count(), 300);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MediaCosts {
    image: u64,
    audio: u64,
    file: u64,
    by_pixels: bool,
}

impl MediaCosts {
    /// Sets the tokens of an image whose size is not known.
    #[must_use]
    pub const fn with_image(mut self, tokens: u64) -> Self {
        self.image = tokens;
        self
    }

    /// Sets the tokens of an audio part.
    #[must_use]
    pub const fn with_audio(mut self, tokens: u64) -> Self {
        self.audio = tokens;
        self
    }

    /// Sets the tokens of any other file.
    #[must_use]
    pub const fn with_file(mut self, tokens: u64) -> Self {
        self.file = tokens;
        self
    }

    /// Sets whether an image costs by its size where that is known.
    #[must_use]
    pub const fn by_pixels(mut self, by_pixels: bool) -> Self {
        self.by_pixels = by_pixels;
        self
    }

    /// Returns what a part costs.
    #[must_use]
    pub fn of(self, media: &Media) -> Tokens {
        self.of_family(media, Family::Any)
    }

    pub(super) fn of_family(self, media: &Media, family: Family) -> Tokens {
        Tokens::from_tokens(match media.kind {
            MediaKind::Audio => self.audio,
            MediaKind::File => self.file,
            MediaKind::Image => {
                let size = self.by_pixels.then(|| pixels(media)).flatten();
                size.map_or(self.image, |size| match family {
                    Family::Any => openai(size).max(anthropic(size)),
                    Family::Claude => anthropic(size),
                    Family::Cl100k | Family::O200k => openai(size),
                })
            }
        })
    }
}

impl Default for MediaCosts {
    fn default() -> Self {
        Self { image: 1_000, audio: 1_500, file: 3_000, by_pixels: true }
    }
}

/// Scaled to fit a square of 2,048, then to a shorter side of 768; 170 tokens
/// for each tile of 512 that it touches, and 85.
fn openai((width, height): (u32, u32)) -> u64 {
    let (long, short) = (u64::from(width.max(height)), u64::from(width.min(height)));
    let (long, short) = shrunk((long, short), long, 2_048);
    let (long, short) = shrunk((long, short), short, 768);
    85 + 170 * long.div_ceil(512) * short.div_ceil(512)
}

/// Scaled to a longer side of 1,568; a token for each 750 pixels, at most
/// 1,600.
fn anthropic((width, height): (u32, u32)) -> u64 {
    let (long, short) = (u64::from(width.max(height)), u64::from(width.min(height)));
    let (long, short) = shrunk((long, short), long, 1_568);
    (long * short).div_ceil(750).min(1_600)
}

/// Scales both sides down so that `side` is at most `limit`.
fn shrunk((long, short): (u64, u64), side: u64, limit: u64) -> (u64, u64) {
    if side <= limit {
        return (long, short);
    }
    ((long * limit).div_ceil(side).max(1), (short * limit).div_ceil(side).max(1))
}

#[cfg(test)]
mod tests {
    use super::{anthropic, openai};

    #[test]
    fn images_cost_what_the_vendors_publish() {
        // From OpenAI's and Anthropic's guides to images.
        assert_eq!(openai((1_024, 1_024)), 765);
        assert_eq!(openai((2_048, 4_096)), 1_105);
        assert_eq!(openai((4_096, 8_192)), 1_105);
        assert_eq!(anthropic((200, 200)), 54);
        assert_eq!(anthropic((1_000, 1_000)), 1_334);
        assert_eq!(anthropic((1_092, 1_092)), 1_590);
        assert_eq!((openai((u32::MAX, 1)), anthropic((u32::MAX, u32::MAX))), (765, 1_600));
    }
}
