//! Promises of the configuration: which layer wins, what is lowered, what is
//! refused, and that a refusal names where, what and what is allowed.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::{env, fs, path::PathBuf, process::Command, time::Duration};

use session_compaction::{AgentDefaults, SummarizationConfig, Threshold};

type Variables<'a> = &'a [(&'a str, &'a str)];

/// Every field: its name, a value other than the default as JSON and as a
/// variable, and the configuration that it makes.
fn every_field() -> Vec<(&'static str, &'static str, &'static str, SummarizationConfig)> {
    let default = SummarizationConfig::default;
    vec![
        ("enabled", "false", "false", default().with_enabled(false)),
        ("message_threshold", "30", "30", default().with_message_threshold(30)),
        ("token_percent", "\"off\"", "off", default().with_token_percent(Threshold::Off)),
        ("threshold_chars", "60000", "60000", default().with_threshold_chars(60_000)),
        ("keep_last_messages", "6", "6", default().with_keep_last_messages(6)),
        ("keep_chars", "20000", "20000", default().with_keep_chars(20_000)),
        ("context_window", "32000", "32000", default().with_context_window(32_000)),
        ("output_reserve", "512", "512", default().with_output_reserve(512)),
        ("summary_max_tokens", "2e3", "2e3", default().with_summary_max_tokens(2_000)),
        ("summary_temperature", "0", "0", default().with_summary_temperature(0.0)),
        ("multi_part_batch_threshold", "12", "12", default().with_multi_part_batch_threshold(12)),
        ("timeout", "1500000000", "1500ms", default().with_timeout(Duration::from_millis(1_500))),
        ("max_single_msg_token_ratio", "1", "1", default().with_max_single_msg_token_ratio(1.0)),
        (
            "force_compression_min_messages",
            "5.0",
            "5.0",
            default().with_force_compression_min_messages(5),
        ),
        ("chars_per_token", "2.5", "2.5", default().with_chars_per_token(Some(2.5))),
    ]
}

fn read(json: &str) -> SummarizationConfig {
    SummarizationConfig::from_json_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn variable(field: &str) -> String {
    format!("SUMMARIZATION_{}", field.to_uppercase())
}

fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path
}

/// Asserts that the JSON is refused with a text that holds all of the parts.
#[track_caller]
fn refused(json: &str, parts: &[&str]) {
    let error = SummarizationConfig::from_json_str(json).expect_err(json);
    assert!(error.is_config(), "{error:?}");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{json}: {part:?} is missing in: {text}");
    }
}

#[track_caller]
fn variable_refused(variables: Variables<'_>, parts: &[&str]) {
    let error = SummarizationConfig::load_with(None, variables.iter().copied()).unwrap_err();
    assert!(error.is_config(), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("environment: SUMMARIZATION_"), "{text}");
    for part in parts {
        assert!(text.contains(part), "{variables:?}: {part:?} is missing in: {text}");
    }
}

#[track_caller]
fn unchecked(config: &SummarizationConfig, parts: &[&str]) {
    let error = config.check().expect_err("must be refused");
    assert!(error.is_config(), "{error:?}");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

// ===== layers =====

#[test]
fn default_config_summarization_thresholds() {
    let config = AgentDefaults::default().get_summarization();
    assert!(config.enabled);
    assert_eq!(config.message_threshold, Threshold::Above(20));
    assert_eq!(config.token_percent, Threshold::Above(75));
    assert_eq!(config.threshold_chars, Threshold::Off);
    assert_eq!(config.keep_last_messages, 4);
    assert_eq!(config, SummarizationConfig::default());
    assert_eq!(config, read("{}"));
    assert_eq!(config, SummarizationConfig::default().with_defaults());
    config.check().unwrap();
}

#[test]
fn get_summarization_legacy_fallback() {
    let defaults: AgentDefaults = serde_json::from_str(
        r#"{"summarize_message_threshold": 40, "summarize_token_percent": 60, "model": "m"}"#,
    )
    .unwrap();
    let expected = SummarizationConfig::default().with_message_threshold(40).with_token_percent(60);
    assert_eq!(defaults.get_summarization(), expected);
}

#[test]
fn get_summarization_new_overrides_legacy() {
    // In either order: the block wins by what it is, not by where it stands.
    for json in [
        r#"{"summarize_message_threshold": 40, "summarize_token_percent": 60,
            "summarization": {"message_threshold": 50, "token_percent": "off"}}"#,
        r#"{"summarization": {"message_threshold": 50, "token_percent": "off"},
            "summarize_message_threshold": 40, "summarize_token_percent": 60}"#,
    ] {
        let defaults: AgentDefaults = serde_json::from_str(json).unwrap();
        let expected = SummarizationConfig::default()
            .with_message_threshold(50)
            .with_token_percent(Threshold::Off);
        assert_eq!(defaults.get_summarization(), expected);
    }
}

#[test]
fn legacy_wins_over_default() {
    for block in [
        r#"{"keep_last_messages": 6}"#,
        r#"{"keep_last_messages": 6, "message_threshold": 0}"#,
        r#"{"keep_last_messages": 6, "message_threshold": null}"#,
    ] {
        let json = format!(r#"{{"summarize_message_threshold": 40, "summarization": {block}}}"#);
        let defaults: AgentDefaults = serde_json::from_str(&json).unwrap();
        let expected =
            SummarizationConfig::default().with_message_threshold(40).with_keep_last_messages(6);
        assert_eq!(defaults.get_summarization(), expected, "{block}");
    }
}

#[test]
fn environment_beats_block_beats_legacy() {
    let path = file(
        "layers.json",
        r#"{"agents": {"defaults": {
            "summarize_message_threshold": 30,
            "summarize_token_percent": 30,
            "summarization": {"message_threshold": 40, "keep_last_messages": 6}
        }}}"#,
    );
    let variables = [("SUMMARIZATION_MESSAGE_THRESHOLD", "50"), ("PATH", "/bin")];
    let config = SummarizationConfig::load_with(Some(&path), variables).unwrap();
    let expected = SummarizationConfig::default()
        .with_message_threshold(50)
        .with_token_percent(30)
        .with_keep_last_messages(6);
    assert_eq!(config, expected);
}

#[test]
fn a_clash_in_the_file_can_be_solved_by_the_environment() {
    let path = file("clash.json", r#"{"keep_last_messages": 30}"#);
    let error = SummarizationConfig::from_file(&path).unwrap_err().to_string();
    assert!(error.contains("clash.json: keep_last_messages: keep_last_messages 30"), "{error}");
    let variables = [("SUMMARIZATION_MESSAGE_THRESHOLD", "60")];
    let config = SummarizationConfig::load_with(Some(&path), variables).unwrap();
    assert_eq!(config.keep_last_messages, 30);
}

#[test]
fn every_field_is_read_from_json_and_from_its_variable() {
    let fields = every_field();
    assert_eq!(fields.len(), 15);
    for (field, json, text, expected) in fields {
        assert_ne!(expected, SummarizationConfig::default(), "{field}");
        assert_eq!(read(&format!(r#"{{"{field}": {json}}}"#)), expected, "{field}");
        let variables = [(variable(field), text)];
        let config = SummarizationConfig::load_with(None, variables).unwrap();
        assert_eq!(config, expected, "{field}");
    }
}

#[test]
fn every_field_of_the_environment_beats_the_file() {
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("config.example.json");
    for (field, _, text, expected) in every_field() {
        let variables = [(variable(field), text)];
        let config = SummarizationConfig::load_with(Some(&example), variables).unwrap();
        // The file sets all three triggers, so none is switched off by another.
        let expected = if field == "threshold_chars" {
            expected.with_message_threshold(20).with_token_percent(75)
        } else {
            expected
        };
        assert_eq!(config, expected, "{field}");
    }
}

/// Runs itself again with a variable, since a test cannot safely set its own.
#[test]
fn load_reads_the_variables_of_this_process() {
    const CHILD: &str = "CONFIG_TEST_CHILD";
    if env::var_os(CHILD).is_some() {
        let config = SummarizationConfig::load(None).unwrap();
        assert_eq!(config, SummarizationConfig::default().with_keep_last_messages(7));
        return;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "load_reads_the_variables_of_this_process"])
        .env(CHILD, "1")
        .env("SUMMARIZATION_KEEP_LAST_MESSAGES", "7")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
}

// ===== what is not set, and what is lowered =====

#[test]
fn zero_null_and_an_empty_variable_mean_not_set() {
    for (field, ..) in every_field() {
        assert_eq!(read(&format!(r#"{{"{field}": null}}"#)), read("{}"), "{field}");
        for text in ["", "  "] {
            let variables = [(variable(field), text)];
            let config = SummarizationConfig::load_with(None, variables).unwrap();
            assert_eq!(config, read("{}"), "{field}");
        }
        let is_value = ["enabled", "summary_temperature"].contains(&field);
        for zero in ["0", "0.0", "0e0"].into_iter().filter(|_| !is_value) {
            assert_eq!(read(&format!(r#"{{"{field}": {zero}}}"#)), read("{}"), "{field}");
        }
    }
    let path = file("set.json", r#"{"keep_last_messages": 6, "output_reserve": 100}"#);
    let variables =
        [("SUMMARIZATION_KEEP_LAST_MESSAGES", "0"), ("SUMMARIZATION_OUTPUT_RESERVE", "0")];
    let config = SummarizationConfig::load_with(Some(&path), variables).unwrap();
    assert_eq!(config, SummarizationConfig::default().with_keep_last_messages(6));
}

#[test]
fn with_defaults_fills_zeros() {
    let zeros = SummarizationConfig {
        enabled: true,
        message_threshold: 0.into(),
        token_percent: 0.into(),
        threshold_chars: 0.into(),
        keep_last_messages: 0,
        keep_chars: 0,
        context_window: 0,
        output_reserve: 0,
        summary_max_tokens: 0,
        summary_temperature: 0.3,
        multi_part_batch_threshold: 0,
        timeout: Duration::ZERO,
        max_single_msg_token_ratio: 0.0,
        force_compression_min_messages: 0,
        chars_per_token: Some(0.0),
    };
    zeros.check().unwrap();
    assert_eq!(zeros.with_defaults(), SummarizationConfig::default());
}

#[test]
fn only_characters_leaves_the_other_triggers_off() {
    let off = SummarizationConfig {
        message_threshold: Threshold::Off,
        token_percent: Threshold::Off,
        threshold_chars: 60_000.into(),
        ..SummarizationConfig::default()
    };
    let unset =
        SummarizationConfig { message_threshold: 0.into(), token_percent: 0.into(), ..off.clone() };
    assert_eq!(read(r#"{"threshold_chars": 60000}"#), off);
    assert_eq!(SummarizationConfig::default().with_threshold_chars(60_000), off);
    assert_eq!(unset.with_defaults(), off);

    // Whoever sets another trigger as well has both, also at its default.
    let both = read(r#"{"threshold_chars": 60000, "message_threshold": 20}"#);
    assert_eq!(both.message_threshold, Threshold::Above(20));
    assert_eq!(both.token_percent, Threshold::Above(75));
    assert_eq!(both.clone().with_defaults(), both);
}

#[test]
fn a_default_that_clashes_is_lowered() {
    for threshold in [2_u64, 3, 4] {
        let expected = usize::try_from(threshold).unwrap() - 1;
        let config = read(&format!(r#"{{"message_threshold": {threshold}}}"#));
        assert_eq!(config.keep_last_messages, expected);
        let config = SummarizationConfig::default().with_message_threshold(threshold);
        config.check().unwrap();
        assert_eq!(config.with_defaults().keep_last_messages, expected);
    }
    assert_eq!(read(r#"{"message_threshold": 5}"#).keep_last_messages, 4);
    assert_eq!(read(r#"{"context_window": 1000}"#).summary_max_tokens, 500);
    assert_eq!(read(r#"{"context_window": 1025}"#).summary_max_tokens, 1_024);
    assert_eq!(read(r#"{"output_reserve": 8000}"#).summary_max_tokens, 96);
    let config = SummarizationConfig::default().with_context_window(1_000).with_defaults();
    assert_eq!(config.summary_max_tokens, 500);
}

#[test]
fn keep_chars_takes_the_place_of_keep_last_messages() {
    let config = read(r#"{"message_threshold": 4, "keep_last_messages": 9, "keep_chars": 20000}"#);
    assert_eq!((config.keep_last_messages, config.keep_chars), (9, 20_000));
    config.check().unwrap();
    refused(
        r#"{"message_threshold": 4, "keep_last_messages": 9, "keep_chars": "off"}"#,
        &["keep_last_messages 9", "below message_threshold, which is 4"],
    );
}

// ===== files =====

#[test]
fn the_example_shows_every_field_at_its_default() {
    let text = include_str!("../config.example.json");
    assert_eq!(read(text), SummarizationConfig::default());
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    let defaults = json["agents"]["defaults"].as_object().unwrap();
    assert_eq!(defaults.keys().collect::<Vec<_>>(), ["summarization"]);
    let block = defaults["summarization"].as_object().unwrap();
    let fields = every_field();
    assert_eq!(block.len(), fields.len());
    for (field, ..) in fields {
        assert!(block.contains_key(field), "{field}");
    }
}

#[test]
fn a_whole_file_and_a_bare_block_read_the_same() {
    let whole = r#"{"gateway": {"port": 1}, "agents": {"list": [1, {"a": null}], "defaults":
        {"model": "m", "summarization": {"token_percent": 60}}}}"#;
    let expected = SummarizationConfig::default().with_token_percent(60);
    assert_eq!(read(whole), expected);
    assert_eq!(read(r#"{"token_percent": 60}"#), expected);
    let marked = file("marked.json", format!("\u{feff}{whole}"));
    assert_eq!(SummarizationConfig::from_file(marked).unwrap(), expected);
    for empty in [r#"{"agents": {}}"#, r#"{"agents": {"defaults": {}}}"#, r#"{"agents": null}"#] {
        assert_eq!(read(empty), SummarizationConfig::default(), "{empty}");
    }
}

#[test]
fn what_is_written_reads_back_equal() {
    for (field, _, _, config) in every_field() {
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(read(&json), config, "{field}");
        assert_eq!(serde_json::from_str::<SummarizationConfig>(&json).unwrap(), config, "{field}");
    }
    let precise = SummarizationConfig::default().with_timeout(Duration::new(3, 7_000_001));
    let json = serde_json::to_string(&precise).unwrap();
    assert!(json.contains(r#""timeout":"3.007000001s""#), "{json}");
    assert_eq!(read(&json), precise);

    let defaults: AgentDefaults =
        serde_json::from_str(r#"{"summarize_message_threshold": 40}"#).unwrap();
    let json = serde_json::to_string(&defaults).unwrap();
    assert!(json.starts_with(r#"{"summarization":{"#), "{json}");
    assert_eq!(serde_json::from_str::<AgentDefaults>(&json).unwrap(), defaults);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("missing.json");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let binary = file("binary.json", b"{\"enabled\": \xff}");
    let empty = file("empty.json", "");
    for (path, parts) in [
        (missing, ["missing.json: file: cannot be read", "a JSON file"]),
        (folder, [": file: cannot be read", "a JSON file"]),
        (binary, ["binary.json: file: is not text", "allowed is UTF-8"]),
        (empty, ["empty.json: top level: broken JSON", "line 1 column 0"]),
    ] {
        let error = SummarizationConfig::from_file(path).unwrap_err();
        assert!(error.is_config());
        for part in parts {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

// ===== what is refused =====

#[test]
fn values_out_of_range_are_refused() {
    let percent = "allowed is a whole number from 1 to 100, 0 for the default, or \"off\"";
    for (value, shown) in [
        ("-1", "-1"),
        ("101", "101"),
        ("75.5", "75.5"),
        ("4294967295", "4294967295"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("\"75\"", "the text \"75\""),
        ("\"OFF\"", "the text \"OFF\""),
        ("true", "true"),
        ("[75]", "a list"),
        ("{}", "an object"),
    ] {
        let json = format!(
            r#"{{"agents":{{"defaults":{{"summarization":{{"token_percent":{value}}}}}}}}}"#
        );
        let text = format!("agents.defaults.summarization.token_percent: {shown} is not allowed");
        refused(&json, &[&text, percent]);
    }
    refused(r#"{"token_percent": 0.75}"#, &["counts percents, write 75 for 0.75", percent]);

    let whole = "from 1 to 9007199254740991, or 0 for the default";
    for (json, path, allowed) in [
        (r#"{"message_threshold": -5}"#, "message_threshold: -5", "from 2 to 9007199254740991"),
        (r#"{"message_threshold": 1}"#, "message_threshold: 1", "from 2 to 9007199254740991"),
        (r#"{"keep_last_messages": -1}"#, "keep_last_messages: -1", whole),
        (r#"{"keep_last_messages": 1.5}"#, "keep_last_messages: 1.5", whole),
        (r#"{"keep_last_messages": "off"}"#, "keep_last_messages: the text \"off\"", whole),
        (r#"{"context_window": 18446744073709551615}"#, "context_window: 184", "from 2 to 90"),
        (r#"{"context_window": 1e300}"#, "context_window: 1e300", "from 2 to 90"),
        (r#"{"output_reserve": -1}"#, "output_reserve: -1", "from 0 to 9007199254740991"),
        (r#"{"enabled": "yes"}"#, "enabled: the text \"yes\"", "allowed is true or false"),
        (r#"{"enabled": 1}"#, "enabled: 1", "allowed is true or false"),
        (r#"{"summary_temperature": -0.1}"#, "summary_temperature: -0.1", "from 0 to 2"),
        (r#"{"summary_temperature": 3}"#, "summary_temperature: 3", "from 0 to 2"),
        (
            r#"{"max_single_msg_token_ratio": 50}"#,
            "max_single_msg_token_ratio: 50",
            "from 0.01 to 1",
        ),
        (r#"{"max_single_msg_token_ratio": -1}"#, "max_single_msg_token_ratio: -1", "from 0.01"),
        (r#"{"chars_per_token": 1e-300}"#, "chars_per_token: 1e-300 is", "from 0.1 to 100"),
        (r#"{"chars_per_token": "2.5"}"#, "chars_per_token: the text", "from 0.1 to 100"),
        (r#"{"timeout": 120}"#, "timeout: 120", "counts nanoseconds, write the unit; allowed"),
        (r#"{"timeout": 120000}"#, "timeout: 120000", "such as \"120s\""),
        (r#"{"timeout": -1}"#, "timeout: -1", "from 1ms to 24h"),
        (r#"{"timeout": "120"}"#, "timeout: the text \"120\"", "such as \"120s\""),
        (r#"{"timeout": "25h"}"#, "timeout: the text \"25h\"", "from 1ms to 24h"),
        (r#"{"timeout": true}"#, "timeout: true", "from 1ms to 24h"),
    ] {
        refused(json, &[path, allowed, "configuration: "]);
    }
}

#[test]
fn every_variable_refuses_what_its_field_refuses() {
    for (field, ..) in every_field() {
        let name = variable(field);
        for value in ["nonsense", "-1", "NaN", "inf", "null", "\"75\"", "1e999", "0x10", "\u{fffd}"]
        {
            variable_refused(&[(&name, value)], &[&format!("{name}: "), "allowed is "]);
        }
    }
    variable_refused(&[("SUMMARIZATION_TOKEN_PERCENT", "101")], &["101", "from 1 to 100"]);
    variable_refused(&[("SUMMARIZATION_TIMEOUT", "120000000000")], &["such as \"120s\""]);
}

#[test]
fn unknown_fields_are_refused_with_the_nearest_name() {
    refused(
        r#"{"agents": {"defaults": {"summarization": {"mesage_threshold": 20}}}}"#,
        &[
            "configuration: agents.defaults.summarization.mesage_threshold: unknown field",
            "did you mean message_threshold;",
            "allowed are enabled, message_threshold, token_percent",
        ],
    );
    refused(r#"{"zzz": 1}"#, &["zzz: unknown field; allowed are enabled, "]);
    variable_refused(
        &[("SUMMARIZATION_KEEP_LAST_MESSAGE", "4")],
        &["KEEP_LAST_MESSAGE: unknown variable, did you mean SUMMARIZATION_KEEP_LAST_MESSAGES;"],
    );
    for name in ["SUMMARIZATION_", "SUMMARIZATION_enabled", "SUMMARIZATION_NEW"] {
        variable_refused(&[(name, "")], &["unknown variable", "SUMMARIZATION_ENABLED"]);
    }
}

#[test]
fn repeated_fields_are_refused() {
    refused(r#"{"enabled": true, "enabled": false}"#, &["enabled: is there twice"]);
    refused(
        r#"{"agents": {"defaults": {"summarization": {}, "summarization": {}}}}"#,
        &["agents.defaults.summarization: is there twice"],
    );
}

#[test]
fn objects_that_are_none_are_refused() {
    for (json, path) in [
        ("[]", "configuration: top level: a list"),
        ("\"x\"", "configuration: top level: the text \"x\""),
        (r#"{"agents": 1}"#, "agents: 1"),
        (r#"{"agents": {"defaults": []}}"#, "agents.defaults: a list"),
        (r#"{"agents": {"defaults": {"summarization": "on"}}}"#, "summarization: the text \"on\""),
    ] {
        refused(json, &[path, "allowed is an object"]);
    }
    let error = serde_json::from_str::<AgentDefaults>("[]").unwrap_err().to_string();
    assert!(error.contains("agents.defaults: top level: a list is not allowed"), "{error}");
}

#[test]
fn deprecated_fields_are_refused_under_their_own_name() {
    refused(
        r#"{"agents": {"defaults": {"summarize_token_percent": 101}}}"#,
        &["agents.defaults.summarize_token_percent: 101", "from 1 to 100"],
    );
    let error = serde_json::from_str::<AgentDefaults>(r#"{"summarize_message_threshold": -5}"#)
        .unwrap_err()
        .to_string();
    assert!(error.contains("agents.defaults: summarize_message_threshold: -5"), "{error}");
}

#[test]
fn broken_json_names_the_field_and_the_place() {
    refused(
        "{\"agents\": {\"defaults\": {\"summarization\": {\n  \"token_percent\": NaN}}}}",
        &[
            "agents.defaults.summarization.token_percent: broken JSON",
            "at line 2 column",
            "allowed is a whole number from 1 to 100",
        ],
    );
    refused(r#"{"timeout": "120s"#, &["timeout: broken JSON", "line 1 column", "24h"]);
    refused(r#"{"context_window": 1e999}"#, &["context_window: broken JSON", "out of range"]);
    refused(r#"{"enabled": true} x"#, &["top level: broken JSON", "trailing", "a JSON object"]);
    let deep = "{\"a\":".repeat(100_000);
    refused(&deep, &["broken JSON", "recursion limit"]);
}

#[test]
fn every_truncation_of_the_example_is_refused() {
    let text = include_str!("../config.example.json").trim_end();
    for end in 0..text.len() {
        refused(&text[..end], &["configuration: ", "broken JSON", "line", "allowed is "]);
    }
}

#[test]
fn two_set_values_that_clash_are_refused() {
    for (json, parts) in [
        (
            r#"{"message_threshold": 20, "keep_last_messages": 20}"#,
            ["keep_last_messages: ", "below message_threshold, which is 20"],
        ),
        (
            r#"{"keep_last_messages": 1000000000}"#,
            ["keep_last_messages: ", "below message_threshold, which is 20"],
        ),
        (
            r#"{"context_window": 16384, "summary_max_tokens": 32000}"#,
            ["summary_max_tokens: ", "below context_window, which is 16384"],
        ),
        (
            r#"{"context_window": 3000, "output_reserve": 2000, "summary_max_tokens": 1000}"#,
            ["summary_max_tokens: ", "context_window less output_reserve, which is 1000"],
        ),
        (
            r#"{"context_window": 2000, "output_reserve": 2000}"#,
            ["output_reserve: ", "below context_window, which is 2000"],
        ),
        (
            r#"{"threshold_chars": 1000, "keep_chars": 1000}"#,
            ["keep_chars: ", "below threshold_chars, which is 1000"],
        ),
    ] {
        refused(json, &parts);
    }
    let path = file("window.json", r#"{"summary_max_tokens": 6000}"#);
    let variables = [("SUMMARIZATION_CONTEXT_WINDOW", "4000")];
    let error = SummarizationConfig::load_with(Some(&path), variables).unwrap_err().to_string();
    assert!(error.contains("window.json: summary_max_tokens: "), "{error}");
    variable_refused(&[("SUMMARIZATION_SUMMARY_MAX_TOKENS", "9000")], &["which is 8192"]);
}

#[test]
fn check_refuses_what_was_built_in_code() {
    let default = SummarizationConfig::default;
    for ratio in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5, 1.5] {
        let config = default().with_max_single_msg_token_ratio(ratio);
        unchecked(&config, &["SummarizationConfig: max_single_msg_token_ratio: ", "0.01 to 1"]);
    }
    for number in [f64::NAN, f64::INFINITY, -0.5, 1e9] {
        let config = default().with_summary_temperature(number);
        unchecked(&config, &["summary_temperature: ", "a number from 0 to 2"]);
        let config = default().with_chars_per_token(Some(number));
        unchecked(&config, &["chars_per_token: ", "a number from 0.1 to 100"]);
    }
    for (config, parts) in [
        (default().with_token_percent(101), ["token_percent: 101", "from 1 to 100"]),
        (default().with_message_threshold(1), ["message_threshold: 1", "from 2 to"]),
        (default().with_context_window(u64::MAX), ["context_window: 184", "from 2 to 90"]),
        (default().with_timeout(Duration::MAX), ["timeout: ", "from 1ms to 24h"]),
        (default().with_timeout(Duration::from_nanos(1)), ["timeout: 0.000000001s", "1ms"]),
        (default().with_keep_last_messages(20), ["keep_last_messages: ", "which is 20"]),
        (default().with_summary_max_tokens(8_192), ["summary_max_tokens: ", "which is 8192"]),
        (default().with_output_reserve(u64::MAX), ["output_reserve: ", "from 0 to 90"]),
    ] {
        unchecked(&config, &parts);
    }
}

#[test]
fn for_model_changes_the_window_alone() {
    assert_eq!(
        SummarizationConfig::for_model("openai/gpt-4o-mini"),
        SummarizationConfig::default().with_context_window(128_000),
    );
    assert_eq!(SummarizationConfig::for_model("unheard-of"), SummarizationConfig::default());
}

/// Every odd value is accepted with its documented meaning or refused by name.
#[test]
fn odd_values_are_accepted_with_a_meaning_or_refused_by_name() {
    let values = ["-1", "0", "0.75", "75.5", "100", "101", "4294967295", "\"75\"", "NaN", "1e2"]
        .into_iter()
        .chain(["null", "-5", "1000000000", "18446744073709551616", "[]", "{\"a\": [1]}"]);
    for value in values {
        for (field, ..) in every_field() {
            let name = variable(field);
            let json = format!(r#"{{"{field}": {value}}}"#);
            match SummarizationConfig::from_json_str(&json) {
                Ok(config) => config.check().unwrap(),
                Err(error) => assert!(error.to_string().contains(field), "{error}"),
            }
            match SummarizationConfig::load_with(None, [(&name, value)]) {
                Ok(config) => config.check().unwrap(),
                Err(error) => assert!(error.to_string().contains(&name), "{error}"),
            }
        }
    }
    assert_eq!(read(r#"{"token_percent": 1e2}"#).token_percent, Threshold::Above(100));
}
