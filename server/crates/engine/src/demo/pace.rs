//! When each token comes.
//!
//! Times are deadlines counted from the request, not pauses between frames: a reader that stalls finds what "arrived"
//! meanwhile, as it would on a socket, and rounding by the timer does not add up over a long answer.

use super::{request::Model, text::mix};
use std::time::Duration;
use tokio::time::Instant;

/// How fast the demo models answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As a hosted model does: a first token after a quarter of a second, then about forty a second.
    #[default]
    Human,
    /// Everything at once, `demo-slow` included. For tests that are about content.
    Instant,
}

/// One answer's clock. Step 0 is the head, step 1 the first token, each further step one token more.
#[derive(Debug)]
pub(super) struct Tempo {
    rhythm: Option<Rhythm>,
    step: usize,
}

#[derive(Debug)]
struct Rhythm {
    /// When the step of [`Tempo::step`] is due.
    due: Instant,
    first: Duration,
    gap: Duration,
    seed: u64,
}

impl Pace {
    pub(super) fn tempo(self, model: Model, seed: u64) -> Tempo {
        let (first_ms, gap_ms) = match model {
            Model::Slow => (5_000, 250),
            Model::Normal | Model::Flaky | Model::Cut | Model::RateLimited => (250, 25),
        };
        let rhythm = (self == Self::Human).then(|| Rhythm {
            due: Instant::now(),
            first: Duration::from_millis(first_ms),
            gap: Duration::from_millis(gap_ms),
            seed,
        });
        Tempo { rhythm, step: 0 }
    }
}

impl Tempo {
    /// Waits until `step` is due. Steps only go forward.
    pub(super) async fn reach(&mut self, step: usize) {
        let Some(rhythm) = &mut self.rhythm else { return };
        while self.step < step {
            rhythm.due += rhythm.before(self.step);
            self.step += 1;
        }
        tokio::time::sleep_until(rhythm.due).await;
    }
}

impl Rhythm {
    /// The time between `step` and the next: between 60 and 140 per cent of the model's gap, 100 on average.
    fn before(&self, step: usize) -> Duration {
        if step == 0 {
            return self.first;
        }
        let percent = 60 + mix(self.seed ^ step as u64) % 81;
        self.gap * u32::try_from(percent).unwrap_or(100) / 100
    }
}
