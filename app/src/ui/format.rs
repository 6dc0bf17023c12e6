//! Numbers and moments as people read them.
//!
//! Everything here is pure, so the server and the browser write the same characters and hydration finds what it
//! expects. What is not known is [`ABSENT`], never zero: an operator must be able to tell "none" from "not measured".

use switchyard_api::{Range, Timestamp};

/// Stands where a value was never measured or never reported.
pub const ABSENT: &str = "–";

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// `57,204`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count with three digits that count, where the exact one would not tell more: `9,804`, `44.1 M`, `1.20 bn`.
pub fn short(n: u64) -> String {
    let (unit, scale) = match n {
        0..1_000_000 => return count(n),
        1_000_000..999_500_000 => ("M", 1e6),
        _ => ("bn", 1e9),
    };
    match n as f64 / scale {
        n if n < 9.995 => format!("{n:.2} {unit}"),
        n if n < 99.95 => format!("{n:.1} {unit}"),
        n => format!("{n:.0} {unit}"),
    }
}

/// `1 request`, `57,204 requests`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A count, or [`ABSENT`].
pub fn count_or_absent(n: Option<u64>) -> String {
    n.map_or_else(|| ABSENT.to_owned(), count)
}

/// A span of time with three digits that count: `0.19 ms`, `8.2 ms`, `312 ms`, `2.41 s`, `12.4 s`, `2 min 5 s`.
pub fn millis(ms: f64) -> String {
    // Each bound is where the next finer form would round up to a digit more.
    match ms {
        ms if ms < 0.995 => format!("{ms:.2} ms"),
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 9_995.0 => format!("{:.2} s", ms / 1e3),
        ms if ms < 59_950.0 => format!("{:.1} s", ms / 1e3),
        ms => {
            let seconds = (ms / 1e3).round();
            format!("{} min {} s", (seconds / 60.0).floor(), seconds % 60.0)
        }
    }
}

/// A span of time, or [`ABSENT`].
pub fn millis_or_absent(ms: Option<f64>) -> String {
    ms.map_or_else(|| ABSENT.to_owned(), millis)
}

/// The share that was not lost, rounded down: `100 %` stands for every single one and for nothing less.
pub fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => ABSENT.to_owned(),
        _ if part >= whole => "100 %".to_owned(),
        _ => {
            let tenths = u128::from(part) * 1_000 / u128::from(whole);
            format!("{}.{} %", tenths / 10, tenths % 10)
        }
    }
}

/// Requests a minute over a range: `953/min`, `0.4/min`.
pub fn rate(requests: u64, range: Range) -> String {
    let rate = requests as f64 / range.minutes() as f64;
    match rate {
        0.0 => "0/min".to_owned(),
        rate if rate < 0.1 => "under 0.1/min".to_owned(),
        rate if rate < 9.95 => format!("{rate:.1}/min"),
        rate => format!("{}/min", count(rate.round() as u64)),
    }
}

/// Dollars: cents for what has some, two digits that count below that. `$41.07`, `$0.0061`, `$0.000012`.
pub fn usd(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        amount if amount >= 0.995 => format!("${amount:.2}"),
        amount if amount >= 0.000_995 => format!("${amount:.4}"),
        amount => format!("${amount:.6}"),
    }
}

/// Dollars, or that no price is known.
pub fn usd_or_no_price(amount: Option<f64>) -> String {
    amount.map_or_else(|| "no price".to_owned(), usd)
}

/// Tokens in and out, `1,204 / 311`.
pub fn in_out(tokens_in: Option<u64>, tokens_out: Option<u64>) -> String {
    format!("{} / {}", count_or_absent(tokens_in), count_or_absent(tokens_out))
}

/// How long before `now` something was: `just now`, `14 s ago`, `3 min ago`, `5 h ago`, `2 days ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    match now.0 - at.0 {
        ms if ms < SECOND => "just now".to_owned(),
        ms => format!("{} ago", span(ms)),
    }
}

/// How far ahead of `now` something is, `in 89 days`; in the past, how long ago.
pub fn until(at: Timestamp, now: Timestamp) -> String {
    match at.0 - now.0 {
        ms if ms < SECOND => ago(at, now),
        ms => format!("in {}", span(ms)),
    }
}

/// A span of time in its largest unit: `24 s`, `5 min`, `2 days`.
pub fn span(ms: i64) -> String {
    match ms {
        ms if ms < MINUTE => format!("{} s", ms / SECOND),
        ms if ms < HOUR => format!("{} min", ms / MINUTE),
        ms if ms < DAY => format!("{} h", ms / HOUR),
        ms if ms < 2 * DAY => "1 day".to_owned(),
        ms => format!("{} days", ms / DAY),
    }
}

/// `03:14:07 UTC`.
pub fn clock(at: Timestamp) -> String {
    let clock = at.clock();
    format!("{} UTC", clock.split('.').next().unwrap_or_default())
}

/// `2026-11-30 03:14:07.912 UTC`: a moment in full, for titles and facts.
pub fn moment(at: Timestamp) -> String {
    format!("{} {} UTC", at.date(), at.clock())
}

/// A range as a chip names it.
pub const fn range_name(range: Range) -> &'static str {
    match range {
        Range::Minutes15 => "15 min",
        Range::Hour1 => "1 hour",
        Range::Hours24 => "24 hours",
        Range::Days7 => "7 days",
    }
}

/// What a number is compared with, in words.
pub const fn range_before(range: Range) -> &'static str {
    match range {
        Range::Minutes15 => "the 15 min before",
        Range::Hour1 => "the hour before",
        Range::Hours24 => "the 24 h before",
        Range::Days7 => "the 7 days before",
    }
}

/// A moment to come, absolute and from `now`: `03:12:40 UTC, in 24 s`; with its date when that is another day's.
pub fn when(at: Timestamp, now: Timestamp) -> String {
    let date = if at.date() == now.date() {
        String::new()
    } else {
        at.date() + " "
    };
    format!("{date}{}, {}", clock(at), until(at, now))
}

/// Names as a sentence lists them: `a`, `a and b`, `a, b and c`.
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The first `limit` characters, and whether any were left out. Counts characters, so it never cuts inside one.
pub fn head(text: &str, limit: usize) -> (&str, bool) {
    match text.char_indices().nth(limit) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let written: Vec<_> = [0, 7, 999, 1_000, 57_204, 1_234_567].into_iter().map(count).collect();
        assert_eq!(written, ["0", "7", "999", "1,000", "57,204", "1,234,567"]);
        let short: Vec<_> = [9_804, 9_804_010, 44_120_331, 999_499_999, 1_200_000_000]
            .into_iter()
            .map(short)
            .collect();
        assert_eq!(short, ["9,804", "9.80 M", "44.1 M", "999 M", "1.20 bn"]);
        assert_eq!(counted(1, "request", "requests"), "1 request");
        assert_eq!(in_out(Some(2_048), None), "2,048 / –");
    }

    #[test]
    fn spans_keep_three_digits_and_name_their_unit() {
        let written: Vec<_> = [
            0.0, 0.19, 0.996, 8.24, 9.96, 311.6, 999.6, 2_408.0, 12_350.0, 59_960.0, 125_000.0,
        ]
        .map(millis)
        .into();
        assert_eq!(
            written,
            [
                "0.00 ms",
                "0.19 ms",
                "1.0 ms",
                "8.2 ms",
                "10 ms",
                "312 ms",
                "1.00 s",
                "2.41 s",
                "12.3 s",
                "1 min 0 s",
                "2 min 5 s"
            ]
        );
        assert_eq!(millis_or_absent(None), "–");
    }

    #[test]
    fn one_lost_request_is_never_a_hundred_percent() {
        assert_eq!(share(99_999, 100_000), "99.9 %");
        assert_eq!(share(10, 10), "100 %");
        assert_eq!(share(0, 0), "–");
    }

    #[test]
    fn rates_and_money_have_a_unit() {
        assert_eq!(
            [rate(57_204, Range::Hour1), rate(1, Range::Hours24)],
            ["953/min", "under 0.1/min"]
        );
        assert_eq!(
            [41.071, 0.0061, 0.000_012, 0.0].map(usd),
            ["$41.07", "$0.0061", "$0.000012", "$0"]
        );
        assert_eq!(usd_or_no_price(None), "no price");
    }

    #[test]
    fn ages_look_both_ways() {
        let now = Timestamp(1_000 * DAY);
        let ages: Vec<_> = [100, 14 * SECOND, 3 * MINUTE, 5 * HOUR, 25 * HOUR, 9 * DAY]
            .into_iter()
            .map(|ms| ago(Timestamp(now.0 - ms), now))
            .collect();
        assert_eq!(
            ages,
            [
                "just now",
                "14 s ago",
                "3 min ago",
                "5 h ago",
                "1 day ago",
                "9 days ago"
            ]
        );
        assert_eq!(until(Timestamp(now.0 + 30 * DAY), now), "in 30 days");
        assert_eq!(until(Timestamp(now.0 - 2 * HOUR), now), "2 h ago");
    }

    #[test]
    fn moments_name_their_zone() {
        let at = Timestamp(1_796_008_447_912);
        assert_eq!(moment(at), "2026-11-30 03:14:07.912 UTC");
        assert_eq!(clock(at), "03:14:07 UTC");
    }

    #[test]
    fn a_moment_to_come_is_told_both_ways_and_with_its_day_when_it_is_another() {
        let now = Timestamp(1_796_008_447_912);
        assert_eq!(when(Timestamp(now.0 + 24_000), now), "03:14:31 UTC, in 24 s");
        assert_eq!(when(Timestamp(now.0 + DAY), now), "2026-12-01 03:14:07 UTC, in 1 day");
    }

    #[test]
    fn names_are_listed_as_one_says_them() {
        assert_eq!(
            [&[][..], &["a"], &["a", "b"], &["a", "b", "c"]].map(listed),
            ["", "a", "a and b", "a, b and c"]
        );
    }

    #[test]
    fn a_cut_never_falls_inside_a_character() {
        assert_eq!(head("grün", 3), ("grü", true));
        assert_eq!(head("grün", 4), ("grün", false));
    }
}
