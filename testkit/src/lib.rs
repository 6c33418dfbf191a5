//! What Pinpath's tests share: one vocabulary of operations, one oracle that says what they mean, and
//! the ways of running the resolver against it.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`oracle`] | the naive tree: what every verb means |
//! | [`op`] | the operations random tests are made of |
//! | [`call`] | one call of a verb, and its answer, from either side |
//! | [`harness`] | resolver and oracle in step, on one thread |
//! | [`compare`] | all that the two can be asked |
//! | [`history`] | concurrent histories, recorded and checked |
//! | [`linearize`] | the checker under it |
//! | [`watchdog`] | a hanging test says where it hangs |
//! | `strategy` | the vocabulary for proptest (feature `proptest`) |

pub mod call;
pub mod compare;
mod data;
pub mod harness;
pub mod history;
pub mod linearize;
mod name;
pub mod op;
pub mod oracle;
#[cfg(feature = "proptest")]
pub mod strategy;
pub mod watchdog;

pub use data::{Data, Identity, Resolver};
pub use name::{OwnedName, is_name};
