//! What a page asks for, and how the answer travels inside the page that the server rendered.
//!
//! A resource is made of much code for each type that it holds and each closure that fills it: for all that pages ask, it
//! was a tenth of what a browser loads. So there is one kind of resource, and types are put on outside of it.

use super::read::{Read, read};
use leptos::{
    prelude::*,
    server::codee::{Decoder, Encoder},
};
use serde::Serialize;
use std::{
    any::Any,
    convert::Infallible,
    future::{Future, IntoFuture},
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
};
use switchyard_api::ApiError;

/// An answer that may be on its way. A fault travels too, so that what failed on the server is not asked for again.
pub struct Asked<T>(Resource<Held, Json>, PhantomData<fn() -> T>);

impl<T> Clone for Asked<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Asked<T> {}

impl<T> Asked<T> {
    /// Asks the same again.
    pub fn refetch(self) {
        self.0.refetch();
    }
}

impl<T: Read + Clone + Send + Sync + 'static> IntoFuture for Asked<T> {
    type Output = Result<T, ApiError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        // Whoever waits is noted now, and not when the box is polled.
        let held = self.0.into_future();
        Box::pin(async move { held.await.read() })
    }
}

/// Asks `question` for what `source` says, and again when that changes.
pub fn ask<S, T, F>(
    source: impl Fn() -> S + Send + Sync + 'static,
    question: impl Fn(S) -> F + Send + Sync + 'static,
) -> Asked<T>
where
    S: PartialEq + Clone + Send + Sync + 'static,
    T: Serialize + Read + Send + Sync + 'static,
    F: Future<Output = Result<T, ApiError>> + Send + 'static,
{
    let question = Arc::new(question);
    let source = Box::new(move || {
        let (about, question) = (source(), Arc::clone(&question));
        Question {
            about: Arc::new(about.clone()),
            is_same: |one, other| one.downcast_ref::<S>() == other.downcast_ref::<S>(),
            ask: Arc::new(move || {
                let answer = question(about.clone());
                Box::pin(async move { Held::of(answer.await) })
            }),
        }
    });
    Asked(resource(source), PhantomData)
}

fn resource(source: Box<dyn Fn() -> Question + Send + Sync>) -> Resource<Held, Json> {
    Resource::new_with_options(source, |question: Question| (question.ask)(), false)
}

type Coming = Pin<Box<dyn Future<Output = Held> + Send>>;

/// What is asked, whatever its type.
#[derive(Clone)]
struct Question {
    about: Arc<dyn Any + Send + Sync>,
    is_same: fn(&dyn Any, &dyn Any) -> bool,
    ask: Arc<dyn Fn() -> Coming + Send + Sync>,
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        (self.is_same)(&*self.about, &*other.about)
    }
}

/// An answer, or the fault in its place, whatever its type.
#[derive(Clone, Default)]
pub struct Held {
    /// As it travels: on the server, and in the browser when it came with the page.
    text: Option<Arc<str>>,
    /// As it was given, on the side that asked.
    given: Option<Arc<dyn Any + Send + Sync>>,
}

impl Held {
    fn of<T: Serialize + Send + Sync + 'static>(answer: Result<T, ApiError>) -> Self {
        Self {
            #[cfg(feature = "ssr")]
            text: serde_json::to_string(&answer).ok().map(Arc::from),
            #[cfg(not(feature = "ssr"))]
            text: None,
            given: Some(Arc::new(answer)),
        }
    }

    fn read<T: Read + Clone + 'static>(self) -> Result<T, ApiError> {
        let given = self.given.as_ref().and_then(|given| given.downcast_ref());
        match given {
            Some(answer) => Result::clone(answer),
            None => read::<Result<T, ApiError>>(&self.text.unwrap_or_default())?,
        }
    }
}

/// Written by serde, read by [`read()`]: see there.
pub struct Json;

impl Encoder<Held> for Json {
    type Error = Infallible;
    type Encoded = String;

    fn encode(answer: &Held) -> Result<String, Infallible> {
        Ok(answer.text.as_deref().unwrap_or_default().to_owned())
    }
}

impl Decoder<Held> for Json {
    type Error = Infallible;
    type Encoded = str;

    fn decode(text: &str) -> Result<Held, Infallible> {
        Ok(Held {
            text: Some(text.into()),
            given: None,
        })
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_same_before_and_after_its_journey() {
        let fault = ApiError::new(504, "timeout", "late");
        for answer in [Ok(vec!["a".to_owned()]), Err(fault)] {
            let held = Held::of(answer.clone());
            let Ok(text) = Json::encode(&held);
            let Ok(arrived) = Json::decode(&text);
            assert_eq!(held.read::<Vec<String>>(), answer);
            assert_eq!(arrived.read::<Vec<String>>(), answer);
        }
        assert!(Held::default().read::<String>().is_err());
    }

    #[test]
    fn the_same_question_is_not_asked_again() {
        let about = |about: &str| Question {
            about: Arc::new(about.to_owned()),
            is_same: |one, other| one.downcast_ref::<String>() == other.downcast_ref::<String>(),
            ask: Arc::new(|| Box::pin(async { Held::default() })),
        };
        assert!(about("1h") == about("1h"));
        assert!(about("1h") != about("24h"));
    }
}
