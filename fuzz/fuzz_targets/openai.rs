//! What an upstream of OpenAI's chat answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::answers("openai", data));
