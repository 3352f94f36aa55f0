//! Plays every case under `tests/cases`, and every file in the folder that the
//! environment variable `CASES_DIR` names: one test a file.
//!
//! `tests/cases/PASSING` lists the ids that pass. A listed one that fails, and
//! a file with anything that the runner does not know, fails the run; others
//! may fail and are named with the reason. A listing that is out of date the
//! other way round is told, too.

#![expect(clippy::print_stdout, reason = "a test harness speaks")]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it is a test, which clippy does not see without the standard harness"
)]

mod cases_support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex},
};

use cases_support::{Loaded, Stop, watch_panics};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Ids that ended one way.
#[derive(Debug, Default)]
struct Ended {
    passed: Vec<String>,
    failed: Vec<String>,
    not_built: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    watch_panics();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let passing = Arc::new(read_passing(&own.join("PASSING")));
    let ended = Arc::new(Mutex::new(Ended::default()));

    let mut files = case_files(&own);
    if let Some(folder) = std::env::var_os("CASES_DIR") {
        let others = case_files(Path::new(&folder));
        assert!(!others.is_empty(), "CASES_DIR: no case in {}", Path::new(&folder).display());
        let known: BTreeSet<_> = files.iter().map(|(_, text)| text.clone()).collect();
        files.extend(others.into_iter().filter(|(_, text)| !known.contains(text)));
    }
    let mut names = BTreeSet::new();
    let trials = files.into_iter().map(|(path, text)| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().unwrap_or(&path).display();
        let name = if names.insert(stem.clone()) { stem } else { format!("{folder}/{stem}") };
        let (passing, ended, shown) = (Arc::clone(&passing), Arc::clone(&ended), name.clone());
        Trial::ignorable_test(name, move || {
            let result = Loaded::parse(&text).and_then(|case| {
                let listed = passing.contains(case.id());
                conclude(&shown, &case, listed, case.run(), &ended)
            });
            result.map_err(|stop| stop.to_string().into())
        })
    });
    let mut trials: Vec<_> = trials.collect();
    trials.push(Trial::test("runner_refuses_what_it_does_not_know", refuses_the_unknown));
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        summarize(&ended.lock().unwrap(), &passing);
    }
    conclusion.exit_code()
}

/// A file with anything unknown in it is malformed, wherever it stands.
fn refuses_the_unknown() -> Result<(), Failed> {
    let case = |steps: &str, messages: &str, asserts: &str, more: &str| {
        format!(
            r#"{{"id": "x", "title": "x", "config": {{}}, "messages": {messages}, "steps": {steps},
                "assert": {asserts}{more}}}"#
        )
    };
    let known = case(
        r#"[{"op": "repeat", "n": 2, "steps": [{"op": "summarize", "llm": {"script": [{"hang": true}]}}]}]"#,
        r#"[{"$times": [2, [{"role": "user", "content": {"$concat": ["{i}", {"$repeat": ["b", 3]}]}}]]}]"#,
        r#"[{"no_panic": true}, {"tokens_between": [1, 2]}]"#,
        "",
    );
    Loaded::parse(&known).map_err(|stop| format!("a known case is refused: {stop}"))?;
    for unknown in [
        case(r#"[{"op": "dance"}]"#, "[]", "[]", ""),
        case(r#"[{"op": "clear", "twice": true}]"#, "[]", "[]", ""),
        case(r#"[{"op": "repeat", "n": 1, "steps": [{"op": "dance"}]}]"#, "[]", "[]", ""),
        case(r#"[{"op": "summarize", "llm": {"mood": "bad"}}]"#, "[]", "[]", ""),
        case(r#"[{"op": "summarize", "llm": {"script": [{"mood": "bad"}]}}]"#, "[]", "[]", ""),
        case("[]", r#"[{"role": "user", "content": {"$random": 3}}]"#, "[]", ""),
        case("[]", r#"[{"role": "user", "content": {"$repeat": "b"}}]"#, "[]", ""),
        case("[]", "[]", r#"[{"is_nice": true}]"#, ""),
        case("[]", "[]", r#"[{"no_panic": false}]"#, ""),
        case("[]", "[]", r#"[{"valid_for": ["mistral"]}]"#, ""),
        case("[]", "[]", "[]", r#", "extra": 1"#),
    ] {
        if !matches!(Loaded::parse(&unknown), Err(Stop::Malformed(_))) {
            return Err(format!("accepted: {unknown}").into());
        }
    }
    Ok(())
}

/// What the outcome of a case means for the run.
fn conclude(
    name: &str,
    case: &Loaded,
    listed: bool,
    result: Result<(), Stop>,
    ended: &Mutex<Ended>,
) -> Result<Completion, Stop> {
    let mut ended = ended.lock().unwrap();
    match result {
        Ok(()) => {
            ended.passed.push(name.into());
            Ok(Completion::Completed)
        }
        Err(Stop::Skipped(why)) => Ok(Completion::ignored_with(format!("skipped: {why}"))),
        Err(stop) => {
            ended.failed.push(name.into());
            if matches!(stop, Stop::NotBuilt(_)) {
                ended.not_built.push(name.into());
            }
            println!("{name} failed ({}): {}", case.title(), shortened(&stop.to_string()));
            if listed || matches!(stop, Stop::Malformed(_)) {
                return Err(stop);
            }
            Ok(Completion::ignored_with("fails, and is not listed as passing"))
        }
    }
}

fn summarize(ended: &Ended, passing: &BTreeSet<String>) {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.join(" ")
    };
    let (passed, failed) = (ended.passed.len(), ended.failed.len());
    println!("passed: {}", sorted(&ended.passed));
    println!("failed: {}", sorted(&ended.failed));
    let unlisted = ended.passed.iter().filter(|name| !passing.contains(*name)).cloned();
    let unlisted: Vec<_> = unlisted.collect();
    if !unlisted.is_empty() {
        println!("passed, and not yet listed in tests/cases/PASSING: {}", sorted(&unlisted));
    }
    let not_built = ended.not_built.len();
    println!(
        "cases: {passed} passed, {failed} failed ({not_built} of them need what is not built yet)"
    );
}

/// The JSON files of a folder and their texts, by name.
fn case_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|ext| ext == "json")).collect();
    paths.sort_unstable();
    let read = |path: PathBuf| {
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

fn read_passing(file: &Path) -> BTreeSet<String> {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

fn shortened(text: &str) -> String {
    const MOST: usize = 1_000;
    let end = text.floor_char_boundary(MOST);
    if end == text.len() { text.to_owned() } else { format!("{} ..", &text[..end]) }
}
