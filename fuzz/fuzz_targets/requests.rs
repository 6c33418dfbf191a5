//! Arbitrary histories of requests, in place of the kernel, against the adapter's engine with a
//! filesystem in memory. The same as `fuse-adapter/tests/histories`, but the histories are found by
//! what they reach in the code.
//!
//! Nothing of ours reads bytes from the kernel (the transport's library does), so the requests are
//! decoded ones. What the engine writes in the kernel's format is read here by other code.
#![no_main]

#[path = "../../fuse-adapter/tests/histories/kernel.rs"]
mod kernel;
#[allow(dead_code)] // it has what the mounted tests need, too
#[path = "../../fuse-adapter/tests/support/memory.rs"]
mod memory;
#[path = "../../fuse-adapter/tests/histories/names.rs"]
mod names;
#[path = "../../fuse-adapter/tests/support/namespace.rs"]
mod namespace;
#[path = "../../fuse-adapter/tests/histories/request.rs"]
mod request;
#[path = "../../fuse-adapter/tests/histories/serve.rs"]
mod serve;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

use request::History;

#[derive(Arbitrary, Debug)]
struct Input {
    /// Paths are compared after each request, and so kept.
    closely: bool,
    history: History,
}

/// A longer history only makes the fuzzer slow.
const MOST: usize = 50;

/// The fuzzer ends the process at every panic. The handler's own, on purpose, are the engine's to
/// contain.
fn let_the_handler_panic() {
    let end_the_process = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<&str>();
        if message != Some(&serve::ON_PURPOSE) {
            end_the_process(panic);
        }
    }));
}

fuzz_target!(init: let_the_handler_panic(), |input: Input| {
    serve::run(&input.history, MOST, input.closely);
});
