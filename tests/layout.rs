//! The shape of the source: no arrow runs back up the list of modules, no file
//! is so long that it does two jobs, and what the README promises is tested.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{fs, path::PathBuf};

/// A module may use those before it, never those after it.
const ORDER: [&str; 16] = [
    "error",
    "usage",
    "message",
    "formats",
    "tokens",
    "config",
    "session",
    "provider",
    "plan",
    "event",
    "context",
    "store",
    "stats",
    "summarize",
    "manager",
    "testing",
];

const LONGEST: usize = 450;

fn sources() -> Vec<(PathBuf, String)> {
    rust_files("src")
}

fn rust_files(folder: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    files
}

/// The module names after `crate::` in the `use` declarations of a file,
/// whether they stand alone or in a group.
fn used(text: &str) -> Vec<String> {
    let mut used = Vec::new();
    for declaration in text.split("use crate::").skip(1) {
        let declaration = declaration.split(';').next().unwrap_or("");
        match declaration.strip_prefix('{') {
            None => used.extend(first_word(declaration)),
            Some(group) => {
                let mut depth = 0_i32;
                let mut start = true;
                for (at, c) in group.char_indices() {
                    if start && depth == 0 && c.is_alphabetic() {
                        used.extend(first_word(&group[at..]));
                        start = false;
                    }
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        _ => {}
                    }
                }
            }
        }
    }
    used
}

fn first_word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(word).filter(|word| !word.is_empty())
}

#[test]
fn groups_are_read() {
    let text = "use crate::{\n    error::{Error, Result},\n    plan::{self, Skip},\n    tokens::Tokens,\n};\nuse crate::usage::X;";
    assert_eq!(used(text), ["error", "plan", "tokens", "usage"]);
}

#[test]
fn no_arrow_runs_back_up() {
    let rank = |module: &str| ORDER.iter().position(|name| *name == module);
    let mut arrows = 0;
    for (path, text) in sources() {
        let inside = path.strip_prefix(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap();
        let first = inside.iter().next().unwrap().to_str().unwrap();
        let own = first.trim_end_matches(".rs");
        if own == "lib" {
            continue;
        }
        let own = rank(own).unwrap_or_else(|| panic!("{own} is not in the order of modules"));
        // What only tests use is no arrow.
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        if path.file_stem().is_some_and(|name| name.to_str().unwrap().ends_with("tests")) {
            continue;
        }
        for module in used(code) {
            let Some(other) = rank(&module) else { continue };
            arrows += 1;
            assert!(other <= own, "{} uses {module}, which comes after it", path.display());
        }
    }
    assert!(arrows > 30, "only {arrows} arrows were found: does this test still read the sources?");
}

#[test]
fn no_file_is_long() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LONGEST, "{} has {lines} lines", path.display());
    }
}

#[test]
fn each_failure_in_the_readme_has_its_test() {
    let readme = include_str!("../README.md");
    let (_, section) = readme.split_once("\n## When summarizing fails\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let files: String = ["src", "tests"]
        .into_iter()
        .flat_map(rust_files)
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join("\n");
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    for row in &rows {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, _, test] = cells[..] else { panic!("three cells: {row}") };
        let name = test.trim_matches('`');
        let (before, _) = files
            .split_once(&format!("fn {name}("))
            .unwrap_or_else(|| panic!("there is no test {name}"));
        let before = before.trim_end().trim_end_matches("async").trim_end();
        let attribute = before.lines().last().unwrap();
        assert!(attribute.contains("test"), "{name} is no test: {attribute}");
    }
    assert!(rows.len() >= 23, "{} rows: does this test still read the table?", rows.len());
}
