//! Usage events and their sums.

use std::time::Duration;

use super::{
    broken::{Done, Stop, holds, same},
    probe::{Probe, Task, all, summarized},
};
use crate::{
    store::{Commit, DayTotals, UsagePage, UsageRecord},
    usage::{Cost, Counter, TokenUsage, UsageEvent, UsageKind, UsageOutcome, UsageTotals},
};

const DAY: u64 = 86_400_000;

fn compaction(messages: u64) -> UsageEvent {
    UsageEvent {
        summarizer: "model \0".into(),
        outcome: UsageOutcome::Applied,
        unix_millis: 20_000 * DAY + 5,
        messages_removed: messages,
        chars_removed: messages.saturating_mul(100),
        usage: Some(TokenUsage::new(1_000, 50).with_cached(7)),
        cost: Some(Cost::from_nanos(1_234_567_890_123)),
        latency: Duration::from_millis(1_500),
        attempts: 2,
        trigger: "messages".into(),
        ..UsageEvent::default()
    }
}

fn query(day: u64, input: u64) -> UsageEvent {
    let usage = TokenUsage::new(input, 1);
    let event = UsageEvent::query("gpt-5", usage, Duration::from_secs(2)).with_tools(3, 1);
    UsageEvent { unix_millis: day.saturating_mul(DAY).saturating_add(DAY - 1), ..event }
}

fn sum(events: &[UsageEvent]) -> UsageTotals {
    let mut totals = UsageTotals::default();
    for event in events {
        totals.add(event);
    }
    totals
}

/// Checks the sums of the session and of the store.
async fn sums(s: &Probe, session: &[UsageEvent], store: &[UsageEvent]) -> Done {
    let log = s.usage()?;
    same("the sums of the session", log.totals(Some(&s.key)).await?, sum(session))?;
    same("the sums of the store", log.totals(None).await?, sum(store))
}

async fn listed(s: &Probe, page: UsagePage) -> Result<Vec<UsageRecord>, Stop> {
    Ok(s.usage()?.events(page).await?)
}

pub(super) async fn events_of_commits_are_summed(s: Probe) -> Done {
    s.usage()?;
    let other = s.at("other")?;
    for probe in [&s, &other] {
        probe.add(&["a", "b", "c"]).await?;
    }
    sums(&s, &[], &[]).await?;
    s.compact(1, compaction(1)).await?;
    other.compact(2, compaction(2)).await?;
    s.compact(2, compaction(3)).await?;
    let mine = [compaction(1), compaction(3)];
    let all = [compaction(1), compaction(2), compaction(3)];
    sums(&s, &mine, &all).await?;
    sums(&other, &[compaction(2)], &all).await?;
    // Without a view it is no compaction, but an event all the same.
    let revision = s.load().await?.state.revision;
    let failed = UsageEvent { outcome: UsageOutcome::Failed, ..compaction(9) };
    s.commit(Commit::on(revision).with_usage(failed.clone())).await?;
    sums(&s, &[&mine[..], std::slice::from_ref(&failed)].concat(), &[&all[..], &[failed]].concat())
        .await
}

pub(super) async fn events_without_a_commit_are_summed(s: Probe) -> Done {
    let (log, unknown) = (s.usage()?, s.at("unknown")?);
    s.add(&["a"]).await?;
    log.record(&s.key, &query(1, 900)).await?;
    log.record(&unknown.key, &query(1, 50)).await?;
    sums(&s, &[query(1, 900)], &[query(1, 900), query(1, 50)]).await?;
    sums(&unknown, &[query(1, 50)], &[query(1, 900), query(1, 50)]).await?;
    same("an event creates no session", unknown.is_there().await?, false)
}

pub(super) async fn a_stale_commit_records_nothing(s: Probe) -> Done {
    s.usage()?;
    let revision = s.add(&["a", "b"]).await?.revision;
    let commit = Commit::on(revision.next()).with_view(summarized(1));
    s.stale("another revision", commit.with_usage(compaction(1))).await?;
    sums(&s, &[], &[]).await?;
    same("nothing is listed", listed(&s, UsagePage::newest(9)).await?, [])
}

pub(super) async fn there_are_as_many_events_as_compactions(s: Probe) -> Done {
    let (log, archive) = (s.usage()?, s.archive()?);
    s.add(&["a"]).await?;
    let won = all((0..24).map(|n| -> Task<u64> {
        let s = s.clone();
        Box::pin(async move {
            s.add(&[&n.to_string()]).await?;
            let session = s.load().await?;
            let commit = Commit::on(session.state.revision).with_view(summarized(session.next));
            let result = s.store.commit(&s.key, commit.with_usage(compaction(1))).await?;
            Ok(u64::from(result != crate::store::CommitResult::Stale))
        })
    }))
    .await?;
    let won: u64 = won.into_iter().sum();
    holds("some of the commits win", won > 0, &won)?;
    let compactions = archive.compactions(&s.key, None, 100).await?;
    same("each that won is a compaction", compactions.len() as u64, won)?;
    let totals = log.totals(Some(&s.key)).await?;
    same("and is counted", totals.of(Counter::Summarizations), won)?;
    let events = listed(&s, UsagePage::newest(100).of(s.key.clone())).await?;
    same("and is listed", events.len() as u64, won)
}

pub(super) async fn days_are_summed(s: Probe) -> Done {
    let log = s.usage()?;
    same("no events, no days", log.days(9).await?, [])?;
    for event in [query(20_000, 1), query(19_998, 2), query(20_000, 3), query(0, 4)] {
        log.record(&s.key, &event).await?;
    }
    s.add(&["a", "b"]).await?;
    s.compact(1, compaction(1)).await?;
    let days = [
        DayTotals::new(0, sum(&[query(0, 4)])),
        DayTotals::new(19_998, sum(&[query(19_998, 2)])),
        DayTotals::new(20_000, sum(&[query(20_000, 1), query(20_000, 3), compaction(1)])),
    ];
    same("each day by the time of its events", log.days(9).await?, days)?;
    let newest = days.split_at(1).1;
    same("the newest ones, in the order of time", log.days(2).await?, newest)?;
    same("or none", log.days(0).await?, [])
}

pub(super) async fn events_are_paged(s: Probe) -> Done {
    let (log, other) = (s.usage()?, s.at("other")?);
    for n in 0..7 {
        let key = if n % 2 == 0 { &s.key } else { &other.key };
        log.record(key, &query(1, n)).await?;
    }
    let inputs = |records: &[UsageRecord]| -> Vec<u64> {
        records.iter().map(|it| it.event.usage.unwrap_or_default().input).collect()
    };
    let all = listed(&s, UsagePage::newest(100)).await?;
    same("the newest first", inputs(&all), [6, 5, 4, 3, 2, 1, 0])?;
    let falling = all.is_sorted_by(|a, b| a.number > b.number);
    holds("by their numbers", falling, &all)?;
    let mut paged = Vec::new();
    let mut page = UsagePage::newest(2);
    loop {
        let some = listed(&s, page).await?;
        let Some(last) = some.last().map(|record| record.number) else { break };
        holds("a page is no longer than was asked for", some.len() <= 2, &some)?;
        page = UsagePage::newest(2).before(last);
        paged.extend(some);
    }
    same("pages have each event once", &paged, &all)?;
    let mine = listed(&s, UsagePage::newest(3).of(s.key.clone())).await?;
    same("those of one session", inputs(&mine), [6, 4, 2])?;
    let last = mine.last().map_or(0, |record| record.number);
    let rest = listed(&s, UsagePage::newest(3).of(s.key.clone()).before(last)).await?;
    same("and the next page", inputs(&rest), [0])?;
    let keys: Vec<_> = all.iter().map(|record| record.session.as_str()).collect();
    same("each says whose it is", keys, ["s", "other", "s", "other", "s", "other", "s"])
}

pub(super) async fn events_come_back_as_given(s: Probe) -> Done {
    let log = s.usage()?;
    let whole = UsageEvent {
        kind: UsageKind::Summarization,
        outcome: UsageOutcome::NoProgress,
        model: "m \0 \"é\"".into(),
        measured: u64::from(u32::MAX),
        limit: 1 << 52,
        tokens_removed: 3,
        tokens_before: 9,
        tokens_after: 6,
        summary_chars: 5,
        summary_tokens: 2,
        ..compaction(2)
    };
    let events = [whole, UsageEvent::default(), query(1, 2)];
    for event in &events {
        log.record(&s.key, event).await?;
    }
    s.add(&["a", "b"]).await?;
    s.compact(1, compaction(1)).await?;
    let read = listed(&s, UsagePage::newest(9)).await?;
    let read: Vec<_> = read.into_iter().rev().map(|record| record.event).collect();
    same("every figure and name", read, [&events[..], &[compaction(1)]].concat())
}

async fn largest(s: &Probe, at_most: usize) -> Result<Vec<(String, u64)>, Stop> {
    let largest = s.usage()?.largest(Counter::InputTokens, at_most).await?;
    Ok(largest.into_iter().map(|(key, sum)| (key.to_string(), sum)).collect())
}

pub(super) async fn the_largest_sums_come_first(s: Probe) -> Done {
    let log = s.usage()?;
    for (key, input) in [("b", 5), ("c", 7), ("a", 5), ("zero", 0), ("c", 1)] {
        log.record(&s.at(key)?.key, &query(1, input)).await?;
    }
    let all = [("c", 8), ("a", 5), ("b", 5)].map(|(key, sum)| (key.to_owned(), sum));
    same("equal ones by their keys, none of zero", largest(&s, 9).await?, all.clone())?;
    same("no more than were asked for", largest(&s, 2).await?, all.split_at(2).0)?;
    same("or none", largest(&s, 0).await?, [])
}

pub(super) async fn removal_keeps_the_sums_of_the_store(s: Probe) -> Done {
    let (log, other) = (s.usage()?, s.at("other")?);
    s.add(&["a", "b"]).await?;
    s.compact(1, compaction(1)).await?;
    log.record(&s.key, &query(20_000, 5)).await?;
    log.record(&other.key, &query(20_000, 7)).await?;
    let days = log.days(9).await?;
    let all = [compaction(1), query(20_000, 5), query(20_000, 7)];
    s.store.remove(&s.key).await?;
    sums(&s, &[], &all).await?;
    sums(&other, &[query(20_000, 7)], &all).await?;
    same("the days stay", log.days(9).await?, days)?;
    let events = listed(&s, UsagePage::newest(9)).await?;
    let keys: Vec<_> = events.iter().map(|record| record.session.as_str()).collect();
    same("its events are gone", keys, ["other"])?;
    let largest = log.largest(Counter::InputTokens, 9).await?;
    let keys: Vec<_> = largest.iter().map(|(key, _)| key.as_str()).collect();
    same("it is no longer among the largest", keys, ["other"])?;
    s.add(&["x"]).await?;
    log.record(&s.key, &query(1, 1)).await?;
    sums(&s, &[query(1, 1)], &[&all[..], &[query(1, 1)]].concat()).await
}

pub(super) async fn sessions_are_counted(s: Probe) -> Done {
    let log = s.usage()?;
    same("none at first", log.sessions().await?, 0)?;
    s.create(&["a", "b", "c"]).await?;
    log.record(&s.key, &query(1, 1)).await?;
    same("those that have been appended to", log.sessions().await?, 3)?;
    s.store.remove(&s.at("b")?.key).await?;
    same("and not removed", log.sessions().await?, 2)
}

pub(super) async fn concurrent_events_are_all_counted(s: Probe) -> Done {
    s.usage()?;
    all((0..32).map(|n| -> Task<()> {
        let s = s.clone();
        Box::pin(async move {
            let key = s.at(&(n % 3).to_string())?.key;
            Ok(s.usage()?.record(&key, &query(n % 2, 10)).await?)
        })
    }))
    .await?;
    let totals = s.usage()?.totals(None).await?;
    same("all are counted", totals.of(Counter::InputTokens), 320)?;
    let mut of_days = UsageTotals::default();
    for day in s.usage()?.days(9).await? {
        of_days.merge(&day.totals);
    }
    same("days add up", of_days, totals)?;
    let events = listed(&s, UsagePage::newest(100)).await?;
    same("each is listed", events.len(), 32)?;
    let falling = events.is_sorted_by(|a, b| a.number > b.number);
    holds("each under a number of its own", falling, &events)
}
