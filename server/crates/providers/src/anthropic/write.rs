//! Requests to upstreams.
//!
//! The vendor refuses whole requests for small things: a text of white space, a call's result that is not the first thing
//! behind the call, a temperature beside thinking. Each of them is put right here where that loses nothing, told where it does,
//! and refused here where the answer would not be one to what was asked.

mod conversation;
mod schema;

use super::model::{Model, Off, Thinks};
use crate::codec::Ask;
use crate::custom;
use crate::ids::fitting;
use crate::ir::{Effort, Format, Prompt, Reasoning, Tool, ToolChoice, ToolKind};
use crate::names::{self, OfTool};
use crate::notes::Notes;
use crate::params::Param;
use conversation::{Content, Conversation, Turn};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use switchyard_core::error::{Error, Kind};

/// What is added to `max_tokens` for thinking without a budget, where the caller gave no number.
const ROOM_TO_THINK: u64 = 16_384;
/// The smallest budget that the vendor takes.
const LEAST_BUDGET: u64 = 1024;
/// Longest name of a tool.
const LONGEST_NAME: usize = 128;

fn unsupported(field: &str, what: &str) -> Error {
    let message = format!("`{field}` cannot be sent to the upstream (anthropic): {what}");
    Error::new(Kind::Unsupported, message).with_param(field)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Content<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u64>,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'static str>,
    #[serde(skip_serializing_if = "is_false")]
    stream: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the serializer hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

pub(super) fn write(prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
    let mut writing = Writing {
        prompt,
        ask,
        model: Model::of(ask.model),
        notes,
        orders: Vec::new(),
    };
    let tools = writing.tools()?;
    let (tools, mut tool_choice) = writing.choice(tools);
    let (format, cites) = writing.format();
    writing.verbosity();
    let conversation = Conversation::read(prompt, ask, writing.model, cites, writing.notes)?;
    let mut thinking = writing.thinking(&conversation, &mut tool_choice);
    let max_tokens = writing.max_tokens(&mut thinking);
    let (temperature, top_p, top_k) = writing.sampling(thinking.is_on);
    let stop_sequences = writing.stop();
    let service_tier = writing.service_tier();
    let (system, messages) = conversation.finish(&writing.orders, writing.notes)?;
    let mut output = serde_json::Map::new();
    output.extend(thinking.effort.map(|effort| ("effort".to_owned(), Value::from(effort))));
    output.extend(format.map(|format| ("format".to_owned(), format)));
    let body = Body {
        model: ask.model,
        max_tokens,
        system,
        messages,
        tools,
        tool_choice: tool_choice.map(|choice| choice.written),
        thinking: thinking.written(),
        output_config: (!output.is_empty()).then_some(Value::Object(output)),
        temperature,
        top_p,
        top_k,
        stop_sequences,
        metadata: prompt.user.as_ref().map(|user| json!({ "user_id": user })),
        service_tier,
        stream: ask.stream,
    };
    serde_json::to_vec(&body)
        .map_err(|error| Error::new(Kind::Internal, format!("the request was not written: {error}")))
}

struct Writing<'a, 'n> {
    prompt: &'a Prompt,
    ask: &'a Ask<'a>,
    model: Model,
    notes: &'n mut Notes,
    /// What is added to the system's words, because the wire has no parameter for it.
    orders: Vec<Cow<'static, str>>,
}

/// What the model is told about its tools.
struct Choice {
    written: Value,
    is_forced: bool,
}

/// How it is to think.
#[derive(Default)]
struct Thinking {
    kind: Option<&'static str>,
    budget: Option<u64>,
    display: Option<&'static str>,
    effort: Option<&'static str>,
    is_on: bool,
}

impl Thinking {
    fn written(&self) -> Option<Value> {
        let mut written = json!({ "type": self.kind? });
        if let Some(budget) = self.budget {
            written["budget_tokens"] = budget.into();
        }
        if let Some(display) = self.display {
            written["display"] = display.into();
        }
        Some(written)
    }
}

impl<'a> Writing<'a, '_> {
    fn name(&self, param: Param) -> &'static str {
        self.prompt.name(param, self.ask.surface)
    }

    // === tools ===

    fn tools(&mut self) -> Result<Vec<(&'a str, Value)>, Error> {
        let mut written = Vec::with_capacity(self.prompt.tools.len());
        for (index, tool) in self.prompt.tools.iter().enumerate() {
            let surface = self.ask.surface;
            let named = |what| names::tool(tool, index, surface, what);
            match &tool.kind {
                ToolKind::Function { schema, strict } => {
                    let is_strict = *strict == Some(true);
                    written.push((&*tool.name, self.function(tool, schema.as_ref(), is_strict, index)?));
                }
                ToolKind::Custom(custom) => {
                    self.notes.approximated(named(OfTool::Tool), custom::why(custom));
                    let schema = custom::schema(custom);
                    written.push((&*tool.name, self.function(tool, Some(&schema), false, index)?));
                }
                ToolKind::Vendors(stranger) => {
                    let why = "a tool that another vendor runs itself";
                    self.notes.dropped(stranger.field.clone(), why);
                }
            }
        }
        Ok(written)
    }

    fn function(&mut self, tool: &Tool, schema: Option<&Value>, strict: bool, index: usize) -> Result<Value, Error> {
        let surface = self.ask.surface;
        let named = |what| names::tool(tool, index, surface, what);
        if fitting(&tool.name, LONGEST_NAME) != tool.name {
            let what = "a tool's name has at most 128 letters, digits, `-` and `_` there; rename the tool";
            return Err(unsupported(&named(OfTool::Tool), what));
        }
        let mut written = json!({ "name": tool.name });
        if let Some(description) = &tool.description {
            written["description"] = description.as_str().into();
        }
        let strict = strict && {
            let knows = self.model.has_schemas();
            if !knows {
                self.notes
                    .dropped(named(OfTool::Strict), "this model has no strict tools");
            }
            knows
        };
        let mut input = schema.cloned().unwrap_or_else(|| json!({}));
        schema::of_input(&mut input, &named(OfTool::Parameters), self.notes);
        if strict {
            schema::restrict(&mut input, &named(OfTool::Parameters), self.notes);
            written["strict"] = true.into();
        }
        written["input_schema"] = input;
        if let Some(cache) = &tool.cache {
            written["cache_control"] = cache.clone();
        }
        Ok(written)
    }

    /// The tools that are offered, and what is said about them.
    fn choice(&mut self, mut tools: Vec<(&'a str, Value)>) -> (Vec<Value>, Option<Choice>) {
        let (choice, parallel) = (self.name(Param::ToolChoice), self.name(Param::ParallelToolCalls));
        let wanted = self.prompt.tool_choice.as_ref();
        let mut wants_one = None;
        let mut kind = match wanted {
            None | Some(ToolChoice::Auto) => "auto",
            Some(ToolChoice::None) => "none",
            Some(ToolChoice::Required) => "any",
            Some(ToolChoice::Named(name)) => {
                wants_one = Some(name.as_str());
                "tool"
            }
            Some(ToolChoice::Among { names, required }) => {
                self.notes.approximated(choice, "only these tools are sent");
                tools.retain(|(name, _)| names.iter().any(|wanted| wanted == name));
                if *required { "any" } else { "auto" }
            }
        };
        if wants_one.is_some_and(|wanted| tools.iter().all(|(name, _)| *name != wanted)) {
            self.notes
                .dropped(choice, "the tool that it names is not among those that were sent");
            (kind, wants_one) = ("auto", None);
        }
        if tools.is_empty() {
            let is_asked = !matches!(wanted, None | Some(ToolChoice::Auto | ToolChoice::None));
            if is_asked {
                self.notes.dropped(choice, "there are no tools to choose from");
            }
            return (Vec::new(), None);
        }
        if matches!(kind, "any" | "tool") && !self.model.can_be_forced() {
            self.notes
                .approximated(choice, "this model cannot be made to call a tool: it is told to");
            self.orders.push(match wants_one {
                Some(name) => format!("Call the tool `{name}` before you answer.").into(),
                None => "Call one of your tools before you answer.".into(),
            });
            (kind, wants_one) = ("auto", None);
        }
        let is_single = self.prompt.parallel_tools == Some(false) && kind != "none";
        if self.prompt.parallel_tools == Some(false) && kind == "none" {
            self.notes.dropped(parallel, "no tool is to be called at all");
        }
        let written = (wanted.is_some() || is_single).then(|| {
            let mut written = json!({ "type": kind });
            if let Some(name) = wants_one {
                written["name"] = name.into();
            }
            if is_single {
                written["disable_parallel_tool_use"] = true.into();
            }
            Choice {
                written,
                is_forced: matches!(kind, "any" | "tool"),
            }
        });
        (tools.into_iter().map(|(_, tool)| tool).collect(), written)
    }

    // === the shape of the answer ===

    /// The format, and whether documents may be cited: the vendor takes one of the two.
    fn format(&mut self) -> (Option<Value>, bool) {
        let field = self.name(Param::ResponseFormat);
        match &self.prompt.format {
            None | Some(Format::Text) => (None, true),
            Some(Format::Json) => {
                let why = "the wire has formats with a schema only: the model is told to answer with a JSON object";
                self.notes.approximated(field, why);
                self.orders
                    .push("Answer with one valid JSON object and nothing else: no other text, no code fence.".into());
                (None, true)
            }
            Some(Format::Schema {
                name,
                description,
                schema,
                strict: _,
            }) if self.model.has_schemas() => {
                if name.is_some() {
                    self.notes.dropped(
                        names::of_format(self.ask.surface, "name"),
                        "schemas have no names there",
                    );
                }
                let mut schema = schema.clone();
                schema::restrict(&mut schema, field, self.notes);
                if let (Some(description), Some(object)) = (description, schema.as_object_mut()) {
                    object
                        .entry("description")
                        .or_insert_with(|| description.as_str().into());
                }
                (Some(json!({ "type": "json_schema", "schema": schema })), false)
            }
            Some(Format::Schema { schema, .. }) => {
                self.notes.approximated(
                    field,
                    "this model has no formats: it is told the schema, and nothing holds it to it",
                );
                let order = format!(
                    "Answer with one valid JSON value and nothing else: no other text, no code fence. It must match this \
                     JSON schema: {schema}"
                );
                self.orders.push(order.into());
                (None, true)
            }
        }
    }

    fn verbosity(&mut self) {
        let Some(verbosity) = &self.prompt.verbosity else {
            return;
        };
        let field = self.name(Param::Verbosity);
        let order = match verbosity.as_str() {
            "low" => "Keep your answer short.",
            "high" => "Answer at length and in detail.",
            // What models do anyway.
            _ => return,
        };
        self.notes
            .approximated(field, "the model is told so: the wire has no such parameter");
        self.orders.push(order.into());
    }

    fn stop(&mut self) -> Vec<&'a str> {
        let (kept, refused): (Vec<&str>, Vec<&str>) = self
            .prompt
            .sampling
            .stop
            .iter()
            .map(String::as_str)
            .partition(|stop| !stop.trim().is_empty());
        if !refused.is_empty() {
            self.notes.dropped(
                self.name(Param::Stop),
                "a stop text of nothing but white space is refused there",
            );
        }
        kept
    }

    fn service_tier(&mut self) -> Option<&'static str> {
        let tier = self.prompt.service_tier.as_deref()?;
        let field = self.name(Param::ServiceTier);
        match tier {
            "auto" | "priority" => Some("auto"),
            "default" | "standard" | "standard_only" => Some("standard_only"),
            _ => {
                self.notes.dropped(field, format!("there is no tier like {tier}"));
                None
            }
        }
    }

    // === thinking ===

    fn thinking(&mut self, conversation: &Conversation<'_>, choice: &mut Option<Choice>) -> Thinking {
        let field = self.name(Param::Reasoning);
        let Some(reasoning) = &self.prompt.reasoning else {
            return Thinking::default();
        };
        let wants_none = reasoning.effort == Some(Effort::None)
            || (reasoning.budget == Some(0) && reasoning.effort.is_none() && !reasoning.is_adaptive);
        if wants_none {
            return self.unthinking(field);
        }
        // To be shown or not to be shown is not to be asked to think.
        let is_asked = reasoning.effort.is_some() || reasoning.budget.is_some() || reasoning.is_adaptive;
        if !is_asked && !self.model.thinks_by_default() {
            if reasoning.show.is_some() {
                self.notes.dropped(field, "it does not say how much to think");
            }
            return Thinking::default();
        }
        if choice.as_ref().is_some_and(|choice| choice.is_forced) {
            let why = "no thinking where a tool must be called: the vendor refuses both together";
            self.notes.dropped(field, why);
            return Thinking {
                kind: self.off(),
                ..Thinking::default()
            };
        }
        let mut thinking = match self.model.thinks() {
            Thinks::Adaptively => self.adaptive(reasoning, field),
            Thinks::ByBudget if conversation.resumes_without_thought() => {
                let why = "the turn that is carried on has no thoughts of this vendor's, and its models refuse to begin in \
                           the middle";
                self.notes.dropped(field, why);
                return Thinking::default();
            }
            Thinks::ByBudget => self.budgeted(reasoning, field),
        };
        thinking.display = reasoning.show.map(|show| if show { "summarized" } else { "omitted" });
        thinking
    }

    /// The model's word for no thinking at all.
    fn off(&self) -> Option<&'static str> {
        match self.model.off() {
            Off::Already | Off::Never => None,
            Off::Disabled => Some("disabled"),
            Off::BetweenTools => Some("between_tools"),
        }
    }

    fn unthinking(&mut self, field: &'static str) -> Thinking {
        let effort = match self.model.off() {
            Off::Already | Off::Disabled => None,
            Off::BetweenTools => {
                self.notes
                    .approximated(field, "this model still thinks between calls of tools");
                None
            }
            Off::Never => {
                self.notes
                    .approximated(field, "this model always thinks: it is asked for the least of it");
                Some("low")
            }
        };
        Thinking {
            kind: self.off(),
            effort,
            ..Thinking::default()
        }
    }

    fn adaptive(&mut self, reasoning: &Reasoning, field: &'static str) -> Thinking {
        let wanted = reasoning.effort.or_else(|| {
            let budget = reasoning.budget?;
            let effort = Effort::of_budget(budget).max(Effort::Low);
            let why = format!("{}: this model takes no number of tokens", self.word(effort));
            self.notes.approximated(field, why);
            Some(effort)
        });
        let effort = wanted.map(|effort| {
            let word = self.word(effort);
            if word != effort.as_str() && reasoning.effort.is_some() {
                self.notes.approximated(
                    field,
                    format!("{word}: this model has no effort like {}", effort.as_str()),
                );
            }
            word
        });
        Thinking {
            kind: Some("adaptive"),
            effort,
            is_on: true,
            ..Thinking::default()
        }
    }

    /// The nearest effort that the model knows.
    fn word(&self, effort: Effort) -> &'static str {
        match effort {
            Effort::None | Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::XHigh if self.model.has_xhigh() => "xhigh",
            Effort::Max if self.model.has_max() => "max",
            Effort::High | Effort::XHigh | Effort::Max => "high",
        }
    }

    fn budgeted(&mut self, reasoning: &Reasoning, field: &'static str) -> Thinking {
        let wanted = reasoning.budget.unwrap_or_else(|| {
            let effort = reasoning.effort.unwrap_or(Effort::Medium);
            let budget = effort.budget().max(LEAST_BUDGET);
            self.notes.approximated(
                field,
                format!("a budget of {budget} tokens: this model takes no other word for it"),
            );
            budget
        });
        let budget = wanted.max(LEAST_BUDGET);
        if budget != wanted {
            self.notes
                .approximated(field, "1024 tokens: the vendor takes no smaller budget");
        }
        let effort = reasoning
            .effort
            .filter(|_| self.model.has_effort() && reasoning.budget.is_some());
        Thinking {
            kind: Some("enabled"),
            budget: Some(budget),
            effort: effort.map(|effort| self.word(effort)),
            is_on: true,
            display: None,
        }
    }

    fn max_tokens(&mut self, thinking: &mut Thinking) -> u64 {
        let field = self.name(Param::MaxTokens);
        let usual = self.model.usual_output();
        let Some(most) = self.prompt.max_tokens else {
            let room = match thinking.budget {
                Some(budget) => budget,
                None if thinking.is_on => ROOM_TO_THINK,
                None => 0,
            };
            let most = usual.saturating_add(room);
            self.notes
                .approximated(field, format!("{most}: the vendor wants a number, and none was given"));
            return most;
        };
        // What is left of it is for the answer.
        if let Some(budget) = thinking.budget.filter(|budget| *budget >= most) {
            let field = self.name(Param::Reasoning);
            let less = (most - most / 4).max(LEAST_BUDGET);
            if less < most && less < budget {
                self.notes.approximated(
                    field,
                    format!("a budget of {less} tokens: it must leave some of the {most} of the answer"),
                );
                thinking.budget = Some(less);
            } else if less < most {
                thinking.budget = Some(less);
            } else {
                let why = format!("the least budget is {LEAST_BUDGET} tokens, and the answer has no more than {most}");
                self.notes.dropped(field, why);
                *thinking = Thinking::default();
            }
        }
        most
    }

    // === sampling ===

    fn sampling(&mut self, thinks: bool) -> (Option<f64>, Option<f64>, Option<u64>) {
        let sampling = &self.prompt.sampling;
        let (mut temperature, mut top_p, mut top_k) = (sampling.temperature, sampling.top_p, sampling.top_k);
        let names = [Param::Temperature, Param::TopP, Param::TopK].map(|param| self.name(param));
        let [name_of_temperature, name_of_top_p, name_of_top_k] = names;
        if !self.model.samples() {
            let given = [temperature.is_some(), top_p.is_some(), top_k.is_some()];
            for (name, is_given) in names.into_iter().zip(given) {
                if is_given {
                    self.notes.dropped(name, "this model takes no parameters of sampling");
                }
            }
            return (None, None, None);
        }
        let within = |value: f64| (0.0..=1.0).contains(&value);
        if let Some(hot) = temperature.filter(|value| !within(*value)) {
            let most = hot.clamp(0.0, 1.0);
            self.notes
                .approximated(name_of_temperature, format!("{most}: it goes from 0 to 1 there"));
            temperature = Some(most);
        }
        if thinks {
            let with_thinking = "not together with thinking";
            // 1 is what it is anyway.
            if temperature
                .take()
                .is_some_and(|value| (value - 1.0).abs() > f64::EPSILON)
            {
                self.notes.dropped(name_of_temperature, with_thinking);
            }
            if top_k.take().is_some() {
                self.notes.dropped(name_of_top_k, with_thinking);
            }
            if top_p.take_if(|value| !(0.95..=1.0).contains(value)).is_some() {
                self.notes
                    .dropped(name_of_top_p, "together with thinking it goes from 0.95 to 1 only");
            }
        }
        if temperature.is_some() && top_p.is_some() && !self.model.samples_both() {
            self.notes.dropped(name_of_top_p, "not together with a temperature");
            top_p = None;
        }
        (temperature, top_p, top_k)
    }
}
