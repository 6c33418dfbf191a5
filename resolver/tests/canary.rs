//! What the sanitizers must find. `resolver/tests/sanitize` runs these, each under the sanitizer of
//! its name, and fails if one of them passes: then that sanitizer sees nothing.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory that is read after it was freed.
#[test]
#[ignore = "wrong on purpose, for AddressSanitizer and Miri"]
fn address() {
    let freed = Box::into_raw(Box::new(7_u64));
    // SAFETY: the box is given back once; that it is read afterwards is the mistake.
    unsafe {
        drop(Box::from_raw(black_box(freed)));
        black_box(freed.read_volatile());
    }
}

/// Memory that nobody frees and nobody knows.
#[test]
#[ignore = "wrong on purpose, for LeakSanitizer"]
fn leak() {
    let _ = black_box(Box::leak(Box::new([7_u64; 100])));
}

struct Racy(UnsafeCell<u64>);

// SAFETY: none. That threads share it is the mistake.
unsafe impl Sync for Racy {}

/// Two threads that write the same place without a word between them.
#[test]
#[ignore = "wrong on purpose, for ThreadSanitizer and Miri"]
fn thread() {
    let racy = Racy(UnsafeCell::new(0));
    let missing = AtomicUsize::new(2);
    let write = || {
        let racy = black_box(&racy);
        // Both at once, for a thread may be taken for the successor of one that has ended. Relaxed:
        // this orders nothing.
        missing.fetch_sub(1, Ordering::Relaxed);
        while missing.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        for _ in 0..1000 {
            // SAFETY: none, as above.
            unsafe { *black_box(racy.0.get()) += 1 };
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(write);
        scope.spawn(write);
    });
}
