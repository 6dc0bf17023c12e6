//! What an upstream of Gemini's generateContent answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::answers("gemini", data));
