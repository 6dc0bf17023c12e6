//! The overview.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// How far back the overview looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Range {
    #[serde(rename = "15m")]
    Minutes15,
    #[default]
    #[serde(rename = "1h")]
    Hour1,
    #[serde(rename = "24h")]
    Hours24,
    #[serde(rename = "7d")]
    Days7,
}

impl Range {
    pub const ALL: [Self; 4] = [Self::Minutes15, Self::Hour1, Self::Hours24, Self::Days7];

    /// As it stands in an address: `15m`, `1h`, `24h`, `7d`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minutes15 => "15m",
            Self::Hour1 => "1h",
            Self::Hours24 => "24h",
            Self::Days7 => "7d",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.as_str() == text)
    }

    #[must_use]
    pub const fn minutes(self) -> i64 {
        match self {
            Self::Minutes15 => 15,
            Self::Hour1 => 60,
            Self::Hours24 => 24 * 60,
            Self::Days7 => 7 * 24 * 60,
        }
    }

    /// Width of one bar of the chart.
    #[must_use]
    pub const fn bucket_minutes(self) -> i64 {
        match self {
            Self::Minutes15 | Self::Hour1 => 1,
            Self::Hours24 => 30,
            Self::Days7 => 180,
        }
    }
}

/// `GET /admin/dashboard?range=1h`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dashboard {
    pub providers: ProviderCounts,
    pub keys: KeyCounts,
    pub request_logs: LogCounts,
    pub traffic: Traffic,
    /// The one sentence an operator came for.
    pub finding: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderCounts {
    pub total: u64,
    pub available: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCounts {
    pub total: u64,
    pub active: u64,
    pub expired: u64,
    pub total_usage: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCounts {
    pub enabled: bool,
    pub total: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    pub range: Range,
    /// When this was counted.
    pub as_of: Timestamp,
    pub bucket_minutes: i64,
    /// Oldest first, without gaps; the last one is still filling.
    pub points: Vec<TrafficPoint>,
    pub now: Summary,
    /// The same span of time before.
    pub before: Summary,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficPoint {
    pub start: Timestamp,
    /// Requests with the outcome `success`.
    pub answered: u64,
    pub failed: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub requests: u64,
    pub failed: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Median over streams. Absent when there was none.
    pub first_token_p50_ms: Option<f64>,
    pub overhead_p99_ms: Option<f64>,
    /// The percentiles are those of this many newest requests.
    pub sampled: u64,
}
