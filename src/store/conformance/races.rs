//! Several writers at once.

use super::{
    broken::{Done, broken, holds, same},
    probe::{Probe, Task, all, fresh, named, positions, summarized, texts},
};
use crate::{
    store::{Commit, CommitResult, Rewrite, RewriteResult},
    usage::UsageEvent,
};

pub(super) async fn concurrent_appends_are_dense(s: Probe) -> Done {
    let receipts = all((0..64).map(|n| -> Task<_> {
        let s = s.clone();
        Box::pin(async move { s.append(&[fresh(&format!("{n}")), fresh(&format!("{n}!"))]).await })
    }))
    .await?;
    let mut taken = Vec::new();
    let mut expected = Vec::new();
    for (n, receipt) in receipts.iter().enumerate() {
        let [first, second] = receipt.placed.as_slice() else {
            return Err(broken("each message has a place", "two places", receipt));
        };
        same("a batch stands together", second.position, first.position.saturating_add(1))?;
        taken.extend([first.position, second.position]);
        expected.extend([(first.position, n.to_string()), (second.position, format!("{n}!"))]);
    }
    taken.sort_unstable();
    holds("positions are dense", taken.iter().copied().eq(0..128), &taken)?;
    expected.sort_unstable();
    same("each stands where it was told", texts(&s.load().await?), expected)
}

pub(super) async fn concurrent_retries_add_one(s: Probe) -> Done {
    let receipts = all((0..16).map(|_| -> Task<_> {
        let s = s.clone();
        Box::pin(async move { s.append(&[named("a", "one"), named("b", "two")]).await })
    }))
    .await?;
    let placed: Vec<_> = receipts.iter().flat_map(|receipt| &receipt.placed).collect();
    let added = placed.iter().filter(|placed| !placed.duplicate).count();
    same("one of the calls adds them", added, 2)?;
    s.sends("each is there once", &[(0, "one"), (1, "two")]).await
}

pub(super) async fn concurrent_creations_make_one_session(s: Probe) -> Done {
    let revisions = all((0..16).map(|n| -> Task<_> {
        let s = s.clone();
        Box::pin(async move { Ok(s.add(&[&n.to_string()]).await?.revision) })
    }))
    .await?;
    let now = s.load().await?;
    let one = revisions.iter().all(|revision| *revision == now.state.revision);
    holds("all are told the same incarnation", one, &revisions)?;
    same("and all of their messages are there", positions(&now.window).len(), 16)
}

pub(super) async fn concurrent_commits_have_one_winner(s: Probe) -> Done {
    let start = s.add(&["a", "b", "c", "d", "e", "f", "g", "h"]).await?.revision;
    let results = all((1..9).map(|cut| -> Task<_> {
        let s = s.clone();
        Box::pin(async move {
            let commit = Commit::on(start).with_view(summarized(cut));
            Ok((cut, s.store.commit(&s.key, commit).await?))
        })
    }))
    .await?;
    let won = |(_, result): &&(u64, CommitResult)| *result != CommitResult::Stale;
    let winners: Vec<_> = results.iter().filter(won).copied().collect();
    let [(cut, result)] = winners.as_slice() else {
        return Err(broken("one commit wins", "one winner", &results));
    };
    same("it makes the next revision", *result, CommitResult::Committed(start.next()))?;
    same("its view is the one", s.load().await?.state.view, summarized(*cut))
}

pub(super) async fn concurrent_rewrites_have_one_winner(s: Probe) -> Done {
    let start = s.add(&["a"]).await?.revision;
    let results = all((0..8).map(|n| -> Task<_> {
        let s = s.clone();
        Box::pin(async move {
            let mut rewrite = Rewrite::new(vec![fresh(&n.to_string())], None);
            rewrite.expected = Some((start, 1));
            Ok((n, s.store.rewrite(&s.key, rewrite).await?))
        })
    }))
    .await?;
    let won = |(_, result): &&(i32, RewriteResult)| *result != RewriteResult::Stale;
    let winners: Vec<_> = results.iter().filter(won).map(|(n, _)| n.to_string()).collect();
    let [winner] = winners.as_slice() else {
        return Err(broken("one rewrite wins", "one winner", &results));
    };
    s.sends("its history is the one", &[(1, winner)]).await
}

pub(super) async fn concurrent_appends_and_commits_lose_nothing(s: Probe) -> Done {
    s.add(&["start"]).await?;
    let appends = (0..24).map(|n| -> Task<u64> {
        let s = s.clone();
        Box::pin(async move {
            s.add(&[&n.to_string()]).await?;
            Ok(0)
        })
    });
    let commits = (0..24).map(|_| -> Task<u64> {
        let s = s.clone();
        Box::pin(async move {
            let session = s.load().await?;
            let commit = Commit::on(session.state.revision).with_view(summarized(session.next));
            let result = s.store.commit(&s.key, commit).await?;
            Ok(u64::from(result != CommitResult::Stale))
        })
    });
    let tasks: Vec<_> = appends.zip(commits).flat_map(<[_; 2]>::from).collect();
    let committed: u64 = all(tasks).await?.into_iter().sum();
    holds("some of the commits win", committed > 0, &committed)?;
    let session = s.load().await?;
    same("all messages were added", session.next, 25)?;
    same("each commit counts once", session.state.revision.counter(), committed)?;
    let cut = session.state.view.cut;
    let window = positions(&session.window);
    holds("what is not cut is in the window", window.iter().copied().eq(cut..25), &window)
}

pub(super) async fn readers_see_the_state_before_or_after(s: Probe) -> Done {
    s.add(&["start"]).await?;
    s.compact(0, UsageEvent::default()).await?;
    let writer = {
        let s = s.clone();
        Box::pin(async move {
            for n in 0..40 {
                let session = s.load().await?;
                let commit = Commit::on(session.state.revision).with_view(summarized(session.next));
                s.commit(commit).await?;
                s.append(&[fresh(&format!("{n}")), fresh(&format!("{n}!"))]).await?;
            }
            Ok(())
        }) as Task<()>
    };
    let reader = || {
        let s = s.clone();
        Box::pin(async move {
            for _ in 0..80 {
                let session = s.load().await?;
                let view = &session.state.view;
                same("a summary comes with its cut", view, &summarized(view.cut))?;
                let window = positions(&session.window);
                let whole = window.iter().copied().eq(view.cut..session.next);
                holds("a window is whole", whole, &(view.cut, window, session.next))?;
                holds("a batch is whole", session.next % 2 == 1, &session.next)?;
                tokio::task::yield_now().await;
            }
            Ok(())
        }) as Task<()>
    };
    all([writer, reader(), reader()]).await?;
    same("all was written", s.load().await?.next, 81)?;
    Ok(())
}
