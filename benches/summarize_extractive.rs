//! How fast the offline summarizer is: megabytes a second by kind of input,
//! and whether ten times the messages take ten times as long.
//!
//!     cargo bench --bench summarize_extractive

#![expect(
    clippy::indexing_slicing,
    clippy::maybe_infinite_iter,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "it is run by hand and read by people"
)]

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, Throughput};
use session_compaction::{
    ByteEstimate, ExtractiveSummarizer, Message, SessionKey, Summarizer, SummaryRequest,
};
use tokio::runtime::Runtime;

fn main() {
    let runtime = Runtime::new().unwrap();
    let mut criterion = Criterion::default()
        .sample_size(10)
        .measurement_time(Duration::from_secs(4))
        .configure_from_args();
    let mut group = criterion.benchmark_group("summarize_extractive");
    for (name, make) in KINDS {
        let messages = of_size(make, 500_000);
        group.throughput(Throughput::Bytes(size(&messages)));
        let request = request(messages);
        group.bench_with_input(BenchmarkId::from_parameter(name), &request, |b, request| {
            b.iter(|| summarize(&runtime, request));
        });
    }
    group.finish();
    linearity(&runtime);
    criterion.final_summary();
}

/// Ten times the messages may take twelve times as long.
fn linearity(runtime: &Runtime) {
    for (name, make) in KINDS {
        let time = |count: usize| {
            let request = request((0..count).map(make).collect());
            let once = || {
                let start = Instant::now();
                summarize(runtime, &request);
                start.elapsed()
            };
            (0..5).map(|_| once()).min().unwrap_or_default()
        };
        let (few, many) = (time(20_000), time(200_000));
        let ratio = many.as_secs_f64() / few.as_secs_f64();
        let verdict = if ratio <= 12.0 { "linear" } else { "ABOVE 12" };
        println!("{name}: 20,000 messages {few:.1?}, 200,000 {many:.1?}: {ratio:.1}x, {verdict}");
    }
}

type Make = fn(usize) -> Message;

const KINDS: [(&str, Make); 4] =
    [("chat", chat), ("chinese", chinese), ("json", json), ("agent", agent)];

fn chat(n: usize) -> Message {
    let (place, thing, day) = (pick(PLACES, n), pick(THINGS, n / 3), n % 28 + 1);
    match n % 2 {
        0 => Message::user(format!(
            "My sister Ada{} moved to {place} on March {day}, and she bought a {thing} for {} euros. \
             I really think that was too much, don't you?",
            n % 97,
            n % 900 + 20,
        )),
        _ => Message::assistant(format!(
            "That sounds wonderful! For a {thing} in {place}, about {} euros is usual.",
            n % 700 + 30
        )),
    }
}

fn chinese(n: usize) -> Message {
    let price = n % 400 + 50;
    match n % 2 {
        0 => Message::user(format!(
            "你好，我想在{}附近找一家人均消费{price}元的餐馆，评分最好在4.{}分以上，谢谢你的推荐。",
            pick(PLACES_ZH, n),
            n % 10
        )),
        _ => Message::assistant(format!(
            "推荐您去第{n}号烤鸭店用餐，地址是朝阳区{}{}号，电话是010-{:08}。",
            pick(PLACES_ZH, n / 3),
            n % 300,
            n * 7919
        )),
    }
}

fn json(n: usize) -> Message {
    let call = format!("call_{}", n / 2);
    match n % 2 {
        0 => Message::assistant("").with_tool_call(
            call,
            "get_order",
            format!(r##"{{"order_id":"#W{:07}"}}"##, n * 13),
        ),
        _ => Message::tool_result(
            call,
            format!(
                r#"{{"status":"delivered","items":[{{"name":"{}","item_id":"{}","price":{}.5}}],"address":{{"city":"{}","zip":"{:05}"}}}}"#,
                pick(THINGS, n),
                n * 31_337,
                n % 300,
                pick(PLACES, n),
                n % 99_999
            ),
        ),
    }
}

fn agent(n: usize) -> Message {
    let call = format!("call_{}", n / 4);
    let file = format!("src/{}/part_{}.rs", pick(THINGS, n / 4), n / 4 % 500);
    match n % 4 {
        0 => Message::user(format!("Please fix the error E{:04} in {file}.", n % 9_000)),
        1 => Message::assistant("I look at it.").with_tool_call(
            call,
            "read",
            format!(r#"{{"path":"{file}"}}"#),
        ),
        2 => Message::tool_result(
            call,
            format!(
                "12→pub fn load_{}(path: &Path) -> Result<Config> {{\n13→    let maxRetries = {};\n\
                 14→    config::read(path, maxRetries, \"v{}.{}.0\")\n15→}}",
                n % 2_000,
                n % 40,
                n % 9,
                n % 50
            ),
        ),
        _ => Message::assistant(format!("Fixed: load_{} now returns early.", n % 2_000)),
    }
}

const PLACES: &[&str] = &["Lisbon", "Oslo", "Turin", "Ghent", "Kyoto", "Tampere", "Cork"];
const PLACES_ZH: &[&str] = &["天安门广场", "八达岭长城", "颐和园", "三里屯", "王府井大街"];
const THINGS: &[&str] = &["bicycle", "lamp", "piano", "kettle", "camera", "carpet"];

fn pick<'a>(from: &[&'a str], n: usize) -> &'a str {
    from[n % from.len()]
}

fn of_size(make: Make, chars: usize) -> Vec<Message> {
    let mut left = chars;
    let within = |message: &Message| {
        let fits = left > 0;
        left = left.saturating_sub(message.chars());
        fits
    };
    (0..).map(make).take_while(within).collect()
}

fn size(messages: &[Message]) -> u64 {
    let calls =
        |message: &Message| message.tool_calls().map(|call| call.arguments.len()).sum::<usize>();
    messages.iter().map(|message| (message.text().len() + calls(message)) as u64).sum()
}

fn request(messages: Vec<Message>) -> SummaryRequest {
    let key = SessionKey::new("bench").unwrap();
    SummaryRequest::new(key, messages, Arc::new(ByteEstimate::default()))
}

fn summarize(runtime: &Runtime, request: &SummaryRequest) {
    let summary = runtime.block_on(ExtractiveSummarizer::default().summarize(request.clone()));
    assert!(!black_box(summary).unwrap().text.is_empty());
}
