//! What the model was asked.

use serde_json::Value;

use super::{Check, Held, ensure, failed, regex};
use crate::cases_support::{
    Stop, assertion::Texts, crate_api, model::Asked, record::Added, server::strings,
};

impl Check<'_> {
    pub(super) fn each_request(&self, check: impl Fn(&Value) -> Held) -> Held {
        self.requests()?.iter().try_for_each(check)
    }

    pub(super) fn requests(&self) -> Result<Vec<Value>, Stop> {
        ensure(!self.asked.is_empty(), || "the model was not asked".into())?;
        let bodies = self.asked.iter().map(|asked| match asked {
            Asked::Http(body) => Ok(body.clone()),
            Asked::Stub(request) => Ok(crate_api::request_body(request)),
        });
        bodies.collect()
    }

    /// A request for a part holds that part: one that holds the text is enough.
    pub(super) fn request_contains(&self, texts: &Texts) -> Held {
        let requests: Vec<_> =
            self.requests()?.iter().map(|body| strings(body).join("\n")).collect();
        texts.0.iter().try_for_each(|text| {
            let held = requests.iter().any(|request| request.contains(text));
            ensure(held, || format!("no request holds {text:?}"))
        })
    }

    pub(super) fn request_matches(&self, texts: &Texts) -> Held {
        self.each_request(|body| {
            let request = strings(body).join("\n");
            texts.0.iter().try_for_each(|pattern| {
                let matched = regex(pattern)?.is_match(&request);
                ensure(matched, || format!("a request does not match {pattern:?}"))
            })
        })
    }

    /// The transcript stands between a tag and its closing form, which occurs
    /// once.
    pub(super) fn request_fenced(&self) -> Held {
        let tag = regex(r"<([a-z]+-[0-9a-f]+)>")?;
        self.each_request(|body| {
            let texts = strings(body);
            let fenced = texts.iter().find_map(|text| Some((text, tag.captures(text)?)));
            let Some((text, found)) = fenced else { return failed("there is no fence".into()) };
            let (open, close) = (format!("<{}>", &found[1]), format!("</{}>", &found[1]));
            ensure(text.matches(&close).count() == 1, || format!("{close} can be forged"))?;
            let inside = text.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
            let inside = inside.map_or("", |(inside, _)| inside);
            let outside = text.replacen(inside, "", 1);
            let own = |added: &&Added| {
                let json: Value = serde_json::from_str(&added.source).unwrap_or_default();
                let content = json["content"].as_str().unwrap_or_default();
                content.chars().count() > 20 && outside.contains(content)
            };
            let escaped = self.record.added.iter().find(own);
            escaped
                .map_or(Ok(()), |added| failed(format!("outside of the fence: {}", added.source)))
        })
    }
}
