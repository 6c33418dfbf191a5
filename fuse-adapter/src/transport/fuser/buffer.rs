//! A buffer per thread for what a handler answers in bulk.

use std::cell::RefCell;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with `size` bytes, whose content is whatever the last request left there.
///
/// The buffer grows to the largest request that its thread has met (a megabyte by default) and is
/// kept, so that a read costs no allocation and no clearing.
pub(super) fn with<T>(size: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    with_vec(|buffer| {
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        work(&mut buffer[..size])
    })
}

/// Runs `work` with the buffer itself.
pub(super) fn with_vec<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    BUFFER.with(|buffer| match buffer.try_borrow_mut() {
        Ok(mut buffer) => work(&mut buffer),
        // A request inside a request on one thread: no handler can do that, but nothing breaks.
        Err(_) => work(&mut Vec::new()),
    })
}
