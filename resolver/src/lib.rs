//! A lock-free inode to path resolver for FUSE filesystems.
//!
//! The kernel speaks in node ids; a filesystem that works on paths must turn each into a path, on
//! many threads, while other threads rename, unlink, link and forget. A [`Resolver`] does that, and
//! keeps two promises:
//!
//! * **A mapping stays alive as long as a request may need it.** A [`RequestPin`] is begun when a
//!   request is read and dropped when it has been answered, on whatever thread. Both write to the
//!   thread's own cache line and to no other.
//! * **A path stays true as long as a handler uses it.** A [`PathLease`] holds off the renames and
//!   removals of the node and of the directories above it, which run as [`Transaction`]s.
//!
//! It knows nothing of FUSE and does no I/O.
//!
//! # Consistency
//!
//! All verbs on single nodes and names are linearizable: each takes effect at one moment between its
//! call and its return, also where it changes several nodes ([`Resolver::rename`] over a target,
//! [`Resolver::exchange`]). A path that is answered was the node's path at such a moment; there is
//! no mixture of an old and a new one. [`Resolver::list`] and [`Resolver::forget_batch`] are as many
//! single verbs. [`Resolver::stats`] is exact only while nothing changes.
//!
//! # What blocks
//!
//! | | |
//! | --- | --- |
//! | [`Resolver::pin`], dropping a pin | wait-free, but that a thread's first pin takes a lock |
//! | [`Resolver::path`], `path_into`, `with_path`, `paths`, `parts_paths`, `with_data` | lock-free: repeated only if another change was completed meanwhile |
//! | [`Resolver::lookup`], `peek`, `list`, `link`, `unlink`, `rename`, `exchange` | short locks on the names concerned, of which there are many; renames and removals of directories one after the other |
//! | [`Resolver::forget`], `reclaim` | short locks on queues; never waits for a request |
//! | [`Resolver::lease`], `lease_all` | wait while a transaction moves what is concerned, else no lock |
//! | [`Resolver::begin_rename`], `begin_unlink` | wait for the leases on and below what will move |
//!
//! # How
//!
//! DESIGN.md in the repository tells how it is done and why.

mod anchor;
mod change;
mod data;
mod domain;
pub mod drop_in;
mod epoch;
mod error;
mod fence;
mod graves;
mod identities;
mod inode;
mod lease;
mod link;
mod listing;
mod lookup;
mod mapped;
mod name;
mod names;
mod namespace;
mod node;
mod own_slot;
mod parking;
mod path_buffer;
mod path_cache;
mod paths;
mod pin;
mod reclaim;
mod relink;
mod resolver;
mod segments;
mod shared;
mod state;
mod sync;
mod table;
mod threads;
mod transaction;
mod tree;
mod validate;
mod walk;

pub use anchor::{Anchor, AnchoredRequest};
pub use data::NodeData;
pub use error::{Error, PathError};
pub use inode::Inode;
pub use lease::PathLease;
pub use mapped::MappedInode;
pub use name::{NAME_MAX, Name, NameError};
pub use pin::RequestPin;
pub use resolver::{Counting, Options, Resolver, Stats};
pub use state::Kind;
pub use transaction::{RenameMode, Transaction, TransactionError};

#[cfg(any(loom, shuttle))]
#[doc(hidden)]
pub use epoch::model::Epochs;
#[cfg(any(loom, shuttle))]
#[doc(hidden)]
pub use threads::end_thread;
