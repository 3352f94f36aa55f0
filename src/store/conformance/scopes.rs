//! Scopes: whole segments of a key.

use super::{
    broken::{Done, holds, same},
    probe::Probe,
};
use crate::{session::SessionKey, store::ListPage};

/// Lists the sessions of a scope.
async fn within(s: &Probe, scope: &str) -> Result<Vec<String>, super::Stop> {
    s.list(ListPage::default().within(SessionKey::new(scope)?)).await
}

pub(super) async fn scopes_are_whole_segments(s: Probe) -> Done {
    s.create(&[
        "tenant:7",
        "tenant:7:a",
        "tenant:7/b",
        "tenant:7:a:b",
        "tenant:70",
        "tenant:70:a",
        "tenant:7-x",
        "tenant:7.x",
        "tenant:7 ",
        "tenant:",
        "tenant",
        "tenant:6:a",
        "a:tenant:7:a",
    ])
    .await?;
    let seven = ["tenant:7", "tenant:7/b", "tenant:7:a", "tenant:7:a:b"];
    same("tenant 7 does not list tenant 70", within(&s, "tenant:7").await?, seven)?;
    let seventy = ["tenant:70", "tenant:70:a"];
    same("nor the other way round", within(&s, "tenant:70").await?, seventy)?;
    same("a scope within", within(&s, "tenant:7:a").await?, ["tenant:7:a", "tenant:7:a:b"])?;
    same("a scope that is no session", within(&s, "a").await?, ["a:tenant:7:a"])?;
    // What follows the scope begins with a separator, also where it ends in one.
    same("a separator is a part of a scope", within(&s, "tenant:").await?, ["tenant:"])
}

/// `/` is 0x2f and `:` is 0x3a: both neighbours of each are left out.
pub(super) async fn scopes_end_at_their_bytes(s: Probe) -> Done {
    s.create(&[
        "t",
        "t.",
        "t.x",
        "t/",
        "t/\0",
        "t/\u{10ffff}",
        "t0",
        "t0:",
        "t9",
        "t9/x",
        "t:",
        "t:\0",
        "t::",
        "t:/",
        "t:\u{10ffff}",
        "t;",
        "t;x",
        "t\0",
        "t\u{10ffff}",
        "s",
        "s:t",
        "u",
        "u:t",
    ])
    .await?;
    let expected = ["t", "t/", "t/\0", "t/\u{10ffff}", "t:", "t:\0", "t:/", "t::", "t:\u{10ffff}"];
    same("just what goes on with : or /", within(&s, "t").await?, expected)
}

pub(super) async fn scopes_are_paged(s: Probe) -> Done {
    s.create(&["t", "t.", "t/a", "t/b", "t0", "t5:x", "t:a", "t:b", "t;", "u"]).await?;
    let expected = ["t", "t/a", "t/b", "t:a", "t:b"];
    for limit in [1, 2, 3, 5] {
        let mut paged = Vec::new();
        let mut page = ListPage::first(limit).within(SessionKey::new("t")?);
        loop {
            let some = s.store.list(page.clone()).await?;
            holds("a page is no longer than was asked for", some.len() <= limit, &some)?;
            let Some(last) = some.last().cloned() else { break };
            page = page.after(last);
            paged.extend(some.iter().map(ToString::to_string));
        }
        same("pages of a scope have all of it, in order", paged, expected)?;
    }
    let page = ListPage::first(9).within(SessionKey::new("t")?);
    let before = page.clone().after(SessionKey::new("a")?);
    same("a page that begins before the scope", s.list(before).await?, expected)?;
    let behind = page.after(SessionKey::new("z")?);
    same("a page that begins behind the scope", s.list(behind).await?, Vec::<String>::new())
}

pub(super) async fn scopes_know_no_wildcards(s: Probe) -> Done {
    s.create(&["a_b:1", "axb:1", "a%b:1", "a123b:1", "a*b:1", "a\\b:1", "a[b]:1", "ab:1"]).await?;
    for scope in ["a_b", "a%b", "a*b", "a\\b", "a[b]"] {
        let expected = [format!("{scope}:1")];
        same("a scope is taken as it stands", within(&s, scope).await?, expected)?;
    }
    same("a scope is no pattern", within(&s, "a?b").await?, Vec::<String>::new())
}

pub(super) async fn scopes_are_compared_byte_for_byte(s: Probe) -> Done {
    s.create(&["T:1", "t:1", "\u{e9}:1", "e\u{301}:1", "t\0:1"]).await?;
    for scope in ["T", "t", "\u{e9}", "e\u{301}", "t\0"] {
        let expected = [format!("{scope}:1")];
        same("a scope has its own bytes", within(&s, scope).await?, expected)?;
    }
    Ok(())
}

pub(super) async fn an_empty_scope_has_no_sessions(s: Probe) -> Done {
    s.create(&["tenant:7:a"]).await?;
    for scope in ["tenant:8", "ten", "tenant:7:a:b", "enant"] {
        same("no session is in it", within(&s, scope).await?, Vec::<String>::new())?;
    }
    Ok(())
}
