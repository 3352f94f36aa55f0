//! Rewrites: another history at new positions.

use super::{
    broken::{Done, refused, same},
    probe::{Probe, fresh, named, summarized, view},
};
use crate::{
    error::Error,
    session::{Pause, PauseUntil, SessionOptions, StoredSummary, View},
    store::{Commit, Placed, Rewrite, RewriteResult},
};

pub(super) async fn a_rewrite_creates_the_session(s: Probe) -> Done {
    let summary = Some(StoredSummary::new("before"));
    let rewrite = Rewrite::new(vec![fresh("x")], summary.clone());
    let receipt = s.rewrite(rewrite).await?;
    same("it stands at 0", receipt.placed, [Placed::new(0, false)])?;
    let session = s.load().await?;
    same("its revision is the one that was given", session.state.revision, receipt.revision)?;
    same("its summary is there", session.state.view.summary, summary)?;
    s.sends("and its message", &[(0, "x")]).await
}

pub(super) async fn rewrites_take_new_positions(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    let summary = Some(StoredSummary::new("before"));
    let receipt = s.rewrite(Rewrite::new(vec![fresh("x"), fresh("y")], summary.clone())).await?;
    same("a rewrite makes the next revision", receipt.revision, start.next())?;
    let expected = [Placed::new(2, false), Placed::new(3, false)];
    same("positions go on", receipt.placed, expected)?;
    s.add(&["z"]).await?;
    s.sends("the new history", &[(2, "x"), (3, "y"), (4, "z")]).await?;
    same("the cut is below it", s.load().await?.state.view, View { summary, ..view(2) })?;

    let receipt = s.rewrite(Rewrite::new(Vec::new(), None)).await?;
    same("a history of nothing", receipt.placed, [])?;
    same("leaves nothing", s.load().await?.state.view, view(5))?;
    same("positions go on", s.add(&["new"]).await?.placed, [Placed::new(5, false)])
}

pub(super) async fn rewrites_can_be_stale(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    let mut rewrite = Rewrite::new(vec![fresh("x")], None);
    for other in [(start, 1), (start, 3), (start.next(), 2)] {
        rewrite.expected = Some(other);
        let result = s.store.rewrite(&s.key, rewrite.clone()).await?;
        same("what it was made from is gone", result, RewriteResult::Stale)?;
    }
    s.sends("a stale one changes nothing", &[(0, "a"), (1, "b")]).await?;
    same("not even the revision", s.load().await?.state.revision, start)?;
    rewrite.expected = Some((start, 2));
    s.rewrite(rewrite).await?;
    s.sends("one that is not is stored", &[(2, "x")]).await
}

pub(super) async fn rewrites_free_the_old_ids(s: Probe) -> Done {
    s.append(&[named("a", "one"), named("b", "two")]).await?;
    s.rewrite(Rewrite::new(vec![named("a", "one, edited")], None)).await?;
    let batch = [named("a", "one, edited"), named("b", "two, edited")];
    let expected = [Placed::new(2, true), Placed::new(3, false)];
    same("the new history's ids count alone", s.append(&batch).await?.placed, expected)
}

pub(super) async fn rewrites_end_a_pause_and_keep_options(s: Probe) -> Done {
    let start = s.add(&["a"]).await?.revision;
    let options = SessionOptions::new().model("gpt-5");
    let pause = Pause::new(PauseUntil::Tokens(7), "no gain");
    let commit = Commit::on(start).with_options(options.clone()).with_pause(Some(pause));
    s.commit(commit).await?;
    s.rewrite(Rewrite::new(vec![fresh("x")], None)).await?;
    let state = s.load().await?.state;
    same("the pause was of another history", state.pause, None)?;
    same("options are the session's", state.options, options)
}

pub(super) async fn a_commit_from_before_a_rewrite_is_stale(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    s.rewrite(Rewrite::new(vec![fresh("x"), fresh("y")], None)).await?;
    let commit = Commit::on(start).with_view(summarized(1));
    s.stale("a summary of another history is stale", commit).await?;
    s.sends("and changes nothing", &[(2, "x"), (3, "y")]).await
}

pub(super) async fn a_refused_rewrite_changes_nothing(s: Probe) -> Done {
    let start = s.append(&[named("a", "one")]).await?.revision;
    let rewrite = Rewrite::new(vec![named("b", "two"), named("b", "three")], None);
    let result = s.store.rewrite(&s.key, rewrite).await;
    refused("an id names one content", result, Error::is_duplicate_id)?;
    s.sends("the history is as it was", &[(0, "one")]).await?;
    same("and so is the revision", s.load().await?.state.revision, start)?;
    let placed = s.append(&[named("a", "one")]).await?.placed;
    same("and so are the ids", placed, [Placed::new(0, true)])
}

pub(super) async fn a_refused_first_rewrite_creates_nothing(s: Probe) -> Done {
    let rewrite = Rewrite::new(vec![named("a", "one"), named("a", "other")], None);
    let result = s.store.rewrite(&s.key, rewrite).await;
    refused("an id names one content", result, Error::is_duplicate_id)?;
    same("a refused rewrite creates no session", s.is_there().await?, false)
}
