//! What the playground shows.

use super::{ask::Settings, dialect::Dialect, send, talk::Talk, turn::TurnView};
use crate::ui::{
    button::{Button, Look},
    field::Field,
    note::{Note, Tone},
    panel::Panel,
    ready::ready,
    typed::typed,
};
use leptos::{
    ev::{KeyboardEvent, SubmitEvent},
    prelude::*,
};

/// The conversation, and the box for the next message.
#[component]
pub fn Conversation(
    talk: Talk,
    /// The model that the next message goes to.
    model: Callback<(), String>,
    simulated: bool,
    may_send: bool,
) -> impl IntoView {
    let ask = move || {
        if may_send {
            send::send(talk, model.run(()));
        }
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        ask();
    };
    let key = move |event: KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            ask();
        }
    };
    let idle = Memo::new(move |_| talk.turns.with(Vec::is_empty));
    let aside = view! {
        {simulated.then(|| view! { <span class="tag demo">"answers here are simulated by demo"</span> }.into_any())}
        <span class="age"><Button look=Look::Bare off=Signal::derive(move || idle.get() || talk.busy.get()) press=move |_| talk.clear()>"Clear"</Button></span>
    };
    let read_only = (!may_send).then(|| {
        view! { <Note tone=Tone::Plain>"You can look but not send: this session has no invoke scope, so it cannot spend. Sign in with a key that may invoke."</Note> }.into_any()
    });
    view! {
        <Panel title="Conversation" aside=aside.into_any() class="w8">
            {move || talk.turns.get().into_iter().map(|turn| view! { <TurnView turn=turn/> }.into_any()).collect_view()}
            {move || idle.get().then(|| view! { <p class="dim">"Nothing has been said yet."</p> }.into_any())}
            <form class="stack ask" on:submit=submit>
                {read_only}
                <noscript><p class="note">"The playground needs JavaScript: it reads the answer as it arrives."</p></noscript>
                <div aria-live="polite">
                    {move || talk.problem.get().map(|problem| view! { <Note tone=Tone::Bad>{problem}</Note> }.into_any())}
                </div>
                <Field label="Message">
                    <textarea class="input" name="message" rows="3" placeholder="Ask the gateway" use:typed=talk.draft.into()
                        on:input=move |event| talk.draft.set(event_target_value(&event)) on:keydown=key></textarea>
                </Field>
                <div class="row">
                    <span class="grow"></span>
                    <span class="dim keys"><kbd>"Ctrl"</kbd>" "<kbd>"Enter"</kbd></span>
                    <Button look=Look::Plain off=Signal::derive(move || !talk.busy.get()) press=move |_| send::stop(talk)>"Stop"</Button>
                    <Button look=Look::Main off=Signal::derive(move || !may_send || talk.busy.get()) press=move |_| ask()>"Send"</Button>
                </div>
            </form>
        </Panel>
    }
}

/// What goes along with every message.
#[component]
pub fn Request(talk: Talk, models: Vec<String>, model: Signal<String>, fault: Option<String>) -> impl IntoView {
    let of = move |read: fn(&Settings) -> &String| {
        Signal::derive(move || talk.settings.with(|settings| read(settings).clone()))
    };
    let (system, temperature) = (of(|s| &s.system), of(|s| &s.temperature));
    let (most, tools) = (of(|s| &s.most_tokens), of(|s| &s.tools));
    let set = move |write: fn(&mut Settings, String)| {
        move |event| {
            talk.settings
                .update(|settings| write(settings, event_target_value(&event)))
        }
    };
    let unsaid = move || {
        let bound = talk.dialect.get().most_tokens_unsaid();
        bound.map_or_else(|| "default".to_owned(), |most| most.to_string())
    };
    let options: Vec<_> = models
        .into_iter()
        .map(|id| view! { <option value=id></option> }.into_any())
        .collect();
    view! {
        <Panel title="Request" class="w4">
            <div class="stack">
                {dialects(talk, model)}
                {fault.map(|fault| view! { <Note tone=Tone::Warn>"The models did not load, so none are offered. "{fault}</Note> }.into_any())}
                <Field label="Model">
                    <input class="input" name="model" list="models" autocomplete="off" value=model use:typed=model on:input=move |event| talk.model.set(Some(event_target_value(&event)))/>
                </Field>
                <datalist id="models">{options}</datalist>
                <Field label="System prompt">
                    <textarea class="input" name="system" rows="4" use:typed=system on:input=set(|s, typed| s.system = typed)></textarea>
                </Field>
                <div class="row pair">
                    <Field label="Temperature">
                        <input class="input" name="temperature" inputmode="decimal" placeholder="default" use:typed=temperature on:input=set(|s, typed| s.temperature = typed)/>
                    </Field>
                    <Field label="Most tokens">
                        <input class="input" name="max_tokens" inputmode="numeric" placeholder=unsaid use:typed=most on:input=set(|s, typed| s.most_tokens = typed)/>
                    </Field>
                </div>
                <details>
                    <summary>"Tools"</summary>
                    <Field label="As JSON" hint="Calls are shown, not run. Functions in OpenAI's form are told in the dialect's own; anything else is sent as typed.">
                        <textarea class="input mono" name="tools" rows="5" placeholder="[{\"type\": \"function\", …}]" use:typed=tools on:input=set(|s, typed| s.tools = typed)></textarea>
                    </Field>
                </details>
            </div>
        </Panel>
    }
}

/// The choice of the dialect, and where a message in it goes. A radio group, so arrow keys work as everywhere.
fn dialects(talk: Talk, model: Signal<String>) -> AnyView {
    let ready = ready();
    let choice = |dialect: Dialect| {
        let chosen = move || talk.dialect.get() == dialect;
        view! {
            <label>
                <input type="radio" name="dialect" value=dialect.surface() checked=talk.dialect.get_untracked() == dialect
                    prop:checked=chosen on:change=move |_| talk.dialect.set(dialect)/>
                <span>{dialect.name()}</span>
            </label>
        }
        .into_any()
    };
    view! {
        <fieldset class="segments" disabled=move || !ready.get()>
            <legend>"Dialect"</legend>
            <div>{Dialect::ALL.map(choice).collect_view()}</div>
            <p class="path">"POST "{move || model.with(|model| talk.dialect.get().path(model))}</p>
        </fieldset>
    }
    .into_any()
}
