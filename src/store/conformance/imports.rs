//! Imports: a session in one step.

use std::sync::Arc;

use super::{
    broken::{Done, Stop, holds, refused, same},
    probe::{HOUR, Probe, at, given, positions, summarized, texts, view},
};
use crate::{
    error::Error,
    message::Message,
    plan::Limits,
    session::{Pause, PauseUntil, Revision, SessionOptions, View},
    store::{ListPage, Placed, Receipt, SessionExport, StoredCompaction, StoredMessage, UsagePage},
    usage::{Counter, UsageEvent},
};

/// A session of four messages at times of their own, of which one is carried.
fn exported() -> SessionExport {
    let messages = ["a", "b", "c", "d"].map(|text| Message::user(text).with_id(text));
    let mut export = SessionExport::of_messages(messages).with_summary("b happened", 2);
    export.state.view.carried.push(0);
    for (kept, time) in export.messages.iter_mut().zip(1..) {
        kept.unix_millis = 1_000_000_000_000 + time;
    }
    export
}

async fn import(s: &Probe, export: &SessionExport) -> Result<Receipt, Stop> {
    Ok(s.archive()?.import(&s.key, export).await?)
}

pub(super) async fn an_import_keeps_positions_times_and_view(s: Probe) -> Done {
    let export = exported();
    let receipt = import(&s, &export).await?;
    let expected: Vec<_> = (0..4).map(|at| Placed::new(at, false)).collect();
    same("it says where messages stand", receipt.placed, expected)?;
    let session = s.load().await?;
    same("the view is the export's", &session.state.view, &export.state.view)?;
    same("the next position too", session.next, 4)?;
    same("carried and window", texts(&session), at(&[(0, "a"), (2, "c"), (3, "d")]))?;
    let transcript = s.archive()?.transcript(&s.key, 0..u64::MAX).await?;
    same("all messages, at their times", transcript, export.messages)?;
    same("it is listed", s.list(ListPage::default()).await?, ["s"])
}

pub(super) async fn an_import_is_a_new_incarnation(s: Probe) -> Done {
    let export = exported();
    let old = export.state.revision;
    let first = import(&s, &export).await?.revision;
    let second = import(&s.at("other")?, &export).await?.revision;
    same("the state has the revision", s.load().await?.state.revision, first)?;
    let incarnations: Vec<_> = [old, first, second].map(Revision::incarnation).to_vec();
    let [a, b, c] = [old, first, second].map(Revision::incarnation);
    holds("each is another one", a != b && b != c && a != c, &incarnations)
}

pub(super) async fn an_import_refuses_an_existing_session(s: Probe) -> Done {
    s.add(&["mine"]).await?;
    let before = s.load().await?.state;
    let result = s.archive()?.import(&s.key, &exported()).await;
    refused("a session that is there is not overwritten", result, Error::is_exists)?;
    same("it is as it was", s.load().await?.state, before)?;
    s.sends("with its messages", &[(0, "mine")]).await?;
    s.store.remove(&s.key).await?;
    import(&s, &exported()).await?;
    let result = s.archive()?.import(&s.key, &exported()).await;
    refused("nor is an imported one", result, Error::is_exists)
}

pub(super) async fn an_import_that_cannot_be_is_refused(s: Probe) -> Done {
    let mut twice = exported();
    twice.messages.extend(exported().messages);
    let mut newer = exported();
    newer.version = SessionExport::VERSION.saturating_add(1);
    for export in [twice, newer] {
        let result = s.archive()?.import(&s.key, &export).await;
        refused("positions rise, and versions are known", result, Error::is_message)?;
        same("a refused import creates nothing", s.is_there().await?, false)?;
    }
    Ok(())
}

pub(super) async fn an_import_keeps_gaps(s: Probe) -> Done {
    let message = |position, text: &str| {
        StoredMessage::new(position, Arc::new(Message::user(text).with_id(text)))
    };
    let mut export = exported();
    export.messages = vec![message(3, "a"), message(7, "b"), message(8, "c")];
    export.next = 12;
    export.state.view = view(7);
    import(&s, &export).await?;
    s.sends("positions are those of the export", &[(7, "b"), (8, "c")]).await?;
    same("the next one too", s.add(&["d"]).await?.placed, [Placed::new(12, false)])?;
    let transcript = s.archive()?.transcript(&s.key, 0..u64::MAX).await?;
    same("what is missing leaves a gap", positions(&transcript), [3, 7, 8, 12])
}

pub(super) async fn an_import_names_messages(s: Probe) -> Done {
    let export = SessionExport::of_messages([Message::user("x"), Message::user("x")]);
    import(&s, &export).await?;
    let window = s.load().await?.window;
    let ids: Vec<_> = window.iter().map(|kept| kept.message.id()).collect();
    let named = ids.iter().all(Option::is_some) && ids.first() != ids.last();
    holds("each message has an id of its own", named, &ids)?;
    s.sends("and its text", &[(0, "x"), (1, "x")]).await
}

pub(super) async fn an_import_keeps_options_and_pause(s: Probe) -> Done {
    let mut export = exported();
    export.state.options = SessionOptions::new().model("gpt-5").label("tenant", "7");
    export.state.pause = Some(Pause::new(PauseUntil::Tokens(9), "no gain"));
    import(&s, &export).await?;
    let state = s.load().await?.state;
    same("the options are the export's", state.options, export.state.options)?;
    same("the pause too", state.pause, export.state.pause)
}

fn event(messages: u64) -> UsageEvent {
    UsageEvent { messages_removed: messages, ..UsageEvent::default() }
}

pub(super) async fn an_import_keeps_compactions(s: Probe) -> Done {
    let mut export = exported();
    let (revision, after) = (export.state.revision, export.state.view.clone());
    let first = StoredCompaction::new(1, revision, view(0), view(1), event(1));
    let second = StoredCompaction::new(2, revision, view(1), after.clone(), event(1));
    export.compactions = vec![first.clone(), second.clone()];
    export.usage = vec![event(1), event(1)];
    import(&s, &export).await?;
    let archive = s.archive()?;
    let expected = [second.clone(), first.clone()];
    same("they are listed", archive.compactions(&s.key, None, 9).await?, expected)?;
    let now = s.compact(3, event(1)).await?;
    let third = StoredCompaction::new(3, now, after, summarized(3), event(1));
    let expected = [third, second, first];
    same("numbers go on", archive.compactions(&s.key, None, 9).await?, expected)
}

pub(super) async fn an_import_adds_its_usage(s: Probe) -> Done {
    s.archive()?;
    let log = s.usage()?;
    let mut export = exported();
    export.usage = vec![event(2), event(5)];
    import(&s, &export).await?;
    for key in [Some(&s.key), None] {
        let removed = log.totals(key).await?.of(Counter::MessagesRemoved);
        same("its events are summed", removed, 7)?;
    }
    let events = log.events(UsagePage::newest(9).of(s.key.clone())).await?;
    let events: Vec<_> = events.into_iter().map(|record| record.event).collect();
    same("and listed, the last one first", events, [event(5), event(2)])
}

pub(super) async fn an_import_of_nothing_is_a_session(s: Probe) -> Done {
    import(&s, &SessionExport::of_messages([])).await?;
    same("it is there", s.is_there().await?, true)?;
    same("its first position is 0", s.add(&["a"]).await?.placed, [Placed::new(0, false)])
}

pub(super) async fn imported_ids_are_recognized(s: Probe) -> Done {
    import(&s, &exported()).await?;
    let again = ["a", "d", "e"].map(|text| given(Message::user(text).with_id(text)));
    let expected = [Placed::new(0, true), Placed::new(3, true), Placed::new(4, false)];
    same("their messages are known", s.append(&again).await?.placed, expected)?;
    let other = [given(Message::user("other").with_id("b"))];
    let result = s.store.append(&s.key, &other).await;
    refused("and so is their content", result, Error::is_duplicate_id)
}

pub(super) async fn imported_sessions_go_on(s: Probe) -> Done {
    import(&s, &exported()).await?;
    s.add(&["e"]).await?;
    s.compact(4, event(1)).await?;
    s.sends("it is a session like any other", &[(4, "e")]).await?;
    let removed = s.store.remove(&s.key).await?;
    same("and can be removed", (removed.existed, removed.messages), (true, 5))
}

pub(super) async fn imported_sessions_are_due_once_appended_to(s: Probe) -> Done {
    s.archive()?;
    let leases = s.leases()?;
    let mut export = exported();
    export.state.view = View::default();
    import(&s, &export).await?;
    let limits = Limits { messages: Some(2), ..Limits::default() };
    let due = leases.claim_due("w", HOUR, &limits, 9).await?;
    same("an import makes nothing due", due.len(), 0)?;
    s.append(&export.messages.iter().map(|it| given((*it.message).clone())).collect::<Vec<_>>())
        .await?;
    let due = leases.claim_due("w", HOUR, &limits, 9).await?;
    same("nor does a message that it has already", due.len(), 0)?;
    s.add(&["e"]).await?;
    let due = leases.claim_due("w", HOUR, &limits, 9).await?;
    let due: Vec<_> = due.iter().map(|(key, _)| key.as_str()).collect();
    same("what was imported counts once something is appended", due, ["s"])
}
