//! A test that hangs says what it was doing, and ends.

use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What is being done, since when.
static WATCHED: Mutex<Vec<(u64, Instant, String)>> = Mutex::new(Vec::new());

/// How long one watched thing may take. It should take milliseconds; sanitizers and a busy machine
/// make it seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Watched until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Watched(u64);

/// From now until the answer is dropped, less than a minute must pass; otherwise the process says
/// `what` was going on, and aborts.
pub fn watch(what: String) -> Watched {
    static START: std::sync::Once = std::sync::Once::new();
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    START.call_once(|| {
        std::thread::spawn(look_after);
    });
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    lock().push((number, Instant::now(), what));
    Watched(number)
}

impl Drop for Watched {
    fn drop(&mut self) {
        lock().retain(|(number, ..)| *number != self.0);
    }
}

fn lock() -> std::sync::MutexGuard<'static, Vec<(u64, Instant, String)>> {
    WATCHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn look_after() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        if let Some((_, _, what)) = lock().iter().find(|(_, since, _)| since.elapsed() > LIMIT) {
            // Not `eprintln`: the test harness would keep that to itself.
            let _ = writeln!(std::io::stderr(), "hangs for {LIMIT:?}: {what}");
            std::process::abort();
        }
    }
}
