//! Extended attributes, of every kind of file.

use std::ffi::OsStr;

use rustix::fs::XattrFlags;
use rustix::io::Result as SysResult;

use super::Mirror;
use super::attributes::change_mode;
use super::credentials::is_in_group;
use super::identity::MirrorNode;
use super::reach::Reached;
use crate::errno::Errno;
use crate::handler::Request;
use crate::node::Node;

type Result<T> = std::result::Result<T, Errno>;

const ACCESS_ACL: &str = "system.posix_acl_access";

/// Names that the kernel lists only to the privileged. In a mount it passes on what it gets.
const PRIVILEGED: &[u8] = b"trusted.";

/// The longest list of names that Linux knows (`XATTR_LIST_MAX`).
const LIST_MAX: usize = 65_536;

impl Mirror {
    pub(super) fn set_xattr(
        &self,
        req: &Request,
        node: &Node<'_, MirrorNode>,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Result<()> {
        self.check_writable()?;
        let reached = self.reach(node)?;
        let flags = XattrFlags::from_bits_retain(flags as u32);
        match reached.open_fd() {
            Some(fd) => rustix::fs::fsetxattr(fd, name, value, flags)?,
            None => rustix::fs::setxattr(reached.proc_path().as_c_str(), name, value, flags)?,
        }
        if name == ACCESS_ACL && req.uid != 0 {
            self.clear_setgid(req, &reached)?;
        }
        Ok(())
    }

    /// Who isn't in a file's group and gives it an ACL, loses its setgid bit. The kernel would
    /// tell, but the transport can't hear it (`FUSE_SETXATTR_ACL_KILL_SGID`).
    fn clear_setgid(&self, req: &Request, reached: &Reached<'_>) -> Result<()> {
        let stat = self.source.stat(std::os::fd::AsFd::as_fd(reached))?;
        if stat.mode & libc::S_ISGID == 0 || is_in_group(req, stat.gid) {
            return Ok(());
        }
        change_mode(reached, stat.mode & !libc::S_ISGID)
    }

    pub(super) fn get_xattr(
        &self,
        node: &Node<'_, MirrorNode>,
        name: &OsStr,
        buf: &mut [u8],
    ) -> Result<usize> {
        let reached = self.reach(node)?;
        // A call with an empty buffer is a question of its own, to rustix and to the kernel.
        let size = match (reached.open_fd(), buf.is_empty()) {
            (Some(fd), false) => rustix::fs::fgetxattr(fd, name, buf),
            (Some(fd), true) => rustix::fs::fgetxattr_query(fd, name),
            (None, false) => rustix::fs::getxattr(reached.proc_path().as_c_str(), name, buf),
            (None, true) => rustix::fs::getxattr_query(reached.proc_path().as_c_str(), name),
        };
        Ok(size?)
    }

    pub(super) fn list_xattr(
        &self,
        req: &Request,
        node: &Node<'_, MirrorNode>,
        buf: &mut [u8],
    ) -> Result<usize> {
        let reached = self.reach(node)?;
        if req.uid == 0 {
            return Ok(list(&reached, buf)?);
        }
        let size = list(&reached, &mut [])?;
        if size == 0 {
            return Ok(0);
        }
        let mut all = vec![0; LIST_MAX];
        let size = list(&reached, &mut all)?;
        visible_names(&all[..size], buf)
    }

    pub(super) fn remove_xattr(&self, node: &Node<'_, MirrorNode>, name: &OsStr) -> Result<()> {
        self.check_writable()?;
        let reached = self.reach(node)?;
        match reached.open_fd() {
            Some(fd) => Ok(rustix::fs::fremovexattr(fd, name)?),
            None => Ok(rustix::fs::removexattr(reached.proc_path().as_c_str(), name)?),
        }
    }

    /// Can the source hold POSIX ACLs?
    pub(super) fn source_has_acls(&self) -> bool {
        let root = Reached::Root(self.source.root());
        let path = root.proc_path();
        !matches!(
            rustix::fs::getxattr_query(path.as_c_str(), ACCESS_ACL),
            Err(rustix::io::Errno::OPNOTSUPP)
        )
    }
}

fn list(reached: &Reached<'_>, buf: &mut [u8]) -> SysResult<usize> {
    match (reached.open_fd(), buf.is_empty()) {
        (Some(fd), false) => rustix::fs::flistxattr(fd, buf),
        (Some(fd), true) => rustix::fs::flistxattr_query(fd),
        (None, false) => rustix::fs::listxattr(reached.proc_path().as_c_str(), buf),
        (None, true) => rustix::fs::listxattr_query(reached.proc_path().as_c_str()),
    }
}

/// Copies those names of a list that anybody may see, or only says how many bytes they are.
fn visible_names(all: &[u8], buf: &mut [u8]) -> Result<usize> {
    let names =
        || all.split_inclusive(|byte| *byte == 0).filter(|name| !name.starts_with(PRIVILEGED));
    let size = names().map(<[u8]>::len).sum();
    if buf.is_empty() {
        return Ok(size);
    }
    let mut rest = buf.get_mut(..size).ok_or(Errno::ERANGE)?;
    for name in names() {
        let (into, after) = rest.split_at_mut(name.len());
        into.copy_from_slice(name);
        rest = after;
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileged_names_are_left_out() {
        let all = b"user.a\0trusted.b\0security.c\0";
        let mut buf = [0; 64];
        let size = visible_names(all, &mut buf).unwrap();
        assert_eq!(&buf[..size], b"user.a\0security.c\0");
        assert_eq!(visible_names(all, &mut []).unwrap(), size);
        assert_eq!(visible_names(all, &mut [0; 3]), Err(Errno::ERANGE));
        assert_eq!(visible_names(b"trusted.b\0", &mut buf).unwrap(), 0);
    }
}
