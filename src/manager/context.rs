//! From a session to what is sent to a model.

use super::SessionManager;
use crate::{
    context::{Context, Request},
    error::Result,
    session::SessionKey,
};

impl SessionManager {
    /// Returns what a request to a model holds: the session, healed where it
    /// needs to be, and what the request adds. Nothing that is stored changes.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`], and
    /// [`Error::is_message`](crate::Error::is_message) where the request's
    /// tools have no JSON form.
    pub async fn context(&self, key: &str, request: &Request) -> Result<Context> {
        let key = SessionKey::new(key)?;
        let snapshot = self.0.snapshot(&key).await?;
        let context = Context::new(&snapshot, request, &*self.0.counter)?;
        if context.repaired().next().is_some() {
            self.0.healed(&self.0.cell(&key), &context);
        }
        Ok(context)
    }
}
