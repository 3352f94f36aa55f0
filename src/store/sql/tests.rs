use std::{collections::HashMap, sync::Arc};

use super::{place::fingerprint, *};
use crate::{
    message::Message,
    session::{SessionKey, Size, View},
    store::{ListPage, NewMessage, Placed},
};

fn key(text: &str) -> SessionKey {
    SessionKey::new(text).unwrap()
}

fn view(cut: u64, carried: &[u64], rewound: &[std::ops::Range<u64>]) -> View {
    View { cut, carried: carried.to_vec(), rewound: rewound.to_vec(), ..View::default() }
}

#[test]
fn a_page_is_the_keys_in_its_ranges() {
    let keys = ["a", "t", "t!", "t/", "t/a", "t0", "t9", "t:", "t:a", "t:a:b", "t;", "ta", "u"];
    let keys = keys.map(key);
    let pages = [
        ListPage::default(),
        ListPage::default().after(key("t:")),
        ListPage::default().within(key("t")),
        ListPage::default().within(key("t")).after(key("t")),
        ListPage::default().within(key("t")).after(key("t/a")),
        ListPage::default().within(key("t")).after(key("t5")),
        ListPage::default().within(key("t")).after(key("u")),
        ListPage::default().within(key("t:a")).after(key("a")),
    ];
    for page in pages {
        let mut found = Vec::new();
        for KeyRange { from, to } in ranges(&page) {
            let within = keys.iter().filter(|key| {
                *key.as_bytes() >= *from && to.as_ref().is_none_or(|to| *key.as_bytes() < **to)
            });
            found.extend(within.cloned());
        }
        let expected: Vec<_> = keys.iter().filter(|key| page.has(key)).cloned().collect();
        assert_eq!(found, expected, "{page:?}");
    }
}

#[test]
fn each_position_is_sent_or_hidden_as_the_view_says() {
    let views = [
        view(0, &[], &[]),
        view(5, &[0, 1, 3], &[]),
        view(5, &[4], &[5..7, 9..10]),
        view(5, &[], &[1..3, 4..8]),
        view(0, &[], &[0..2, 3..4]),
    ];
    for view in views {
        let (carried, window) = sent(&view);
        let hidden = hidden(&view);
        for position in 0..12_u64 {
            let within = |ranges: &[std::ops::Range<i64>]| {
                ranges.iter().filter(|range| range.contains(&bound(position))).count()
            };
            let below = view.shows(position) && position < view.cut;
            let above = view.shows(position) && position >= view.cut;
            assert_eq!(within(&carried), usize::from(below), "{position} of {view:?}");
            assert_eq!(within(&window), usize::from(above), "{position} of {view:?}");
            assert_eq!(
                within(&hidden),
                usize::from(!view.shows(position)),
                "{position} of {view:?}"
            );
        }
    }
}

#[test]
fn what_is_owed_to_a_summary_is_not_hidden() {
    let mut view = view(10, &[6], &[]);
    (view.dropped.messages, view.dropped.since) = (3, 4);
    view.rewound = vec![11..12, 13..14];
    assert_eq!(hidden(&view), [0..4, 11..12, 13..14]);
}

#[test]
fn numbers_that_no_column_holds_are_errors() {
    assert_eq!(signed("cut", 7).unwrap(), 7);
    let error = signed("cut", u64::MAX).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cut is 18446744073709551615, and a column holds at most 9223372036854775807"
    );
    assert!(unsigned("next", -1).is_err());
    assert_eq!(bound(u64::MAX), i64::MAX);
    assert!(first_free(&view(u64::MAX, &[], &[])).is_err());
}

#[test]
fn ids_are_known_by_their_content() {
    let named = |id: &str, text: &str| {
        let message = Message::user(text).with_id(id);
        NewMessage::new(Arc::new(message), Size::default(), false)
    };
    let messages = [named("a", "one"), named("b", "two"), named("b", "two")];
    let print = fingerprint(&messages[0].message);
    let known = HashMap::from([(b"a".to_vec(), Known { position: 3, fingerprint: print })]);
    let (placed, added) = place(&key("s"), 7, &messages, &known).unwrap();
    assert_eq!(placed, [Placed::new(3, true), Placed::new(7, false), Placed::new(7, true)]);
    assert_eq!(
        added.iter().map(|new| (new.position, new.id.as_deref())).collect::<Vec<_>>(),
        [(7, Some(&b"b"[..]))]
    );
    let other = place(&key("s"), 7, &[named("a", "other")], &known).unwrap_err();
    assert!(other.at("SQL", "x").is_duplicate_id());
    assert_eq!(asked(&messages).count(), 3);
}

#[test]
fn fingerprints_are_those_of_every_version() {
    // Stored ones are compared with those that a later version makes.
    assert_eq!(fingerprint(&Message::user("one")), 752_581_786_839_632_995);
    let spelled: Message = serde_json::from_str(r#"{ "content": "one", "role": "user" }"#).unwrap();
    assert_eq!(fingerprint(&spelled), fingerprint(&Message::user("one").with_id("x")));
    assert_ne!(fingerprint(&spelled), fingerprint(&Message::user("one").pinned()));
    assert_ne!(fingerprint(&spelled), fingerprint(&Message::assistant("one")));
}

#[test]
fn prefixes_need_no_quotes() {
    for allowed in ["", "agent_", "_a1", &"x".repeat(32)] {
        assert_eq!(Prefix::new(allowed).unwrap().to_string(), allowed);
    }
    for refused in ["1a", "a-b", "a b", "A", "é", "a\"", "sqlite_x", "pg_x", &"x".repeat(33)] {
        let error = Prefix::new(refused).unwrap_err();
        assert!(error.is_config(), "{error}");
    }
}
