//! Which sessions are due.

use super::{
    broken::{Done, Stop, holds, same},
    leases::claim,
    probe::{HOUR, Probe, Task, all, fresh, named, summarized},
};
use crate::{
    plan::Limits,
    session::{Pause, PauseUntil},
    store::{Commit, Lease, Rewrite},
    usage::UsageEvent,
};

fn above(messages: u64) -> Limits {
    Limits { messages: Some(messages), ..Limits::default() }
}

/// Claims what is due and gives it back; the keys in order.
async fn due(s: &Probe, limits: Limits) -> Result<Vec<String>, Stop> {
    let claimed = s.leases()?.claim_due("w", HOUR, &limits, 100).await?;
    for (key, lease) in &claimed {
        s.leases()?.release(key, *lease).await?;
    }
    let mut keys: Vec<_> = claimed.iter().map(|(key, _)| key.to_string()).collect();
    keys.sort_unstable();
    Ok(keys)
}

const NONE: [&str; 0] = [];

pub(super) async fn sessions_above_a_limit_are_due(s: Probe) -> Done {
    s.leases()?;
    s.add(&["a", "b"]).await?;
    s.at("more")?.add(&["a", "b", "c"]).await?;
    same("three are above two, two are not", due(&s, above(2)).await?, ["more"])?;
    same("both are above one", due(&s, above(1)).await?, ["more", "s"])?;
    same("none is above three", due(&s, above(3)).await?, NONE)?;
    same("without limits, none is due", due(&s, Limits::default()).await?, NONE)?;
    s.add(&["c"]).await?;
    same("an append counts", due(&s, above(2)).await?, ["more", "s"])
}

/// Each message of these checks has 100 characters and 10 tokens.
pub(super) async fn each_unit_has_its_limit(s: Probe) -> Done {
    s.leases()?;
    s.add(&["a", "b", "c"]).await?;
    let chars = |limit| Limits { chars: Some(limit), ..Limits::default() };
    let tokens = |limit| Limits { tokens: Some(limit), ..Limits::default() };
    same("300 characters are above 299", due(&s, chars(299)).await?, ["s"])?;
    same("and not above 300", due(&s, chars(300)).await?, NONE)?;
    same("30 tokens are above 29", due(&s, tokens(29)).await?, ["s"])?;
    same("and not above 30", due(&s, tokens(30)).await?, NONE)?;
    let any = Limits { messages: Some(99), chars: Some(299), tokens: Some(99) };
    same("one of them is enough", due(&s, any).await?, ["s"])
}

pub(super) async fn duplicates_are_not_counted(s: Probe) -> Done {
    s.leases()?;
    for _ in 0..3 {
        s.append(&[named("a", "one"), named("b", "two")]).await?;
    }
    same("a retry makes nothing larger", due(&s, above(2)).await?, NONE)
}

pub(super) async fn compacted_sessions_are_no_longer_due(s: Probe) -> Done {
    s.leases()?;
    s.add(&["a", "b", "c", "d"]).await?;
    s.compact(3, UsageEvent::default()).await?;
    same("what was cut no longer counts", due(&s, above(2)).await?, NONE)?;
    let limits = Limits { chars: Some(100), tokens: Some(15), ..Limits::default() };
    same("in no unit", due(&s, limits).await?, NONE)?;
    same("what is left does", due(&s, above(0)).await?, ["s"])?;
    s.add(&["e", "f"]).await?;
    same("and grows again", due(&s, above(2)).await?, ["s"])
}

pub(super) async fn rewritten_sessions_are_measured_anew(s: Probe) -> Done {
    s.leases()?;
    s.add(&["a", "b", "c", "d"]).await?;
    s.rewrite(Rewrite::new(vec![fresh("x"), fresh("y")], None)).await?;
    same("the old history no longer counts", due(&s, above(2)).await?, NONE)?;
    same("the new one does", due(&s, above(1)).await?, ["s"])
}

pub(super) async fn marked_sessions_are_due(s: Probe) -> Done {
    let leases = s.leases()?;
    s.add(&["a"]).await?;
    s.at("other")?.add(&["a"]).await?;
    leases.mark_due(&s.key).await?;
    leases.mark_due(&s.key).await?;
    same("whatever their size", due(&s, Limits::default()).await?, ["s"])?;
    same("until their lease is given back", due(&s, Limits::default()).await?, NONE)
}

pub(super) async fn marking_an_unknown_session_does_nothing(s: Probe) -> Done {
    s.leases()?.mark_due(&s.key).await?;
    same("no session is created", s.is_there().await?, false)?;
    same("and none is due", due(&s, above(0)).await?, NONE)
}

pub(super) async fn a_committed_view_ends_a_mark(s: Probe) -> Done {
    let leases = s.leases()?;
    let revision = s.add(&["a", "b"]).await?.revision;
    leases.mark_due(&s.key).await?;
    s.commit(Commit::on(revision)).await?;
    same("a commit without a view does not", due(&s, Limits::default()).await?, ["s"])?;
    leases.mark_due(&s.key).await?;
    s.commit(Commit::on(revision).with_view(summarized(1))).await?;
    same("one with a view does", due(&s, Limits::default()).await?, NONE)
}

pub(super) async fn claimed_sessions_are_left_out(s: Probe) -> Done {
    let leases = s.leases()?;
    s.add(&["a", "b"]).await?;
    s.at("other")?.add(&["a", "b"]).await?;
    let lease = claim(&s, HOUR).await?;
    leases.mark_due(&s.key).await?;
    same("somebody is at work on it", due(&s, above(1)).await?, ["other"])?;
    leases.release(&s.key, lease).await?;
    same("it is due once that is over", due(&s, above(1)).await?, ["other", "s"])
}

pub(super) async fn paused_sessions_are_left_out(s: Probe) -> Done {
    let leases = s.leases()?;
    let revision = s.add(&["a", "b"]).await?.revision;
    // Until the year 2106, until there are more tokens than the 20 here.
    for until in [PauseUntil::UnixMillis(u64::from(u32::MAX) * 1_000), PauseUntil::Tokens(21)] {
        let pause = Pause::new(until, "no gain");
        s.commit(Commit::on(revision).with_pause(Some(pause))).await?;
        same("a pause holds", due(&s, above(1)).await?, NONE)?;
        leases.mark_due(&s.key).await?;
        same("also for a marked session", due(&s, above(1)).await?, NONE)?;
    }
    for until in [PauseUntil::UnixMillis(1_000), PauseUntil::Tokens(20)] {
        let pause = Pause::new(until, "no gain");
        s.commit(Commit::on(revision).with_pause(Some(pause))).await?;
        same("a pause that is over does not", due(&s, above(1)).await?, ["s"])?;
    }
    let pause = Pause::new(PauseUntil::Tokens(30), "no gain");
    s.commit(Commit::on(revision).with_pause(Some(pause))).await?;
    same("a pause holds", due(&s, above(1)).await?, NONE)?;
    s.add(&["c"]).await?;
    same("until the window has grown", due(&s, above(1)).await?, ["s"])
}

pub(super) async fn limits_of_the_session_go_first(s: Probe) -> Done {
    s.leases()?;
    let revision = s.add(&["a", "b", "c"]).await?.revision;
    s.commit(Commit::on(revision).with_limits(above(5))).await?;
    same("its own limit is higher", due(&s, above(1)).await?, NONE)?;
    s.commit(Commit::on(revision)).await?;
    same("it stays until it changes", due(&s, above(1)).await?, NONE)?;
    s.commit(Commit::on(revision).with_limits(above(2))).await?;
    same("its own limit is lower", due(&s, above(9)).await?, ["s"])?;
    s.commit(Commit::on(revision).with_limits(Limits::default())).await?;
    same("its own limits are none at all", due(&s, above(1)).await?, NONE)
}

pub(super) async fn no_more_than_asked_for_are_claimed(s: Probe) -> Done {
    let leases = s.leases()?;
    for n in 0..5 {
        s.at(&n.to_string())?.add(&["a", "b"]).await?;
    }
    let mut claimed = Vec::new();
    for expected in [0, 2, 2, 1, 0] {
        let at_most = if claimed.is_empty() && expected == 0 { 0 } else { 2 };
        let some = leases.claim_due("w", HOUR, &above(1), at_most).await?;
        same("as many as were asked for, while there are", some.len(), expected)?;
        claimed.extend(some.into_iter().map(|(key, _)| key.to_string()));
    }
    claimed.sort_unstable();
    same("each of them once", claimed, ["0", "1", "2", "3", "4"])
}

pub(super) async fn two_callers_claim_different_sessions(s: Probe) -> Done {
    s.leases()?;
    for n in 0..24 {
        s.at(&format!("{n:02}"))?.add(&["a", "b"]).await?;
    }
    let claims = all((0..8).map(|n| -> Task<Vec<(String, Lease)>> {
        let s = s.clone();
        Box::pin(async move {
            let claimed = s.leases()?.claim_due(&n.to_string(), HOUR, &above(1), 5).await?;
            Ok(claimed.into_iter().map(|(key, lease)| (key.to_string(), lease)).collect())
        })
    }))
    .await?;
    let mut keys: Vec<_> = claims.iter().flatten().map(|(key, _)| key.clone()).collect();
    keys.sort_unstable();
    let all_claimed = keys.len();
    keys.dedup();
    same("no session is claimed twice", keys.len(), all_claimed)?;
    // Those who came in each other's way may get fewer, but nothing is lost.
    let rest = s.leases()?.claim_due("last", HOUR, &above(1), 100).await?;
    same("all of them can be claimed", all_claimed.saturating_add(rest.len()), 24)
}

pub(super) async fn a_claim_of_due_sessions_is_a_lease(s: Probe) -> Done {
    let leases = s.leases()?;
    let revision = s.add(&["a", "b"]).await?.revision;
    let before = claim(&s, HOUR).await?;
    leases.release(&s.key, before).await?;
    for (key, lease) in leases.claim_due("w", HOUR, &above(1), 9).await? {
        holds("its token is above the one before", lease > before, &(before, lease))?;
        same("it is renewed like any other", leases.renew(&key, lease, HOUR).await?, true)?;
        same("nobody else has one", leases.claim(&key, "other", HOUR).await?, None)?;
        let commit = Commit::on(revision).with_view(summarized(1)).with_lease(Some(lease));
        s.commit(commit).await?;
    }
    s.sends("a commit under it is stored", &[(1, "b")]).await
}
