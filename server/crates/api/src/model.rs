//! Models as `GET /v1/models` lists them.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    pub id: String,
    /// Always `model`.
    pub object: String,
    /// Seconds since the Unix epoch; 0 when the upstream does not say.
    pub created: i64,
    /// Provider id of the first target that serves it.
    pub owned_by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelList {
    /// Always `list`.
    pub object: String,
    pub data: Vec<Model>,
}
