//! What an upstream of OpenAI's Responses answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::answers("responses", data));
