//! What the page of one request asks for.

use super::view::RequestView;
use crate::{
    api::{api, asked::ask, bounded},
    pages::not_found::answer_404,
    ui::{
        note::{Failure, Loading, Note, Tone},
        panel::Head,
    },
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;
use switchyard_api::ApiError;

/// The page. A request never changes once it is recorded, so nothing here refreshes.
#[component]
pub fn Request() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    let api = api();
    let detail = ask(move || id.get(), move |id| bounded(api.log(id)));
    let title = move || id.with(|id| format!("Request {} · Switchyard", short(id)));
    view! {
        <Title text=title/>
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {move || Suspend::new(async move {
                match detail.await {
                    Ok(detail) => view! { <RequestView detail=detail/> }.into_any(),
                    Err(fault) => fault_view(id.get_untracked(), fault),
                }
            })}
        </Transition>
    }
}

fn fault_view(id: String, fault: ApiError) -> AnyView {
    let missing = fault.status == 404;
    if missing {
        answer_404();
    }
    let body = if missing {
        view! {
            <Note tone=Tone::Warn>
                "No request "<code>{id}</code>" is in the log. It may have been removed, or is being written: a record arrives within a moment of its answer's end."
            </Note>
        }
        .into_any()
    } else {
        view! { <Failure what="The request" fault=fault/> }.into_any()
    };
    view! {
        <Head title=if missing { "No such request" } else { "Request" } finding=|| () above=|| view! { <p><a href="/requests">"Requests"</a></p> }.into_any()/>
        {body}
    }
    .into_any()
}

/// `5f1c…9a20`; a short id stands as it is.
fn short(id: &str) -> String {
    let characters: Vec<char> = id.chars().collect();
    match characters.len() {
        0..=12 => id.to_owned(),
        n => characters[..4]
            .iter()
            .chain(&['…'])
            .chain(&characters[n - 4..])
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_title_has_room_for_both_ends_of_an_id() {
        assert_eq!(short("5f1c0b7e4c5d4a9f8e21d0c79ab09a20"), "5f1c…9a20");
        assert_eq!(short("41"), "41");
    }
}
