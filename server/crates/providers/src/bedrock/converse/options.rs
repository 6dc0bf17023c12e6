//! What is asked for besides the messages.

use super::LETTERS;
use super::content::cache_point;
use crate::bedrock::common::{fitting_name, schema_or_empty};
use crate::bedrock::model::{Family, Model};
use crate::codec::Ask;
use crate::custom;
use crate::ir::{Effort, Format, Prompt, Tool, ToolChoice, ToolKind};
use crate::names::{self, OfTool};
use crate::notes::Notes;
use crate::params::Param;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The least that a Claude may be told to think with.
const LEAST_BUDGET: u64 = 1024;

pub(super) struct Options<'a> {
    prompt: &'a Prompt,
    ask: &'a Ask<'a>,
    model: &'a Model,
    /// As they were written.
    messages: &'a [Value],
}

/// Whether and how a model is to think.
enum Thinking {
    /// Nothing is said of it.
    Unsaid,
    Off(Map<String, Value>),
    On(Map<String, Value>),
}

impl<'a> Options<'a> {
    pub(super) fn new(prompt: &'a Prompt, ask: &'a Ask<'a>, model: &'a Model, messages: &'a [Value]) -> Self {
        Self {
            prompt,
            ask,
            model,
            messages,
        }
    }

    /// Names of tools that were called before.
    fn called(&self) -> BTreeSet<&'a str> {
        let blocks = self
            .messages
            .iter()
            .filter_map(|message| message.get("content")?.as_array());
        let calls = blocks
            .flatten()
            .filter_map(|block| block.get("toolUse")?.get("name")?.as_str());
        calls.collect()
    }

    pub(super) fn tools(&self, notes: &mut Notes) -> Option<Value> {
        let mut tools = Vec::new();
        for (i, tool) in self.prompt.tools.iter().enumerate() {
            if let Some(spec) = self.tool(tool, i, notes) {
                tools.push(json!({ "toolSpec": spec }));
                if let Some(mark) = &tool.cache {
                    let field = names::tool(tool, i, self.ask.surface, OfTool::Cache);
                    tools.extend(cache_point(mark, self.model, field, notes));
                }
            }
        }
        let called = self.called();
        let choice_field = self.prompt.name(Param::ToolChoice, self.ask.surface);
        let is_none = self.prompt.tool_choice == Some(ToolChoice::None);
        if is_none && called.is_empty() {
            if !tools.is_empty() {
                notes.approximated(choice_field, "no tool is offered: there is no way to forbid their use");
            }
            return None;
        }
        if is_none {
            notes.approximated(
                choice_field,
                "tools were called before and have to be offered again: nothing forbids their use",
            );
        }
        if tools.is_empty() && !called.is_empty() {
            // Calls and results without tools are refused.
            let tool = |name: &&str| json!({"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}});
            tools.extend(called.iter().map(tool));
            notes.approximated(
                self.prompt.name(Param::Tools, self.ask.surface),
                "tools that were called before have to be offered again",
            );
        }
        if tools.is_empty() {
            return None;
        }
        let mut config = Map::new();
        let choice = self.choice(&mut tools, notes);
        config.insert("tools".to_owned(), Value::Array(tools));
        if let Some(choice) = choice {
            config.insert("toolChoice".to_owned(), choice);
        }
        Some(Value::Object(config))
    }

    fn tool(&self, tool: &Tool, index: usize, notes: &mut Notes) -> Option<Value> {
        let mut spec = Map::new();
        let name = fitting_name(&tool.name, LETTERS);
        if name != tool.name {
            notes.mapped(
                names::tool(tool, index, self.ask.surface, OfTool::Tool),
                "its name has letters that bedrock does not take; it is sent as another one",
            );
        }
        spec.insert("name".to_owned(), json!(name));
        if let Some(description) = tool.description.as_ref().filter(|text| !text.is_empty()) {
            spec.insert("description".to_owned(), json!(description));
        }
        match &tool.kind {
            ToolKind::Function { schema, strict } => {
                spec.insert(
                    "inputSchema".to_owned(),
                    json!({"json": schema_or_empty(schema.as_ref())}),
                );
                if *strict == Some(true) && self.model.is_structured() {
                    spec.insert("strict".to_owned(), json!(true));
                } else if *strict == Some(true) {
                    notes.dropped(
                        names::tool(tool, index, self.ask.surface, OfTool::Strict),
                        "the model does not know it",
                    );
                }
            }
            ToolKind::Custom(custom) => {
                spec.insert("inputSchema".to_owned(), json!({"json": custom::schema(custom)}));
                notes.approximated(
                    names::tool(tool, index, self.ask.surface, OfTool::Tool),
                    custom::why(custom),
                );
            }
            ToolKind::Vendors(stranger) => {
                notes.dropped(stranger.field.clone(), "a tool that its own vendor runs");
                return None;
            }
        }
        Some(Value::Object(spec))
    }

    fn choice(&self, tools: &mut Vec<Value>, notes: &mut Notes) -> Option<Value> {
        match self.prompt.tool_choice.as_ref()? {
            ToolChoice::Auto => Some(json!({"auto": {}})),
            ToolChoice::None => None,
            ToolChoice::Required => Some(json!({"any": {}})),
            ToolChoice::Named(name) => Some(json!({"tool": {"name": fitting_name(name, LETTERS)}})),
            ToolChoice::Among { names, required } => {
                notes.mapped(
                    self.prompt.name(Param::ToolChoice, self.ask.surface),
                    "only those tools are offered",
                );
                let is_one = |spec: &Value| names.iter().any(|name| *spec == *fitting_name(name, LETTERS));
                tools.retain(|tool| tool.pointer("/toolSpec/name").is_none_or(is_one));
                Some(if *required {
                    json!({"any": {}})
                } else {
                    json!({"auto": {}})
                })
            }
        }
    }

    fn is_forced(&self) -> bool {
        match self.prompt.tool_choice {
            Some(ToolChoice::Required | ToolChoice::Named(_)) => true,
            Some(ToolChoice::Among { required, .. }) => required,
            _ => false,
        }
    }

    /// `inferenceConfig` and `additionalModelRequestFields`.
    pub(super) fn inference(&self, notes: &mut Notes) -> (Option<Value>, Option<Value>) {
        let sampling = &self.prompt.sampling;
        let (mut config, mut additional) = (Map::new(), Map::new());
        let thinking = self.thinking(notes);
        let thinks = self.model.is_claude() && matches!(thinking, Thinking::On(_));
        if let Thinking::Off(fields) | Thinking::On(fields) = thinking {
            additional.extend(fields);
        }
        if let Some(max) = self.prompt.max_tokens {
            config.insert("maxTokens".to_owned(), json!(max));
        }
        let mut temperature = sampling.temperature;
        if thinks && temperature.is_some_and(|temperature| temperature < 1.0) {
            notes.dropped(
                self.prompt.name(Param::Temperature, self.ask.surface),
                "a model that thinks takes none",
            );
            temperature = None;
        }
        if let Some(given) = temperature {
            if given > 1.0 {
                notes.approximated(
                    self.prompt.name(Param::Temperature, self.ask.surface),
                    "1, which is the highest there",
                );
            }
            config.insert("temperature".to_owned(), json!(given.min(1.0)));
        }
        if let Some(top_p) = sampling.top_p {
            if temperature.is_some() && self.model.samples_one_way() {
                notes.dropped(
                    self.prompt.name(Param::TopP, self.ask.surface),
                    "the model takes it or a temperature, not both",
                );
            } else if thinks && top_p < 0.95 {
                notes.approximated(
                    self.prompt.name(Param::TopP, self.ask.surface),
                    "0.95, which is the least for a model that thinks",
                );
                config.insert("topP".to_owned(), json!(0.95));
            } else {
                config.insert("topP".to_owned(), json!(top_p));
            }
        }
        if !sampling.stop.is_empty() {
            config.insert("stopSequences".to_owned(), json!(sampling.stop));
        }
        if let Some(top_k) = sampling.top_k {
            self.top_k(top_k, thinks, &mut additional, notes);
        }
        self.parallel(&mut additional, notes);
        let some = |map: Map<String, Value>| (!map.is_empty()).then_some(Value::Object(map));
        (some(config), some(additional))
    }

    /// Converse itself has none; each family has its own way.
    fn top_k(&self, top_k: u64, thinks: bool, additional: &mut Map<String, Value>, notes: &mut Notes) {
        let field = self.prompt.name(Param::TopK, self.ask.surface);
        match self.model.family {
            Family::Claude if thinks => notes.dropped(field, "a model that thinks takes none"),
            Family::Claude | Family::Mistral => {
                additional.insert("top_k".to_owned(), json!(top_k));
            }
            Family::Nova => {
                additional.insert("inferenceConfig".to_owned(), json!({ "topK": top_k }));
            }
            Family::Cohere => {
                additional.insert("k".to_owned(), json!(top_k));
            }
            Family::OpenAi | Family::Other | Family::Hidden => {
                notes.dropped(field, "nothing is known of how this model takes it");
            }
        }
    }

    /// Several calls in a turn are allowed unless a model of Anthropic's is told otherwise.
    fn parallel(&self, additional: &mut Map<String, Value>, notes: &mut Notes) {
        if self.prompt.parallel_tools != Some(false) || self.prompt.tools.is_empty() {
            return;
        }
        let is_free = matches!(self.prompt.tool_choice, None | Some(ToolChoice::Auto));
        if self.model.is_claude() && is_free {
            let choice = json!({"type": "auto", "disable_parallel_tool_use": true});
            additional.insert("tool_choice".to_owned(), choice);
        } else {
            notes.dropped(
                self.prompt.name(Param::ParallelToolCalls, self.ask.surface),
                "bedrock has no way to forbid parallel calls here",
            );
        }
    }

    fn thinking(&self, notes: &mut Notes) -> Thinking {
        let Some(reasoning) = &self.prompt.reasoning else {
            return Thinking::Unsaid;
        };
        let field = self.prompt.name(Param::Reasoning, self.ask.surface);
        let is_off = reasoning.effort == Some(Effort::None) || reasoning.budget == Some(0);
        match self.model.family {
            Family::Claude => self.claude_thinking(is_off, notes),
            Family::Nova => self.nova_thinking(is_off, notes),
            Family::OpenAi => {
                let effort = reasoning.effort.or_else(|| reasoning.budget.map(Effort::of_budget));
                let word = match effort {
                    None => return Thinking::Unsaid,
                    Some(Effort::None | Effort::Minimal | Effort::Low) => "low",
                    Some(Effort::Medium) => "medium",
                    Some(Effort::High | Effort::XHigh | Effort::Max) => "high",
                };
                if effort.is_some_and(|effort| effort.as_str() != word) || reasoning.budget.is_some() {
                    notes.approximated(field, format!("an effort of {word}"));
                }
                Thinking::On(object([("reasoning_effort", json!(word))]))
            }
            Family::Mistral | Family::Cohere | Family::Other | Family::Hidden => {
                notes.dropped(field, "nothing is known of how this model takes it");
                Thinking::Unsaid
            }
        }
    }

    fn claude_thinking(&self, is_off: bool, notes: &mut Notes) -> Thinking {
        let Some(reasoning) = &self.prompt.reasoning else {
            return Thinking::Unsaid;
        };
        let field = self.prompt.name(Param::Reasoning, self.ask.surface);
        if is_off {
            return Thinking::Off(object([("thinking", json!({"type": "disabled"}))]));
        }
        if self.is_forced() {
            notes.dropped(field, "a model that must call a tool does not think");
            return Thinking::Unsaid;
        }
        if self.is_in_thoughtless_turn() {
            notes.dropped(field, "this turn began without reasoning that the model signed");
            return Thinking::Unsaid;
        }
        if !self.model.thinks_by_budget() {
            let mut fields = object([("thinking", json!({"type": "adaptive"}))]);
            let effort = reasoning.effort.or_else(|| reasoning.budget.map(Effort::of_budget));
            if let Some(effort) = effort {
                let word = match effort {
                    Effort::None | Effort::Minimal | Effort::Low => "low",
                    Effort::Medium => "medium",
                    Effort::High => "high",
                    Effort::XHigh | Effort::Max => "max",
                };
                if reasoning.budget.is_some() || effort.as_str() != word {
                    notes.approximated(field, format!("an effort of {word}"));
                }
                fields.insert("output_config".to_owned(), json!({ "effort": word }));
            }
            return Thinking::On(fields);
        }
        let asked = reasoning.budget.or_else(|| reasoning.effort.map(Effort::budget));
        let asked = asked.unwrap_or_else(|| Effort::Medium.budget());
        // The answer has to fit behind it.
        let most = self.prompt.max_tokens.map_or(u64::MAX, |max| max.saturating_sub(1));
        if most < LEAST_BUDGET {
            notes.dropped(field, "too few tokens of output are allowed for any");
            return Thinking::Unsaid;
        }
        let budget = asked.clamp(LEAST_BUDGET, most);
        if reasoning.budget != Some(budget) {
            notes.approximated(field, format!("a budget of {budget} tokens"));
        }
        Thinking::On(object([(
            "thinking",
            json!({"type": "enabled", "budget_tokens": budget}),
        )]))
    }

    /// Results of tools come back to a model that did not think when it called them: it may not begin now.
    fn is_in_thoughtless_turn(&self) -> bool {
        let has = |message: &Value, kind: &str| {
            let blocks = message.get("content").and_then(Value::as_array);
            blocks.is_some_and(|blocks| blocks.iter().any(|block| block.get(kind).is_some()))
        };
        match self.messages {
            [.., calls, results] => {
                has(results, "toolResult") && has(calls, "toolUse") && !has(calls, "reasoningContent")
            }
            _ => false,
        }
    }

    fn nova_thinking(&self, is_off: bool, notes: &mut Notes) -> Thinking {
        let Some(reasoning) = &self.prompt.reasoning else {
            return Thinking::Unsaid;
        };
        if is_off {
            return Thinking::Off(object([("reasoningConfig", json!({"type": "disabled"}))]));
        }
        let field = self.prompt.name(Param::Reasoning, self.ask.surface);
        let effort = reasoning.effort.or_else(|| reasoning.budget.map(Effort::of_budget));
        // Where it thinks hardest, it takes neither a limit nor a temperature.
        let sampling = &self.prompt.sampling;
        let is_bound = self.prompt.max_tokens.is_some() || sampling.temperature.is_some() || sampling.top_p.is_some();
        let word = match effort {
            Some(Effort::None | Effort::Minimal | Effort::Low) => "low",
            Some(Effort::High | Effort::XHigh | Effort::Max) if !is_bound => "high",
            _ => "medium",
        };
        if effort.is_none_or(|effort| effort.as_str() != word) || reasoning.budget.is_some() {
            notes.approximated(field, format!("an effort of {word}"));
        }
        let config = json!({"type": "enabled", "maxReasoningEffort": word});
        Thinking::On(object([("reasoningConfig", config)]))
    }

    /// `outputConfig`, where the model takes a schema.
    pub(super) fn output(&self, notes: &mut Notes) -> Option<Value> {
        let field = self.prompt.name(Param::ResponseFormat, self.ask.surface);
        match self.prompt.format.as_ref()? {
            Format::Text => None,
            Format::Json => {
                notes.approximated(field, "asked for in words: bedrock knows schemas only");
                None
            }
            Format::Schema { .. } if !self.model.is_structured() => {
                notes.approximated(field, "asked for in words: the model takes no schema");
                None
            }
            Format::Schema {
                name,
                description,
                schema,
                strict,
            } => {
                if *strict == Some(false) {
                    notes.approximated(field, "a schema is always kept to there");
                }
                let mut definition = Map::new();
                definition.insert("schema".to_owned(), json!(schema.to_string()));
                for (key, value) in [("name", name), ("description", description)] {
                    if let Some(value) = value {
                        definition.insert(key.to_owned(), json!(value));
                    }
                }
                let structure = json!({ "jsonSchema": definition });
                Some(json!({"textFormat": {"type": "json_schema", "structure": structure}}))
            }
        }
    }

    pub(super) fn metadata(&self, notes: &mut Notes) -> Option<Value> {
        const MOST: usize = 16;
        let field = self.prompt.name(Param::Metadata, self.ask.surface);
        let given = self.prompt.metadata.as_ref()?;
        let Some(given) = given.as_object() else {
            notes.dropped(field, "bedrock takes texts by name only");
            return None;
        };
        let fits = |text: &str| {
            let is_fine = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || ":_@$#=/+,-.".contains(c);
            text.len() <= 256 && text.chars().all(is_fine)
        };
        let mut metadata = Map::new();
        for (key, value) in given {
            let text = match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
                _ => None,
            };
            match text.filter(|text| fits(text) && fits(key) && !key.is_empty() && metadata.len() < MOST) {
                Some(text) => {
                    metadata.insert(key.clone(), json!(text));
                }
                None => notes.dropped(
                    format!("{field}.{key}"),
                    "bedrock takes 16 short texts of plain letters",
                ),
            }
        }
        (!metadata.is_empty()).then_some(Value::Object(metadata))
    }

    pub(super) fn service_tier(&self, notes: &mut Notes) -> Option<Value> {
        let tier = match self.prompt.service_tier.as_deref()? {
            "auto" => return None,
            "default" | "standard_only" => "default",
            "flex" => "flex",
            "priority" => "priority",
            "reserved" => "reserved",
            _ => {
                notes.dropped(
                    self.prompt.name(Param::ServiceTier, self.ask.surface),
                    "bedrock knows default, flex, priority and reserved",
                );
                return None;
            }
        };
        Some(json!({ "type": tier }))
    }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
