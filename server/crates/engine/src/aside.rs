//! Work that may take a while, off the core that it came in on: whatever else lives there would stand still meanwhile.

/// What is about more bytes than these is done aside. Below, handing it over costs more than it spares others.
pub const LARGE: usize = 256 << 10;

/// Does it here, or on a thread of its own if it is about that many bytes. Dropping the future leaves it to end by itself.
pub async fn aside<T, F>(bytes: usize, work: F) -> T
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    if bytes <= LARGE {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // A panic there is one here.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{LARGE, aside};
    use std::thread;

    #[tokio::test]
    async fn what_is_large_is_done_elsewhere_and_its_panic_comes_back() {
        let here = thread::current().id();
        assert_eq!(aside(LARGE, || thread::current().id()).await, here);
        assert_ne!(aside(LARGE + 1, || thread::current().id()).await, here);
        let panicked = tokio::spawn(aside(LARGE + 1, || panic!("odd"))).await;
        let payload: Result<(), _> = panicked.map_err(tokio::task::JoinError::into_panic);
        assert_eq!(payload.unwrap_err().downcast_ref::<&str>(), Some(&"odd"));
    }
}
