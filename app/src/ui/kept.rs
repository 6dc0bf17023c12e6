//! The last good answer of a page that refreshes itself.
//!
//! When a refresh fails, an operator in the middle of an incident must not lose the figures of half a minute ago. They
//! stay, with a note that says they are old.

use leptos::prelude::*;
use switchyard_api::ApiError;

/// Keeps one answer and the question that it answered.
pub struct Kept<Q: 'static, T: 'static>(StoredValue<Option<(Q, T)>>);

impl<Q, T> Clone for Kept<Q, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q, T> Copy for Kept<Q, T> {}

impl<Q: Send + Sync + 'static, T: Send + Sync + 'static> Default for Kept<Q, T> {
    fn default() -> Self {
        Self(StoredValue::new(None))
    }
}

impl<Q, T> Kept<Q, T>
where
    Q: PartialEq + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// What to show for this answer: itself; or, if it failed, the last good one to the same question and the fault.
    ///
    /// # Errors
    /// The fault alone, if there is nothing to fall back on.
    pub fn settle(self, question: Q, answer: Result<T, ApiError>) -> Result<(T, Option<ApiError>), ApiError> {
        match answer {
            Ok(good) => {
                self.0.set_value(Some((question, good.clone())));
                Ok((good, None))
            }
            Err(fault) => self.0.with_value(|kept| match kept {
                Some((asked, old)) if *asked == question => Ok((old.clone(), Some(fault))),
                _ => Err(fault),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_refresh_shows_the_old_answer_to_the_same_question_only() {
        let owner = Owner::new();
        owner.with(|| {
            let (kept, fault) = (Kept::default(), ApiError::new(504, "timeout", "late"));
            assert_eq!(kept.settle("1h", Err(fault.clone())), Err(fault.clone()));
            assert_eq!(kept.settle("1h", Ok(7)), Ok((7, None)));
            assert_eq!(kept.settle("1h", Err(fault.clone())), Ok((7, Some(fault.clone()))));
            assert_eq!(kept.settle("24h", Err(fault.clone())), Err(fault));
        });
    }
}
