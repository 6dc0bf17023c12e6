//! Everything that is kept.
