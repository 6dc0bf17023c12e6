//! Server-sent events, cut anywhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::sse(data));
