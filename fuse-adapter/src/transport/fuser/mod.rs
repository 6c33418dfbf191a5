//! The transport over the crate `fuser`, and the only place that names its types.
//!
//! Requests are read by as many threads as asked for and go to the dispatcher; answers go out on
//! whichever thread has them. What fuser 0.18 can't do shows in what the adapter offers: a request
//! can't be interrupted (fuser refuses `FUSE_INTERRUPT`, so who waits for a blocked operation waits
//! until the handler is done, even when killed), `flock` and `fcntl` locks look the same, and there
//! is no `O_TMPFILE` and no birth time.

mod adapter;
mod buffer;
mod capabilities;
mod convert;
mod reply;
mod session;

pub(crate) use session::{Session, StartError};
