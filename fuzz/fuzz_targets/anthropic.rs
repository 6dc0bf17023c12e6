//! What an upstream of Anthropic's Messages answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::answers("anthropic", data));
