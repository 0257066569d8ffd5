//! The reader of NCCL's topology XML, on any text.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/family/tests/nccl/look.rs"]
mod look;

libfuzzer_sys::fuzz_target!(|text: &str| look::read_both_ways(text));
