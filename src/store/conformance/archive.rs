//! Transcripts and compactions.

use super::{
    broken::{Done, Stop, same},
    probe::{Probe, fresh, positions, summarized, texts, view},
};
use crate::{
    session::View,
    store::{Commit, Rewrite, StoredCompaction, StoredSession},
    usage::UsageEvent,
};

fn event(messages: u64) -> UsageEvent {
    UsageEvent { messages_removed: messages, model: "m \0".into(), ..UsageEvent::default() }
}

async fn listed(s: &Probe) -> Result<Vec<StoredCompaction>, Stop> {
    Ok(s.archive()?.compactions(&s.key, None, 100).await?)
}

fn numbers(compactions: &[StoredCompaction]) -> Vec<u64> {
    compactions.iter().map(|it| it.number).collect()
}

pub(super) async fn archives_keep_what_was_cut(s: Probe) -> Done {
    let archive = s.archive()?;
    let revision = s.add(&["a", "b", "c", "d"]).await?.revision;
    s.commit(Commit::on(revision).with_view(summarized(3))).await?;
    s.sends("what was cut is not sent", &[(3, "d")]).await?;
    let all = archive.transcript(&s.key, 0..u64::MAX).await?;
    let session = StoredSession::new(s.load().await?.state, 4, Vec::new(), all);
    let expected = ["a", "b", "c", "d"].map(str::to_owned);
    let expected: Vec<_> = (0..).zip(expected).collect();
    same("the transcript has it", texts(&session), expected)
}

pub(super) async fn transcripts_are_read_in_ranges(s: Probe) -> Done {
    let archive = s.archive()?;
    let revision = s.add(&["a", "b", "c", "d", "e", "f"]).await?.revision;
    s.commit(Commit::on(revision).with_view(view(4))).await?;
    for (range, expected) in [
        (1..4, vec![1, 2, 3]),
        (0..1, vec![0]),
        (5..u64::MAX, vec![5]),
        (0..6, vec![0, 1, 2, 3, 4, 5]),
        (6..10, Vec::new()),
        (2..2, Vec::new()),
        (u64::MAX..u64::MAX, Vec::new()),
        // The wrong way round, as a host may ask by mistake.
        (std::ops::Range { start: 3, end: 1 }, Vec::new()),
    ] {
        let found = archive.transcript(&s.key, range.clone()).await?;
        same(format!("the messages at {range:?}"), positions(&found), expected)?;
    }
    Ok(())
}

pub(super) async fn transcripts_have_what_was_taken_back(s: Probe) -> Done {
    let archive = s.archive()?;
    let revision = s.add(&["a", "b", "c"]).await?.revision;
    let mut taken = View::default();
    taken.rewound.push(1..3);
    s.commit(Commit::on(revision).with_view(taken)).await?;
    s.add(&["d"]).await?;
    let all = archive.transcript(&s.key, 0..u64::MAX).await?;
    same("what was taken back is still there", positions(&all), [0, 1, 2, 3])
}

pub(super) async fn transcripts_have_what_was_rewritten(s: Probe) -> Done {
    let archive = s.archive()?;
    s.add(&["a", "b"]).await?;
    s.rewrite(Rewrite::new(vec![fresh("x")], None)).await?;
    let all = archive.transcript(&s.key, 0..u64::MAX).await?;
    same("the history before is still there", positions(&all), [0, 1, 2])
}

pub(super) async fn compactions_are_numbered(s: Probe) -> Done {
    s.archive()?;
    s.add(&["a", "b", "c", "d"]).await?;
    same("there are none at first", numbers(&listed(&s).await?), [0_u64; 0])?;
    for cut in 1..4 {
        s.compact(cut, event(cut)).await?;
    }
    let other = s.at("other")?;
    other.add(&["x", "y"]).await?;
    other.compact(1, event(1)).await?;
    same("the newest come first", numbers(&listed(&s).await?), [3, 2, 1])?;
    same("each session has its own", numbers(&listed(&other).await?), [1])
}

pub(super) async fn compactions_say_what_they_replaced(s: Probe) -> Done {
    s.archive()?;
    s.add(&["a", "b", "c", "d"]).await?;
    let start = s.load().await?.state.view;
    let first = s.compact(1, event(1)).await?;
    s.add(&["e"]).await?;
    let second = s.compact(3, event(2)).await?;
    let expected = [
        StoredCompaction::new(2, second, summarized(1), summarized(3), event(2)),
        StoredCompaction::new(1, first, start, summarized(1), event(1)),
    ];
    same("what was sent before and after, and what it cost", listed(&s).await?, expected)
}

pub(super) async fn compactions_are_paged(s: Probe) -> Done {
    let archive = s.archive()?;
    s.add(&["a", "b", "c", "d", "e"]).await?;
    for cut in 1..6 {
        s.compact(cut, event(1)).await?;
    }
    for (before, limit, expected) in [
        (None, 2, vec![5, 4]),
        (Some(4), 2, vec![3, 2]),
        (Some(2), 2, vec![1]),
        (Some(1), 2, Vec::new()),
        (Some(9), 9, vec![5, 4, 3, 2, 1]),
        (None, 0, Vec::new()),
    ] {
        let page = archive.compactions(&s.key, before, limit).await?;
        same(format!("{limit} before {before:?}"), numbers(&page), expected)?;
    }
    Ok(())
}

pub(super) async fn other_commits_are_no_compactions(s: Probe) -> Done {
    s.archive()?;
    let start = s.add(&["a", "b", "c"]).await?.revision;
    let revision = s.commit(Commit::on(start).with_view(view(1))).await?;
    s.commit(Commit::on(revision).with_usage(event(0))).await?;
    same("a view or an event alone is none", numbers(&listed(&s).await?), [0_u64; 0])?;
    let stale = Commit::on(start).with_view(view(2)).with_usage(event(1));
    s.stale("a commit on another revision is stale", stale).await?;
    same("nor is one that was stale", numbers(&listed(&s).await?), [0_u64; 0])?;
    s.compact(2, event(1)).await?;
    let list = listed(&s).await?;
    same("the first one has number 1", numbers(&list), [1])?;
    let before: Vec<_> = list.iter().map(|it| it.before.clone()).collect();
    same("it replaced the view that was there", before, [view(1)])
}

pub(super) async fn compactions_outlive_a_rewrite(s: Probe) -> Done {
    s.archive()?;
    s.add(&["a", "b"]).await?;
    s.compact(1, event(1)).await?;
    s.rewrite(Rewrite::new(vec![fresh("x"), fresh("y")], None)).await?;
    s.compact(3, event(1)).await?;
    let list = listed(&s).await?;
    same("numbers go on", numbers(&list), [2, 1])?;
    let before: Vec<_> = list.iter().map(|it| it.before.clone()).collect();
    same("each has what it replaced", before, [view(2), view(0)])
}
