//! Commits: compare and swap.

use super::{
    broken::{Done, same},
    probe::{Probe, fresh, given, positions, summarized, view},
};
use crate::{
    message::Message,
    session::{Dropped, Pause, PauseUntil, Revision, SessionOptions, StoredSummary, View},
    store::{Commit, NewMessage, Placed},
    usage::UsageEvent,
};

pub(super) async fn commits_need_the_expected_revision(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    for other in [start.next(), Revision::fresh()] {
        let commit = Commit::on(other).with_view(view(1));
        s.stale("a commit on another revision is stale", commit).await?;
    }
    let commit = Commit::on(start).with_view(view(1));
    let now = s.commit(commit.clone()).await?;
    same("a view makes the next revision", now, start.next())?;
    s.stale("the same commit again is stale", commit).await?;
    same("appends give the revision that is there", s.add(&["c"]).await?.revision, now)
}

pub(super) async fn a_stale_commit_changes_nothing(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    let before = s.load().await?.state;
    let commit = Commit::on(start.next())
        .with_view(summarized(1))
        .with_options(SessionOptions::new().model("gpt-5"))
        .with_pause(Some(Pause::new(PauseUntil::Tokens(7), "no gain")));
    s.stale("a commit on another revision is stale", commit).await?;
    same("the state is as it was", s.load().await?.state, before)?;
    s.sends("and so is what is sent", &[(0, "a"), (1, "b")]).await
}

pub(super) async fn a_commit_sets_the_whole_view(s: Probe) -> Done {
    let start = s.add(&["a", "b", "c", "d"]).await?.revision;
    let full = View {
        carried: vec![0, 2],
        summary: Some(StoredSummary::new("b happened")),
        dropped: Dropped { messages: 1, since: 1 },
        ..view(3)
    };
    let commit = Commit::on(start).with_view(full.clone()).with_usage(UsageEvent::default());
    let revision = s.commit(commit).await?;
    s.add(&["e"]).await?;
    let session = s.load().await?;
    same("the view is the one that was set", session.state.view, full)?;
    same("the revision is the one that was given", session.state.revision, revision)?;
    same("carried messages come apart", positions(&session.carried), [0, 2])?;
    s.sends("carried and window", &[(0, "a"), (2, "c"), (3, "d"), (4, "e")]).await?;
    s.commit(Commit::on(revision).with_view(view(4))).await?;
    same("the next view leaves nothing of it", s.load().await?.state.view, view(4))
}

pub(super) async fn a_commit_without_view_keeps_the_revision(s: Probe) -> Done {
    let start = s.add(&["a"]).await?.revision;
    let options = SessionOptions::new().model("gpt-5");
    let revision = s.commit(Commit::on(start).with_options(options)).await?;
    same("without a view the revision stays", revision, start)?;
    same("also as it is read", s.load().await?.state.revision, start)
}

pub(super) async fn pauses_are_set_and_ended(s: Probe) -> Done {
    let start = s.add(&["a"]).await?.revision;
    for until in [PauseUntil::Tokens(900), PauseUntil::UnixMillis(u64::from(u32::MAX) * 1_000)] {
        let mut pause = Pause::new(until, "no \0 gain");
        pause.failures = 3;
        s.commit(Commit::on(start).with_pause(Some(pause.clone()))).await?;
        same("the pause is set", s.load().await?.state.pause, Some(pause.clone()))?;
        s.add(&["b"]).await?;
        same("an append leaves it", s.load().await?.state.pause, Some(pause))?;
        s.commit(Commit::on(start)).await?;
        same("a commit without one ends it", s.load().await?.state.pause, None)?;
    }
    Ok(())
}

pub(super) async fn options_stay_until_they_change(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    let options = SessionOptions::new()
        .model("llama \0 3")
        .context_window(32_768)
        .label("tenant", "a\"b")
        .label("Tenant", "é");
    s.commit(Commit::on(start).with_options(options.clone())).await?;
    let revision = s.commit(Commit::on(start).with_view(view(1))).await?;
    s.add(&["c"]).await?;
    same("a view leaves the options", s.load().await?.state.options, options)?;
    let none = SessionOptions::default();
    s.commit(Commit::on(revision).with_options(none.clone())).await?;
    same("they can be taken back", s.load().await?.state.options, none)
}

pub(super) async fn appends_in_between_do_not_matter(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    s.add(&["c"]).await?;
    s.commit(Commit::on(start).with_view(summarized(2))).await?;
    s.sends("what came meanwhile is in the window", &[(2, "c")]).await
}

pub(super) async fn everything_can_be_cut(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    s.commit(Commit::on(start).with_view(summarized(2))).await?;
    s.sends("nothing is left in the window", &[]).await?;
    same("the next position is the same", s.load().await?.next, 2)?;
    same("and is given", s.add(&["c"]).await?.placed, [Placed::new(2, false)])
}

pub(super) async fn carried_messages_stay_over_commits(s: Probe) -> Done {
    let mut revision = s.add(&["a", "b"]).await?.revision;
    for (cut, text) in [(2, "c"), (3, "d"), (4, "e")] {
        let carried = View { carried: vec![0], ..summarized(cut) };
        revision = s.commit(Commit::on(revision).with_view(carried)).await?;
        s.add(&[text]).await?;
        s.sends("what is carried stays", &[(0, "a"), (cut, text)]).await?;
    }
    s.commit(Commit::on(revision).with_view(summarized(4))).await?;
    s.sends("until a view no longer carries it", &[(4, "e")]).await
}

fn lettered(letters: &[&str]) -> Vec<NewMessage> {
    letters.iter().map(|id| given(Message::user(*id).with_id(*id))).collect()
}

/// Appends `a` to `d` and takes back `c` and `d`; `a` is carried.
async fn take_back(s: &Probe) -> Result<View, super::Stop> {
    let revision = s.append(&lettered(&["a", "b", "c", "d"])).await?.revision;
    let mut taken = View { carried: vec![0], ..view(1) };
    taken.rewound.push(2..4);
    s.commit(Commit::on(revision).with_view(taken.clone())).await?;
    Ok(taken)
}

pub(super) async fn what_was_taken_back_is_left_out(s: Probe) -> Done {
    let taken = take_back(&s).await?;
    let session = s.load().await?;
    same("the view says what was taken back", session.state.view, taken)?;
    same("its positions stay used", session.next, 4)?;
    same("the window goes without it", positions(&session.window), [1])?;
    same("the next message comes after it", s.add(&["e"]).await?.placed, [Placed::new(4, false)])?;
    s.sends("nothing comes back", &[(0, "a"), (1, "b"), (4, "e")]).await
}

pub(super) async fn ids_of_what_was_taken_back_are_free(s: Probe) -> Done {
    take_back(&s).await?;
    let again = s.append(&lettered(&["d", "a"])).await?.placed;
    let expected = [Placed::new(4, false), Placed::new(0, true)];
    same("those of the others are not", again, expected)?;
    let other = given(Message::user("other").with_id("c"));
    same("also for other content", s.append(&[other]).await?.placed, [Placed::new(5, false)])?;
    s.sends("each is there once", &[(0, "a"), (1, "b"), (4, "d"), (5, "other")]).await
}

pub(super) async fn the_old_view_can_be_committed_again(s: Probe) -> Done {
    s.archive()?;
    let start = s.append(&[fresh("a"), fresh("b"), fresh("c")]).await?.revision;
    let before = s.load().await?.state.view;
    let revision = s.commit(Commit::on(start).with_view(summarized(2))).await?;
    s.add(&["d"]).await?;
    let undone = s.commit(Commit::on(revision).with_view(before.clone())).await?;
    same("that is a new revision", undone, revision.next())?;
    same("the view is the old one", s.load().await?.state.view, before)?;
    let all = [(0, "a"), (1, "b"), (2, "c"), (3, "d")];
    s.sends("what was cut is sent again", &all).await
}
