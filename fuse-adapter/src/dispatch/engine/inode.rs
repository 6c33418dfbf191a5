//! Operations that name an inode.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use pinpath::Inode;

use super::{Engine, Result, checked_ino};
use crate::attr::{Attr, Timestamp};
use crate::errno::Errno;
use crate::handler::{Handler, Request, SetAttr, SetTime, StatFs};
use crate::operation::Operation;

/// The decoded arguments of SETATTR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttrArgs {
    /// The mode; its type bits are not looked at.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last change of the content.
    pub mtime: Option<SetTime>,
    /// Last change of the attributes.
    pub ctime: Option<Timestamp>,
    /// The open file through which it was asked.
    pub handle: Option<u64>,
}

impl<H: Handler> Engine<H> {
    /// GETATTR.
    pub fn getattr(
        &self,
        req: &Request,
        inode: Inode,
        handle: Option<u64>,
    ) -> Result<(Attr, Duration)> {
        let file = handle.map(|handle| self.files.get(handle)).transpose()?;
        self.on_inode(Operation::GetAttr, inode, move |node| {
            let answer = self.handler.getattr(req, node, file.as_deref())?;
            checked_ino(&answer.0)?;
            Ok(answer)
        })
    }

    /// SETATTR.
    pub fn setattr(
        &self,
        req: &Request,
        inode: Inode,
        args: &SetAttrArgs,
    ) -> Result<(Attr, Duration)> {
        let file = args.handle.map(|handle| self.files.get(handle)).transpose()?;
        self.on_inode(Operation::SetAttr, inode, move |node| {
            let set = SetAttr {
                perm: args.mode.map(|mode| mode & 0o7777),
                uid: args.uid,
                gid: args.gid,
                size: args.size,
                atime: args.atime,
                mtime: args.mtime,
                ctime: args.ctime,
                file: file.as_deref(),
            };
            let answer = self.handler.setattr(req, node, &set)?;
            checked_ino(&answer.0)?;
            Ok(answer)
        })
    }

    /// READLINK.
    pub fn readlink(&self, req: &Request, inode: Inode) -> Result<OsString> {
        self.on_inode(Operation::ReadLink, inode, |node| self.handler.readlink(req, node))
    }

    /// STATFS.
    pub fn statfs(&self, req: &Request, inode: Inode) -> Result<StatFs> {
        self.on_inode(Operation::StatFs, inode, |node| self.handler.statfs(req, node))
    }

    /// ACCESS.
    pub fn access(&self, req: &Request, inode: Inode, mask: i32) -> Result<()> {
        self.on_inode(Operation::Access, inode, |node| self.handler.access(req, node, mask))
    }

    /// SETXATTR.
    pub fn setxattr(
        &self,
        req: &Request,
        inode: Inode,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Result<()> {
        self.on_inode(Operation::SetXAttr, inode, |node| {
            self.handler.setxattr(req, node, name, value, flags)
        })
    }

    /// GETXATTR. With an empty buffer the size; else how much of the buffer was filled.
    pub fn getxattr(
        &self,
        req: &Request,
        inode: Inode,
        name: &OsStr,
        buf: &mut [u8],
    ) -> Result<usize> {
        self.on_inode(Operation::GetXAttr, inode, |node| {
            let size = self.handler.getxattr(req, node, name, buf)?;
            fits(size, buf)
        })
    }

    /// LISTXATTR, as [`Engine::getxattr`].
    pub fn listxattr(&self, req: &Request, inode: Inode, buf: &mut [u8]) -> Result<usize> {
        self.on_inode(Operation::ListXAttr, inode, |node| {
            let size = self.handler.listxattr(req, node, buf)?;
            fits(size, buf)
        })
    }

    /// REMOVEXATTR.
    pub fn removexattr(&self, req: &Request, inode: Inode, name: &OsStr) -> Result<()> {
        self.on_inode(Operation::RemoveXAttr, inode, |node| {
            self.handler.removexattr(req, node, name)
        })
    }

    /// BMAP.
    pub fn bmap(&self, req: &Request, inode: Inode, block_size: u32, index: u64) -> Result<u64> {
        self.on_inode(Operation::BMap, inode, |node| {
            self.handler.bmap(req, node, block_size, index)
        })
    }
}

/// What was asked for doesn't fit into the buffer that was given (an empty one asks for the size).
fn fits(size: usize, buf: &[u8]) -> Result<usize> {
    if size > buf.len() && !buf.is_empty() { Err(Errno::ERANGE) } else { Ok(size) }
}
