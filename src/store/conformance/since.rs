//! Reading just what is new.

use super::{
    broken::{Done, Stop, broken, same},
    probe::{Probe, at, texts, view},
};
use crate::{
    session::{Pause, PauseUntil, Revision, SessionOptions, View},
    store::{Commit, Rewrite, Since, StoredSession, Tail},
};

async fn tail(s: &Probe, revision: Revision, next: u64) -> Result<Tail, Stop> {
    match s.store.load_since(&s.key, revision, next).await? {
        Since::Same(tail) => Ok(tail),
        other => Err(broken("where the revision is the same, a tail comes", "a tail", &other)),
    }
}

async fn changed(s: &Probe, revision: Revision, next: u64) -> Result<StoredSession, Stop> {
    match s.store.load_since(&s.key, revision, next).await? {
        Since::Changed(session) => Ok(*session),
        other => Err(broken("where the revision differs, all of it comes", "a change", &other)),
    }
}

fn came(tail: &Tail) -> Vec<(u64, String)> {
    tail.messages.iter().map(|kept| (kept.position, kept.message.text())).collect()
}

/// Checks that a change gives what `load` gives.
async fn is_the_whole(s: &Probe, session: &StoredSession) -> Done {
    let loaded = s.load().await?;
    same("a change has the state", &session.state, &loaded.state)?;
    same("a change has the next position", session.next, loaded.next)?;
    same("a change has all messages", texts(session), texts(&loaded))
}

pub(super) async fn nothing_new_is_an_empty_tail(s: Probe) -> Done {
    let revision = s.add(&["a", "b"]).await?.revision;
    let tail = tail(&s, revision, 2).await?;
    same("nothing is new", came(&tail), at(&[]))?;
    same("the next position is the same", tail.next, 2)
}

pub(super) async fn a_tail_has_what_was_appended(s: Probe) -> Done {
    let revision = s.add(&["a", "b"]).await?.revision;
    s.add(&["c"]).await?;
    s.add(&["d", "e"]).await?;
    let from_two = tail(&s, revision, 2).await?;
    same("what is new comes", came(&from_two), at(&[(2, "c"), (3, "d"), (4, "e")]))?;
    same("with the next position", from_two.next, 5)?;
    let from_four = tail(&s, revision, 4).await?;
    same("also from the middle of a batch", came(&from_four), at(&[(4, "e")]))
}

pub(super) async fn a_tail_from_zero_is_the_window(s: Probe) -> Done {
    let start = s.add(&["a", "b", "c", "d"]).await?.revision;
    let carried = View { carried: vec![0], ..view(2) };
    let revision = s.commit(Commit::on(start).with_view(carried)).await?;
    same(
        "a tail is of the window, whatever was known",
        came(&tail(&s, revision, 0).await?),
        at(&[(2, "c"), (3, "d")]),
    )
}

pub(super) async fn a_tail_leaves_out_what_was_taken_back(s: Probe) -> Done {
    let start = s.add(&["a", "b", "c", "d"]).await?.revision;
    let mut taken = View::default();
    taken.rewound.push(1..3);
    let revision = s.commit(Commit::on(start).with_view(taken)).await?;
    let tail = tail(&s, revision, 1).await?;
    same("what was taken back is no part of the window", came(&tail), at(&[(3, "d")]))
}

pub(super) async fn a_commit_is_seen_as_a_change(s: Probe) -> Done {
    let start = s.add(&["a", "b", "c"]).await?.revision;
    s.commit(Commit::on(start).with_view(view(1))).await?;
    let session = changed(&s, start, 3).await?;
    is_the_whole(&s, &session).await
}

pub(super) async fn a_rewrite_is_seen_as_a_change(s: Probe) -> Done {
    let start = s.add(&["a", "b"]).await?.revision;
    s.rewrite(Rewrite::new(Vec::new(), None)).await?;
    let session = changed(&s, start, 2).await?;
    is_the_whole(&s, &session).await
}

pub(super) async fn a_session_that_was_created_again_is_a_change(s: Probe) -> Done {
    let old = s.add(&["a", "b"]).await?.revision;
    s.store.remove(&s.key).await?;
    s.add(&["c", "d"]).await?;
    let session = changed(&s, old, 2).await?;
    is_the_whole(&s, &session).await
}

pub(super) async fn a_reader_that_knows_too_much_reads_all(s: Probe) -> Done {
    let revision = s.add(&["a", "b"]).await?.revision;
    let session = changed(&s, revision, 7).await?;
    is_the_whole(&s, &session).await
}

pub(super) async fn an_unknown_session_is_gone(s: Probe) -> Done {
    let revision = s.add(&["a"]).await?.revision;
    let unknown = s.at("unknown")?;
    s.store.remove(&s.key).await?;
    for gone in [&s, &unknown] {
        match gone.store.load_since(&gone.key, revision, 1).await? {
            Since::Gone => {}
            other => return Err(broken("there is no such session", "none", &other)),
        }
        same("reading creates nothing", gone.is_there().await?, false)?;
    }
    Ok(())
}

pub(super) async fn options_and_pauses_are_seen_without_a_revision(s: Probe) -> Done {
    let revision = s.add(&["a"]).await?.revision;
    let options = SessionOptions::new().model("gpt-5").label("tenant", "7");
    let pause = Pause::new(PauseUntil::Tokens(7), "no gain");
    let commit = Commit::on(revision).with_options(options.clone());
    s.commit(commit.with_pause(Some(pause.clone()))).await?;
    let now = tail(&s, revision, 1).await?;
    same("the options are new", now.options, options.clone())?;
    same("the pause is new", now.pause, Some(pause))?;
    s.commit(Commit::on(revision)).await?;
    let now = tail(&s, revision, 1).await?;
    same("the pause has ended", now.pause, None)?;
    same("the options stay", now.options, options)
}
