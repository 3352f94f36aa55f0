//! Plays steps.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use session_compaction::{
    ByteEstimate, Compact, Forced, ListPage, MemoryStore, Message, Outcome, Report, SessionManager,
    SessionStore, SummarizationConfig, Summarizer, TokenCounter,
};
use tokio::{runtime::Runtime, sync::Mutex as AsyncMutex, task::JoinHandle};

use super::{
    Stop,
    assertion::{Assertion, Rules},
    bench::{Bench, StoreKind},
    case::{Case, Llm, Step},
    config, crate_api,
    damage::Folder,
    looks_at_requests,
    model::{Fake, Stub},
    record::{Added, BuiltContext, Estimate, Record, Texts, id_of, minified, source_of},
    server,
};

/// One session's way through the steps. Clones share it.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) case: Arc<Case>,
    pub(crate) bench: Bench,
    pub(crate) fake: Arc<Fake>,
    pub(crate) folder: Arc<Folder>,
    record: Arc<Mutex<Record>>,
    state: Arc<State>,
}

struct State {
    label: String,
    store: StoreKind,
    memory: Arc<MemoryStore>,
    config: Result<SummarizationConfig, String>,
    events: Arc<Mutex<Vec<String>>>,
    key: Mutex<String>,
    life: AsyncMutex<Option<Life>>,
    held: Mutex<Option<JoinHandle<Report>>>,
}

/// A manager, and the runtime that its tasks end with.
struct Life {
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

type Steps<'a> = Pin<Box<dyn Future<Output = Result<(), Stop>> + Send + 'a>>;

impl Run {
    pub(crate) fn start(case: Case, store: StoreKind, bench: Bench) -> Result<Self, Stop> {
        let label = if store == StoreKind::Jsonl { "[jsonl] " } else { "" };
        let config = config::of_case(&case);
        Self::new(Arc::new(case), store, bench, config, label.into())
    }

    fn new(
        case: Arc<Case>,
        store: StoreKind,
        bench: Bench,
        config: Result<SummarizationConfig, String>,
        label: String,
    ) -> Result<Self, Stop> {
        let state = State {
            label,
            store,
            memory: Arc::new(MemoryStore::keep_transcripts()),
            config,
            events: Arc::default(),
            key: Mutex::new(format!("case:{}", case.id)),
            life: AsyncMutex::default(),
            held: Mutex::default(),
        };
        Ok(Self {
            case,
            bench,
            fake: Fake::new(),
            folder: Arc::new(Folder::create()?),
            record: Arc::default(),
            state: Arc::new(state),
        })
    }

    /// Plays the whole case; returns the runs that it was split into.
    pub(crate) async fn play(&self) -> Result<Vec<Self>, Stop> {
        let mut others = Vec::new();
        self.begin().await?;
        for (index, step) in self.case.steps.iter().enumerate() {
            match step {
                Step::ForEach { summary_max_chars: (from, to), steps } => {
                    for n in *from..=*to {
                        let limited = self.limited(n)?;
                        limited.begin().await?;
                        limited.steps(steps).await?;
                        others.push(limited);
                    }
                }
                Step::Variant { drop_last } => {
                    let second = self.lacking(*drop_last)?;
                    second.begin().await?;
                    second.steps(self.case.steps.get(index + 1..).unwrap_or_default()).await?;
                    others.push(second);
                }
                step => self.step(step).await?,
            }
        }
        let only_loops = self.case.steps.iter().all(|step| matches!(step, Step::ForEach { .. }));
        if !others.is_empty() && !only_loops {
            others.insert(0, self.clone());
        }
        Ok(others)
    }

    /// The same case with every limit on texts set.
    fn limited(&self, n: usize) -> Result<Self, Stop> {
        let config = self.state.config.clone().map(|config| crate_api::limit_texts(config, n));
        let label = format!("{}[{n} chars] ", self.state.label);
        Self::new(Arc::clone(&self.case), self.state.store, self.bench.clone(), config, label)
    }

    /// The same case without the last messages.
    fn lacking(&self, n: usize) -> Result<Self, Stop> {
        let mut case = (*self.case).clone();
        case.messages.truncate(case.messages.len().saturating_sub(n));
        let label = format!("{}[without the last {n}] ", self.state.label);
        let config = self.state.config.clone();
        Self::new(Arc::new(case), self.state.store, self.bench.clone(), config, label)
    }

    async fn begin(&self) -> Result<(), Stop> {
        if let Err(why) = &self.state.config {
            // Where the case is about that: there is no manager then.
            let expected = self
                .case
                .all_steps()
                .iter()
                .any(|step| matches!(step, Step::ParseConfig | Step::ConfigMatrix(_)));
            return if expected { Ok(()) } else { Err(Stop::Failed(why.clone())) };
        }
        if let Some(summary) = &self.case.existing_summary
            && let Some(sessions) = self.sessions().await?
        {
            sessions.set_summary(&self.key(), summary).await?;
        }
        self.append(&self.case.messages).await
    }

    pub(crate) fn steps<'a>(&'a self, steps: &'a [Step]) -> Steps<'a> {
        Box::pin(async move {
            for step in steps {
                self.step(step).await?;
            }
            Ok(())
        })
    }

    async fn step(&self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::ParseConfig => {
                self.record().configs.push(config::parse(&self.case));
                return Ok(());
            }
            Step::ConfigMatrix(fields) => {
                let tried = config::matrix(&self.case, fields, self.folder.root())?;
                self.record().configs.extend(tried);
                return Ok(());
            }
            Step::Logs => {
                let logs = self.bench.logs();
                self.record().logs.push(logs);
                return Ok(());
            }
            Step::Release => return self.release().await,
            Step::Repeat { n, steps } => {
                for _ in 0..*n {
                    self.steps(steps).await?;
                }
                return Ok(());
            }
            Step::EstimateText(text) => {
                let tokens = ByteEstimate::default().text(text).count();
                self.record().estimates.push(Estimate { text: Some(text.clone()), tokens });
                return Ok(());
            }
            _ => {}
        }
        // Without a manager, since its configuration was refused, nothing runs.
        let Some(sessions) = self.sessions().await? else { return Ok(()) };
        self.step_on(step, &sessions).await
    }

    async fn step_on(&self, step: &Step, sessions: &SessionManager) -> Result<(), Stop> {
        let key = self.key();
        match step {
            Step::Append(messages) => self.append(messages).await,
            Step::AppendContextBack => self.append_context_back(sessions).await,
            Step::AppendOwnKey => {
                let text = serde_json::json!({"role": "user", "content": key}).to_string();
                self.append(&[text]).await
            }
            Step::AppendUntilError => self.append_until_error(sessions).await,
            Step::Archive => {
                let kept = sessions.transcript(&key, 0..u64::MAX).await?;
                self.record().archives.push(kept.len());
                Ok(())
            }
            Step::AssertNoFilesOutsideBase => {
                let strays = self.folder.strays()?;
                self.record().problems.extend(strays);
                Ok(())
            }
            Step::BeginSummarize(llm) => self.hold(llm, sessions).await,
            Step::BuildContext => self.build_context(sessions).await,
            Step::Cancel => {
                crate_api::cancel(sessions, &key).await?;
                self.release().await
            }
            Step::Clear => {
                let cleared = sessions.clear(&key).await;
                self.cleared(&key, cleared);
                Ok(())
            }
            Step::Crash => self.close(false).await,
            Step::Estimate => {
                let history = sessions.history(&key).await?;
                let counter = ByteEstimate::default();
                let tokens = history
                    .iter()
                    .map(|message| counter.message(message))
                    .sum::<session_compaction::Tokens>();
                self.record().estimates.push(Estimate { text: None, tokens: tokens.count() });
                Ok(())
            }
            Step::ForEachKey { keys, steps } => {
                for key in keys {
                    self.set_key(key);
                    self.steps(steps).await?;
                }
                self.record().keys.extend(keys.iter().cloned());
                Ok(())
            }
            Step::ForceCompression => {
                let forced = sessions.force_compression(&key).await;
                self.forced(forced);
                Ok(())
            }
            Step::FreeSpace => self.folder.grow_tmpfs(),
            Step::History => self.history(sessions).await,
            Step::InsertBytes { at, bytes } => {
                self.close(true).await?;
                self.folder.insert(*at, bytes)
            }
            Step::Load(other) => {
                self.set_key(other);
                self.history(sessions).await
            }
            Step::MaybeSummarize(llm) => self.maybe(llm, sessions).await,
            Step::MountTmpfs(bytes) => {
                self.close(true).await?;
                self.folder.mount_tmpfs(*bytes)
            }
            Step::Parallel { n, steps } => self.parallel(*n, steps).await,
            Step::ReportUsage(usage) => crate_api::report_usage(sessions, &key, *usage).await,
            Step::Restart => self.close(true).await,
            Step::Stats => {
                let stats = crate_api::stats(sessions, &key).await?;
                self.record().stats.push(stats);
                Ok(())
            }
            Step::Summarize { llm, force } => self.summarize(llm, *force, sessions).await,
            Step::TruncateEachByte { of, then } => self.truncate_each_byte(*of, then).await,
            Step::VerifyEachKey => self.verify_keys(sessions).await,
            Step::WriteRaw { key, text } => self.write_raw(key, text, sessions).await,
            Step::ForEach { .. } | Step::Variant { .. } => {
                Err(Stop::Malformed("for_each and variant stand at the top only".into()))
            }
            _ => Err(Stop::Malformed(format!("{step:?} is not played"))),
        }
    }

    fn cleared(&self, key: &str, cleared: session_compaction::Result<()>) {
        let mut record = self.record();
        match cleared {
            Ok(()) => {
                record.added.retain(|added| added.key != key);
                record.commits += 1;
            }
            Err(error) => record.error(&error),
        }
    }

    fn forced(&self, forced: session_compaction::Result<Forced>) {
        let mut record = self.record();
        match forced {
            Ok(Forced::Dropped { messages, .. }) => {
                record.forced += messages;
                record.commits += 1;
            }
            Ok(_) => {}
            Err(error) => record.error(&error),
        }
    }

    /// Adds messages one by one, so that each is a record of its own.
    async fn append(&self, messages: &[String]) -> Result<(), Stop> {
        let Some(sessions) = self.sessions().await? else { return Ok(()) };
        for source in messages {
            let message: Message = serde_json::from_str(source)
                .map_err(|error| Stop::Failed(format!("message {source}: {error}")))?;
            self.add(&sessions, &self.key(), message, source).await;
        }
        Ok(())
    }

    /// Adds one message; says whether it was acknowledged.
    pub(crate) async fn add(
        &self,
        sessions: &SessionManager,
        key: &str,
        message: Message,
        source: &str,
    ) -> bool {
        let held = self.held().is_some();
        let started = Instant::now();
        let added = sessions.add_message(key, message).await;
        let took = started.elapsed();
        let mut record = self.record();
        if held {
            record.latencies.push(took);
        }
        match added {
            Ok(added) => {
                record.added.push(Added {
                    key: key.to_owned(),
                    id: added.id.to_string(),
                    position: added.position,
                    source: minified(source),
                });
                true
            }
            Err(error) => {
                record.error(&error);
                false
            }
        }
    }

    async fn append_context_back(&self, sessions: &SessionManager) -> Result<(), Stop> {
        let last = self.record().contexts.last().map(|context| context.sent.clone());
        let last = last.ok_or_else(|| Stop::Malformed("there is no context to append".into()))?;
        for source in last.pieces(Rules::Openai).1 {
            let message: Message = serde_json::from_str(&source)
                .map_err(|error| Stop::Failed(format!("message {source}: {error}")))?;
            sessions.add_message(&self.key(), message).await?;
        }
        Ok(())
    }

    async fn append_until_error(&self, sessions: &SessionManager) -> Result<(), Stop> {
        for n in 0..100_000 {
            let source = serde_json::json!({"role": "user", "content": format!("{n} {}", "x".repeat(1_000))});
            let source = source.to_string();
            let message =
                serde_json::from_str(&source).map_err(|error| Stop::Failed(error.to_string()))?;
            if !self.add(sessions, &self.key(), message, &source).await {
                return Ok(());
            }
        }
        Err(Stop::Failed("100 MB were added without an error".into()))
    }

    async fn summarize(
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

    async fn maybe(&self, llm: &Llm, sessions: &SessionManager) -> Result<(), Stop> {
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

    async fn hold(&self, llm: &Llm, sessions: &SessionManager) -> Result<(), Stop> {
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

    async fn release(&self) -> Result<(), Stop> {
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

    fn ended(&self, report: Result<Report, tokio::task::JoinError>) -> Result<(), Stop> {
        let report = report.map_err(|error| Stop::Failed(error.to_string()))?;
        self.record().report(&report, self.fake.calls());
        Ok(())
    }

    async fn build_context(&self, sessions: &SessionManager) -> Result<(), Stop> {
        let key = self.key();
        let sent = crate_api::context(sessions, &key).await?;
        let mut record = self.record();
        let built = BuiltContext {
            sent,
            commits: record.commits,
            life: record.lives,
            after_release: record.released,
            open_calls: record.open_calls(&key),
        };
        record.contexts.push(built);
        Ok(())
    }

    pub(crate) async fn history(&self, sessions: &SessionManager) -> Result<(), Stop> {
        match sessions.history(&self.key()).await {
            Ok(history) => {
                let text = history.iter().map(source_of).collect::<Vec<_>>().join("\n");
                let mut record = self.record();
                let after_release = record.released;
                record.histories.push(Texts { text, after_release });
            }
            Err(error) => self.record().error(&error),
        }
        Ok(())
    }

    async fn parallel(&self, n: usize, steps: &[Step]) -> Result<(), Stop> {
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..n {
            let (run, steps) = (self.clone(), steps.to_vec());
            running.spawn(async move { run.steps(&steps).await });
        }
        while let Some(ended) = running.join_next().await {
            ended.map_err(|error| Stop::Failed(error.to_string()))??;
        }
        Ok(())
    }

    async fn verify_keys(&self, sessions: &SessionManager) -> Result<(), Stop> {
        let keys = self.record().keys.clone();
        let mut problems = Vec::new();
        for key in &keys {
            let history = sessions.history(key).await?;
            let texts: Vec<_> = history.iter().map(|message| message.text()).collect();
            if texts != [key.as_str()] {
                problems.push(format!("session {key:?} holds {texts:?}"));
            }
        }
        let listed = sessions.list_sessions(ListPage::first(keys.len() + 10)).await?;
        let mut listed: Vec<_> = listed.iter().map(ToString::to_string).collect();
        let mut wanted = keys;
        listed.sort_unstable();
        wanted.sort_unstable();
        if listed != wanted {
            problems.push(format!("sessions are listed as {listed:?}"));
        }
        let mut record = self.record();
        record.verified += 1;
        record.problems.extend(problems);
        Ok(())
    }

    /// Ends the manager: in order, or with all its tasks at once.
    pub(crate) async fn close(&self, in_order: bool) -> Result<(), Stop> {
        let Some(Life { sessions, mut runtime }) = self.state.life.lock().await.take() else {
            return Ok(());
        };
        if in_order {
            let _ = sessions.shutdown(Duration::from_secs(1)).await;
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

    pub(crate) fn label(&self) -> &str {
        &self.state.label
    }

    pub(crate) fn key(&self) -> String {
        lock(&self.state.key).clone()
    }

    fn set_key(&self, key: &str) {
        key.clone_into(&mut lock(&self.state.key));
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }

    pub(crate) fn events(&self) -> Vec<String> {
        lock(&self.state.events).clone()
    }

    fn held(&self) -> MutexGuard<'_, Option<JoinHandle<Report>>> {
        lock(&self.state.held)
    }

    /// Ids of the window's messages, to be compared with those added.
    pub(crate) async fn window_ids(&self, sessions: &SessionManager) -> Result<Vec<String>, Stop> {
        let history = sessions.history(&self.key()).await?;
        Ok(history.iter().map(|message| id_of(message)).collect())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
