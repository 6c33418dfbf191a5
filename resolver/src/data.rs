//! [`NodeData`]: what a filesystem keeps beside each inode.

use std::convert::Infallible;
use std::hash::Hash;

/// What a filesystem keeps beside each inode; `()` where that is nothing.
///
/// Dropped when the node is reclaimed, at some later time, on some thread.
///
/// ```
/// use pinpath::NodeData;
///
/// /// A file on disk is the same file under every name: same device, same inode number.
/// struct OnDisk {
///     identity: (u64, u64),
/// }
///
/// impl NodeData for OnDisk {
///     type Identity = (u64, u64);
///
///     fn identity(&self) -> Option<&(u64, u64)> {
///         Some(&self.identity)
///     }
/// }
/// ```
pub trait NodeData: Send + Sync + 'static {
    /// What makes a file the same file, whatever its name.
    type Identity: Eq + Hash;

    /// The identity, where there is one. Two names whose data give equal identities lead to one
    /// node. Must be the same at each call.
    fn identity(&self) -> Option<&Self::Identity> {
        None
    }
}

impl NodeData for () {
    type Identity = Infallible;
}
