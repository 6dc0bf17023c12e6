//! Frames of Amazon's event stream whose checksums are right, and whose content is anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::event_stream(data));
