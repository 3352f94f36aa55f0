use std::sync::LazyLock;

use super::{Rules, cut, is_blank, read, refusal::is_refusal};
use crate::{
    provider::{ChatResponse, FinishReason},
    summarize::SummarizeError,
    tokens::{ByteEstimate, TokenCounter, Tokens},
};

fn rules(headings: &[String]) -> Rules<'_> {
    static COUNTER: LazyLock<ByteEstimate> = LazyLock::new(ByteEstimate::default);
    Rules { max_tokens: 60, headings, refusals: &[], counter: &*COUNTER }
}

fn answer(text: &str) -> Result<String, SummarizeError> {
    read(&ChatResponse::new(text), rules(&[]))
}

fn ended(text: &str, finish_reason: FinishReason) -> Result<String, SummarizeError> {
    read(&ChatResponse { finish_reason, ..ChatResponse::new(text) }, rules(&[]))
}

#[test]
fn what_cannot_be_seen_is_blank() {
    for blank in ["", " \n\t ", "\u{200B}\u{FEFF}", "\u{2060}\u{00AD}", "\u{3164}", "\0\u{1b}"] {
        assert!(is_blank(blank), "{blank:?}");
        assert!(answer(blank).unwrap_err().is_empty_summary());
    }
    for seen in ["a", " . ", "\u{200B}汉", "🎉"] {
        assert!(!is_blank(seen), "{seen:?}");
    }
}

#[test]
fn refusals_are_told_by_their_opening() {
    for refusal in [
        "I'm sorry, but I can't summarize this conversation because of its content.",
        "I’m sorry, but I can’t help with that.",
        "  **I cannot assist** with this request.",
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "Lo siento, pero no puedo ayudar con eso.",
        "抱歉，我无法总结这段对话。",
        "申し訳ありませんが、要約できません。",
        "К сожалению, я не могу помочь.",
    ] {
        assert!(is_refusal(refusal, &[]), "{refusal}");
        assert!(answer(refusal).unwrap_err().is_refused());
    }
    for summary in [
        "The assistant said: I'm sorry, but I can't open the file. The user sent another one.",
        "Sorry messages were collected from the log.",
        "I cannot reproduce the crash on Linux, the user wrote.",
        "Unfortunately the build failed twice.",
        "用户道歉：很抱歉，迟到了。",
    ] {
        assert!(!is_refusal(summary, &[]), "{summary}");
        assert_eq!(answer(summary).unwrap(), summary);
    }
    assert!(is_refusal("NO CAN DO: policy 7", &["no can do".into()]));
    assert!(!is_refusal("All is well.", &[String::new()]));
}

#[test]
fn the_providers_word_counts() {
    let refused = ChatResponse {
        refusal: Some("cannot comply".into()),
        ..ChatResponse::new("The user asked for edits.")
    };
    assert!(read(&refused, rules(&[])).unwrap_err().is_refused());
    let text = "The user asked for edits.";
    assert!(ended(text, FinishReason::ContentFilter).unwrap_err().is_refused());
    assert!(ended(text, FinishReason::ToolCalls).unwrap_err().is_unusable());
    assert!(ended(text, FinishReason::Other("recitation".into())).unwrap_err().is_unusable());
    let called = ChatResponse { tool_calls: 1, ..ChatResponse::new(text) };
    assert!(read(&called, rules(&[])).unwrap_err().is_unusable());
}

#[test]
fn an_answer_that_was_cut_off_ends_at_a_sentence() {
    let cut = ended("The disk is full. The user wants logs del", FinishReason::Length).unwrap();
    assert_eq!(cut, "The disk is full. […]");
    let cut = ended("- disk full\n- logs deleted\n- wait", FinishReason::Length).unwrap();
    assert_eq!(cut, "- disk full\n- logs deleted […]");
    let cut = ended("磁盘已满。用户要删除日", FinishReason::Length).unwrap();
    assert_eq!(cut, "磁盘已满。 […]");
    assert!(ended("The disk is fu", FinishReason::Length).unwrap_err().is_unusable());
    assert!(ended("", FinishReason::Length).unwrap_err().is_empty_summary());
}

#[test]
fn an_answer_above_the_bound_is_cut_to_it() {
    let counter = ByteEstimate::default();
    for text in [
        "The user checked item 7 and found it good. ".repeat(40),
        "用户检查了第七项，没有发现问题。".repeat(40),
        "👩‍👩‍👧‍👦é".repeat(200),
        "x".repeat(4_000),
    ] {
        for limit in 4..80 {
            let cut = cut::to_tokens(&text, Tokens::from_tokens(limit), &counter);
            let Some(cut) = cut else {
                assert!(limit < 20, "{limit} tokens hold something");
                continue;
            };
            assert!(counter.text(&cut) <= Tokens::from_tokens(limit));
            let kept = cut.strip_suffix(cut::MARK).unwrap();
            assert!(text.starts_with(kept));
        }
    }
    let long = "The user checked item 7 and found it good. ".repeat(40);
    let cut = answer(&long).unwrap();
    assert!(cut.ends_with("found it good. […]"), "{cut}");
}

#[test]
fn thinking_blocks_go_and_quotations_stay() {
    assert_eq!(
        answer("<think>First I should</think>\nThe disk is full.").unwrap(),
        "The disk is full."
    );
    let quoted = "The model prints <think>x</think> tags, which the user dislikes.";
    assert_eq!(answer(quoted).unwrap(), quoted);
    assert_eq!(
        answer("First I should\n</think>\n\nThe disk is full.").unwrap(),
        "The disk is full."
    );
    let shown = "The user wrote:\n<think>\nx\n</think>\nand asked why.";
    assert_eq!(answer(shown).unwrap(), shown);
    let twice = format!("<think>a</think>{quoted}");
    assert_eq!(answer(&twice).unwrap(), quoted, "removed once");
    assert!(answer("<think>First I should list the turns").unwrap_err().is_empty_summary());
    assert!(answer("<think>only</think> \n").unwrap_err().is_empty_summary());
    let reasoned =
        ChatResponse { reasoning: Some("First I should list".into()), ..ChatResponse::new("") };
    let error = read(&reasoned, rules(&[])).unwrap_err();
    assert!(error.is_empty_summary() && !error.to_string().contains("First"));
}

#[test]
fn required_headings_must_be_there() {
    let headings = ["**Current state:**".to_owned()];
    let read = |text: &str| read(&ChatResponse::new(text), rules(&headings));
    assert!(read("Current state: fine").unwrap_err().is_unusable());
    assert!(read("**Current state:** fine").is_ok());
}
