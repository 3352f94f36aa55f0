//! Removal: for good, and told in numbers.

use super::{
    broken::{Done, holds, same},
    probe::{Probe, named, positions, summarized, view},
};
use crate::{
    store::{Commit, ListPage, Placed, Removed, UsagePage},
    usage::{UsageEvent, UsageTotals},
};

pub(super) async fn remove_and_append_is_a_new_incarnation(s: Probe) -> Done {
    let before = s.append(&[named("a", "one")]).await?.revision;
    s.store.remove(&s.key).await?;
    let after = s.append(&[named("a", "other")]).await?;
    same("positions begin anew, and ids are free", after.placed, [Placed::new(0, false)])?;
    let incarnations = (before.incarnation(), after.revision.incarnation());
    holds("the incarnation is new", incarnations.0 != incarnations.1, &incarnations)?;
    let commit = Commit::on(before).with_view(view(1));
    s.stale("a commit from before is stale", commit).await?;
    s.sends("and changes nothing", &[(0, "other")]).await
}

pub(super) async fn removals_are_counted(s: Probe) -> Done {
    s.append(&[named("a", "one"), named("b", "two"), named("a", "one")]).await?;
    s.at("other")?.add(&["x"]).await?;
    let removed = s.store.remove(&s.key).await?;
    same("a removal says how many messages went", removed, Removed::existing(2))?;
    s.at("other")?.sends("other sessions stay", &[(0, "x")]).await
}

pub(super) async fn removals_count_what_was_cut(s: Probe) -> Done {
    s.archive()?;
    let revision = s.add(&["a", "b", "c", "d", "e"]).await?.revision;
    s.commit(Commit::on(revision).with_view(summarized(4))).await?;
    same("the summarized ones too", s.store.remove(&s.key).await?, Removed::existing(5))
}

pub(super) async fn a_second_removal_removes_nothing(s: Probe) -> Done {
    s.add(&["a"]).await?;
    s.store.remove(&s.key).await?;
    same("it is gone", s.is_there().await?, false)?;
    same("there is no more to remove", s.store.remove(&s.key).await?, Removed::default())
}

pub(super) async fn nothing_is_left_of_a_removed_session(s: Probe) -> Done {
    s.add(&["a", "b", "c"]).await?;
    s.compact(2, UsageEvent::default()).await?;
    if let Some(log) = s.store.usage() {
        log.record(&s.key, &UsageEvent::default()).await?;
    }
    s.store.remove(&s.key).await?;
    same("it is not listed", s.list(ListPage::default()).await?, Vec::<String>::new())?;
    // Also not once there is another session of that name.
    for again in [false, true] {
        if again {
            s.add(&["x"]).await?;
            s.sends("a new session is new", &[(0, "x")]).await?;
            same("it has no view of before", s.load().await?.state.view, view(0))?;
        }
        if let Some(archive) = s.store.archive() {
            let kept = positions(&archive.transcript(&s.key, 0..u64::MAX).await?);
            same("its transcript is gone", kept.len(), usize::from(again))?;
            let kept = archive.compactions(&s.key, None, 10).await?;
            same("its compactions are gone", kept.len(), 0)?;
        }
        if let Some(log) = s.store.usage() {
            let sums = log.totals(Some(&s.key)).await?;
            same("its sums are gone", sums, UsageTotals::default())?;
            let events = log.events(UsagePage::newest(10).of(s.key.clone())).await?;
            same("its events are gone", events.len(), 0)?;
            let events = log.events(UsagePage::newest(10)).await?;
            same("also among those of all", events.len(), 0)?;
        }
    }
    Ok(())
}
