//! A moment, as the admin API writes it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

/// Milliseconds since the Unix epoch; RFC 3339 in UTC on the wire (`2026-11-30T03:14:07.912Z`).
///
/// The calendar is the library's. Its text formats are not used: interpreting them would be a tenth of what the dashboard
/// loads, for one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads RFC 3339 with any offset.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let date = read_date(&mut rest)?;
        literal(&mut rest, "Tt ")?;
        let time = read_time(&mut rest)?;
        let offset = read_offset(&mut rest)?;
        if !rest.is_empty() {
            return None;
        }
        let moment = PrimitiveDateTime::new(date, time).assume_offset(offset);
        i64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000))
            .ok()
            .map(Self)
    }

    fn moment(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// `2026-11-30T03:14:07.912Z`.
    #[must_use]
    pub fn rfc3339(self) -> String {
        format!("{}T{}Z", self.date(), self.clock())
    }

    /// `03:14:07.912`, UTC.
    #[must_use]
    pub fn clock(self) -> String {
        let moment = self.moment();
        format!("{}:{:02}.{:03}", self.minute(), moment.second(), moment.millisecond())
    }

    /// `03:14`, UTC.
    #[must_use]
    pub fn minute(self) -> String {
        let moment = self.moment();
        format!("{:02}:{:02}", moment.hour(), moment.minute())
    }

    /// `2026-11-30`, UTC.
    #[must_use]
    pub fn date(self) -> String {
        let (year, month, day) = self.moment().to_calendar_date();
        format!("{year:04}-{:02}-{day:02}", u8::from(month))
    }
}

/// Takes exactly `digits` digits off the front.
fn number<N: std::str::FromStr>(rest: &mut &str, digits: usize) -> Option<N> {
    let taken = rest
        .get(..digits)
        .filter(|taken| taken.bytes().all(|b| b.is_ascii_digit()))?;
    *rest = &rest[digits..];
    taken.parse().ok()
}

/// Takes one of these characters off the front.
fn literal(rest: &mut &str, any_of: &str) -> Option<char> {
    let first = rest.chars().next().filter(|c| any_of.contains(*c))?;
    *rest = &rest[first.len_utf8()..];
    Some(first)
}

fn read_date(rest: &mut &str) -> Option<Date> {
    let year = number(rest, 4)?;
    literal(rest, "-")?;
    let month: u8 = number(rest, 2)?;
    literal(rest, "-")?;
    Date::from_calendar_date(year, Month::try_from(month).ok()?, number(rest, 2)?).ok()
}

fn read_time(rest: &mut &str) -> Option<Time> {
    let hour = number(rest, 2)?;
    literal(rest, ":")?;
    let minute = number(rest, 2)?;
    literal(rest, ":")?;
    // A leap second is the last moment of the second before it.
    let second = number::<u8>(rest, 2).filter(|second| *second <= 60)?.min(59);
    let mut nanos = 0;
    if literal(rest, ".").is_some() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let kept = rest.get(..digits.min(9)).filter(|kept| !kept.is_empty())?;
        nanos = kept.parse::<u32>().ok()? * 10_u32.pow(9 - u32::try_from(kept.len()).ok()?);
        *rest = &rest[digits..];
    }
    Time::from_hms_nano(hour, minute, second, nanos).ok()
}

fn read_offset(rest: &mut &str) -> Option<UtcOffset> {
    let sign = match literal(rest, "Zz+-")? {
        '+' => 1,
        '-' => -1,
        _ => return Some(UtcOffset::UTC),
    };
    let hours: i8 = number(rest, 2)?;
    literal(rest, ":")?;
    let minutes: i8 = number(rest, 2)?;
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format!(
                "`{text}` is no RFC 3339 time; write for example 2027-02-28T00:00:00Z"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn written_in_utc_with_milliseconds_and_read_with_any_offset() {
        for (text, want) in [
            ("2026-11-30T04:14:07.9+01:00", "2026-11-30T03:14:07.900Z"),
            ("2026-11-30T03:14:07Z", "2026-11-30T03:14:07.000Z"),
            ("2026-12-31T23:59:60-02:30", "2027-01-01T02:29:59.000Z"),
            ("1969-12-31t23:59:59.123456789123z", "1969-12-31T23:59:59.123Z"),
            ("2024-02-29 00:00:00Z", "2024-02-29T00:00:00.000Z"),
        ] {
            assert_eq!(
                Timestamp::parse(text).map(Timestamp::rfc3339).as_deref(),
                Some(want),
                "{text}"
            );
        }
        assert_eq!(Timestamp(0).clock(), "00:00:00.000");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "yesterday",
            "2026-11-30",
            "2026-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2026-11-30T24:00:00Z",
            "2026-11-30T00:00:00",
            "2026-11-30T00:00:00.Z",
            "2026-11-30T00:00:00Zx",
            "+026-11-30T00:00:00Z",
            "2026-11-30T00:00:61Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
