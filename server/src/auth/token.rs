//! The shapes of credentials.
//!
//! A key is `sy_` and 43 base64url characters of 32 random bytes; a session's token is `sys_` and 22 of 16. Both are stored
//! as SHA-256 only: they hold enough randomness for a plain hash, and the plain hash is what makes a lookup cheap.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use switchyard_core::secret::Secret;

const KEY_PREFIX: &str = "sy_";
const KEY_LENGTH: usize = 43;
pub(super) const SESSION_PREFIX: &str = "sys_";
const SESSION_LENGTH: usize = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    Key,
    /// The session's id, without the prefix.
    Session(&'a str),
    Other,
}

pub(super) fn shape(token: &str) -> Shape<'_> {
    let is = |rest: &str, length| {
        rest.len() == length
            && rest
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if token.strip_prefix(KEY_PREFIX).is_some_and(|rest| is(rest, KEY_LENGTH)) {
        return Shape::Key;
    }
    match token.strip_prefix(SESSION_PREFIX) {
        Some(id) if is(id, SESSION_LENGTH) => Shape::Session(id),
        _ => Shape::Other,
    }
}

pub(super) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A new key: the secret that is shown once, what is stored, and how it is displayed from then on.
pub(crate) struct Generated {
    pub(crate) secret: Secret,
    pub(crate) hash: [u8; 32],
    pub(crate) display: String,
}

/// # Errors
/// When the system has no randomness to give.
pub(crate) fn generate_key() -> Result<Generated, getrandom::Error> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)?;
    let text = format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let display = format!("{}…{}", &text[..7], &text[text.len() - 4..]);
    Ok(Generated {
        hash: hash(&text),
        secret: Secret::new(text),
        display,
    })
}

#[cfg(test)]
mod tests {
    use super::{Shape, generate_key, hash, shape};

    #[test]
    fn a_generated_key_has_its_own_shape_and_hides_in_its_display_form() {
        let key = generate_key().unwrap();
        let text = key.secret.expose();
        assert_eq!(shape(text), Shape::Key);
        assert_eq!(key.hash, hash(text));
        assert_eq!(key.display.chars().count(), 12);
        assert_ne!(generate_key().unwrap().hash, key.hash);
    }

    #[test]
    fn anything_else_never_looks_like_a_key() {
        for token in [
            "",
            "sy_",
            "sy_short",
            "sk-abc",
            &format!("sy_{}", "a".repeat(44)),
            &format!("sy_{}'", "a".repeat(42)),
        ] {
            assert_eq!(shape(token), Shape::Other, "{token}");
        }
        assert_eq!(
            shape("sys_0123456789abcdefABCDEF"),
            Shape::Session("0123456789abcdefABCDEF")
        );
        // A stored hash is no credential.
        let stored = hash("sy_x").iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(shape(&stored), Shape::Other);
    }
}
