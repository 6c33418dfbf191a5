//! The grace periods under which replaced links and kept paths are freed.

#![cfg(any(loom, shuttle))]

use pinpath::Epochs;
use pinpath_loom_tests::{run_model, thread};

#[cfg(loom)]
use loom::sync::{Arc, atomic::AtomicBool, atomic::AtomicUsize, atomic::Ordering};
#[cfg(shuttle)]
use shuttle::sync::{Arc, atomic::AtomicBool, atomic::AtomicUsize, atomic::Ordering};

/// Two values of which one is current, and which of them were freed.
struct Values {
    current: AtomicUsize,
    freed: [AtomicBool; 2],
}

/// Says that a value was freed.
struct Freed(Arc<Values>, usize);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.freed[self.1].store(true, Ordering::Relaxed);
    }
}

fn values() -> Arc<Values> {
    let freed = [AtomicBool::new(false), AtomicBool::new(false)];
    Arc::new(Values { current: AtomicUsize::new(0), freed })
}

fn replace(epochs: &Epochs, values: &Arc<Values>) {
    epochs.under_guard(|| {
        values.current.store(1, Ordering::Release);
        Some(Freed(Arc::clone(values), 0))
    });
}

fn read(epochs: &Epochs, values: &Values) {
    epochs.under_guard(|| -> Option<()> {
        let current = values.current.load(Ordering::Acquire);
        assert!(!values.freed[current].load(Ordering::Relaxed), "freed while it can be read");
        None
    });
}

/// A value is replaced, retired and freed while another thread reads what is current.
///
/// Bad: the collector misses the reader's count, and frees what the reader has found.
#[test]
fn guard_against_retire_and_collect() {
    run_model("guard_against_retire_and_collect", || {
        let (epochs, values) = (Epochs::new(), values());
        let reader = {
            let (epochs, values) = (epochs.clone(), Arc::clone(&values));
            thread::spawn(move || read(&epochs, &values))
        };
        replace(&epochs, &values);
        epochs.collect();
        reader.join().unwrap();
        epochs.collect();
        assert!(values.freed[0].load(Ordering::Relaxed), "nothing waits for ever");
    });
}

/// Another grace period ends while the reader is between reading the parity and counting itself.
///
/// Bad: it is counted in the old parity, and the next grace period looks only at the new one.
#[test]
fn guard_in_the_old_parity() {
    run_model("guard_in_the_old_parity", || {
        let (epochs, values) = (Epochs::new(), values());
        let reader = {
            let (epochs, values) = (epochs.clone(), Arc::clone(&values));
            thread::spawn(move || read(&epochs, &values))
        };
        epochs.under_guard(|| Some(()));
        epochs.collect();
        replace(&epochs, &values);
        epochs.collect();
        reader.join().unwrap();
    });
}
