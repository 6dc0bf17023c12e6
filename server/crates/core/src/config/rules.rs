//! Conditions of rules: `conditions` of a conditional strategy, `content_conditions` of a content-based one.

use super::reader::{Block, as_text, closest};
use super::strategy::Reader;
use super::tree::{Node, Value};
use crate::routing::{Compare, Condition, Content, TimeOfDay};
use regex::RegexBuilder;

/// Deepest nesting of `all`, `any` and `not`.
const DEEPEST: usize = 8;
/// Largest compiled form of a pattern, in bytes.
const LARGEST_PATTERN: usize = 1 << 20;

const KEYS: [&str; 11] = [
    "model",
    "model_prefix",
    "user",
    "stream",
    "has_tools",
    "metadata",
    "header",
    "key",
    "project",
    "prompt_tokens",
    "time",
];

/// Headers that carry credentials. Rules are shown to whoever may read the configuration.
const SECRET: [&str; 6] = [
    "api-key",
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
];

/// The header that `field` of a block names, in lower case. Whether it may be looked at is checked here.
pub(super) fn header(name: &str, block: &Block<'_>, reader: &mut Reader<'_>) -> String {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lower = name.to_ascii_lowercase();
    let (path, line) = (block.path_of("field"), block.line_of("field"));
    if !name.bytes().all(is_token) {
        let message = "is not a header name; write it without spaces and colons, such as \"X-Tenant\"";
        reader.faults.add(&path, line, message);
    } else if SECRET.contains(&lower.as_str()) {
        let message = format!("\"{name}\" carries a credential, which is not to be looked at; name another header");
        reader.faults.add(&path, line, message);
    }
    lower
}

/// One condition: `key` and `value`, or `all`, `any` or `not` of others.
pub(super) fn condition(block: &mut Block<'_>, reader: &mut Reader<'_>) -> Option<Condition> {
    nested(block, reader, 0)
}

fn nested(block: &mut Block<'_>, reader: &mut Reader<'_>, depth: usize) -> Option<Condition> {
    let groups = ["all", "any", "not"];
    let written: Vec<&'static str> = groups.into_iter().filter(|key| block.take(key).is_some()).collect();
    let plain = block.take("key").is_some();
    if written.len() + usize::from(plain) != 1 {
        let message = "needs exactly one of `key`, `all`, `any` and `not`";
        reader.faults.add(&block.path, block.line, message);
        block.take("value");
        block.take("field");
        return None;
    }
    let Some(group) = written.first() else {
        return single(block, reader);
    };
    if depth == DEEPEST {
        let message = format!("is nested more than {DEEPEST} deep; make the rule simpler");
        reader.faults.add(&block.path_of(group), block.line_of(group), message);
        return None;
    }
    if *group == "not" {
        let node = block.take("not")?;
        let inner = member(node, &block.path_of("not"), reader, depth)?;
        return Some(Condition::Not(Box::new(inner)));
    }
    if block.is_bare(group) {
        let message = "must hold at least one condition";
        reader.faults.add(&block.path_of(group), block.line_of(group), message);
    }
    let inner = block
        .list(group, reader.faults)
        .into_iter()
        .filter_map(|(node, path)| member(node, &path, reader, depth))
        .collect();
    Some(if *group == "all" {
        Condition::All(inner)
    } else {
        Condition::Any(inner)
    })
}

fn member(node: &Node, path: &str, reader: &mut Reader<'_>, depth: usize) -> Option<Condition> {
    let mut block = Block::of(node, path, reader.faults)?;
    let condition = nested(&mut block, reader, depth + 1);
    block.finish(reader.faults);
    condition
}

/// `true`, `"true"`, `8000`: a value is a text, however it was written.
fn value(block: &mut Block<'_>, reader: &mut Reader<'_>) -> Option<(String, u64)> {
    let path = block.path_of("value");
    let Some(node) = block.take("value") else {
        reader.faults.add(&path, block.line, "is required");
        return None;
    };
    let text = match node.value {
        Value::Bool(value) => value.to_string(),
        _ => as_text(node, &path, reader.faults)?,
    };
    Some((text, node.line))
}

fn single(block: &mut Block<'_>, reader: &mut Reader<'_>) -> Option<Condition> {
    let key = block.text("key", reader.faults);
    let field = block.text("field", reader.faults);
    let value = value(block, reader);
    let (path, key) = (block.path_of("value"), key?);
    if !KEYS.contains(&key.as_str()) {
        let hint = closest(&key, &KEYS).map_or_else(
            || format!("there are {}", KEYS.join(", ")),
            |known| format!("did you mean \"{known}\"?"),
        );
        let message = format!("\"{key}\" is nothing a rule can look at; {hint}");
        reader.faults.add(&block.path_of("key"), block.line_of("key"), message);
        return None;
    }
    let takes_field = key == "metadata" || key == "header";
    if takes_field && field.as_deref().unwrap_or_default().trim().is_empty() {
        let message = format!("is required with `key: {key}`: name the field to look at");
        reader
            .faults
            .add(&block.path_of("field"), block.line_of("field"), message);
        return None;
    }
    if !takes_field && field.is_some() {
        let message = "goes with `key: metadata` and `key: header` only; remove it";
        reader
            .faults
            .add(&block.path_of("field"), block.line_of("field"), message);
    }
    let mut field = field.unwrap_or_default();
    if key == "header" {
        field = header(&field, block, reader);
    }
    let (value, line) = value?;
    let mut wrong = |message: String| {
        reader.faults.add(&path, line, message);
        None
    };
    let padded = value.is_empty() || value.trim() != value;
    match key.as_str() {
        "user" if value.trim().is_empty() => wrong("must not be empty".to_owned()),
        "model" | "model_prefix" | "header" | "key" | "project" if padded => {
            wrong("must not be empty or have spaces around it".to_owned())
        }
        "model" if reader.aliases.contains(&value.as_str()) => wrong(format!(
            "\"{value}\" is an alias and would never match: aliases are resolved before; name the model it means"
        )),
        "model" => Some(Condition::Model(value)),
        "model_prefix" => Some(Condition::ModelPrefix(value)),
        "user" => Some(Condition::User(value)),
        "stream" | "has_tools" => match value.as_str() {
            "true" | "false" if key == "stream" => Some(Condition::Stream(value == "true")),
            "true" | "false" => Some(Condition::HasTools(value == "true")),
            _ => wrong(format!("must be true or false, not \"{value}\"")),
        },
        "metadata" => Some(Condition::Metadata { field, value }),
        "header" => Some(Condition::Header { name: field, value }),
        "key" => Some(Condition::Key(value)),
        "project" => Some(Condition::Project(value)),
        "prompt_tokens" => match comparison(&value) {
            Some((compare, bound)) => Some(Condition::PromptTokens(compare, bound)),
            None => wrong(format!(
                "\"{value}\" is no comparison; write such as \">= 8000\" or \"< 1000\""
            )),
        },
        "time" => match time_of_day(&value) {
            Some(time) => Some(Condition::Time(time)),
            None => wrong(format!(
                "\"{value}\" is no time of day; write such as \"22:00-06:00\" (UTC) or \"08:00-18:00 +01:00\""
            )),
        },
        _ => None,
    }
}

/// `>= 8000`; a number alone is a least.
fn comparison(text: &str) -> Option<(Compare, u64)> {
    let signs = [
        ("<=", Compare::AtMost),
        (">=", Compare::AtLeast),
        ("<", Compare::Less),
        (">", Compare::More),
        ("=", Compare::Equal),
        ("", Compare::AtLeast),
    ];
    signs.into_iter().find_map(|(sign, compare)| {
        let bound = text.trim().strip_prefix(sign)?.trim().parse().ok()?;
        Some((compare, bound))
    })
}

/// `22:00-06:00`, with a zone as `UTC` or `+01:00` behind it.
fn time_of_day(text: &str) -> Option<TimeOfDay> {
    let text = text.trim();
    let (range, zone) = text.split_once(' ').unwrap_or((text, "UTC"));
    let (from, until) = range.split_once('-')?;
    let offset = match zone.trim() {
        "UTC" | "Z" => 0,
        zone => {
            let minutes = i16::try_from(clock(zone.get(1..)?)?).ok()?;
            match zone.as_bytes().first()? {
                b'+' => minutes,
                b'-' => -minutes,
                _ => return None,
            }
        }
    };
    let (from, until) = (clock(from)?, clock(until)?);
    // A day ends at 24:00 and begins at 00:00.
    (from != until && from < 24 * 60).then_some(TimeOfDay { from, until, offset })
}

fn clock(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |text: &str, most: u16| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| digits && *number <= most)
    };
    let (hours, minutes): (u16, u16) = (two(hours, 24)?, two(minutes, 59)?);
    Some(hours * 60 + minutes).filter(|total| *total <= 24 * 60)
}

/// `type` and `value` over the prompt.
pub(super) fn content(block: &mut Block<'_>, reader: &mut Reader<'_>) -> Option<Content> {
    let kind = block.text("type", reader.faults).unwrap_or_default();
    let value = value(block, reader);
    let path = block.path_of("value");
    if !["prompt_contains", "prompt_not_contains", "prompt_regex"].contains(&kind.as_str()) {
        let found = if kind.is_empty() {
            "is required".to_owned()
        } else {
            format!("\"{kind}\" is not known")
        };
        let message = format!("{found}; use prompt_contains, prompt_not_contains or prompt_regex");
        reader
            .faults
            .add(&block.path_of("type"), block.line_of("type"), message);
    }
    let (value, line) = value?;
    if value.trim().is_empty() {
        let message = "must not be empty: it would match everything";
        reader.faults.add(&path, line, message);
        return None;
    }
    match kind.as_str() {
        "prompt_contains" => Some(Content::Contains(value.to_lowercase())),
        "prompt_not_contains" => Some(Content::NotContains(value.to_lowercase())),
        "prompt_regex" => match RegexBuilder::new(&value).size_limit(LARGEST_PATTERN).build() {
            Ok(regex) => Some(Content::Matches(regex)),
            Err(error) => {
                let said = error.to_string();
                let reason = said.lines().last().unwrap_or_default().trim();
                let message = format!(
                    "is no pattern that can be used: {}",
                    reason.trim_start_matches("error: ")
                );
                reader.faults.add(&path, line, message);
                None
            }
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{comparison, time_of_day};
    use crate::routing::{Compare, TimeOfDay};

    #[test]
    fn comparisons_have_a_sign_and_a_number() {
        assert_eq!(comparison(">= 8000"), Some((Compare::AtLeast, 8000)));
        assert_eq!(comparison("<1000"), Some((Compare::Less, 1000)));
        assert_eq!(comparison("500"), Some((Compare::AtLeast, 500)));
        assert_eq!(comparison("=5"), Some((Compare::Equal, 5)));
        for bad in ["", "> many", "8k", "!= 5", "-1"] {
            assert_eq!(comparison(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_of_day_have_a_zone() {
        let time = |from, until, offset| Some(TimeOfDay { from, until, offset });
        assert_eq!(time_of_day("22:00-06:00"), time(1320, 360, 0));
        assert_eq!(time_of_day("08:30-18:00 +01:00"), time(510, 1080, 60));
        assert_eq!(time_of_day("00:00-24:00 -05:30"), time(0, 1440, -330));
        for bad in [
            "8-18",
            "08:00",
            "08:00-08:00",
            "24:00-00:00",
            "25:00-26:00",
            "08:00-18:00 CET",
            "08:60-09:00",
        ] {
            assert_eq!(time_of_day(bad), None, "{bad}");
        }
    }
}
