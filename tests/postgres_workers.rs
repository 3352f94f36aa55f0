//! The example with two worker processes, of which one is killed: its account
//! adds up. Runs where `DATABASE_URL` names a server, as `./test` starts one.

#![cfg(feature = "postgres")]

use std::process::Command;

#[test]
fn every_message_is_in_a_summary_or_in_a_window() {
    if std::env::var_os("DATABASE_URL").is_none() {
        return;
    }
    let example = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--all-features", "--example", "postgres_workers"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&example.stdout);
    let complaints = String::from_utf8_lossy(&example.stderr);
    assert!(example.status.success(), "{printed}{complaints}");
    let account = printed.lines().last().unwrap_or_default();
    assert!(account.starts_with("2160 messages in = "), "{printed}");
}
