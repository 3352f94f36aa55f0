//! Leases: one holder at a time.

use std::time::Duration;

use super::{
    broken::{Done, Stop, broken, holds, same},
    probe::{HOUR, Patience, Probe, SHORT, Task, all},
};
use crate::store::Lease;

/// Claims a session that is free.
pub(super) async fn claim(s: &Probe, ttl: Duration) -> Result<Lease, Stop> {
    let lease = s.leases()?.claim(&s.key, "worker \0", ttl).await?;
    lease.ok_or_else(|| broken("a session that is free can be claimed", "a lease", &()))
}

/// Waits until a short lease has ended and the session was claimed again.
pub(super) async fn claim_after(s: &Probe) -> Result<Lease, Stop> {
    let patience = Patience::new();
    loop {
        if let Some(lease) = s.leases()?.claim(&s.key, "later", HOUR).await? {
            return Ok(lease);
        }
        patience.wait("a lease ends by itself").await?;
    }
}

pub(super) async fn a_session_has_one_holder(s: Probe) -> Done {
    let leases = s.leases()?;
    s.add(&["a"]).await?;
    claim(&s, HOUR).await?;
    for holder in ["worker \0", "another"] {
        let lease = leases.claim(&s.key, holder, HOUR).await?;
        same("a claimed session cannot be claimed", lease, None)?;
    }
    Ok(())
}

pub(super) async fn sessions_are_leased_apart(s: Probe) -> Done {
    let other = s.at("other")?;
    s.leases()?;
    s.add(&["a"]).await?;
    other.add(&["b"]).await?;
    let lease = claim(&s, HOUR).await?;
    claim(&other, HOUR).await?;
    s.leases()?.release(&s.key, lease).await?;
    let still = s.leases()?.claim(&other.key, "w", HOUR).await?;
    same("a lease is of one session", still, None)
}

pub(super) async fn an_unknown_session_cannot_be_claimed(s: Probe) -> Done {
    let leases = s.leases()?;
    same("there is nothing to claim", leases.claim(&s.key, "w", HOUR).await?, None)?;
    let lease = Lease::new(1);
    same("nor to renew", leases.renew(&s.key, lease, HOUR).await?, false)?;
    leases.release(&s.key, lease).await?;
    same("and none of it creates a session", s.is_there().await?, false)
}

pub(super) async fn a_released_session_can_be_claimed(s: Probe) -> Done {
    let leases = s.leases()?;
    s.add(&["a"]).await?;
    let first = claim(&s, HOUR).await?;
    leases.release(&s.key, first).await?;
    same("a released lease is not renewed", leases.renew(&s.key, first, HOUR).await?, false)?;
    claim(&s, HOUR).await.map(drop)
}

pub(super) async fn an_expired_session_can_be_claimed(s: Probe) -> Done {
    s.leases()?;
    s.add(&["a"]).await?;
    let first = claim(&s, SHORT).await?;
    let second = claim_after(&s).await?;
    holds("the next lease has a higher token", second > first, &(first, second))
}

pub(super) async fn a_renewed_lease_lasts(s: Probe) -> Done {
    let (leases, other) = (s.leases()?, s.at("other")?);
    s.add(&["a"]).await?;
    other.add(&["b"]).await?;
    // Not so short that it could end before it is renewed.
    let lease = claim(&s, SHORT * 20).await?;
    same("a valid lease is renewed", leases.renew(&s.key, lease, HOUR).await?, true)?;
    // The other one was given out later and for as long.
    claim(&other, SHORT * 20).await?;
    claim_after(&other).await?;
    same("it lasts", leases.claim(&s.key, "w", HOUR).await?, None)?;
    same("and is still the same", leases.renew(&s.key, lease, HOUR).await?, true)
}

pub(super) async fn a_lapsed_lease_is_not_renewed(s: Probe) -> Done {
    let (leases, other) = (s.leases()?, s.at("other")?);
    s.add(&["a"]).await?;
    other.add(&["b"]).await?;
    let first = claim(&s, SHORT).await?;
    let second = claim_after(&s).await?;
    same("it does not come back", leases.renew(&s.key, first, HOUR).await?, false)?;
    same("the other one's is valid", leases.renew(&s.key, second, HOUR).await?, true)?;
    leases.release(&s.key, second).await?;
    let third = claim(&s, SHORT).await?;
    // The other one's is given out later and for as long.
    claim(&other, SHORT).await?;
    claim_after(&other).await?;
    same("also where nobody else came", leases.renew(&s.key, third, HOUR).await?, false)
}

pub(super) async fn an_old_release_does_not_end_a_new_lease(s: Probe) -> Done {
    let leases = s.leases()?;
    s.add(&["a"]).await?;
    let first = claim(&s, SHORT).await?;
    claim_after(&s).await?;
    leases.release(&s.key, first).await?;
    let claimed = leases.claim(&s.key, "w", HOUR).await?;
    same("who comes late ends nobody's lease", claimed, None)
}

pub(super) async fn tokens_rise(s: Probe) -> Done {
    let leases = s.leases()?;
    s.add(&["a"]).await?;
    let mut tokens = Vec::new();
    for _ in 0..5 {
        let lease = claim(&s, HOUR).await?;
        leases.release(&s.key, lease).await?;
        tokens.push(lease.token());
    }
    holds("each token is above the one before", tokens.is_sorted_by(|a, b| a < b), &tokens)
}

pub(super) async fn removal_ends_a_lease(s: Probe) -> Done {
    let leases = s.leases()?;
    s.add(&["a"]).await?;
    let old = claim(&s, HOUR).await?;
    s.store.remove(&s.key).await?;
    same("a removed session has no lease", leases.renew(&s.key, old, HOUR).await?, false)?;
    s.add(&["b"]).await?;
    let new = claim(&s, HOUR).await?;
    same("nor has one that was created again", leases.renew(&s.key, old, HOUR).await?, false)?;
    leases.release(&s.key, old).await?;
    same("and the new lease stays", leases.renew(&s.key, new, HOUR).await?, true)
}

pub(super) async fn concurrent_claims_have_one_winner(s: Probe) -> Done {
    s.leases()?;
    s.add(&["a"]).await?;
    let claims = all((0..16).map(|n| -> Task<_> {
        let s = s.clone();
        Box::pin(async move { Ok(s.leases()?.claim(&s.key, &n.to_string(), HOUR).await?) })
    }))
    .await?;
    same("one of them has it", claims.iter().flatten().count(), 1)
}
