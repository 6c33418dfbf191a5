//! What the sanitizers must find. `resolver/tests/sanitize` runs these, each under the sanitizer of
//! its name, and fails if one of them passes: then that sanitizer sees nothing.

use std::cell::UnsafeCell;
use std::hint::black_box;

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
    let write = || {
        let racy = &racy;
        for number in 0..1000 {
            // SAFETY: none, as above.
            unsafe { racy.0.get().write_volatile(number) };
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(write);
        scope.spawn(write);
    });
}
