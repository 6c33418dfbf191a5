//! The tables that are measured, behind one face.

mod dash;
mod easy_fuser;
mod hash_map;
mod ours;

use std::ffi::OsStr;
use std::path::PathBuf;

pub use dash::Dash;
pub use easy_fuser::EasyFuser;
pub use hash_map::HashMaps;
pub use ours::Ours;

/// From inodes to paths. The root is 1.
pub trait Table: Send + Sync + 'static {
    /// What keeps the mapping while a request is worked on.
    type Guard;

    /// An empty table.
    fn new() -> Self;

    /// Its name in the tables of results.
    fn name() -> &'static str;

    /// Begins a request.
    fn enter(&self) -> Self::Guard;

    /// The node of a name, known or new; counts one lookup.
    fn lookup(&self, parent: u64, name: &OsStr, directory: bool) -> u64;

    /// Takes one lookup back.
    fn forget(&self, inode: u64);

    /// The path from the root.
    fn path(&self, inode: u64) -> PathBuf;

    /// Gives a name's node another name.
    fn rename(&self, parent: u64, name: &OsStr, new_parent: u64, new_name: &OsStr);
}
