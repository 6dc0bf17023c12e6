//! What an upstream answers with a status that is no success.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::failure(data));
