//! Amazon's event stream: messages of a length, headers and a payload, each checked twice.

use serde_json::Value;

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

fn size(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap().to_be_bytes()
}

/// One message, with headers that are all texts.
pub(crate) fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut written = Vec::new();
    for (name, value) in headers {
        written.push(u8::try_from(name.len()).unwrap());
        written.extend(name.as_bytes());
        written.push(7);
        written.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        written.extend(value.as_bytes());
    }
    let mut out = Vec::new();
    out.extend(size(16 + written.len() + payload.len()));
    out.extend(size(written.len()));
    out.extend(crc(&out).to_be_bytes());
    out.extend(written);
    out.extend(payload);
    out.extend(crc(&out).to_be_bytes());
    out
}

/// A stream of a list of `{"type": …, "payload": …}`. What is called an exception is sent as one; `{"error": code, "message": …}`
/// is an error without a payload.
pub(crate) fn stream(events: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events.as_array().expect("a list of events") {
        if let Some(code) = event["error"].as_str() {
            let said = event["message"].as_str().unwrap_or_default();
            out.extend(message(
                &[
                    (":message-type", "error"),
                    (":error-code", code),
                    (":error-message", said),
                ],
                b"",
            ));
            continue;
        }
        let kind = event["type"].as_str().or_else(|| event["exception"].as_str());
        let kind = kind.expect("an event has a type");
        let is_exception = event.get("exception").is_some() || kind.ends_with("Exception");
        let (says, name) = if is_exception {
            ("exception", ":exception-type")
        } else {
            ("event", ":event-type")
        };
        out.extend(message(
            &[
                (name, kind),
                (":content-type", "application/json"),
                (":message-type", says),
            ],
            event["payload"].to_string().as_bytes(),
        ));
    }
    out
}

#[test]
fn a_checksum_is_what_everybody_computes() {
    assert_eq!(crc(b"123456789"), 0xcbf4_3926);
}
