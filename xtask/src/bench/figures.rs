//! Figures by name, and what is made of those of several rounds.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What one measurement gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    numbers: BTreeMap<String, f64>,
    /// What went wrong, and how often. There is to be nothing.
    pub(super) failures: Vec<String>,
}

impl Figures {
    pub(super) fn read(json: &str) -> Result<Self> {
        let object: Map<String, Value> = serde_json::from_str(json).with_context(|| format!("no figures: {json}"))?;
        let failures = object.get("failures").and_then(Value::as_object);
        let failures = failures.into_iter().flatten();
        Ok(Self {
            failures: failures.map(|(what, count)| format!("{count} × {what}")).collect(),
            numbers: object
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.as_f64()?)))
                .collect(),
        })
    }

    pub(super) fn get(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn json(&self) -> Value {
        self.numbers
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(*value)))
            .collect()
    }
}

/// One figure of every round.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    sorted: Vec<f64>,
}

impl FromIterator<f64> for Spread {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }
}

impl Spread {
    /// Not a number where nothing was measured.
    pub(super) fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        match (
            self.sorted.get(middle),
            middle.checked_sub(1).and_then(|below| self.sorted.get(below)),
        ) {
            (Some(upper), Some(lower)) if self.sorted.len().is_multiple_of(2) => f64::midpoint(*upper, *lower),
            (Some(value), _) => *value,
            (None, _) => f64::NAN,
        }
    }

    /// The median, and in brackets between what it lies: `1.21 (1.15–1.30)`.
    pub(super) fn ratio(&self) -> String {
        match self.sorted.as_slice() {
            [] => "–".to_owned(),
            [one] => format!("{one:.2}"),
            [least, .., most] => format!("{:.2} ({least:.2}–{most:.2})", self.median()),
        }
    }
}

/// With as many digits as mean something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "–".to_owned(),
        size if size < 9.95 => format!("{value:.2}"),
        size if size < 99.5 => format!("{value:.1}"),
        _ => thousands(value),
    }
}

fn thousands(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", grouped(&format!("{:.0}", value.abs())))
}

/// A whole number, as people write it: `10,000`.
pub(super) fn whole(count: usize) -> String {
    grouped(&count.to_string())
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Figures, Spread, number};

    #[test]
    fn a_median_and_its_spread() {
        let spread = |values: &[f64]| values.iter().copied().collect::<Spread>();
        assert_eq!(spread(&[3.0, 1.0, 2.0]).ratio(), "2.00 (1.00–3.00)");
        assert_eq!(spread(&[3.0, 1.0]).ratio(), "2.00 (1.00–3.00)");
        assert_eq!(spread(&[1.5]).ratio(), "1.50");
        assert_eq!(spread(&[f64::NAN]).ratio(), "–");
    }

    #[test]
    fn numbers_have_few_digits() {
        let texts = [0.123, 45.67, 678.9, 12_345.0, -1_234_567.0, f64::NAN].map(number);
        assert_eq!(texts, ["0.12", "45.7", "679", "12,345", "-1,234,567", "–"]);
    }

    #[test]
    fn figures_are_numbers_and_failures() {
        let figures = Figures::read(r#"{"requests": 7, "failures": {"status 503": 2}}"#).unwrap();
        assert!((figures.get("requests") - 7.0).abs() < f64::EPSILON);
        assert!(figures.get("other").is_nan());
        assert_eq!(figures.failures, ["2 × status 503"]);
    }
}
