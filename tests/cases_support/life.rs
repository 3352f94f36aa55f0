//! The manager: opened, closed, crashed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use session_compaction::{SessionManager, SessionStore, Summarizer};
use tokio::runtime::Runtime;

use super::{
    Stop, bench::StoreKind, case::Llm, config, crate_api, looks_at_requests, model::Stub,
    play::Run, server,
};

/// A manager, and the runtime that its tasks end with.
pub(super) struct Life {
    sessions: SessionManager,
    runtime: Background,
}

/// A runtime that may be dropped from within another one.
struct Background(Option<Runtime>);

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Run {
    /// Ends the manager: in order, or with all its tasks at once.
    pub(crate) async fn close(&self, in_order: bool) -> Result<(), Stop> {
        let Some(Life { sessions, mut runtime }) = self.state.life.lock().await.take() else {
            return Ok(());
        };
        if in_order {
            let _ = sessions.shutdown(Duration::from_secs(1)).await;
            crate_api::settle_events(&sessions).await;
        }
        drop(sessions);
        let ended = tokio::task::spawn_blocking(move || {
            if let Some(runtime) = runtime.0.take() {
                runtime.shutdown_timeout(Duration::from_secs(3));
            }
        });
        ended.await.map_err(|error| Stop::Failed(error.to_string()))?;
        let held = self.held().take();
        if let Some(held) = held {
            held.abort();
            let _ = held.await;
        }
        self.fake.release();
        self.record().lives += 1;
        Ok(())
    }

    /// The manager, opened where it is not; `None` where its configuration was
    /// refused.
    pub(crate) async fn sessions(&self) -> Result<Option<SessionManager>, Stop> {
        let Ok(config) = &self.state.config else { return Ok(None) };
        let mut life = self.state.life.lock().await;
        if let Some(life) = &*life {
            return Ok(Some(life.sessions.clone()));
        }
        let runtime = self.bench.runtime()?;
        let handle = runtime.handle().clone();
        let runtime = Background(Some(runtime));
        let builder = SessionManager::builder()
            .config(config.clone())
            .shared_store(self.open_store().await?)
            .summarizer(self.summarizer().await?)
            .runtime(handle);
        let sessions = crate_api::observe(builder, &self.state.events).build()?;
        *life = Some(Life { sessions: sessions.clone(), runtime });
        Ok(Some(sessions))
    }

    async fn open_store(&self) -> Result<Arc<dyn SessionStore>, Stop> {
        if self.state.store == StoreKind::Memory {
            return Ok(Arc::clone(&self.state.memory) as Arc<dyn SessionStore>);
        }
        // After a crash the old store may still be held for a moment.
        let started = Instant::now();
        loop {
            match crate_api::jsonl_store(self.folder.base()) {
                Err(error) if error.is_locked() && started.elapsed() < Duration::from_secs(2) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                opened => return Ok(opened?),
            }
        }
    }

    async fn summarizer(&self) -> Result<Stub, Stop> {
        let steps = self.case.all_steps();
        let needed = steps.iter().filter_map(|step| step.llm()).any(Llm::needs_http);
        let prefer_http = looks_at_requests(&self.case);
        let mut http: Option<Arc<dyn Summarizer>> = None;
        if needed || prefer_http {
            let url = server::start(Arc::clone(&self.fake)).await?;
            http = match crate_api::llm_summarizer(&url, config::deadlines(&self.case)) {
                Ok(summarizer) => Some(summarizer),
                Err(Stop::NotBuilt(_)) if !needed => None,
                Err(stop) => return Err(stop),
            };
        }
        Ok(Stub { fake: Arc::clone(&self.fake), http, prefer_http })
    }
}
