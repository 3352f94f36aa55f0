//! Keys and lists of them.

use super::{
    broken::{Done, holds, same},
    probe::Probe,
};
use crate::{
    session::SessionKey,
    store::{ListPage, Removed},
};

const ODD: &[&str] = &[
    "a:b",
    "a_b",
    "a/b",
    "a\\b",
    "A:B",
    "a%3Ab",
    "a%3ab",
    "\u{e9}",
    "e\u{301}",
    "CON",
    "con",
    "nul.txt",
    "x.",
    "x",
    "x ",
    " x",
    " ",
    "..",
    ".",
    "../../x",
    "/etc/passwd",
    "C:\\x",
    "\u{202e}a",
    "\0",
    "a\0",
    "a\0b",
    "\n",
    "~",
    "*",
    "{s}",
    "'",
    "\"",
    "%",
    "_",
    "\u{10ffff}",
    ".lock",
    "null",
    "0",
    "-",
];

pub(super) async fn odd_keys_are_kept_apart(s: Probe) -> Done {
    s.create(ODD).await?;
    for key in ODD {
        s.at(key)?.sends("a key names its own session", &[(0, key)]).await?;
    }
    Ok(())
}

pub(super) async fn odd_keys_are_listed_as_given(s: Probe) -> Done {
    let sorted = s.create(ODD).await?;
    same("all are listed, as given", s.list(ListPage::default()).await?, sorted)
}

pub(super) async fn the_longest_keys_are_kept_apart(s: Probe) -> Done {
    let (k, e) = ("k".repeat(1_023), "é".repeat(512));
    let (j, capital, short) = (format!("{k}j"), format!("{k}K"), "k".repeat(300));
    let keys = [k.as_str(), &j, &capital, &e, &short];
    let sorted = s.create(&keys).await?;
    for key in keys {
        s.at(key)?.sends("a key names its own session", &[(0, key)]).await?;
    }
    same("keys of 1,024 bytes are listed", s.list(ListPage::default()).await?, sorted)
}

pub(super) async fn removing_a_key_leaves_its_likes(s: Probe) -> Done {
    let likes = ["a:b", "a_b", "a/b", "A:B", "\u{e9}", "e\u{301}", "x", "x.", "x ", "\0", "a\0"];
    let mut left = s.create(&likes).await?;
    for key in likes {
        let removed = s.store.remove(&SessionKey::new(key)?).await?;
        same("the session is removed", removed, Removed::existing(1))?;
        left.retain(|other| other != key);
        same("and no other one", s.list(ListPage::default()).await?, left.clone())?;
    }
    Ok(())
}

pub(super) async fn sessions_are_listed_in_byte_order(s: Probe) -> Done {
    let keys =
        ["b", "a", "B", "a:1", "a:10", "a/1", "ä", "zz", "0", "a\0", "\u{ffff}", "\u{10000}"];
    let sorted = s.create(&keys).await?;
    same("keys come in the order of their bytes", s.list(ListPage::default()).await?, sorted)
}

pub(super) async fn pages_follow_each_other(s: Probe) -> Done {
    let keys: Vec<_> = (0..23).map(|n| format!("{n:x}:é{}", n % 3)).collect();
    let sorted = s.create(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    for limit in [1, 2, 7, 23, 24] {
        let mut paged = Vec::new();
        let mut page = ListPage::first(limit);
        loop {
            let some = s.store.list(page).await?;
            holds("a page is no longer than was asked for", some.len() <= limit, &some)?;
            let Some(last) = some.last().cloned() else { break };
            page = ListPage::first(limit).after(last);
            paged.extend(some.iter().map(ToString::to_string));
        }
        same("pages have each session once, in order", paged, sorted.clone())?;
    }
    same("a page of none", s.list(ListPage::first(0)).await?, Vec::<String>::new())
}

pub(super) async fn a_page_may_begin_anywhere(s: Probe) -> Done {
    s.create(&["a", "c"]).await?;
    for (after, expected) in [("A", "a"), ("a", "c"), ("b", "c"), ("a\0", "c"), ("bé", "c")] {
        let page = ListPage::first(1).after(SessionKey::new(after)?);
        same(format!("the first after {after:?}"), s.list(page).await?, [expected])?;
    }
    let page = ListPage::first(1).after(SessionKey::new("c")?);
    same("none after the last", s.list(page).await?, Vec::<String>::new())
}
