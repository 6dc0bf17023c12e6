//! A request for embeddings, and what comes back.

use super::Stranger;
use switchyard_core::usage::Usage;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embed {
    pub inputs: Vec<EmbedInput>,
    /// Length of each vector.
    pub dimensions: Option<u64>,
    pub encoding: Encoding,
    /// What they are for: `search_document`, `search_query`, `classification`, `clustering`.
    pub input_type: Option<String>,
    pub user: Option<String>,
    pub strangers: Vec<Stranger>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedInput {
    Text(String),
    /// Ids of the model's own tokens.
    Tokens(Vec<u64>),
}

/// How the caller wants its vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Floats,
    /// Of 32-bit floats, little-endian.
    Base64,
}

/// One for each input, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors {
    pub model: Option<String>,
    pub vectors: Vec<Vec<f32>>,
    pub usage: Usage,
}
