//! Promises of the token counters.

use std::sync::Arc;

use session_compaction::{
    ByteEstimate, CharsPerToken, Media, MediaCosts, MediaKind, MediaSource, Message, Part, RawJson,
    Role, TokenCounter, Tokens, ToolResult, estimate_tokens,
};

const MODELS: [&str; 4] = ["gpt-5-mini", "gpt-4-turbo", "claude-sonnet-4-5", "a-model-of-my-own"];

#[test]
fn estimate_tokens_latin() {
    let messages = [Message::user("hello world"), Message::assistant("hi there!")];
    assert_eq!(estimate_tokens(&messages, &CharsPerToken::default()), 8);
}

#[test]
fn estimate_tokens_cjk() {
    let messages = [Message::user("你好世界")];
    assert_eq!(estimate_tokens(&messages, &CharsPerToken::default()), 1);
}

#[test]
fn scripts_cost_what_they_do_in_a_vocabulary() {
    let han = "昨天下午我们在会议室讨论了新的产品计划，大家都同意先做手机版本。";
    let ascii = "Yesterday afternoon we talked about the new product plan in the meeting room.";
    for model in MODELS {
        let counter = ByteEstimate::for_model(model);
        assert!((512..2048).contains(&units_per_char(counter, han)), "{model}");
        assert!((154..512).contains(&units_per_char(counter, ascii)), "{model}");
    }
}

/// Returns the cost in 1/1024 token a character.
fn units_per_char(counter: ByteEstimate, text: &str) -> u64 {
    let chars: u64 = text.chars().map(|_| 1).sum();
    counter.text(text).as_units() / chars
}

#[test]
fn unknown_model_gets_the_largest_estimate() {
    let texts =
        ["", "plain words", "{\"a\": [1, 22, 333]}", "Привет, мир", "สวัสดี", "👩‍🚀🚀", "a\n\n\n  b"];
    let any = ByteEstimate::for_model("a-model-of-my-own");
    assert_eq!(any, ByteEstimate::default());
    for text in texts {
        let known = ["openai/gpt-5", "gpt-4", "anthropic.claude-opus-4"]
            .map(|model| ByteEstimate::for_model(model).text(text));
        assert_eq!(Some(any.text(text)), known.into_iter().max(), "{text:?}");
    }
}

#[test]
fn long_texts_cost_the_sum_of_their_parts() {
    // The walk adds up in chunks of 256 bytes: the seams must not show.
    let counter = ByteEstimate::default();
    let line = "один two (three) 4,567.8 — fiveSix\n";
    let (one, two) = (counter.text(line), counter.text(&line.repeat(2)));
    let many = counter.text(&line.repeat(1001));
    assert_eq!((many - one).as_units(), 1000 * (two - one).as_units());
}

#[test]
fn base64_media_is_flat() {
    let media = |size| Media::new(MediaKind::Image, MediaSource::Base64("iVBORw0K".repeat(size)));
    for counter in [&ByteEstimate::default() as &dyn TokenCounter, &CharsPerToken::default()] {
        let [small, large] = [1, 100_000]
            .map(|size| counter.message(&Message::new(Role::User, [media(size).into()])));
        assert_eq!(small, large);
        assert!(small > Tokens::ZERO);

        let [small, large] = [1_000, 100_000].map(|size| {
            let json = format!(r#"{{"type":"image","data":"{}"}}"#, "iVBORw0K".repeat(size));
            let part = Part::Json(Box::new(RawJson::parse(&json).unwrap()));
            counter.message(&Message::new(Role::Assistant, [part]))
        });
        assert_eq!(small, large);
    }
}

#[test]
fn every_part_counts() {
    let counter = ByteEstimate::default();
    let base = counter.message(&Message::assistant("word"));
    let call = Message::assistant("word").with_tool_call("call_1", "shell", r#"{"cmd":"df"}"#);
    assert_eq!(
        counter.message(&call) - base,
        ["call_1", "shell", r#"{"cmd":"df"}"#].map(|text| counter.text(text)).into_iter().sum(),
    );
    let result = Message::tool_result("call_1", "42% used");
    assert_eq!(
        counter.message(&result) - counter.message_overhead(),
        counter.text("call_1") + counter.text("42% used"),
    );
    assert!(counter.message(&Message::assistant("word").with_name("ann")) > base);
}

#[test]
fn results_within_results_count_however_deep() {
    let counter = ByteEstimate::default();
    let mut result = ToolResult::new("c", "a deep answer");
    for _ in 0..1_000 {
        let mut outer = ToolResult::new("c", "");
        outer.content.push(result.into());
        result = outer;
    }
    let ids = Tokens::from_units(1_001 * counter.text("c").as_units());
    let total = counter.message(&Message::new(Role::Tool, [result.into()]));
    assert_eq!(total, counter.message_overhead() + ids + counter.text("a deep answer"));
}

#[test]
fn counts_saturate() {
    let most = Tokens::MAX;
    assert_eq!(most + most, most);
    assert_eq!([most, most].into_iter().sum::<Tokens>(), most);
    assert_eq!(Tokens::ZERO - most, Tokens::ZERO);
    assert_eq!(Tokens::from_tokens(u64::MAX), most);

    let absurd = CharsPerToken::new(f64::MIN_POSITIVE).unwrap();
    assert_eq!(absurd.text("abc"), most);
    assert_eq!(estimate_tokens(&vec![Message::user("abc"); 3], &absurd), most.count());
}

#[test]
fn shared_counters_count_alike() {
    let counter: Arc<dyn TokenCounter> = Arc::new(CharsPerToken::default());
    let message = Message::user("hello world");
    assert_eq!(counter.message(&message), CharsPerToken::default().message(&message));
    assert_eq!(TokenCounter::message_overhead(&counter), Tokens::ZERO);
}

/// The head of a PNG of 512 by 512 pixels.
const PNG_HEAD: &str = "iVBORw0KGgoAAAANSUhEUgAAAgAAAAIACAYAAAD0eNT6";

#[test]
fn images_cost_by_their_pixels_where_they_are_known() {
    let data = PNG_HEAD.to_owned() + &"A".repeat(100_000);
    let media = Media::new(MediaKind::Image, MediaSource::Base64(data.clone()));
    let json = format!(r#"{{"type":"image","source":{{"data":"{data}"}}}}"#);
    let [o200k, claude, any] = ["gpt-5", "claude-opus-4", "another"].map(ByteEstimate::for_model);
    let tokens = |counter: ByteEstimate| counter.media(&media).count();
    assert_eq!([tokens(o200k), tokens(claude), tokens(any)], [85 + 170, 350, 350]);

    // Within opaque JSON as well, where only the words around it are text.
    let part = Part::Json(Box::new(RawJson::parse(&json).unwrap()));
    let message = any.message(&Message::new(Role::User, [part])) - any.message_overhead();
    assert!((350..370).contains(&message.count()), "{message:?}");
}

#[test]
fn media_costs_are_configurable() {
    let costs = MediaCosts::default().with_image(10).with_audio(20).with_file(30).by_pixels(false);
    let counter = ByteEstimate::for_model("gpt-5").with_media(costs);
    for (kind, tokens) in [(MediaKind::Image, 10), (MediaKind::Audio, 20), (MediaKind::File, 30)] {
        let media = Media::new(kind, MediaSource::Base64(PNG_HEAD.into()));
        assert_eq!(counter.media(&media).count(), tokens, "{kind:?}");
        let within = Message::new(Role::User, [media.into()]);
        assert_eq!(counter.message(&within).count(), tokens + 4, "{kind:?}");
    }
}
