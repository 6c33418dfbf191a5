//! From a node to a descriptor of the very file: [`Reached`].

use std::ffi::CStr;
use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::Mirror;
use super::identity::{Identity, MirrorNode};
use super::open_files::Descriptor;
use super::source::Source;
use super::stat::Stat;
use crate::errno::Errno;
use crate::node::Node;

type Result<T> = std::result::Result<T, Errno>;

/// A descriptor of the file that a node stands for.
pub(super) enum Reached<'a> {
    /// The root of the source.
    Root(BorrowedFd<'a>),
    /// One that was there already, in most cases an open file's own.
    Registered(Arc<Descriptor>),
    /// One that only stands for the file (`O_PATH`), and what was seen of it when it was checked.
    AsItIs(OwnedFd, Stat),
}

impl AsFd for Reached<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Reached::Root(fd) => *fd,
            Reached::Registered(descriptor) => descriptor.as_fd(),
            Reached::AsItIs(fd, _) => fd.as_fd(),
        }
    }
}

impl Reached<'_> {
    /// The attributes as they were a moment ago.
    pub(super) fn stat(&self, source: &Source) -> Result<Stat> {
        match self {
            Reached::AsItIs(_, stat) => Ok(*stat),
            other => source.stat(other.as_fd()),
        }
    }

    /// The descriptor, if system calls that take an open file take it.
    pub(super) fn open_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Reached::Registered(descriptor) if descriptor.is_opened() => Some(descriptor.as_fd()),
            Reached::Root(_) | Reached::Registered(_) | Reached::AsItIs(..) => None,
        }
    }

    /// A path to the file itself, also where that is a symbolic link, for system calls that take
    /// neither a descriptor of this kind nor an empty path.
    pub(super) fn proc_path(&self) -> ProcPath {
        ProcPath::new(self.as_fd())
    }
}

/// `/proc/self/fd/N`, which leads to what the descriptor stands for, has it a name or not.
pub(super) struct ProcPath([u8; 32]);

impl ProcPath {
    pub(super) fn new(fd: BorrowedFd<'_>) -> Self {
        let mut bytes = [0; 32];
        // Fits: at most 14 and 10 bytes, and a NUL.
        let written = write!(&mut bytes[..31], "/proc/self/fd/{}", fd.as_raw_fd());
        debug_assert!(written.is_ok());
        ProcPath(bytes)
    }

    pub(super) fn as_c_str(&self) -> &CStr {
        // The last byte is always NUL.
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

impl Mirror {
    /// A descriptor of the file that the node stands for, and of no other: what lies under the
    /// node's path is compared with what it was when the node was made. The path is leased for as
    /// long as it takes to open it; what is done to a descriptor hits its file, whatever happens
    /// to the name.
    ///
    /// # Errors
    /// `ESTALE` if another file has taken the name, `ENOENT` if the file can't be reached any more,
    /// `EXDEV` if it is the mirror's own mount.
    pub(super) fn reach(&self, node: &Node<'_, MirrorNode>) -> Result<Reached<'_>> {
        if node.is_root() {
            return Ok(Reached::Root(self.source.root()));
        }
        let identity = node.with_data(MirrorNode::identity)?;
        if self.source.is_own_mount(&identity) {
            return Err(Errno::EXDEV);
        }
        match self.open_files.find(&identity) {
            Some(descriptor) => Ok(Reached::Registered(descriptor)),
            None => match self.reach_by_name(node, &identity) {
                Ok((fd, stat)) => Ok(Reached::AsItIs(fd, stat)),
                Err(error) => {
                    if matches!(error, Errno::ENOENT | Errno::ESTALE) {
                        self.recent.suspect();
                    }
                    Err(error)
                }
            },
        }
    }

    fn reach_by_name(
        &self,
        node: &Node<'_, MirrorNode>,
        identity: &Identity,
    ) -> Result<(OwnedFd, Stat)> {
        let failed = match node.path() {
            Ok(path) => match self.source.open_file(&path, identity) {
                Ok(found) => return Ok(found),
                Err(error) => error,
            },
            Err(Errno::ENOENT) => return self.reach_kept(node),
            Err(error) => return Err(error),
        };
        // Its name was taken away behind the mount; perhaps another is known.
        match failed {
            Errno::ENOENT | Errno::ESTALE => {
                let others = node.paths()?;
                let mut found =
                    others.iter().filter_map(|path| self.source.open_file(path, identity).ok());
                found.next().ok_or(failed)
            }
            _ => Err(failed),
        }
    }

    fn reach_kept(&self, node: &Node<'_, MirrorNode>) -> Result<(OwnedFd, Stat)> {
        let kept = node
            .with_data(|data| data.kept.get().map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 0)))?;
        let fd = kept.ok_or(Errno::ENOENT)??;
        let stat = self.source.stat(fd.as_fd())?;
        Ok((fd, stat))
    }
}

impl Source {
    /// Opens what a path leads to, as it is, if it is the file with this identity.
    fn open_file(&self, path: &std::path::Path, identity: &Identity) -> Result<(OwnedFd, Stat)> {
        let fd = self.open_as_it_is(path)?;
        let stat = self.stat(fd.as_fd())?;
        if self.identity(&stat) == *identity { Ok((fd, stat)) } else { Err(Errno::ESTALE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_descriptor_number_fits() {
        // SAFETY: the number is only written down, no call is made with it.
        let fd = unsafe { BorrowedFd::borrow_raw(i32::MAX) };
        assert_eq!(ProcPath::new(fd).as_c_str(), c"/proc/self/fd/2147483647");
    }
}
