//! Random turns over each store: every context fits and is valid, no message is
//! lost, and what was taken back stays away.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

mod common;
#[path = "common/folder.rs"]
mod folder;

use std::{collections::BTreeSet, sync::Arc};

use common::stub::Stub;
use folder::Folder;
use proptest::prelude::*;
use session_compaction::{
    Compact, JsonlStore, MemoryStore, Message, Provider, Request, Role, SessionManager,
    SessionOptions, SessionStore, To, Turn, validate,
};

#[derive(Clone, Debug)]
enum Step {
    Compact,
    Configure(u64),
    Force,
    Other,
    Overflow,
    /// Pins the message at this place among all, or takes its pin off.
    Pin(usize, bool),
    /// So many calls, each with a result of so many words.
    Round(usize, usize),
}

#[derive(Clone, Debug)]
enum End {
    Drop,
    Finish,
    Rewind(bool),
    Rollback,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Compact),
        1 => prop::sample::select(vec![1_000, 2_000, 8_000]).prop_map(Step::Configure),
        1 => Just(Step::Force),
        1 => Just(Step::Other),
        1 => Just(Step::Overflow),
        2 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(at, on)| Step::Pin(at, on)),
        6 => (1_usize..4, 1_usize..120).prop_map(|(calls, words)| Step::Round(calls, words)),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        1 => Just(End::Drop),
        3 => Just(End::Finish),
        2 => any::<bool>().prop_map(End::Rewind),
        2 => Just(End::Rollback),
    ]
}

struct World {
    store: Arc<dyn SessionStore>,
    sessions: SessionManager,
    /// Ids of all that was added and not taken back, in order.
    alive: Vec<String>,
    /// Ids of those that are pinned.
    pinned: BTreeSet<String>,
    /// So that no two messages are alike, also under one id.
    made: usize,
}

const KEY: &str = "chat";

fn over(store: &Arc<dyn SessionStore>) -> SessionManager {
    SessionManager::builder()
        .shared_store(Arc::clone(store))
        .summarizer(Stub::says("All parts do well."))
        .build()
        .unwrap()
}

impl World {
    /// Names a message by its place, so that ids are used again after a rewind.
    fn name(&mut self, message: Message) -> Message {
        self.made += 1;
        let id = format!("m{}", self.alive.len());
        self.alive.push(id.clone());
        message.with_id(id)
    }

    async fn turn(&mut self, steps: &[Step], end: &End) {
        let alive = self.alive.len();
        let question = self.name(Message::user(format!("Question {}?", self.made)));
        let mut others = Vec::new();
        let before = self.sessions.snapshot(KEY).await.unwrap();
        let totals = self.totals().await;
        let mut turn = self.sessions.turn(KEY, question).await.unwrap();
        let mut sent = self.ask(&mut turn).await;
        for step in steps {
            self.step(step, &mut turn, &mut others).await;
            sent = sent && self.ask(&mut turn).await;
            self.check().await;
        }
        match end {
            End::Drop => drop(turn),
            End::Finish => {
                if let Some(handle) = turn.finish().await {
                    let _ = handle.await;
                }
            }
            End::Rewind(regenerate) => {
                drop(turn);
                let to = if *regenerate { To::LastUser } else { To::BeforeLastUser };
                match self.sessions.rewind(KEY, to).await {
                    Ok(taken) => {
                        let rest = self.alive.split_off(self.alive.len() - taken.len());
                        assert_eq!(taken.iter().map(id).collect::<Vec<_>>(), rest);
                    }
                    Err(error) => assert!(error.is_rewind(), "{error}"),
                }
            }
            End::Rollback => {
                let now = self.sessions.snapshot(KEY).await.unwrap();
                match turn.rollback().await {
                    Ok(()) => {
                        let own = self.alive.split_off(alive);
                        self.alive.extend(own.into_iter().filter(|id| others.contains(id)));
                        if now.revision == before.revision && others.is_empty() {
                            assert_eq!(self.totals().await, totals);
                        }
                    }
                    Err(error) => assert!(error.is_rewind(), "{error}"),
                }
            }
        }
        self.pinned.retain(|id| self.alive.contains(id));
        self.check().await;
    }

    async fn pin(&mut self, at: usize, on: bool) {
        let Some(id) = self.alive.get(at % self.alive.len().max(1)).cloned() else { return };
        let history = self.sessions.history(KEY).await.unwrap();
        let here = history.iter().any(|message| message.id().unwrap().to_string() == id);
        let done = if on {
            self.sessions.pin(KEY, &*id).await
        } else {
            self.sessions.unpin(KEY, &*id).await
        };
        match done {
            Ok(()) if on => drop(self.pinned.insert(id)),
            Ok(()) => drop(self.pinned.remove(&id)),
            Err(error) => {
                let kept = self.store.archive().is_some();
                assert!(error.is_pin() && !here && !(on && kept), "{error}");
            }
        }
    }

    async fn step(&mut self, step: &Step, turn: &mut Turn, others: &mut Vec<String>) {
        match step {
            Step::Compact => drop(self.sessions.compact(KEY, Compact::now()).await),
            Step::Configure(window) => {
                let options = SessionOptions::new().context_window(*window);
                self.sessions.configure(KEY, options).await.unwrap();
            }
            Step::Force => drop(self.sessions.force_compression(KEY).await.unwrap()),
            Step::Other => {
                // A name of its own, so that it is not taken for one of the turn.
                self.made += 1;
                let id = format!("other{}", self.made);
                self.alive.push(id.clone());
                others.push(id.clone());
                let notice = Message::system(format!("Notice {id}.")).with_id(id);
                self.sessions.add_message(KEY, notice).await.unwrap();
            }
            Step::Pin(at, on) => self.pin(*at, *on).await,
            Step::Overflow => {
                let body = r#"{"error":{"code":"context_length_exceeded"}}"#;
                turn.recover(400, body).await.unwrap();
            }
            Step::Round(calls, words) => {
                let made = self.made;
                let call = (0..*calls).fold(Message::assistant(""), |message, n| {
                    message.with_tool_call(format!("c{made}-{n}"), "read", "{}")
                });
                let call = self.name(call);
                turn.results([call]).await.unwrap();
                let results: Vec<_> = (0..*calls)
                    .map(|n| {
                        let text = "word ".repeat(*words);
                        self.name(Message::tool_result(format!("c{made}-{n}"), text))
                    })
                    .collect();
                turn.results(results).await.unwrap();
            }
        }
    }

    /// Makes a context; false where none fits.
    async fn ask(&self, turn: &mut Turn) -> bool {
        let request = Request::new().system("You look after a machine.").max_output(200);
        match turn.context(&request).await {
            Ok(context) => {
                assert!(context.fits());
                for provider in [Provider::OpenAiChat, Provider::Anthropic, Provider::Gemini] {
                    assert_eq!(validate(&context, provider), [], "{provider:?}");
                }
                true
            }
            Err(error) => {
                assert!(error.is_irreducible(), "{error}");
                false
            }
        }
    }

    async fn check(&self) {
        let history = self.sessions.history(KEY).await.unwrap();
        let ids: Vec<_> = history.iter().map(id).collect();
        let (carried, window) = ids.split_at(history.carried());
        // The window is the end of what is there, whole and in order.
        assert!(self.alive.ends_with(window), "{window:?} of {:?}", self.alive);
        let below = &self.alive[..self.alive.len() - window.len()];
        assert!(carried.iter().all(|id| below.contains(id)), "{carried:?} of {below:?}");
        let stands_for_it = history.summary().is_some() || history.dropped() > 0;
        assert!(below.len() == carried.len() || stands_for_it);
        let system = |message: &&Arc<Message>| message.role() == Role::System;
        let systems = self.alive.iter().filter(|id| id.starts_with("other")).count();
        assert_eq!(history.iter().filter(system).count(), systems);
        let sent = |id: &&String| ids.contains(*id);
        assert!(self.pinned.iter().filter(|id| self.alive.contains(*id)).all(|id| sent(&id)));
        assert!(history.iter().all(|message| !message.is_pinned()), "messages stay as given");

        let fresh = over(&self.store).history(KEY).await.unwrap();
        assert_eq!(fresh.iter().map(id).collect::<Vec<_>>(), ids);
        assert_eq!(fresh.mark(), history.mark());
    }

    async fn totals(&self) -> (u64, u64) {
        let stats = self.sessions.session_stats(KEY).await.unwrap();
        (stats.messages, stats.chars)
    }
}

fn id(message: &Arc<Message>) -> String {
    message.id().unwrap().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn turns_keep_their_promises(
        turns in prop::collection::vec((prop::collection::vec(step(), 0..8), end()), 1..8),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let folder = Folder::new();
        let stores: Vec<Arc<dyn SessionStore>> = vec![
            Arc::new(MemoryStore::new()),
            Arc::new(MemoryStore::keep_transcripts()),
            Arc::new(JsonlStore::open(folder.path()).unwrap()),
            #[cfg(feature = "sqlite")]
            Arc::new(runtime.block_on(session_compaction::SqliteStore::in_memory()).unwrap()),
        ];
        for store in stores {
            runtime.block_on(async {
                let sessions = over(&store);
                let mut world = World {
                    store, sessions, alive: Vec::new(), pinned: BTreeSet::new(), made: 0,
                };
                for (steps, end) in &turns {
                    world.turn(steps, end).await;
                }
            });
        }
    }
}
