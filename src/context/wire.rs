//! What the writers of several providers share.

use std::borrow::Cow;

use crate::message::{
    Fields, Media, MediaKind, MediaSource,
    json::{JsonWriter, Members},
};

/// Reads the members that a provider's own format kept under its name.
pub(crate) fn kept<'a>(provider: &str, fields: &'a Fields) -> Option<Members<'a>> {
    Members::of(fields.get(provider)?.as_str())
}

/// Writes what [`kept`] reads, beside the members that are written already.
pub(crate) fn write_kept(provider: &str, fields: &Fields, taken: &[&str], out: &mut JsonWriter) {
    if let Some(kept) = kept(provider, fields) {
        out.fields(&kept.others(taken), &[]);
    }
}

/// Returns a call's arguments as the object that most providers want.
pub(crate) fn arguments_object(arguments: &str) -> Cow<'_, str> {
    if Members::of(arguments).is_some() {
        return Cow::Borrowed(arguments.trim());
    }
    let mut out = JsonWriter::default();
    out.begin(b'{');
    if !arguments.trim().is_empty() {
        out.text_member("arguments", arguments);
    }
    out.end(b'}');
    Cow::Owned(out.finish())
}

/// Returns what to say in place of media that a provider does not take.
pub(crate) fn stand_in(media: &Media) -> String {
    let kind = match media.kind {
        MediaKind::Audio => "audio",
        MediaKind::File => "file",
        MediaKind::Image => "image",
    };
    match (&media.alt, &media.source) {
        (Some(alt), _) => format!("[{kind}: {alt}]"),
        (None, MediaSource::Url(url)) => format!("[{kind}: {url}]"),
        _ => format!("[{kind}]"),
    }
}
