#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| session_compaction_fuzz::store(bytes));
