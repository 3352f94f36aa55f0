//! Commits under a lease.

use super::{
    broken::{Done, same},
    leases::{claim, claim_after},
    probe::{HOUR, Probe, SHORT, fresh, summarized},
};
use crate::{
    store::{Commit, Lease, Rewrite},
    usage::UsageEvent,
};

fn commit(s: &crate::store::Receipt, lease: Lease) -> Commit {
    Commit::on(s.revision).with_view(summarized(1)).with_lease(Some(lease))
}

pub(super) async fn a_commit_under_a_lease_is_stored(s: Probe) -> Done {
    s.leases()?;
    let receipt = s.add(&["a", "b"]).await?;
    let lease = claim(&s, HOUR).await?;
    s.commit(commit(&receipt, lease)).await?;
    s.sends("the commit counts", &[(1, "b")]).await
}

pub(super) async fn a_commit_under_an_expired_lease_is_stale(s: Probe) -> Done {
    s.leases()?;
    let receipt = s.add(&["a", "b"]).await?;
    let first = claim(&s, SHORT).await?;
    let second = claim_after(&s).await?;
    let event = UsageEvent { messages_removed: 1, ..UsageEvent::default() };
    let late = commit(&receipt, first).with_usage(event);
    s.stale("who lost the lease is refused", late).await?;
    s.sends("nothing is changed", &[(0, "a"), (1, "b")]).await?;
    if let Some(log) = s.store.usage() {
        same("nothing is recorded", log.totals(Some(&s.key)).await?.events(), 0)?;
    }
    s.commit(commit(&receipt, second)).await?;
    s.sends("who has it is not", &[(1, "b")]).await
}

pub(super) async fn a_commit_under_a_released_lease_is_stale(s: Probe) -> Done {
    let leases = s.leases()?;
    let receipt = s.add(&["a", "b"]).await?;
    let lease = claim(&s, HOUR).await?;
    leases.release(&s.key, lease).await?;
    s.stale("a released lease is no longer valid", commit(&receipt, lease)).await
}

pub(super) async fn a_commit_under_the_lease_before_is_stale(s: Probe) -> Done {
    let leases = s.leases()?;
    let receipt = s.add(&["a", "b"]).await?;
    let before = claim(&s, HOUR).await?;
    leases.release(&s.key, before).await?;
    let after = claim(&s, HOUR).await?;
    s.stale("another lease was given out", commit(&receipt, before)).await?;
    let invented = Lease::new(after.token().saturating_add(1));
    s.stale("a lease that was not given out", commit(&receipt, invented)).await?;
    s.commit(commit(&receipt, after)).await.map(drop)
}

pub(super) async fn a_commit_under_a_lease_of_another_session_is_stale(s: Probe) -> Done {
    s.leases()?;
    let other = s.at("other")?;
    let receipt = s.add(&["a", "b"]).await?;
    other.add(&["x"]).await?;
    let theirs = claim(&other, HOUR).await?;
    s.stale("there is no lease of this session", commit(&receipt, theirs)).await
}

pub(super) async fn a_lease_keeps_nobody_from_writing(s: Probe) -> Done {
    s.leases()?;
    let receipt = s.add(&["a", "b"]).await?;
    claim(&s, HOUR).await?;
    s.add(&["c"]).await?;
    let other = Commit::on(receipt.revision).with_view(summarized(1));
    s.commit(other).await?;
    s.rewrite(Rewrite::new(vec![fresh("x")], None)).await?;
    s.sends("appends, commits and rewrites go on", &[(3, "x")]).await
}

pub(super) async fn a_lease_outlasts_a_commit(s: Probe) -> Done {
    let leases = s.leases()?;
    let mut receipt = s.add(&["a", "b"]).await?;
    let lease = claim(&s, HOUR).await?;
    receipt.revision = s.commit(commit(&receipt, lease)).await?;
    s.add(&["c"]).await?;
    same("a commit does not end it", leases.claim(&s.key, "w", HOUR).await?, None)?;
    s.commit(commit(&receipt, lease)).await?;
    same("nor does the next one", leases.renew(&s.key, lease, HOUR).await?, true)
}
