//! Runs what the fuzzer runs, on the corpus that is kept.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "all of it is a test, also outside of the test functions"
)]

#[path = "../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "to the fuzzer it is a crate")]
mod targets;

use std::fs;

fn each(corpus: &str, run: fn(&[u8])) {
    let mut files = 0;
    for entry in fs::read_dir(format!("fuzz/corpus/{corpus}")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        println!("{}", path.display());
        run(&bytes);
        // And what a file that is being written may be.
        for part in 1..16 {
            run(bytes.get(..bytes.len() * part / 16).unwrap());
        }
        files += 1;
    }
    assert!(files > 0, "{corpus}");
}

#[test]
fn histories() {
    each("histories", targets::histories);
}

#[test]
fn import() {
    each("import", targets::import);
}

#[test]
fn parse() {
    each("parse", targets::parse);
}

#[test]
fn store() {
    each("store", targets::store);
}

#[test]
fn summarize() {
    each("summarize", targets::summarize);
}
