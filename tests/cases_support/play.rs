//! Plays steps.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use session_compaction::{
    ByteEstimate, Forced, ListPage, MemoryStore, Message, Report, SessionManager,
    SummarizationConfig, TokenCounter, Tokens,
};
use tokio::{sync::Mutex as AsyncMutex, task::JoinHandle};

use super::{
    Stop,
    assertion::Rules,
    bench::{Bench, StoreKind},
    case::{Case, Step},
    config, crate_api,
    damage::Folder,
    life::Life,
    model::Fake,
    record::{Added, BuiltContext, Estimate, Record, Texts, id_of, minified, source_of},
};

/// One session's way through the steps. Clones share it.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) case: Arc<Case>,
    pub(crate) bench: Bench,
    pub(crate) fake: Arc<Fake>,
    pub(crate) folder: Arc<Folder>,
    record: Arc<Mutex<Record>>,
    pub(super) state: Arc<State>,
}

pub(super) struct State {
    label: String,
    pub(super) store: StoreKind,
    pub(super) memory: Arc<MemoryStore>,
    pub(super) config: Result<SummarizationConfig, String>,
    pub(super) events: Arc<Mutex<Vec<String>>>,
    key: Mutex<String>,
    pub(super) life: AsyncMutex<Option<Life>>,
    pub(super) held: Mutex<Option<JoinHandle<Report>>>,
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
                let tokens = history.iter().map(|message| counter.message(message)).sum::<Tokens>();
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
    pub(super) async fn append(&self, messages: &[String]) -> Result<(), Stop> {
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

    pub(super) fn held(&self) -> MutexGuard<'_, Option<JoinHandle<Report>>> {
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
