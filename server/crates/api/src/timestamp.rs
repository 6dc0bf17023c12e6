//! A moment, as the admin API writes it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339, macros::format_description};

/// Milliseconds since the Unix epoch; RFC 3339 in UTC on the wire (`2026-11-30T03:14:07.912Z`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads RFC 3339 with any offset.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).ok().map(Self)
    }

    fn moment(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
            .to_offset(UtcOffset::UTC)
    }

    /// `2026-11-30T03:14:07.912Z`.
    #[must_use]
    pub fn rfc3339(self) -> String {
        self.moment()
            .format(format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"))
            .unwrap_or_default()
    }

    /// `03:14:07.912`, UTC.
    #[must_use]
    pub fn clock(self) -> String {
        self.moment().format(format_description!("[hour]:[minute]:[second].[subsecond digits:3]")).unwrap_or_default()
    }

    /// `03:14`, UTC.
    #[must_use]
    pub fn minute(self) -> String {
        self.moment().format(format_description!("[hour]:[minute]")).unwrap_or_default()
    }

    /// `2026-11-30`, UTC.
    #[must_use]
    pub fn date(self) -> String {
        self.moment().format(format_description!("[year]-[month]-[day]")).unwrap_or_default()
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is no RFC 3339 time; write for example 2027-02-28T00:00:00Z")))
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn written_in_utc_with_milliseconds_and_read_with_any_offset() {
        let moment = Timestamp::parse("2026-11-30T04:14:07.9+01:00");
        assert_eq!(moment.map(Timestamp::rfc3339).as_deref(), Some("2026-11-30T03:14:07.900Z"));
        assert_eq!(moment.map(Timestamp::clock).as_deref(), Some("03:14:07.900"));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }
}
