//! What one compaction replaces, and with what input.

use std::{sync::Arc, time::Duration};

use super::{
    Compaction, Inner, Report,
    cell::Cell,
    trigger::limits,
    view::{out_of_reach, view},
};
use crate::{
    config::SummarizationConfig,
    message::Message,
    plan::{self, Boundary, Keep, Skip, Split, SplitInput},
    session::{Dropped, Session, SessionKey, SessionOptions, Size, Snapshot, StoredSummary, View},
    summarize::guard,
    tokens::Tokens,
    usage::TokenUsage,
};

/// A decision, and what it was made from.
pub(super) struct Planned {
    pub(super) snapshot: Snapshot,
    pub(super) options: Arc<SessionOptions>,
    /// What holds for this session.
    pub(super) config: SummarizationConfig,
    /// The context window, and what requests take of it beside history and
    /// summary.
    pub(super) window: u64,
    pub(super) base: Tokens,
    pub(super) split: Split,
    /// The most tokens that the summary may take.
    pub(super) bound: u64,
    /// What a summary is made of: first what force compression dropped and the
    /// store still has, then the replaced messages.
    pub(super) input: Arc<[Arc<Message>]>,
    /// How many of the dropped ones are in the input.
    pub(super) owed: u64,
    pub(super) replaced: Size,
    before: Tokens,
}

impl Inner {
    /// Takes a snapshot and decides what of it to replace.
    pub(super) async fn plan(
        &self,
        cell: &Cell,
        obey: bool,
        target: Option<u64>,
    ) -> Result<Planned, Report> {
        let look = |session: &mut Session| {
            let (window, base) = (self.window(session), session.overhead().on_top());
            (session.snapshot(), session.options(), window, base)
        };
        let (snapshot, options, window, base) =
            self.with(cell, look).await.map_err(Report::Unavailable)?;
        let messages = snapshot.marked();
        let before = self.sent(&snapshot)
            + snapshot.entries().map(|entry| entry.size.tokens).sum::<Tokens>();
        let sizes: Vec<_> = snapshot.entries().map(|entry| entry.size).collect();
        let config = self.config_of(&options).into_owned();
        let (split, bound) = match target.map(Tokens::from_tokens) {
            None => {
                let limit =
                    limits(&config, window).tokens.filter(|_| obey).map(Tokens::from_tokens);
                self.split(&config, &snapshot, &messages, &sizes, (limit, base))
            }
            Some(target) if before <= target => {
                Err(Skip::AlreadyFits { tokens: before.count(), target: target.count() })
            }
            Some(target) => self.split_to(&config, &snapshot, &messages, &sizes, target),
        }
        .map_err(Report::Skipped)?;
        let owed = self.owed(&cell.key, &snapshot).await?;
        let owed_count = owed.len() as u64;
        let entries = || split.replaced.iter().filter_map(|index| snapshot.entry(*index));
        let replaced = entries().fold(Size::default(), |sum, entry| sum.plus(entry.size));
        let replaced_messages = entries().map(|entry| Arc::clone(&entry.message));
        let input = owed.into_iter().chain(replaced_messages).collect();
        Ok(Planned {
            snapshot,
            options,
            config,
            window,
            base,
            split,
            bound,
            input,
            owed: owed_count,
            replaced,
            before,
        })
    }

    /// Reads what force compression dropped, where the store has kept it.
    async fn owed(
        &self,
        key: &SessionKey,
        snapshot: &Snapshot,
    ) -> Result<Vec<Arc<Message>>, Report> {
        let dropped = snapshot.dropped_range();
        let (true, Some(archive)) = (dropped.messages > 0, self.store.archive()) else {
            return Ok(Vec::new());
        };
        let carried: Vec<u64> =
            snapshot.entries().take(snapshot.carried()).map(|entry| entry.position).collect();
        let range = dropped.since..snapshot.cut();
        let owed = archive.transcript(key, range).await.map_err(Report::Unavailable)?;
        let owed = owed.into_iter().filter(|kept| {
            carried.binary_search(&kept.position).is_err() && !snapshot.is_rewound(kept.position)
        });
        Ok(owed.map(|kept| kept.message).collect())
    }

    /// Decides where to cut. A cut that would leave more than the limit is none.
    fn split(
        &self,
        config: &SummarizationConfig,
        snapshot: &Snapshot,
        messages: &[Arc<Message>],
        sizes: &[Size],
        (limit, base): (Option<Tokens>, Tokens),
    ) -> Result<(Split, u64), Skip> {
        let all = sizes.iter().map(|size| size.tokens).sum();
        let split = plan::split(&SplitInput {
            messages,
            carried: snapshot.carried(),
            sizes,
            keep: match config.keep_chars {
                0 => Keep::Messages(config.keep_last_messages),
                chars => Keep::Chars(chars as u64),
            },
            boundary: Boundary::Turn,
            limit,
            base,
            bound: Tokens::from_tokens(summary_bound(config, all)),
            floor: self.fence(),
        })?;
        let bound = summary_bound(config, tokens(sizes, &split.replaced));
        Ok((split, bound))
    }

    /// Decides where to cut so that what is kept and a summary fit into the
    /// target: the less is kept, the more room is there for the summary. Where
    /// even what must be kept does not fit, the summary is as short as it may
    /// be: a context above the target is better than one far above it.
    ///
    /// The newest messages get half as large a part of the target as the target
    /// is of the whole, at most a quarter: word for word they say little for
    /// their size, which the tightest target can afford least.
    fn split_to(
        &self,
        config: &SummarizationConfig,
        snapshot: &Snapshot,
        messages: &[Arc<Message>],
        sizes: &[Size],
        target: Tokens,
    ) -> Result<(Split, u64), Skip> {
        let all: Tokens = sizes.iter().map(|size| size.tokens).sum();
        let part = (all.as_units() / target.as_units().max(1)).saturating_mul(2).max(4);
        let least = (target.count() / 4).max(LEAST_SUMMARY);
        let mut best = Err(Skip::NothingToCut);
        for share in [part, part.saturating_mul(2), u64::MAX] {
            let split = plan::split(&SplitInput {
                messages,
                carried: snapshot.carried(),
                sizes,
                keep: Keep::Tokens(Tokens::from_units(target.as_units() / share)),
                boundary: Boundary::Round,
                limit: None,
                base: Tokens::ZERO,
                bound: Tokens::ZERO,
                floor: self.fence(),
            });
            let Ok(split) = split else {
                best = best.or(split.map(|split| (split, least)));
                continue;
            };
            let kept = all - tokens(sizes, &split.replaced) + self.fence();
            let room = (target - kept).count();
            let bound = room.max(least).min(config.summary_max_tokens);
            best = Ok((split, bound));
            if room >= least {
                break;
            }
        }
        best
    }

    /// What an empty summary takes.
    fn fence(&self) -> Tokens {
        guard::sent_tokens(Some(&StoredSummary::new("-")), 0, &*self.counter)
    }

    pub(super) fn sent(&self, snapshot: &Snapshot) -> Tokens {
        guard::sent_tokens(snapshot.summary(), snapshot.dropped(), &*self.counter)
    }
}

/// A summary of fewer tokens is not asked for.
const LEAST_SUMMARY: u64 = 64;

/// The largest summary that is asked for in place of so many tokens: half of
/// them, and at least 64.
fn summary_bound(config: &SummarizationConfig, replaced: Tokens) -> u64 {
    config.summary_max_tokens.min((replaced.count() / 2).max(LEAST_SUMMARY))
}

/// The largest message that a summarizer is shown whole.
pub(super) fn largest_message(config: &SummarizationConfig, window: u64) -> Tokens {
    let window = Tokens::from_tokens(window).as_units();
    // The ratio is between 0 and 1: the product is in range, and a fraction of
    // a unit is of no account.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "see above"
    )]
    Tokens::from_units((window as f64 * config.max_single_msg_token_ratio) as u64)
}

fn tokens(sizes: &[Size], indexes: &[usize]) -> Tokens {
    indexes.iter().filter_map(|index| sizes.get(*index)).map(|size| size.tokens).sum()
}

impl Planned {
    pub(super) fn kept(&self) -> usize {
        self.snapshot.len() - self.split.replaced.len()
    }

    /// What stays dropped without a summary: what the store no longer has.
    pub(super) fn debt(&self) -> Dropped {
        let messages = self.snapshot.dropped().saturating_sub(self.owed);
        out_of_reach(messages, &self.snapshot, &self.split)
    }

    /// What the session is to look like with this summary.
    pub(super) fn view(&self, summary: Option<StoredSummary>) -> View {
        view(&self.snapshot, &self.split, summary, self.debt())
    }

    pub(super) fn account(
        &self,
        view: &View,
        sent: Tokens,
        usage: Option<TokenUsage>,
        latency: Duration,
    ) -> Compaction {
        let kept = self.snapshot.entries().map(|entry| entry.size.tokens).sum::<Tokens>()
            - self.replaced.tokens;
        let summary = view.summary.as_ref();
        Compaction {
            range: self.snapshot.cut()..view.cut,
            messages_removed: self.split.replaced.len() as u64,
            chars_removed: self.replaced.chars,
            messages_kept: self.kept() as u64,
            tokens_before: self.before.count(),
            tokens_after: (kept + sent).count(),
            summary_chars: summary.map_or(0, |summary| summary.text.chars().count() as u64),
            summary_tokens: sent.count(),
            excerpted: summary.map_or(0, |summary| summary.excerpted),
            usage,
            latency,
        }
    }
}
