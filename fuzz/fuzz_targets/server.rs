//! All that is decided, drawn, explained and found about a server, on any text that is read as one.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/family/tests/nccl/look.rs"]
mod look;

libfuzzer_sys::fuzz_target!(|text: &str| look::ask_everything(text));
