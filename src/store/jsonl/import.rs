//! A whole session as one file.

use super::{folder::Folder, record};
use crate::{
    error::Result,
    session::{SessionKey, Size},
    store::{SessionExport, StoredMessage},
};

/// Returns the file of a session that was prepared.
pub(super) fn file(key: &SessionKey, folder: &Folder, session: &SessionExport) -> Result<Vec<u8>> {
    let (revision, now) = (session.state.revision, super::now());
    let mut text = record::session(revision, key)?;
    // A record has one time, and no gaps.
    let together = |a: &StoredMessage, b: &StoredMessage| {
        a.unix_millis == b.unix_millis && a.position.checked_add(1) == Some(b.position)
    };
    for messages in session.messages.chunk_by(together) {
        let Some(first) = messages.first() else { continue };
        let sizes: Vec<_> = messages.iter().map(|kept| Size::estimated(&kept.message)).collect();
        text.push_str(&record::append(revision, first.position, messages, &sizes));
    }
    for compaction in &session.compactions {
        text.push_str(&record::past(revision, compaction)?);
    }
    for event in &session.usage {
        text.push_str(&record::usage(revision, key, folder.usage.number(now), event)?);
    }
    text.push_str(&record::import(&session.state, session.next)?);
    Ok(text.into_bytes())
}
