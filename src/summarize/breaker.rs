//! Stops asking what keeps failing, for longer each time.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::MutexGuard;

use super::{SummarizeError, request::Clock};

/// After so many failures in a row nothing is tried for a while.
pub(crate) const FAILURES: u32 = 3;

const FIRST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_hours(1);

/// Returns how long to wait after so many failures in a row; zero below three.
pub(crate) fn cool_down(failures: u32) -> Duration {
    match failures.checked_sub(FAILURES) {
        None => Duration::ZERO,
        Some(more) => FIRST.saturating_mul(2_u32.saturating_pow(more)).min(LONGEST),
    }
}

/// Guards one provider, for all sessions that use it.
///
/// Closed, it lets every call through. After three failures in a row, or where
/// the provider named a time to wait, it is open and refuses them. When the
/// time is over it is half open: one call goes ahead, the others wait for its
/// end, and what becomes of it decides for all.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    // A std mutex: nothing awaits while it is held.
    state: Mutex<State>,
    probe: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    failures: u32,
    /// In milliseconds since 1970; 0 while closed.
    open_until: u64,
}

/// The right to make one call. Dropped without a word, as by a cancelled call,
/// it changes nothing.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    breaker: &'a Breaker,
    /// How many failures there were when the call began.
    failures: u32,
    _probe: Option<MutexGuard<'a, ()>>,
}

impl Breaker {
    /// Lets a call through, or says for how long none is.
    pub(crate) async fn pass(&self, clock: &Clock) -> Result<Pass<'_>, SummarizeError> {
        let state = self.check(clock)?;
        if state.open_until == 0 {
            return Ok(Pass { breaker: self, failures: state.failures, _probe: None });
        }
        let probe = self.probe.lock().await;
        // Whoever was ahead has decided meanwhile, unless it was cancelled.
        let State { failures, open_until } = self.check(clock)?;
        let probe = (open_until > 0).then_some(probe);
        Ok(Pass { breaker: self, failures, _probe: probe })
    }

    /// Returns the state while it is closed or half open.
    fn check(&self, clock: &Clock) -> Result<State, SummarizeError> {
        let state = *self.lock();
        let State { failures, open_until } = state;
        let now = clock.unix_millis();
        if now < open_until {
            let wait = Duration::from_millis(open_until - now);
            let times = if failures == 1 { "once" } else { "several times in a row" };
            let error = SummarizeError::transient(format!(
                "the provider failed {times} and is left alone for {} s",
                wait.as_secs().max(1)
            ));
            return Err(error.retry_after(wait));
        }
        Ok(state)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// The provider answered.
    pub(crate) fn succeeded(self) {
        *self.breaker.lock() = State::default();
    }

    /// The provider failed, and may have said how long to wait.
    pub(crate) fn failed(self, clock: &Clock, retry_after: Option<Duration>) {
        let mut state = self.breaker.lock();
        // Calls that ran side by side and failed together are one failure.
        state.failures = state.failures.max(self.failures.saturating_add(1));
        let wait = cool_down(state.failures).max(retry_after.unwrap_or_default());
        if !wait.is_zero() {
            let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            state.open_until = state.open_until.max(clock.unix_millis().saturating_add(wait));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
        time::{Duration, UNIX_EPOCH},
    };

    use super::{Breaker, Clock, cool_down};

    fn clock() -> (Clock, Arc<AtomicU64>) {
        let now = Arc::new(AtomicU64::new(1_000_000));
        let told = Arc::clone(&now);
        let clock = move || UNIX_EPOCH + Duration::from_secs(told.load(Ordering::SeqCst));
        (Clock::new(Arc::new(clock)), now)
    }

    #[test]
    fn each_pause_is_twice_the_one_before_up_to_an_hour() {
        let seconds: Vec<u64> = (0..12).map(|failures| cool_down(failures).as_secs()).collect();
        assert_eq!(seconds, [0, 0, 0, 30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
        assert_eq!(cool_down(u32::MAX).as_secs(), 3_600);
    }

    #[tokio::test]
    async fn three_failures_open_it_and_a_success_closes_it() {
        let (clock, now) = clock();
        let breaker = Breaker::default();
        for _ in 0..3 {
            breaker.pass(&clock).await.unwrap().failed(&clock, None);
        }
        let error = breaker.pass(&clock).await.unwrap_err();
        assert_eq!(error.retry_delay(), Some(Duration::from_secs(30)));
        now.fetch_add(30, Ordering::SeqCst);
        breaker.pass(&clock).await.unwrap().failed(&clock, None);
        let error = breaker.pass(&clock).await.unwrap_err();
        assert_eq!(error.retry_delay(), Some(Duration::from_mins(1)));
        now.fetch_add(60, Ordering::SeqCst);
        breaker.pass(&clock).await.unwrap().succeeded();
        breaker.pass(&clock).await.unwrap().failed(&clock, None);
        assert!(breaker.pass(&clock).await.is_ok(), "one failure is none in a row");
    }

    #[tokio::test]
    async fn calls_that_fail_together_are_one_failure() {
        let (clock, _) = clock();
        let breaker = Breaker::default();
        for _ in 0..2 {
            let mut together = Vec::new();
            for _ in 0..4 {
                together.push(breaker.pass(&clock).await.unwrap());
            }
            for pass in together {
                pass.failed(&clock, None);
            }
        }
        breaker.pass(&clock).await.unwrap().failed(&clock, None);
        assert!(breaker.pass(&clock).await.is_err());
    }

    #[tokio::test]
    async fn half_open_lets_one_call_ahead() {
        let (clock, now) = clock();
        let breaker = Breaker::default();
        breaker.pass(&clock).await.unwrap().failed(&clock, Some(Duration::from_secs(7)));
        assert!(breaker.pass(&clock).await.is_err());
        now.fetch_add(7, Ordering::SeqCst);

        let ahead = breaker.pass(&clock).await.unwrap();
        let mut behind = Box::pin(breaker.pass(&clock));
        assert!(futures_are_pending(&mut behind).await);
        ahead.succeeded();
        behind.await.unwrap().succeeded();

        breaker.pass(&clock).await.unwrap().failed(&clock, Some(Duration::from_secs(7)));
        now.fetch_add(7, Ordering::SeqCst);
        let ahead = breaker.pass(&clock).await.unwrap();
        let mut behind = Box::pin(breaker.pass(&clock));
        assert!(futures_are_pending(&mut behind).await);
        ahead.failed(&clock, Some(Duration::from_secs(7)));
        assert!(behind.await.unwrap_err().is_transient());
        // A cancelled probe leaves the way open for the next.
        now.fetch_add(7, Ordering::SeqCst);
        drop(breaker.pass(&clock).await.unwrap());
        assert!(breaker.pass(&clock).await.is_ok());
    }

    async fn futures_are_pending<T>(future: &mut (impl Future<Output = T> + Unpin)) -> bool {
        std::future::poll_fn(|context| {
            let pending = std::pin::Pin::new(&mut *future).poll(context).is_pending();
            std::task::Poll::Ready(pending)
        })
        .await
    }
}
