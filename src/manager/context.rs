//! From a session to what is sent to a model.

use std::sync::Arc;

use super::{Inner, SessionManager, cell::Cell};
use crate::{
    context::{Budget, Context, Request, Room},
    error::Result,
    session::{Session, SessionKey, Snapshot},
    tokens::Tokens,
};

impl SessionManager {
    /// Returns what a request to a model holds: the session, healed where it
    /// needs to be, and what the request adds. Nothing that is stored changes.
    ///
    /// The sizes of the system prompt, the tools and the answer are remembered
    /// until the next request: the trigger counts them. Whether the context
    /// [fits](Context::fits) is the caller's to ask;
    /// [`SessionManager::prepare`] makes it fit.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`], and
    /// [`Error::is_message`](crate::Error::is_message) where the request's
    /// tools have no JSON form.
    pub async fn context(&self, key: &str, request: &Request) -> Result<Context> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let made = self.0.made(&cell, request).await;
        self.0.release(cell);
        Ok(made?.1)
    }

    /// Returns how a session's context window is used, in tokens.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn budget(&self, key: &str) -> Result<Budget> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let budget = self.0.with(&cell, |session| self.0.budget(session)).await;
        self.0.release(cell);
        budget
    }
}

impl Inner {
    /// Makes a context of what the session holds now, which it returns too.
    pub(super) async fn made(
        &self,
        cell: &Arc<Cell>,
        request: &Request,
    ) -> Result<(Snapshot, Context)> {
        self.freshen(cell).await?;
        let look = |session: &mut Session| (session.snapshot(), self.room(session));
        let (snapshot, room) = self.with(cell, look).await?;
        let context = self.context_of(cell, &snapshot, request, room)?;
        Ok((snapshot, context))
    }

    /// Makes a context of a snapshot; the session remembers the sizes.
    pub(super) fn context_of(
        &self,
        cell: &Cell,
        snapshot: &Snapshot,
        request: &Request,
        room: Room,
    ) -> Result<Context> {
        let context = Context::new(snapshot, request, &*self.counter)?.in_room(room);
        cell.lock().remember(context.overhead());
        if context.repaired().next().is_some() {
            self.healed(cell, &context);
        }
        Ok(context)
    }

    pub(super) fn room(&self, session: &Session) -> Room {
        let reserve = self.config_of(&session.options()).output_reserve;
        let window = self.window(session);
        Room { window, reserve, excess: session.excess() }
    }

    fn budget(&self, session: &Session) -> Budget {
        let (summary, carried, window) = session.sizes();
        let overhead = session.overhead();
        Budget {
            system: overhead.system.count(),
            summary: summary.count(),
            carried: carried.count(),
            window: window.count(),
            tools: overhead.tools.count(),
            reserve: overhead.reserve.count(),
            free: (Tokens::from_tokens(self.window(session)) - session.tokens()).count(),
        }
    }
}
