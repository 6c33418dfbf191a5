//! How requests come and answers go.
//!
//! [`fuser`] drives an [`Engine`](crate::dispatch::Engine) over `/dev/fuse`; nothing outside it
//! names a type of that crate, so that another transport is an addition. [`wire`] is the kernel's
//! own format of the answers that any transport sends.

pub(crate) mod backing;
pub(crate) mod device;
pub(crate) mod fuser;
pub(crate) mod wire;
