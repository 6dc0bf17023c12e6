//! JSON schemas, as the vendor takes them.

use crate::notes::Notes;
use serde_json::{Map, Value};

/// Limits that the vendor's grammar does not know. They go into the description, where the model reads them.
const LIMITS: [&str; 14] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "contains",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
];

/// Keywords whose values are schemas, lists of them, or objects of them by name.
const ONE: [&str; 2] = ["items", "not"];
const LISTS: [&str; 3] = ["anyOf", "allOf", "oneOf"];
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];

/// The schema of a tool's input is of an object, and says so.
pub(super) fn of_input(schema: &mut Value, field: &str, notes: &mut Notes) {
    let Value::Object(object) = schema else {
        notes.approximated(field.to_owned(), "any object: the schema is no object");
        *schema = serde_json::json!({ "type": "object" });
        return;
    };
    if object.get("type").and_then(Value::as_str) == Some("object") {
        return;
    }
    if object.contains_key("type") {
        notes.approximated(
            field.to_owned(),
            "type object: input of another type is not taken there",
        );
    }
    let mut typed = Map::with_capacity(object.len() + 1);
    typed.insert("type".to_owned(), "object".into());
    typed.extend(std::mem::take(object).into_iter().filter(|(key, _)| key != "type"));
    *object = typed;
}

/// Makes a schema one that the vendor's grammars can hold a model to: objects have no members but those that are named, and
/// limits of numbers and lengths are told, not enforced.
pub(super) fn restrict(schema: &mut Value, field: &str, notes: &mut Notes) {
    let mut restriction = Restriction::default();
    restriction.of(schema);
    if restriction.closed {
        notes.approximated(field.to_owned(), "objects have no members but those of the schema");
    }
    if restriction.told {
        let why = "limits that the vendor's formats do not have were moved into the descriptions";
        notes.approximated(field.to_owned(), why);
    }
    if restriction.any {
        notes.mapped(field.to_owned(), "oneOf became anyOf");
    }
}

#[derive(Default)]
struct Restriction {
    closed: bool,
    told: bool,
    any: bool,
}

impl Restriction {
    fn of(&mut self, schema: &mut Value) {
        let Value::Object(object) = schema else {
            return;
        };
        self.tell_limits(object);
        if let Some(one_of) = object.remove("oneOf") {
            self.any = true;
            object.entry("anyOf").or_insert(one_of);
        }
        let is_object = match object.get("type") {
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            _ => object.contains_key("properties"),
        };
        if is_object && object.get("additionalProperties") != Some(&Value::Bool(false)) {
            self.closed = true;
            object.insert("additionalProperties".to_owned(), false.into());
        }
        for key in ONE {
            object.get_mut(key).into_iter().for_each(|schema| self.of(schema));
        }
        for key in LISTS {
            let list = object.get_mut(key).and_then(Value::as_array_mut);
            list.into_iter().flatten().for_each(|schema| self.of(schema));
        }
        for key in NAMED {
            let named = object.get_mut(key).and_then(Value::as_object_mut);
            named.into_iter().flatten().for_each(|(_, schema)| self.of(schema));
        }
    }

    fn tell_limits(&mut self, object: &mut Map<String, Value>) {
        let mut told = Vec::new();
        for key in LIMITS {
            if let Some(limit) = object.remove(key) {
                told.push(format!("{key}: {limit}"));
            }
        }
        // No more than that something has to be there.
        if object
            .get("minItems")
            .and_then(Value::as_u64)
            .is_some_and(|least| least > 1)
            && let Some(limit) = object.remove("minItems")
        {
            told.push(format!("minItems: {limit}"));
        }
        if told.is_empty() {
            return;
        }
        self.told = true;
        let told = format!("({})", told.join(", "));
        let description = match object.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description} {told}"),
            None => told,
        };
        object.insert("description".to_owned(), description.into());
    }
}

#[cfg(test)]
mod tests {
    use super::{of_input, restrict};
    use crate::notes::{Fate, Notes};
    use serde_json::{Value, json};

    fn restricted(mut schema: Value) -> (Value, Notes) {
        let mut notes = Notes::default();
        restrict(&mut schema, "response_format", &mut notes);
        (schema, notes)
    }

    #[test]
    fn a_schema_that_fits_stays_as_it_is() {
        let schema = json!({"type":"object","properties":{"b":{"type":"string"},"a":{"enum":[1,2]}},
            "required":["b","a"],"additionalProperties":false});
        let (same, notes) = restricted(schema.clone());
        assert_eq!(same.to_string(), schema.to_string());
        assert!(notes.is_empty());
    }

    #[test]
    fn limits_become_descriptions_at_any_depth() {
        let (schema, notes) = restricted(json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "minimum": 1, "maximum": 9, "description": "How many." } },
            "$defs": { "list": { "type": "array", "minItems": 2, "items": { "type": "string", "maxLength": 3 } } },
            "additionalProperties": false,
        }));
        assert_eq!(
            schema["properties"]["n"]["description"],
            "How many. (minimum: 1, maximum: 9)"
        );
        assert_eq!(schema["$defs"]["list"]["description"], "(minItems: 2)");
        assert_eq!(
            schema["$defs"]["list"]["items"],
            json!({"type":"string","description":"(maxLength: 3)"})
        );
        assert_eq!(notes.count(Fate::Approximated), 1);
    }

    #[test]
    fn an_open_object_is_closed_and_that_is_told() {
        let (schema, notes) = restricted(json!({"type":"object","additionalProperties":{"type":"string"}}));
        assert_eq!(schema, json!({"type":"object","additionalProperties":false}));
        assert_eq!(notes.count(Fate::Approximated), 1);
    }

    #[test]
    fn input_is_an_object() {
        for (schema, want, approximated) in [
            (json!({}), json!({"type":"object"}), 0),
            (json!({"properties":{}}), json!({"type":"object","properties":{}}), 0),
            (json!({"type":"string"}), json!({"type":"object"}), 1),
            (json!(true), json!({"type":"object"}), 1),
        ] {
            let (mut schema, mut notes) = (schema, Notes::default());
            of_input(&mut schema, "tools[0]", &mut notes);
            assert_eq!((schema, notes.count(Fate::Approximated)), (want, approximated));
        }
    }
}
