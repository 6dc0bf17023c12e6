//! What an upstream of Bedrock's Converse answers, checksums wrong as a rule.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchyard_fuzz::answers("bedrock", data));
