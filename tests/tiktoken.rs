//! The exact counter against the peer that it has to equal.

#![cfg(feature = "tiktoken")]

#[path = "common/kinds.rs"]
#[expect(
    clippy::cast_possible_truncation,
    clippy::format_push_string,
    clippy::indexing_slicing,
    reason = "makes texts, and is no part of the crate"
)]
mod kinds;

use std::{sync::Arc, thread};

use kinds::{Random, kinds};
use proptest::prelude::*;
use session_compaction::{Message, SessionManager, Tiktoken, TokenCounter};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

fn pairs() -> [(Tiktoken, &'static CoreBPE); 2] {
    [(Tiktoken::cl100k(), cl100k_base_singleton()), (Tiktoken::o200k(), o200k_base_singleton())]
}

#[test]
fn counts_equal_tiktoken_on_every_kind_of_text() {
    for (kind, texts) in kinds() {
        assert!(texts.len() > 1, "{kind}");
        for text in texts {
            for (counter, peer) in pairs() {
                let expected = peer.encode_ordinary(&text).len() as u64;
                assert_eq!(counter.text(&text).count(), expected, "{kind} {counter:?}: {text:?}");
            }
        }
    }
}

#[test]
fn counts_equal_tiktoken_where_kinds_meet() {
    // Texts cut and joined at random: what a pretokenizer sees at a seam.
    let texts: Vec<char> = kinds()
        .into_iter()
        .flat_map(|(_, texts)| texts)
        .flat_map(|text| text.chars().collect::<Vec<_>>())
        .collect();
    let mut random = Random(11);
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..random.below(40) {
            let from = usize::try_from(random.below(texts.len() as u64)).unwrap_or(0);
            let len = usize::try_from(random.below(9)).unwrap_or(0);
            text.extend(texts.iter().skip(from).take(len));
        }
        for (counter, peer) in pairs() {
            let expected = peer.encode_ordinary(&text).len() as u64;
            assert_eq!(counter.text(&text).count(), expected, "{counter:?}: {text:?}");
        }
    }
}

proptest! {
    #[test]
    fn counts_equal_tiktoken_on_any_text(text in "\\PC{0,40}|[ \\t\\r\\n\\x{a0}a'sS1]{0,30}|.{0,20}") {
        for (counter, peer) in pairs() {
            prop_assert_eq!(counter.text(&text).count(), peer.encode_ordinary(&text).len() as u64);
        }
    }
}

#[test]
fn models_get_their_own_vocabulary() {
    for name in ["gpt-5-mini", "openai/gpt-4o", "gpt-4.1-nano", "o3", "gpt-oss-20b"] {
        assert_eq!(Tiktoken::for_model(name), Some(Tiktoken::o200k()), "{name}");
    }
    for name in ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "gpt-35-turbo"] {
        assert_eq!(Tiktoken::for_model(name), Some(Tiktoken::cl100k()), "{name}");
    }
    for name in ["claude-opus-4", "llama3:8b", ""] {
        assert_eq!(Tiktoken::for_model(name), None, "{name}");
    }
}

#[test]
fn a_vocabulary_is_shared_by_threads() {
    let counter: Arc<dyn TokenCounter> = Arc::new(Tiktoken::o200k());
    let counts: Vec<_> = (0..4)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || counter.text("Is the disk full?").count())
        })
        .collect();
    for count in counts {
        assert_eq!(count.join().ok(), Some(5));
    }
}

#[tokio::test]
async fn sessions_count_by_it() {
    let counter = Tiktoken::for_model("gpt-5").unwrap();
    let sessions = SessionManager::builder().token_counter(counter).build().unwrap();
    let message = Message::user("昨天下午我们在会议室讨论了新的产品计划。");
    let expected = counter.message(&message).count();
    sessions.add_message("chat", message).await.unwrap();
    assert_eq!(sessions.session_stats("chat").await.unwrap().tokens, expected);
}
