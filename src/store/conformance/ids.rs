//! Ids: the same message again adds nothing.

use super::{
    broken::{Done, refused, same},
    probe::{Probe, fresh, given, named, view},
};
use crate::{
    error::Error,
    message::Message,
    store::{Commit, NewMessage, Placed},
};

fn numbered(range: std::ops::Range<u64>) -> Vec<NewMessage> {
    range.map(|n| named(&format!("id-{n}"), &n.to_string())).collect()
}

pub(super) async fn the_same_message_again_is_a_duplicate(s: Probe) -> Done {
    s.append(&[fresh("x"), named("a", "one")]).await?;
    let again = [named("a", "one"), named("b", "two"), named("a", "one")];
    let expected = [Placed::new(1, true), Placed::new(2, false), Placed::new(1, true)];
    same("the answer says where it stands", s.append(&again).await?.placed, expected)?;
    s.sends("it is there once", &[(0, "x"), (1, "one"), (2, "two")]).await
}

pub(super) async fn a_duplicate_within_one_call(s: Probe) -> Done {
    let batch = [named("a", "one"), named("a", "one"), fresh("x")];
    let expected = [Placed::new(0, false), Placed::new(0, true), Placed::new(1, false)];
    same("the second one is the first", s.append(&batch).await?.placed, expected)?;
    s.sends("it is there once", &[(0, "one"), (1, "x")]).await
}

pub(super) async fn the_same_id_with_other_content_stores_nothing(s: Probe) -> Done {
    s.append(&[named("a", "one")]).await?;
    for batch in [
        vec![named("b", "two"), named("a", "other")],
        vec![named("c", "three"), named("c", "four")],
    ] {
        let result = s.store.append(&s.key, &batch).await;
        refused("an id names one content", result, Error::is_duplicate_id)?;
    }
    s.sends("nothing of a refused call is stored", &[(0, "one")]).await?;
    let receipt = s.append(&[named("b", "another two")]).await?;
    same("its other ids are free", receipt.placed, [Placed::new(1, false)])
}

pub(super) async fn another_role_is_other_content(s: Probe) -> Done {
    s.append(&[given(Message::user("hello").with_id("a"))]).await?;
    for other in [
        Message::assistant("hello").with_id("a"),
        Message::user("hello").pinned().with_id("a"),
        Message::user("hello").with_name("ann").with_id("a"),
    ] {
        let result = s.store.append(&s.key, &[given(other)]).await;
        refused("role, name and flags are content", result, Error::is_duplicate_id)?;
    }
    Ok(())
}

pub(super) async fn a_retry_after_a_lost_answer_adds_nothing(s: Probe) -> Done {
    let batch = numbered(0..3);
    let first = s.append(&batch).await?;
    for _ in 0..3 {
        let again = s.append(&batch).await?;
        let expected: Vec<_> = (0..3).map(|at| Placed::new(at, true)).collect();
        same("a retry names the same places", again.placed, expected)?;
        same("a retry names the same revision", again.revision, first.revision)?;
    }
    same("a retry takes no positions", s.load().await?.next, 3)
}

pub(super) async fn a_longer_retry_adds_the_rest(s: Probe) -> Done {
    s.append(&numbered(0..2)).await?;
    let placed = s.append(&numbered(0..4)).await?.placed;
    let expected = [(0, true), (1, true), (2, false), (3, false)];
    let expected = expected.map(|(at, duplicate)| Placed::new(at, duplicate));
    same("what is new is added", placed, expected)?;
    s.sends("each is there once", &[(0, "0"), (1, "1"), (2, "2"), (3, "3")]).await
}

pub(super) async fn a_fresh_id_is_recognized_later(s: Probe) -> Done {
    let mut message = fresh("one");
    s.append(&[message.clone()]).await?;
    message.fresh_id = false;
    let placed = s.append(&[message]).await?.placed;
    same("a retry of a message with a made id adds nothing", placed, [Placed::new(0, true)])
}

pub(super) async fn ids_are_recognized_below_the_cut(s: Probe) -> Done {
    let batch = numbered(0..20);
    let revision = s.append(&batch).await?.revision;
    s.commit(Commit::on(revision).with_view(view(18))).await?;
    let again = s.append(&batch).await?.placed;
    let expected: Vec<_> = (0..20).map(|at| Placed::new(at, true)).collect();
    same("the last 1,024 are known, also below the cut", again, expected)?;
    let result = s.store.append(&s.key, &[named("id-3", "other")]).await;
    refused("and so is their content", result, Error::is_duplicate_id)?;
    s.sends("they do not come back", &[(18, "18"), (19, "19")]).await
}

pub(super) async fn ids_are_recognized_among_the_last_1024(s: Probe) -> Done {
    let revision = s.append(&numbered(0..1_100)).await?.revision;
    s.commit(Commit::on(revision).with_view(view(1_098))).await?;
    let placed = s.append(&numbered(76..79)).await?.placed;
    let expected: Vec<_> = (76..79).map(|at| Placed::new(at, true)).collect();
    same("the last 1,024 are known", placed, expected)?;
    same("none was added", s.load().await?.next, 1_100)
}

pub(super) async fn ids_are_recognized_throughout_the_window(s: Probe) -> Done {
    s.append(&numbered(0..1_100)).await?;
    let placed = s.append(&numbered(0..2)).await?.placed;
    let expected = [Placed::new(0, true), Placed::new(1, true)];
    same("all of the window is known, however long it is", placed, expected)
}

pub(super) async fn ids_belong_to_their_session(s: Probe) -> Done {
    s.append(&[named("a", "one")]).await?;
    let placed = s.at("other")?.append(&[named("a", "another one")]).await?.placed;
    same("another session may use the same id", placed, [Placed::new(0, false)])
}

pub(super) async fn odd_ids_are_recognized(s: Probe) -> Done {
    let long = "i".repeat(300);
    let ids = ["A", "a", "\u{e9}", "e\u{301}", "\0", "'; --", "a\"b\\", " ", "a ", "%", "_", &long];
    let batch: Vec<_> = ids.iter().map(|id| named(id, "text")).collect();
    let placed = s.append(&batch).await?.placed;
    let expected: Vec<_> = (0..).take(ids.len()).map(|at| Placed::new(at, false)).collect();
    same("ids are compared byte for byte", placed, expected)?;
    let placed = s.append(&batch).await?.placed;
    let expected: Vec<_> = (0..).take(ids.len()).map(|at| Placed::new(at, true)).collect();
    same("each is known again", placed, expected)?;
    let window = s.load().await?.window;
    let read: Vec<_> =
        window.iter().map(|kept| kept.message.id().map(ToString::to_string)).collect();
    let expected: Vec<_> = ids.iter().map(|id| Some((*id).to_owned())).collect();
    same("each comes back as it was given", read, expected)
}
