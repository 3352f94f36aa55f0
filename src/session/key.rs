//! Names for sessions.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};

/// Names a session: 1 to 1,024 bytes of text, compared byte for byte.
///
/// Any text will do, also one with separators, control characters or a path
/// in it; stores keep keys apart that differ in a single byte.
///
/// # Example
///
/// ```
/// use session_compaction::SessionKey;
///
/// let key = SessionKey::new("telegram:42")?;
/// assert_eq!(&*key, "telegram:42");
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionKey(Arc<str>);

impl SessionKey {
    /// The longest key, in bytes.
    pub const MAX_LEN: usize = 1024;

    /// Creates a key.
    ///
    /// # Errors
    ///
    /// [`Error::is_key`] where the text is empty or longer than
    /// [`SessionKey::MAX_LEN`] bytes.
    pub fn new(text: impl AsRef<str>) -> Result<Self> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > Self::MAX_LEN {
            return Err(Error::key(text.len(), Self::MAX_LEN));
        }
        Ok(Self(text.into()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for SessionKey {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SessionKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}
