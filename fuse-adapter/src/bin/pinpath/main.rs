//! The command `pinpath`: mounts the filesystems of this package.
//!
//! One idea a file: [`arguments`] is what a user types, [`options`] what stands after `-o`, and
//! [`mount_helper`] the way mount(8) calls; all three end in a [`mirror::Plan`], which
//! [`mirror::run`] carries out: [`mountpoint`] prepares the place, [`background`] leaves the
//! terminal, [`shutdown`] waits for the end, and
//! [`stats`] says meanwhile how it goes.

use std::process::ExitCode;

mod arguments;
mod background;
mod failure;
mod logging;
mod mirror;
mod mount_helper;
mod mount_table;
mod mountpoint;
mod options;
mod say;
mod shutdown;
mod stats;

fn main() -> ExitCode {
    let plan = match arguments::read(std::env::args_os().collect()) {
        Ok(plan) => plan,
        Err(exit) => return exit,
    };
    match mirror::run(plan) {
        Ok(exit) => exit,
        Err(failure) => {
            say::error(&failure);
            ExitCode::FAILURE
        }
    }
}
