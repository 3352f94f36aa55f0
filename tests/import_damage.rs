//! A file that is cut off anywhere, or damaged, loads as far as it can or fails
//! with line and column; and one that is too long to be looked at as a whole
//! reads as a short one does.

use std::{collections::HashSet, fs};

use session_compaction::formats::{self, Format, Import, Importer, SkipReason};

const LINES: &str = r#"{"role":"user","content":"a\u00e9 \ud83d\ude00"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]}

{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"é.txt"}]}
"#;
const LIST: &str = "[\n  {\"role\": \"user\", \"content\": \"a\"},\n  {\n    \"role\": \"assistant\",\n    \"content\": \"b [1, {\\\"\"\n  }\n]\n";
const PICOCLAW: &str = r#"{"key":"telegram:1","messages":[{"role":"user","content":"hi"},
    {"role":"assistant","content":"hello"}],"summary":"Before.","created":"2026-01-01T00:00:00Z"}"#;
const ANTHROPIC: &str = r#"{
  "model": "m", "tools": [{"name": "ls", "input_schema": {"type": "object"}}],
  "messages": [
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ls", "input": {"path": "/"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a.txt"}]}
  ],
  "system": "Be brief."
}"#;
const GEMINI: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"hello"}]}],
    "systemInstruction":{"parts":[{"text":"Be brief."}]}}"#;
const RESPONSES: &str = r#"{"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"},
    {"type":"function_call_output","call_id":"c","output":"a"}],"instructions":"Be brief."}"#;
const SHAREGPT: &str = r#"{"id":"1","conversations":[{"from":"human","value":"list"},{"from":"gpt","value":"a"}],"system":"Be brief."}"#;
const SHAREGPTS: &str = r#"[{"conversations":[{"from":"human","value":"1"}]},{"conversations":[{"from":"gpt","value":"2"}]}]"#;
const LANGCHAIN: &str = r#"{"messages":[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"hi"}},
    {"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"hello"}}]}"#;

const DOCUMENTS: [(&str, Format); 8] = [
    (LIST, Format::OpenAiChat),
    (PICOCLAW, Format::PicoClaw),
    (ANTHROPIC, Format::Anthropic),
    (GEMINI, Format::Gemini),
    (RESPONSES, Format::OpenAiResponses),
    (SHAREGPT, Format::ShareGpt),
    (SHAREGPTS, Format::ShareGpt),
    (LANGCHAIN, Format::LangChain),
];

/// Puts so many blanks into a document that its beginning tells nothing more.
fn widened(document: &str) -> String {
    let (first, rest) = document.split_at(1);
    format!("{first}{}{rest}", " ".repeat(300 << 10))
}

fn counts(import: &Import) -> Vec<(SkipReason, usize, usize)> {
    import.skipped.iter().map(|it| (it.reason, it.count, it.first)).collect()
}

fn same(one: &Import, other: &Import, what: &str) {
    assert_eq!(one.format, other.format, "{what}");
    assert_eq!(one.messages, other.messages, "{what}");
    assert_eq!(one.summary, other.summary, "{what}");
    assert_eq!(counts(one), counts(other), "{what}");
    assert_eq!(one.repaired_lines, other.repaired_lines, "{what}");
}

#[test]
fn long_documents_read_as_short_ones() {
    for (document, format) in DOCUMENTS {
        let short = formats::import(document.as_bytes()).unwrap();
        assert_eq!(short.format, format, "{document}");
        assert!(short.messages.len() >= 2 && short.skipped.is_empty(), "{document}");
        let long = formats::import(widened(document).as_bytes()).unwrap();
        same(&short, &long, document);
        let forced = Importer::new().with_format(format);
        same(&short, &forced.read(widened(document).as_bytes()).unwrap(), document);
    }
}

#[test]
fn real_files_read_alike_at_any_length() {
    let mut bodies: Vec<String> = ["openai-chat", "openai-responses", "anthropic", "gemini"]
        .iter()
        .flat_map(|name| {
            let text = fs::read_to_string(format!("tests/data/wire/{name}.jsonl")).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    for path in ["tests/data/bfcl-memory/student.json", "tests/data/tau-airline/task-00.json"] {
        bodies.push(fs::read_to_string(path).unwrap());
    }
    for body in bodies {
        match (formats::import(body.as_bytes()), formats::import(widened(&body).as_bytes())) {
            (Ok(short), Ok(long)) => same(&short, &long, &body[..80]),
            (short, long) => {
                assert_eq!(short.unwrap_err().to_string(), long.unwrap_err().to_string());
            }
        }
    }
}

/// What follows a document is lines.
#[test]
fn lines_follow_a_document() {
    let document = format!("{}\nbroken\n{LINES}", widened(LIST));
    let import = formats::import(document.as_bytes()).unwrap();
    assert_eq!(import.messages.len(), 5);
    assert_eq!(counts(&import), [(SkipReason::Malformed, 1, 9)]);
}

/// What is broken in a document is named by its place in the file.
#[test]
fn places_are_those_of_the_file() {
    for (document, place) in [
        ("\n\n[\n{\"role\":\"user\",\n\"content\":tru}]", "line 5 column 13"),
        ("\n\n[\n{\"role\":\"user\",\"content\":\"a\"},,\n]", "line 4 column 3"),
        ("[{\"role\":\"user\"\n\"content\":1}]", "line 2 column 1"),
    ] {
        let blanks = document.replacen('[', &format!("[{}\n", " ".repeat(300 << 10)), 1);
        for (document, more) in [(document, 0), (&*blanks, 1)] {
            let error = formats::import(document.as_bytes()).unwrap_err().to_string();
            let (line, rest) = place.strip_prefix("line ").unwrap().split_once(' ').unwrap();
            let line = line.parse::<usize>().unwrap() + more;
            assert!(error.contains(&format!("line {line} {}", &rest[..8])), "{error}: {place}");
        }
    }
}

fn check_cut(whole: &Import, bytes: &[u8], what: &str, problems: &mut HashSet<String>) {
    match formats::import(bytes) {
        Ok(import) => {
            let skipped: usize = import.skipped.iter().map(|it| it.count).sum();
            assert!(
                whole.messages.starts_with(&import.messages) && skipped <= 1,
                "{what}: {:?}",
                import.skipped
            );
        }
        Err(error) => {
            let error = error.to_string();
            let is_placed = error.contains(" at line ") && error.contains(" column ");
            assert!(is_placed || error.contains("there is nothing to read"), "{what}: {error}");
            problems.insert(error);
        }
    }
}

#[test]
fn a_file_cut_off_anywhere() {
    let mut problems = HashSet::new();
    for text in DOCUMENTS.iter().map(|(document, _)| *document).chain([LINES]) {
        let whole = formats::import(text.as_bytes()).unwrap();
        for end in 0..text.len() {
            check_cut(&whole, &text.as_bytes()[..end], &text[..20], &mut problems);
        }
        let text = widened(text);
        for end in 300 << 10..text.len() {
            check_cut(&whole, &text.as_bytes()[..end], "widened", &mut problems);
        }
    }
    assert!(problems.len() > 100, "{}", problems.len());
}

/// Any byte in place of another: an answer, whatever it is.
#[test]
fn a_file_with_a_wrong_byte() {
    let mut loaded = 0;
    for text in DOCUMENTS.iter().map(|(document, _)| *document).chain([LINES]) {
        for at in 0..text.len() {
            for byte in *b"\0\xFF\"\\{}[],:\n x" {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                match formats::import(&bytes) {
                    Ok(_) => loaded += 1,
                    Err(error) => assert!(error.is_message()),
                }
            }
        }
    }
    assert!(loaded > 1000, "{loaded}");
}

/// A crash leaves a first line that goes on nowhere, however long it is.
#[test]
fn a_long_first_line_cut_off() {
    for len in [10, 300 << 10, 17 << 20] {
        let text = format!("{{\"role\":\"user\",\"content\":\"{}\n{LINES}", "x".repeat(len));
        let import = formats::import(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(import.messages.len(), 3, "{len}");
        let reason = if len > 16 << 20 { SkipReason::TooLong } else { SkipReason::Malformed };
        assert_eq!(counts(&import), [(reason, 1, 1)], "{len}");
    }
}

#[test]
fn deep_nesting_is_read() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let list = format!("[{{\"role\":\"user\",\"content\":\"a\",\"deep\":{deep}}}]");
    for text in [widened(&list), list] {
        assert_eq!(formats::import(text.as_bytes()).unwrap().messages[0].text(), "a");
    }
}
