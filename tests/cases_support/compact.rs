//! Steps that ask the model.

use session_compaction::{Compact, Outcome, Report, SessionManager};
use tokio::task::{JoinError, JoinHandle};

use super::{Stop, assertion::Assertion, case::Llm, play::Run};

impl Run {
    pub(super) async fn summarize(
        &self,
        llm: &Llm,
        force: bool,
        sessions: &SessionManager,
    ) -> Result<(), Stop> {
        let how = if force { Compact::now() } else { Compact::if_due() };
        self.fake.play(llm, sessions.summary(&self.key()).await?);
        let calls = self.fake.calls();
        let mut running = self.spawn_compact(sessions, how);
        let measured =
            |assertion: &Assertion| matches!(assertion, Assertion::AppendLatencyMsMax(_));
        if self.case.asserts.iter().any(measured) {
            tokio::select! {
                report = &mut running => return self.ended(report),
                () = self.fake.called_after(calls) => {}
            }
            *self.held() = Some(running);
            for n in 0..5 {
                let source = format!(r#"{{"role":"user","content":"added meanwhile {n}"}}"#);
                self.append(&[source]).await?;
            }
            return self.join().await;
        }
        let report = running.await;
        self.ended(report)
    }

    pub(super) async fn maybe(&self, llm: &Llm, sessions: &SessionManager) -> Result<(), Stop> {
        self.fake.play(llm, sessions.summary(&self.key()).await?);
        match sessions.maybe_summarize(&self.key()).await {
            Outcome::Started(handle) | Outcome::InFlight(handle) => {
                let report = handle.await;
                self.record().report(&report, self.fake.calls());
            }
            outcome => {
                let mut record = self.record();
                record.reports.push(outcome.to_string());
                if let Outcome::Unavailable(error) = &outcome {
                    record.error(error);
                }
            }
        }
        Ok(())
    }

    pub(super) async fn hold(&self, llm: &Llm, sessions: &SessionManager) -> Result<(), Stop> {
        if self.held().is_some() {
            return Err(Stop::Malformed("a summarization is held already".into()));
        }
        self.fake.play(llm, sessions.summary(&self.key()).await?);
        self.fake.hold();
        let calls = self.fake.calls();
        let mut running = self.spawn_compact(sessions, Compact::now());
        tokio::select! {
            report = &mut running => {
                self.fake.release();
                return self.ended(report);
            }
            () = self.fake.called_after(calls) => {}
        }
        *self.held() = Some(running);
        Ok(())
    }

    pub(super) async fn release(&self) -> Result<(), Stop> {
        self.fake.release();
        self.join().await?;
        self.record().released = true;
        Ok(())
    }

    async fn join(&self) -> Result<(), Stop> {
        let running = self.held().take();
        match running {
            Some(running) => {
                let report = running.await;
                self.ended(report)
            }
            None => Ok(()),
        }
    }

    fn spawn_compact(&self, sessions: &SessionManager, how: Compact) -> JoinHandle<Report> {
        let (sessions, key) = (sessions.clone(), self.key());
        tokio::spawn(async move { sessions.compact(&key, how).await })
    }

    fn ended(&self, report: Result<Report, JoinError>) -> Result<(), Stop> {
        let report = report.map_err(|error| Stop::Failed(error.to_string()))?;
        self.record().report(&report, self.fake.calls());
        Ok(())
    }
}
