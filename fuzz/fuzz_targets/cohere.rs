//! What an upstream of Cohere's chat answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::answers("cohere", data));
