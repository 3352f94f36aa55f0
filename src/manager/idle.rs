//! For tests: waits until nothing runs.

use super::SessionManager;
use crate::session::SessionKey;

impl SessionManager {
    /// Waits until no compaction of this session runs. Only with the feature
    /// `testing`: a host has the handle, or
    /// [`compact`](SessionManager::compact).
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves what runs running.
    pub async fn wait_idle(&self, key: &str) {
        // What is no key names no session.
        let Ok(key) = SessionKey::new(key) else { return };
        while let Some(handle) = self.0.claims.held(&key) {
            let _ = handle.await;
        }
    }
}
