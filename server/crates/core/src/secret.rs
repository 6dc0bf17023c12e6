//! A text that cannot be printed.

use zeroize::Zeroizing;

/// A credential. It has no `Display`, its `Debug` says nothing, and its memory is wiped when it is dropped. The one way to
/// the text is [`Secret::expose`], which is easy to look for.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}
