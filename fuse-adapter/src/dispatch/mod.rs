//! What happens to a request between the transport and the handler.
//!
//! The transport decodes a request and pins the resolver; a dispatcher chooses the thread (the
//! one that read it, or one of a pool: [`Dispatch`]); there the [`Engine`] takes what leases the operation
//! needs, calls the handler and keeps the resolver and the tables of open files in step; the
//! transport sends the answer; the pin is dropped last.
//!
//! Nothing here knows which filesystem it runs, nor how requests come.

mod busy;
mod counters;
mod dispatcher;
mod engine;
mod lanes;
mod pool;
mod readers;
mod stats;
mod supervisor;
mod waiters;

pub use dispatcher::Dispatch;
pub(crate) use dispatcher::{Core, Dispatcher, Place, Threads};
pub use engine::{Engine, EntryReply, LookupReply, OpenReply, SetAttrArgs};
pub use readers::ReaderStats;
pub use stats::{DispatchStats, Latency, OperationStats};
pub(crate) use waiters::{Call, Waiter};
