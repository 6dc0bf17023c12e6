//! Ids of calls of tools, across wires that do not agree on what an id is.
//!
//! An id goes through as it is wherever it may. Where a wire has none, one is made of the request's id; where a wire does not
//! take what another made, it is replaced by a digest of it. Either way the same id always becomes the same, so calls and
//! results that name each other still do after any number of turns.

use crate::Origin;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt::Write as _;

/// An id for the `n`th call of an answer from a wire without ids.
pub(crate) fn made(origin: &Origin, n: usize) -> String {
    let id: String = origin.id.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
    format!("call_{id}{n}")
}

/// The id itself if a wire takes it: at most `longest` letters, digits, `-` and `_`. Otherwise one that it takes.
pub(crate) fn fitting(id: &str, longest: usize) -> Cow<'_, str> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if !id.is_empty() && id.len() <= longest && id.bytes().all(fits) {
        return Cow::Borrowed(id);
    }
    let mut made = String::from("call_");
    for byte in Sha256::digest(id.as_bytes()).iter().take(12) {
        // Writing to a string does not fail.
        let _ = write!(made, "{byte:02x}");
    }
    made.truncate(longest);
    Cow::Owned(made)
}

#[cfg(test)]
mod tests {
    use super::{fitting, made};
    use crate::Origin;

    #[test]
    fn an_id_that_fits_stays_and_another_becomes_the_same_every_time() {
        assert_eq!(
            fitting("toolu_01A09q90qw90lq917835lq9", 64),
            "toolu_01A09q90qw90lq917835lq9"
        );
        let odd = fitting("functions.get_weather:0", 64);
        assert_eq!(odd, fitting("functions.get_weather:0", 64));
        assert_ne!(odd, fitting("functions.get_weather:1", 64));
        assert!(odd.starts_with("call_") && odd.len() == 29, "{odd}");
        for id in ["", "a b", &"x".repeat(65)] {
            let fitted = fitting(id, 64);
            assert_eq!(fitting(&fitted, 64), fitted, "{id}");
        }
        assert!(fitting(&"x".repeat(65), 9).len() == 9);
    }

    #[test]
    fn made_ids_differ_by_request_and_by_place() {
        let origin = |id: &str| Origin { id: id.into(), at: 0 };
        let (one, two) = (
            origin("0193f0a0b1c2d3e4f5061728394a5b6c"),
            origin("1193f0a0b1c2d3e4f5061728394a5b6c"),
        );
        assert_eq!(made(&one, 0), "call_0193f0a0b1c2d3e4f50617280");
        assert_ne!(made(&one, 0), made(&one, 1));
        assert_ne!(made(&one, 0), made(&two, 0));
        assert_eq!(fitting(&made(&one, 12), 40), made(&one, 12));
    }
}
