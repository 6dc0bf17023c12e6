//! What callers send, and what goes up of it on every wire.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::calls(data));
