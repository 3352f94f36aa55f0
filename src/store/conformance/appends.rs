//! Appending, and what is not there.

use super::{
    broken::{Done, holds, refused, same},
    probe::{Probe, fresh, named, positions, view},
};
use crate::{
    error::Error,
    session::{Revision, View},
    store::{Commit, ListPage, Placed, Removed, Rewrite, RewriteResult},
};

pub(super) async fn unknown_sessions_are_empty(s: Probe) -> Done {
    same("an unknown session is not there", s.is_there().await?, false)?;
    let commit = Commit::on(Revision::fresh()).with_view(view(0));
    s.stale("a commit to an unknown session is stale", commit).await?;
    let removed = s.store.remove(&s.key).await?;
    same("nothing of an unknown session is removed", removed, Removed::default())?;
    let mut rewrite = Rewrite::new(vec![fresh("x")], None);
    rewrite.expected = Some((Revision::fresh(), 0));
    let rewritten = s.store.rewrite(&s.key, rewrite).await?;
    same("a rewrite that expects something of it is stale", rewritten, RewriteResult::Stale)?;
    if let Some(archive) = s.store.archive() {
        let all = archive.transcript(&s.key, 0..u64::MAX).await?;
        same("an unknown session has no transcript", positions(&all), Vec::<u64>::new())?;
        let compactions = archive.compactions(&s.key, None, 10).await?;
        same("an unknown session has no compactions", compactions.len(), 0)?;
    }
    same("none of that creates it", s.is_there().await?, false)?;
    same("an empty store lists nothing", s.list(ListPage::default()).await?, Vec::<String>::new())
}

pub(super) async fn appends_get_dense_positions(s: Probe) -> Done {
    let first = s.add(&["a", "b"]).await?;
    let both = [Placed::new(0, false), Placed::new(1, false)];
    same("the first messages stand at 0 and 1", first.placed, both)?;
    let second = s.add(&["c"]).await?;
    same("the next one stands at 2", second.placed, [Placed::new(2, false)])?;
    let session = s.load().await?;
    same("the next position is known", session.next, 3)?;
    same("nothing is cut", session.state.view, View::default())?;
    s.sends("all of them are sent, in order", &[(0, "a"), (1, "b"), (2, "c")]).await
}

pub(super) async fn an_append_leaves_the_revision(s: Probe) -> Done {
    let first = s.add(&["a"]).await?.revision;
    same("an append leaves the revision", s.add(&["b", "c"]).await?.revision, first)?;
    same("a new session's counter is 0", first.counter(), 0)?;
    same("load gives the same revision", s.load().await?.state.revision, first)
}

pub(super) async fn an_empty_append_creates_the_session(s: Probe) -> Done {
    let receipt = s.add(&[]).await?;
    same("nothing is placed", receipt.placed.len(), 0)?;
    same("it is there", s.load().await?.state.revision, receipt.revision)?;
    same("it is listed", s.list(ListPage::default()).await?, ["s"])
}

pub(super) async fn a_refused_first_append_creates_nothing(s: Probe) -> Done {
    let batch = [named("a", "one"), named("a", "other")];
    let result = s.store.append(&s.key, &batch).await;
    refused("an id names one content", result, Error::is_duplicate_id)?;
    same("a refused append creates no session", s.is_there().await?, false)?;
    same("nor is one listed", s.list(ListPage::default()).await?, Vec::<String>::new())
}

pub(super) async fn sessions_have_positions_of_their_own(s: Probe) -> Done {
    let other = s.at("other")?;
    let ours = s.add(&["a"]).await?;
    let theirs = other.add(&["x", "y"]).await?;
    let again = s.add(&["b"]).await?;
    same("positions count within a session", again.placed, [Placed::new(1, false)])?;
    let incarnations = (ours.revision.incarnation(), theirs.revision.incarnation());
    holds("incarnations differ", incarnations.0 != incarnations.1, &incarnations)?;
    s.sends("one session's messages", &[(0, "a"), (1, "b")]).await?;
    other.sends("the other session's messages", &[(0, "x"), (1, "y")]).await
}

pub(super) async fn a_thousand_messages_in_one_call(s: Probe) -> Done {
    let texts: Vec<_> = (0..1_000).map(|n| format!("message {n}")).collect();
    let batch: Vec<_> = texts.iter().map(|text| fresh(text)).collect();
    let placed = s.append(&batch).await?.placed;
    holds("each has its place", placed.iter().map(|it| it.position).eq(0..1_000), &placed)?;
    let expected: Vec<_> = (0..).zip(texts.iter().map(String::as_str)).collect();
    s.sends("all thousand are there", &expected).await
}

pub(super) async fn a_message_of_a_megabyte(s: Probe) -> Done {
    let text = "0123456789abcdeé".repeat(1 << 16);
    s.append(&[fresh(&text)]).await?;
    let window = s.load().await?.window;
    let read = window.first().map(|kept| kept.message.text());
    holds("a long message comes back whole", read.as_ref() == Some(&text), &window.len())
}

/// Where a store says when it took a message, that never goes back.
pub(super) async fn times_do_not_fall(s: Probe) -> Done {
    for text in ["a", "b", "c"] {
        s.add(&[text]).await?;
    }
    let window = s.load().await?.window;
    let times: Vec<_> = window.iter().map(|kept| kept.unix_millis).collect();
    holds("times rise, or stay", times.is_sorted(), &times)?;
    let again: Vec<_> = s.load().await?.window.iter().map(|kept| kept.unix_millis).collect();
    same("a message keeps its time", again, times)
}
