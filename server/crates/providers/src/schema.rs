//! JSON schemas, for wires that take a part of the language.
//!
//! Callers send JSON Schema as their libraries make it: references, unions, limits, annotations. Google's `Schema` is a part of
//! `OpenAPI` 3.0, and what is not in it fails the whole request. [`openapi`] says as much of a schema as that part can: it puts
//! definitions where they are referred to, tells in other words what can be told so, leaves out the rest, and keeps a list of
//! all of it for the caller. [`widened`] is the way back, for callers who write that part themselves.
//!
//! A schema is somebody else's text. One that refers to itself ends where it repeats, and one that doubles with each reference
//! is cut off at a size that no honest one has: it is counted in parts, and in bytes, for one part can be as large as it likes.

use crate::notes::Notes;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};

/// What a schema's root may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// Arguments of a tool have names.
    Object,
    Any,
}

/// A schema as a wire takes it, and what became of the caller's.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) schema: Map<String, Value>,
    told: Told,
}

#[derive(Debug, Default)]
struct Told {
    is_inlined: bool,
    /// It refers to itself, or is too large.
    is_cut_off: bool,
    is_wrapped: bool,
    reshaped: BTreeSet<&'static str>,
    dropped: BTreeSet<String>,
}

impl Lowered {
    /// An object without properties: no arguments.
    pub(crate) fn is_empty_object(&self) -> bool {
        self.schema.get("type").is_some_and(|kind| kind == "object") && !self.schema.contains_key("properties")
    }

    /// Notes what became of the schema that the caller wrote in `field`: once for each keyword, wherever in it that stands.
    pub(crate) fn tell(&self, field: &str, notes: &mut Notes) {
        let told = &self.told;
        let of = |keyword: &str| format!("{field}.{keyword}");
        if told.is_inlined {
            notes.mapped(
                of("$ref"),
                "replaced by what it refers to: the upstream's schemas have no references",
            );
        }
        if told.is_cut_off {
            notes.approximated(
                of("$ref"),
                "cut off where the schema refers to itself, or grows without end",
            );
        }
        if told.is_wrapped {
            notes.approximated(of("type"), "arguments must be an object: put into one as `value`");
        }
        for keyword in &told.reshaped {
            notes.approximated(of(keyword), "told in other keywords, which the upstream's schemas have");
        }
        for keyword in &told.dropped {
            notes.dropped(
                of(keyword),
                "the upstream's schemas have no such keyword, or not with this value",
            );
        }
    }
}

/// Nobody's schema is as deep, once its references are followed.
const DEEPEST: usize = 48;
/// Or has as many parts.
const MOST: usize = 20_000;
/// Or becomes so much longer by it, besides [`GROWTH`] times its length. All those of a request share it.
const ROOM: usize = 1 << 20;
const GROWTH: usize = 4;
/// A keyword that was left out is told by so many of its characters.
const LONGEST_NAME: usize = 80;
/// What a number or a word is counted as.
const SCALAR: usize = 8;
/// What a choice has around its type.
const CHOICE: usize = 12;

/// What is no more than a note to readers of the schema itself, or was used up.
const SILENT: [&str; 8] = [
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "$vocabulary",
    "id",
];

/// What the schemas of one request may become in bytes, all of them together: there may be a thousand tools.
#[derive(Debug)]
pub(crate) struct Budget {
    room: usize,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self { room: ROOM }
    }
}

/// Says a JSON schema in Google's part of `OpenAPI` 3.0.
pub(crate) fn openapi(schema: &Value, root: Root, budget: &mut Budget) -> Lowered {
    let own = weight(schema).saturating_mul(GROWTH);
    let mut walk = Walk {
        root: schema,
        following: Vec::new(),
        parts: 0,
        room: own.saturating_add(budget.room),
        told: Told::default(),
    };
    let mut made = walk.schema(schema, 0);
    if root == Root::Object {
        made = walk.as_object(made);
    }
    // Its own length pays for no other one.
    budget.room = budget.room.min(walk.room);
    Lowered {
        schema: made,
        told: walk.told,
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// References that are being followed.
    following: Vec<&'a str>,
    parts: usize,
    /// Bytes that may still be read and written out: every reference does both again with all that it refers to.
    room: usize,
    told: Told,
}

impl<'a> Walk<'a> {
    /// Takes so much of the room, or nothing if there is less.
    fn fits(&mut self, bytes: usize) -> bool {
        let left = self.room.checked_sub(bytes);
        match left {
            Some(left) => self.room = left,
            None => self.told.is_cut_off = true,
        }
        left.is_some()
    }

    /// The same for a value. A list is paid for as far as it was looked at, whether or not all of it fits: looking is work too.
    fn holds(&mut self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.fits(text.len() + 2),
            Value::Array(items) => items.iter().all(|item| self.fits(1) && self.holds(item)),
            Value::Object(members) => members
                .iter()
                .all(|(name, value)| self.fits(name.len() + 3) && self.holds(value)),
            _ => self.fits(SCALAR),
        }
    }

    fn schema(&mut self, written: &'a Value, depth: usize) -> Map<String, Value> {
        self.parts += 1;
        if depth > DEEPEST || self.parts > MOST {
            self.told.is_cut_off = true;
            return Map::new();
        }
        let Value::Object(written) = written else {
            // `true` allows everything, as no keyword does.
            if *written == Value::Bool(false) {
                self.told.dropped.insert("false".to_owned());
            }
            return Map::new();
        };
        let made = match written.get("$ref") {
            Some(Value::String(reference)) => self.follow(reference, written, depth),
            Some(_) => {
                self.told.dropped.insert("$ref".to_owned());
                Map::new()
            }
            None => Map::new(),
        };
        let own = self.keywords(written, depth);
        let mut made = merged(made, own);
        name_once(&mut made);
        self.spread(&mut made);
        made
    }

    /// What a reference refers to.
    fn follow(&mut self, reference: &'a str, written: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        if !self.fits(reference.len()) {
            return Map::new();
        }
        let root = self.root;
        let target = match reference.strip_prefix('#') {
            Some("") => Some(root),
            Some(pointer) => root.pointer(pointer),
            None => None,
        };
        let Some(target) = target else {
            self.told.dropped.insert("$ref".to_owned());
            return Map::new();
        };
        self.told.is_inlined = true;
        if self.following.contains(&reference) {
            self.told.is_cut_off = true;
            // What kind of thing it is can still be said.
            let mut keep = |name: &str| {
                let value = target.get(name).filter(|value| value.is_string())?;
                self.holds(value).then(|| (name.to_owned(), value.clone()))
            };
            let mut kept: Map<_, _> = [keep("type"), keep("description")].into_iter().flatten().collect();
            if kept.get("type").is_some_and(|kind| kind == "array") {
                kept.insert("items".to_owned(), json!({"type": "string"}));
            }
            if written.contains_key("description") {
                kept.remove("description");
            }
            return kept;
        }
        self.following.push(reference);
        let made = self.schema(target, depth + 1);
        self.following.pop();
        made
    }

    fn keywords(&mut self, written: &'a Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut made = Map::new();
        let mut is_nullable = written.get("nullable") == Some(&Value::Bool(true));
        let mut kinds: Vec<&str> = Vec::new();
        for (keyword, value) in written {
            if !self.fits(keyword.len() + 3) {
                break;
            }
            match keyword.as_str() {
                "type" => match value {
                    Value::String(_) | Value::Array(_) if !self.holds(value) => {}
                    Value::String(kind) => kinds.push(kind),
                    Value::Array(list) => kinds.extend(list.iter().filter_map(Value::as_str)),
                    _ => self.drop(keyword),
                },
                "properties" => self.properties(value, depth, &mut made),
                "items" | "prefixItems" => self.items(keyword, value, depth, &mut made),
                "anyOf" | "oneOf" => is_nullable |= self.union(keyword, value, depth, &mut made),
                "allOf" => {
                    for part in value.as_array().into_iter().flatten() {
                        let part = self.schema(part, depth + 1);
                        made = merged(made, part);
                    }
                    self.told.reshaped.insert("allOf");
                }
                "required" if value.is_array() => {
                    if self.holds(value) {
                        made.insert(keyword.clone(), value.clone());
                    }
                }
                "description" | "title" | "pattern" if value.is_string() => {
                    if self.holds(value) {
                        made.insert(keyword.clone(), value.clone());
                    }
                }
                "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties"
                    if value.is_number() =>
                {
                    if self.holds(value) {
                        made.insert(keyword.clone(), value.clone());
                    }
                }
                "exclusiveMinimum" | "exclusiveMaximum" if value.is_number() => {
                    self.bound(keyword, value, written, &mut made)
                }
                // These are read with the type.
                "enum" | "const" | "format" | "$ref" => {}
                "nullable" if value.is_boolean() => {}
                keyword if SILENT.contains(&keyword) => {}
                _ => self.drop(keyword),
            }
        }
        let given = kinds.len();
        kinds.retain(|kind| !kind.eq_ignore_ascii_case("null"));
        is_nullable |= kinds.len() < given;
        // Each becomes a choice, with what is said of its kind.
        let mut seen = HashSet::new();
        kinds.retain(|kind| seen.insert(*kind));
        if kinds.len() > 1 && !self.fits(kinds.len().saturating_mul(CHOICE)) {
            kinds.clear();
        }
        self.values(written, &kinds, &mut made, &mut is_nullable);
        self.kind(&kinds, &mut made);
        self.format(written, &mut made);
        if is_nullable {
            made.insert("nullable".to_owned(), Value::Bool(true));
        }
        made
    }

    fn drop(&mut self, keyword: &str) {
        let name = keyword.chars().take(LONGEST_NAME).collect();
        self.told.dropped.insert(name);
    }

    fn properties(&mut self, value: &'a Value, depth: usize, made: &mut Map<String, Value>) {
        let Value::Object(written) = value else {
            return self.drop("properties");
        };
        let mut properties = Map::new();
        for (name, schema) in written {
            if !self.fits(name.len() + 3) {
                break;
            }
            properties.insert(name.clone(), Value::Object(self.schema(schema, depth + 1)));
        }
        // An object without any must not say so.
        if !properties.is_empty() {
            *made = merged(
                std::mem::take(made),
                Map::from_iter([("properties".to_owned(), Value::Object(properties))]),
            );
        }
    }

    fn items(&mut self, keyword: &str, value: &'a Value, depth: usize, made: &mut Map<String, Value>) {
        let items = if let Value::Array(places) = value {
            // Each place has a schema of its own, which is said of all of them.
            self.told
                .reshaped
                .insert(if keyword == "items" { "items" } else { "prefixItems" });
            let mut kinds: Vec<Value> = Vec::new();
            let mut seen = HashSet::new();
            for place in places {
                let place = Value::Object(self.schema(place, depth + 1));
                if seen.insert(place.to_string()) {
                    kinds.push(place);
                }
            }
            match kinds.len() {
                0 => return,
                1 => kinds.remove(0),
                _ => json!({ "anyOf": kinds }),
            }
        } else {
            Value::Object(self.schema(value, depth + 1))
        };
        if !made.contains_key("items") || keyword == "prefixItems" {
            made.insert("items".to_owned(), items);
        }
    }

    /// Tells whether nothing at all is one of the choices.
    fn union(&mut self, keyword: &str, value: &'a Value, depth: usize, made: &mut Map<String, Value>) -> bool {
        let Value::Array(choices) = value else {
            self.drop(keyword);
            return false;
        };
        let mut is_nullable = false;
        let mut list = Vec::new();
        for choice in choices {
            if !self.fits(1) {
                break;
            }
            if choice.get("type").is_some_and(|kind| kind == "null" || kind == "NULL") {
                is_nullable = true;
            } else {
                list.push(Value::Object(self.schema(choice, depth + 1)));
            }
        }
        if keyword == "oneOf" {
            self.told.reshaped.insert("oneOf");
        }
        if let ([Value::Object(only)], false) = (list.as_mut_slice(), made.contains_key("anyOf")) {
            *made = merged(std::mem::take(made), std::mem::take(only));
        } else if made.contains_key("anyOf") {
            // One union is all there can be.
            self.drop(keyword);
        } else if !list.is_empty() {
            made.insert("anyOf".to_owned(), Value::Array(list));
        }
        is_nullable
    }

    /// A bound that is not part of the range.
    fn bound(&mut self, keyword: &str, value: &Value, written: &Map<String, Value>, made: &mut Map<String, Value>) {
        let (name, told, step) = if keyword == "exclusiveMinimum" {
            ("minimum", "exclusiveMinimum", 1)
        } else {
            ("maximum", "exclusiveMaximum", -1)
        };
        self.told.reshaped.insert(told);
        let is_whole = written.get("type").is_some_and(|kind| kind == "integer");
        let bound = match value.as_i64().and_then(|bound| bound.checked_add(step)) {
            Some(bound) if is_whole => bound.into(),
            _ => value.clone(),
        };
        made.entry(name).or_insert(bound);
    }

    /// `enum` and `const`. Only texts may be listed; other values are told in the description.
    fn values(
        &mut self,
        written: &Map<String, Value>,
        kinds: &[&str],
        made: &mut Map<String, Value>,
        is_nullable: &mut bool,
    ) {
        let values: &[Value] = match (written.get("enum"), written.get("const")) {
            (Some(Value::Array(values)), _) => values,
            (_, Some(value)) => {
                self.told.reshaped.insert("const");
                std::slice::from_ref(value)
            }
            (Some(_), None) => return self.drop("enum"),
            (None, None) => return,
        };
        if !values.iter().all(|value| self.fits(1) && self.holds(value)) {
            return;
        }
        let given = values.len();
        let values: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
        *is_nullable |= values.len() < given;
        let may_be_text = kinds.is_empty() || kinds.iter().any(|kind| kind.eq_ignore_ascii_case("string"));
        let are_texts = values
            .iter()
            .all(|value| value.as_str().is_some_and(|text| !text.is_empty()));
        if values.is_empty() {
        } else if may_be_text && are_texts {
            if kinds.is_empty() {
                made.insert("type".to_owned(), "string".into());
            }
            made.insert("enum".to_owned(), values.into_iter().cloned().collect());
        } else {
            self.told.reshaped.insert("enum");
            let list = values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let said = match made.get("description").and_then(Value::as_str) {
                Some(text) => format!("{text}\nOne of: {list}"),
                None => format!("One of: {list}"),
            };
            made.insert("description".to_owned(), said.into());
            if kinds.is_empty()
                && let Some(kind) = kind_of(&values)
            {
                made.insert("type".to_owned(), kind.into());
            }
        }
    }

    fn kind(&mut self, kinds: &[&str], made: &mut Map<String, Value>) {
        match kinds {
            [] => {
                if made.contains_key("type") || made.contains_key("anyOf") {
                } else if made.contains_key("properties") {
                    made.insert("type".to_owned(), "object".into());
                } else if made.contains_key("items") {
                    made.insert("type".to_owned(), "array".into());
                }
            }
            [kind] => {
                made.insert("type".to_owned(), (*kind).into());
            }
            kinds if made.contains_key("anyOf") => {
                // The choices say it better.
                let _ = kinds;
                self.told.reshaped.insert("type");
            }
            kinds => {
                self.told.reshaped.insert("type");
                let choices = kinds.iter().map(|kind| {
                    let mut choice = Map::from_iter([("type".to_owned(), Value::from(*kind))]);
                    for (keyword, value) in made.iter().filter(|(keyword, _)| of_kind(keyword) == Some(*kind)) {
                        choice.insert(keyword.clone(), value.clone());
                    }
                    if *kind == "array" && !choice.contains_key("items") {
                        choice.insert("items".to_owned(), json!({"type": "string"}));
                    }
                    Value::Object(choice)
                });
                let choices: Value = choices.collect();
                made.retain(|keyword, _| of_kind(keyword).is_none());
                made.insert("anyOf".to_owned(), choices);
            }
        }
        let is_list = made.get("type").is_some_and(|kind| kind == "array");
        if is_list
            && made
                .get("items")
                .is_none_or(|items| items.as_object().is_some_and(Map::is_empty))
        {
            // A list has to say of what.
            self.told.reshaped.insert("items");
            made.insert("items".to_owned(), json!({"type": "string"}));
        }
        name_once(made);
        if let (Some(Value::Array(required)), Some(Value::Object(properties))) =
            (made.get("required"), made.get("properties"))
        {
            let known = required
                .iter()
                .filter(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
            let known: Vec<Value> = known.cloned().collect();
            if known.len() < required.len() {
                self.told.dropped.insert("required".to_owned());
            }
            if known.is_empty() {
                made.remove("required");
            } else {
                made.insert("required".to_owned(), Value::Array(known));
            }
        } else if made.contains_key("required") && !made.contains_key("properties") {
            made.remove("required");
        }
    }

    /// Few formats are known; others fail the request.
    fn format(&mut self, written: &Map<String, Value>, made: &mut Map<String, Value>) {
        let Some(format) = written.get("format") else {
            return;
        };
        let known: &[&str] = match made.get("type").and_then(Value::as_str) {
            Some("string") => &["date-time", "enum"],
            Some("integer") => &["int32", "int64"],
            Some("number") => &["float", "double"],
            _ => &[],
        };
        if format.as_str().is_some_and(|format| known.contains(&format)) {
            made.insert("format".to_owned(), format.clone());
        } else {
            self.drop("format");
        }
    }

    /// A union has nothing beside it: what stands there goes into each of its choices.
    fn spread(&mut self, made: &mut Map<String, Value>) {
        if made.len() < 2 {
            return;
        }
        let Some(Value::Array(choices)) = made.remove("anyOf") else {
            return;
        };
        let mut beside = std::mem::take(made);
        let size = 1 + beside.values().map(size_of).sum::<usize>();
        self.parts = self.parts.saturating_add(size.saturating_mul(choices.len()));
        let bytes = beside
            .iter()
            .map(|(name, value)| name.len() + 3 + weight(value))
            .sum::<usize>();
        if self.parts > MOST || !self.fits(bytes.saturating_mul(choices.len())) {
            self.told.is_cut_off = true;
            beside.retain(|keyword, _| keyword == "nullable");
        }
        let spread = choices.into_iter().map(|choice| match choice {
            Value::Object(choice) => {
                let mut whole = merged(beside.clone(), choice);
                name_once(&mut whole);
                Value::Object(whole)
            }
            other => other,
        });
        let choices = spread.collect();
        made.insert("anyOf".to_owned(), choices);
    }

    fn as_object(&mut self, mut made: Map<String, Value>) -> Map<String, Value> {
        if let Some(Value::Array(choices)) = made.remove("anyOf") {
            let are_objects = choices.iter().all(|choice| {
                choice.get("properties").is_some() || choice.get("type").is_some_and(|kind| kind == "object")
            });
            if are_objects {
                self.told.reshaped.insert("anyOf");
                return in_one(choices);
            }
            made.insert("anyOf".to_owned(), Value::Array(choices));
        }
        made.remove("nullable");
        match made.get("type").and_then(Value::as_str) {
            Some("object" | "OBJECT") => made,
            None if !made.contains_key("anyOf") && !made.contains_key("items") => {
                made.insert("type".to_owned(), "object".into());
                made
            }
            _ => {
                self.told.is_wrapped = true;
                let wrapped = json!({"type": "object", "properties": {"value": made}, "required": ["value"]});
                match wrapped {
                    Value::Object(wrapped) => wrapped,
                    _ => Map::new(),
                }
            }
        }
    }
}

/// Several objects in one: it has what any of them has, and requires what all of them do.
fn in_one(choices: Vec<Value>) -> Map<String, Value> {
    let required_of = |choice: &Value| -> Vec<Value> {
        let list = choice.get("required").and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let mut required = choices.first().map(required_of).unwrap_or_default();
    let mut all = Map::new();
    for choice in choices {
        let own = choice.get("required").and_then(Value::as_array);
        let own: HashSet<&str> = own.into_iter().flatten().filter_map(Value::as_str).collect();
        required.retain(|name| name.as_str().is_some_and(|name| own.contains(name)));
        if let Value::Object(choice) = choice {
            all = merged(all, choice);
        }
    }
    all.remove("required");
    all.remove("nullable");
    all.insert("type".to_owned(), "object".into());
    if !required.is_empty() {
        all.insert("required".to_owned(), Value::Array(required));
    }
    all
}

/// Both, and where they differ the second. Properties and required names add up; [`name_once`] takes out the repeats, when all
/// are together.
fn merged(mut first: Map<String, Value>, second: Map<String, Value>) -> Map<String, Value> {
    for (keyword, value) in second {
        match (first.get_mut(&keyword), value) {
            (Some(Value::Object(have)), Value::Object(more)) if keyword == "properties" => have.extend(more),
            (Some(Value::Array(have)), Value::Array(more)) if keyword == "required" => have.extend(more),
            (Some(slot), value) => *slot = value,
            (None, value) => {
                first.insert(keyword, value);
            }
        }
    }
    first
}

/// A name may be required once.
fn name_once(made: &mut Map<String, Value>) {
    if let Some(Value::Array(required)) = made.get_mut("required") {
        let mut seen = HashSet::new();
        let is_new: Vec<bool> = required
            .iter()
            .map(|name| name.as_str().is_none_or(|name| seen.insert(name)))
            .collect();
        let mut is_new = is_new.into_iter();
        required.retain(|_| is_new.next().unwrap_or_default());
    }
}

/// The one type of which a keyword speaks.
fn of_kind(keyword: &str) -> Option<&'static str> {
    match keyword {
        "properties" | "required" | "minProperties" | "maxProperties" => Some("object"),
        "items" | "minItems" | "maxItems" => Some("array"),
        "pattern" | "minLength" | "maxLength" | "enum" => Some("string"),
        _ => None,
    }
}

fn kind_of(values: &[&Value]) -> Option<&'static str> {
    let all = |is: fn(&Value) -> bool| values.iter().all(|value| is(value));
    if all(Value::is_string) {
        Some("string")
    } else if all(|value| value.is_i64() || value.is_u64()) {
        Some("integer")
    } else if all(Value::is_number) {
        Some("number")
    } else if all(Value::is_boolean) {
        Some("boolean")
    } else {
        None
    }
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size_of).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size_of).sum::<usize>(),
        _ => 1,
    }
}

/// About as many bytes as it is written with.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| 1 + weight(item)).sum::<usize>(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| name.len() + 3 + weight(value));
            2 + members.sum::<usize>()
        }
        _ => SCALAR,
    }
}

/// Says in JSON Schema what is written in Google's part of `OpenAPI` 3.0, in either way of writing names.
pub(crate) fn widened(schema: &Value) -> Value {
    let Value::Object(written) = schema else {
        return schema.clone();
    };
    let mut made = Map::new();
    let mut is_nullable = false;
    let mut order = None;
    for (keyword, value) in written {
        match (keyword.as_str(), value) {
            ("type", Value::String(kind)) => {
                made.insert("type".to_owned(), kind.to_ascii_lowercase().into());
            }
            ("nullable", value) => is_nullable = *value == Value::Bool(true),
            ("propertyOrdering" | "property_ordering", value) => order = value.as_array(),
            ("properties" | "defs", Value::Object(members)) => {
                let members = members.iter().map(|(name, schema)| (name.clone(), widened(schema)));
                let name = if keyword == "defs" { "$defs" } else { "properties" };
                made.insert(name.to_owned(), Value::Object(members.collect()));
            }
            ("ref", Value::String(reference)) => {
                made.insert("$ref".to_owned(), reference.replacen("#/defs/", "#/$defs/", 1).into());
            }
            ("items" | "additionalProperties", value) => {
                made.insert(keyword.clone(), widened(value));
            }
            ("additional_properties", value) => {
                made.insert("additionalProperties".to_owned(), widened(value));
            }
            ("anyOf" | "any_of", Value::Array(choices)) => {
                made.insert("anyOf".to_owned(), choices.iter().map(widened).collect());
            }
            ("format", Value::String(format)) if format == "enum" => {}
            ("example", value) => {
                made.insert("examples".to_owned(), json!([value]));
            }
            (keyword, value) => {
                let name = match keyword {
                    "min_items" => "minItems",
                    "max_items" => "maxItems",
                    "min_length" => "minLength",
                    "max_length" => "maxLength",
                    "min_properties" => "minProperties",
                    "max_properties" => "maxProperties",
                    other => other,
                };
                made.insert(name.to_owned(), counted(name, value));
            }
        }
    }
    if let (Some(order), Some(Value::Object(properties))) = (order, made.get_mut("properties")) {
        *properties = ordered(std::mem::take(properties), order);
    }
    if is_nullable {
        made = or_null(made);
    }
    Value::Object(made)
}

/// Google writes 64-bit numbers as texts.
fn counted(name: &str, value: &Value) -> Value {
    let is_count = matches!(
        name,
        "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties"
    );
    let number = value.as_str().and_then(|text| text.parse::<u64>().ok());
    match number {
        Some(number) if is_count => number.into(),
        _ => value.clone(),
    }
}

fn ordered(mut properties: Map<String, Value>, order: &[Value]) -> Map<String, Value> {
    let mut made = Map::new();
    for name in order.iter().filter_map(Value::as_str) {
        if let Some(slot) = properties.get_mut(name)
            && !made.contains_key(name)
        {
            made.insert(name.to_owned(), slot.take());
        }
    }
    for (name, schema) in properties {
        if !made.contains_key(&name) {
            made.insert(name, schema);
        }
    }
    made
}

fn or_null(mut made: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(values)) = made.get_mut("enum") {
        values.push(Value::Null);
    }
    if let Some(kind) = made.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    } else if let Some(Value::Array(choices)) = made.get_mut("anyOf") {
        choices.push(json!({"type": "null"}));
    }
    made
}

#[cfg(test)]
mod tests {
    use super::{Budget, Root, openapi, widened};
    use crate::notes::Notes;
    use serde_json::{Value, json};

    fn lowered(schema: &Value, root: Root) -> (Value, Vec<String>) {
        let made = openapi(schema, root, &mut Budget::new());
        let mut notes = Notes::default();
        made.tell("f", &mut notes);
        let notes = notes.list().iter();
        let told = notes
            .map(|note| format!("{} {} {}", note.fate.as_str(), note.field, note.why))
            .collect();
        (Value::Object(made.schema), told)
    }

    #[track_caller]
    fn check(schema: &Value, want: &Value, words: &[&str]) {
        let (made, told) = lowered(schema, Root::Any);
        assert_eq!(made, *want, "{schema}");
        let told = told.join("; ");
        for word in words {
            assert!(told.contains(word), "{word} is not told: {told}");
        }
        assert!(!words.is_empty() || told.is_empty(), "{told}");
    }

    #[test]
    fn what_there_is_on_the_other_side_stays_as_it_is() {
        let plain = json!({
            "type": "object", "description": "d",
            "properties": {"a": {"type": "string", "enum": ["x", "y"]}, "b": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}},
            "required": ["a"],
        });
        check(&plain, &plain, &[]);
    }

    #[test]
    fn references_are_followed_and_cycles_end() {
        check(
            &json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {"at": {"$ref": "#/$defs/Point", "description": "where"}, "all": {"type": "array", "items": {"$ref": "#/$defs/Point"}}},
                "$defs": {"Point": {"type": "object", "description": "p", "properties": {"x": {"type": "number"}}, "additionalProperties": false}},
            }),
            &json!({
                "type": "object",
                "properties": {
                    "at": {"type": "object", "description": "where", "properties": {"x": {"type": "number"}}},
                    "all": {"type": "array", "items": {"type": "object", "description": "p", "properties": {"x": {"type": "number"}}}},
                },
            }),
            &["mapped f.$ref", "dropped f.additionalProperties"],
        );
        check(
            &json!({"$ref": "#/definitions/Node", "definitions": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/definitions/Node"}}}}}),
            &json!({"type": "object", "properties": {"next": {"type": "object"}}}),
            &["approximated f.$ref", "refers to itself"],
        );
        check(&json!({"$ref": "#"}), &json!({}), &["refers to itself"]);
        check(&json!({"$ref": "https://x/y.json"}), &json!({}), &["dropped f.$ref"]);
    }

    #[test]
    fn what_can_be_told_in_other_words_is() {
        check(
            &json!({"type": ["string", "null"], "default": "x", "format": "email"}),
            &json!({"type": "string", "nullable": true}),
            &["dropped f.default", "dropped f.format"],
        );
        check(
            &json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"}),
            &json!({"type": "string", "description": "d", "nullable": true}),
            &[],
        );
        check(
            &json!({"oneOf": [{"type": "string"}, {"type": "integer"}], "description": "d"}),
            &json!({"anyOf": [{"description": "d", "type": "string"}, {"description": "d", "type": "integer"}]}),
            &["approximated f.oneOf"],
        );
        check(
            &json!({"type": "integer", "enum": [1, 2], "exclusiveMinimum": 0}),
            &json!({"type": "integer", "minimum": 1, "description": "One of: 1, 2"}),
            &["approximated f.enum", "approximated f.exclusiveMinimum"],
        );
        check(
            &json!({"const": "x"}),
            &json!({"type": "string", "enum": ["x"]}),
            &["approximated f.const"],
        );
        check(
            &json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
            &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}),
            &["approximated f.allOf"],
        );
        check(
            &json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}),
            &json!({"items": {"anyOf": [{"type": "string"}, {"type": "number"}]}, "type": "array"}),
            &["approximated f.prefixItems"],
        );
        check(
            &json!({"type": ["string", "array"], "minLength": 1}),
            &json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}}]}),
            &["approximated f.type"],
        );
        check(
            &json!({"type": "array"}),
            &json!({"type": "array", "items": {"type": "string"}}),
            &["approximated f.items"],
        );
    }

    #[test]
    fn arguments_are_an_object() {
        for (schema, want) in [
            (json!({}), json!({"type": "object"})),
            (json!({"type": "object", "properties": {}}), json!({"type": "object"})),
            (
                json!({"type": "string"}),
                json!({"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}),
            ),
            (
                json!({"anyOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}, "k": {"type": "string"}}, "required": ["a", "k"]},
                    {"type": "object", "properties": {"b": {"type": "string"}, "k": {"type": "string"}}, "required": ["k"]},
                ]}),
                json!({"type": "object", "properties": {"a": {"type": "string"}, "k": {"type": "string"}, "b": {"type": "string"}}, "required": ["k"]}),
            ),
        ] {
            assert_eq!(lowered(&schema, Root::Object).0, want, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_doubles_with_each_reference_ends() {
        let mut defs = serde_json::Map::new();
        for i in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
            defs.insert(
                format!("d{i}"),
                json!({"type": "object", "properties": {"a": next, "b": next}}),
            );
        }
        let (_, told) = lowered(&json!({"$ref": "#/$defs/d0", "$defs": defs}), Root::Object);
        assert!(told.iter().any(|note| note.contains("cut off")), "{told:?}");
        let mut deep = json!({"type": "string"});
        for _ in 0..20 {
            deep = json!({"properties": {"p": deep}, "anyOf": [{"type": "object"}, {"type": "object"}, {"type": "object"}]});
        }
        let (made, told) = lowered(&deep, Root::Any);
        assert!(made.to_string().len() < 4 << 20 && told.iter().any(|note| note.contains("cut off")));
    }

    #[test]
    fn a_large_part_is_not_repeated_for_each_reference() {
        let long = "x".repeat(1 << 19);
        let list: Vec<String> = (0..20_000).map(|i| format!("v{i}")).collect();
        let members: Vec<(String, Value)> = list.iter().map(|name| (name.clone(), json!(1))).collect();
        let members: Value = members.into_iter().collect::<serde_json::Map<_, _>>().into();
        let nulls = vec![json!({"type": "null"}); 20_000];
        for large in [
            json!({"type": "string", "description": long}),
            json!({"type": "string", "title": long, "pattern": long}),
            json!({"type": long}),
            json!({"type": list}),
            json!({"type": "string", "enum": list}),
            json!({"type": "integer", "enum": vec![1; 20_000]}),
            json!({"const": {"deep": [long]}}),
            json!({"type": "object", "properties": {long.as_str(): {"type": "string"}}, "required": [long]}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "description": long}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "description": long}),
            json!({"anyOf": nulls}),
            json!({long.as_str(): true}),
            members,
            json!({"$ref": format!("#/{long}")}),
        ] {
            let refer = |i: usize| (format!("p{i}"), json!({"$ref": "#/$defs/a"}));
            let properties: serde_json::Map<_, _> = (0..9_000).map(refer).collect();
            let schema = json!({"type": "object", "properties": properties, "$defs": {"a": large}});
            let most = 4 * schema.to_string().len() + (2 << 20);
            let (made, told) = lowered(&schema, Root::Object);
            let (made, start) = (made.to_string(), large.to_string().chars().take(40).collect::<String>());
            assert!(made.len() < most, "{start}: {}", made.len());
            // Of a reference that leads nowhere the graver is told.
            let is_told = |note: &String| note.contains("cut off") || note.starts_with("dropped f.$ref");
            assert!(told.iter().any(is_told), "{start}");
            assert!(told.iter().all(|note| note.len() < 300), "{start}");
        }
        // What is small goes on: only the text is too much.
        let schema = json!({
            "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"type": "string", "description": "d"}},
        });
        assert!(
            !lowered(&schema, Root::Object)
                .1
                .iter()
                .any(|note| note.contains("cut off"))
        );
    }

    #[test]
    fn all_schemas_of_a_request_share_what_they_may_grow_by() {
        let refer = |i: usize| (format!("p{i}"), json!({"$ref": "#/$defs/a"}));
        let properties: serde_json::Map<_, _> = (0..400).map(refer).collect();
        let of = |length: usize| {
            let text = json!({"type": "string", "description": "x".repeat(length)});
            json!({"type": "object", "properties": properties, "$defs": {"a": text}})
        };
        let (greedy, modest) = (of(2000), of(10));
        let mut budget = Budget::new();
        let made: Vec<_> = (0..50).map(|_| openapi(&greedy, Root::Object, &mut budget)).collect();
        let written = greedy.to_string().len() * made.len();
        let grown: usize = made.iter().map(|made| json!(made.schema).to_string().len()).sum();
        assert!(grown < 4 * written + (2 << 20), "{grown}");
        let cut_off = |made: &super::Lowered| made.told.is_cut_off;
        assert!(!cut_off(&made[0]) && made.iter().skip(2).all(cut_off));
        // What grows within its own measure does not pay for others.
        assert!(!cut_off(&openapi(&modest, Root::Object, &mut budget)));
        let mut fresh = Budget::new();
        assert!((0..1000).all(|_| !cut_off(&openapi(&modest, Root::Object, &mut fresh))));
    }

    #[test]
    fn a_name_is_required_once_however_often_it_is_said() {
        let of = |names: &[&str]| json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": names});
        let want = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]});
        check(&of(&["a", "b", "a", "b"]), &want, &[]);
        check(
            &json!({"allOf": [of(&["a", "a"]), of(&["b", "a"])]}),
            &want,
            &["approximated f.allOf"],
        );
        let names: Vec<String> = (0..15_000).map(|i| format!("n{i}")).collect();
        let properties: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), json!(true))).collect();
        let large = json!({"type": "object", "properties": properties, "required": names});
        let half = json!({"required": names.iter().rev().chain(&names).collect::<Vec<_>>()});
        for schema in [
            json!({"allOf": [large, half]}),
            json!({"anyOf": [large, large]}),
            json!({"$ref": "#/$defs/a", "properties": {"n0": {}}, "required": ["n0", "n0"], "$defs": {"a": large}}),
        ] {
            let (made, _) = lowered(&schema, Root::Object);
            let required = made["required"].as_array().unwrap();
            let once: std::collections::HashSet<_> = required.iter().map(|name| name.as_str().unwrap()).collect();
            assert_eq!(once.len(), required.len());
            assert!(made.to_string().len() <= schema.to_string().len());
        }
    }

    #[test]
    fn places_of_one_kind_are_told_once_among_many_others() {
        let place = |i: usize| json!({"type": "string", "minLength": i % 15_000});
        let places: Vec<Value> = (0..40_000).map(place).collect();
        let (made, told) = lowered(&json!({"type": "array", "prefixItems": places}), Root::Any);
        let kinds = made["items"]["anyOf"].as_array().unwrap();
        // Those behind the most that there may be have no keywords.
        assert_eq!(kinds.len(), 15_001);
        assert!(told.iter().any(|note| note.contains("cut off")), "{told:?}");
    }

    #[test]
    fn googles_own_way_of_writing_becomes_json_schema() {
        assert_eq!(
            widened(&json!({
                "type": "OBJECT", "property_ordering": ["b", "a"],
                "properties": {"a": {"type": "STRING", "nullable": true, "max_length": "9"}, "b": {"anyOf": [{"type": "INTEGER"}], "nullable": true}},
            })),
            json!({
                "type": "object",
                "properties": {"b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "a": {"type": ["string", "null"], "maxLength": 9}},
            })
        );
    }
}
