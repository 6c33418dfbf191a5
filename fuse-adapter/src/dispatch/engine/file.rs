//! Operations on files that are open, and opening them.

use pinpath::Inode;

use super::{Engine, OpenReply, Result, contain};
use crate::errno::Errno;
use crate::handler::{CopyEnd, Handler, Lock, Opened, PollNotifier, Request};
use crate::operation::Operation;

impl<H: Handler> Engine<H> {
    /// OPEN.
    pub fn open(&self, req: &Request, inode: Inode, flags: i32) -> Result<OpenReply> {
        self.on_inode(Operation::Open, inode, |node| {
            let opened = self.handler.open(req, node, flags).map_err(never_without)?;
            self.keep_file(req, inode, opened)
        })
    }

    /// READ. How much of the buffer was filled.
    pub fn read(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        self.on_file(Operation::Read, inode, handle, |node, file| {
            let size = self.handler.read(req, node, file, offset, buf)?;
            plausible(size, buf.len())
        })
    }

    /// WRITE. How much was written.
    pub fn write(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        offset: u64,
        data: &[u8],
        cached: bool,
    ) -> Result<usize> {
        self.on_file(Operation::Write, inode, handle, |node, file| {
            let size = self.handler.write(req, node, file, offset, data, cached)?;
            plausible(size, data.len())
        })
    }

    /// WRITE to a file that is open with `O_APPEND`, by the program itself.
    pub fn append(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        offset: u64,
        data: &[u8],
    ) -> Result<usize> {
        self.on_file(Operation::Write, inode, handle, |node, file| {
            let size = self.handler.append(req, node, file, offset, data)?;
            plausible(size, data.len())
        })
    }

    /// FLUSH.
    pub fn flush(&self, req: &Request, inode: Inode, handle: u64, lock_owner: u64) -> Result<()> {
        self.on_file(Operation::Flush, inode, handle, |node, file| {
            self.handler.flush(req, node, file, lock_owner)
        })
    }

    /// RELEASE. The handle is gone afterwards, whatever the handler did.
    pub fn release(&self, req: &Request, inode: Inode, handle: u64) -> Result<()> {
        let done = self.on_file(Operation::Release, inode, handle, |node, file| {
            self.handler.release(req, node, file);
            Ok(())
        });
        // Dropping the file may run code of the handler's author.
        let dropped = contain(Operation::Release, || {
            self.files.remove(handle);
            Ok(())
        });
        done.and(dropped)
    }

    /// FSYNC.
    pub fn fsync(&self, req: &Request, inode: Inode, handle: u64, data_only: bool) -> Result<()> {
        self.on_file(Operation::FSync, inode, handle, |node, file| {
            self.handler.fsync(req, node, file, data_only)
        })
    }

    /// GETLK.
    pub fn getlk(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        owner: u64,
        lock: Lock,
    ) -> Result<Lock> {
        self.on_file(Operation::GetLk, inode, handle, |node, file| {
            self.handler.getlk(req, node, file, owner, lock)
        })
    }

    /// SETLK and SETLKW.
    pub fn setlk(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        owner: u64,
        lock: Lock,
        wait: bool,
    ) -> Result<()> {
        let operation = if wait { Operation::SetLkWait } else { Operation::SetLk };
        self.on_file(operation, inode, handle, |node, file| {
            self.handler.setlk(req, node, file, owner, lock, wait)
        })
    }

    /// IOCTL. The result, and how much of the buffer was filled.
    pub fn ioctl(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        cmd: u32,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<(i32, usize)> {
        self.on_file(Operation::IoCtl, inode, handle, |node, file| {
            let (result, size) = self.handler.ioctl(req, node, file, cmd, input, out)?;
            Ok((result, plausible(size, out.len())?))
        })
    }

    /// POLL. The events that are ready.
    pub fn poll(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        events: u32,
        notifier: Option<Box<dyn PollNotifier>>,
    ) -> Result<u32> {
        self.on_file(Operation::Poll, inode, handle, |node, file| {
            self.handler.poll(req, node, file, events, notifier)
        })
    }

    /// FALLOCATE.
    pub fn fallocate(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        offset: u64,
        length: u64,
        mode: i32,
    ) -> Result<()> {
        self.on_file(Operation::FAllocate, inode, handle, |node, file| {
            self.handler.fallocate(req, node, file, offset, length, mode)
        })
    }

    /// LSEEK.
    pub fn lseek(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        offset: i64,
        whence: i32,
    ) -> Result<i64> {
        self.on_file(Operation::LSeek, inode, handle, |node, file| {
            self.handler.lseek(req, node, file, offset, whence)
        })
    }

    /// COPY_FILE_RANGE, each end being an inode, a handle and an offset. How much was copied.
    pub fn copy_file_range(
        &self,
        req: &Request,
        from: (Inode, u64, u64),
        to: (Inode, u64, u64),
        length: u64,
    ) -> Result<usize> {
        let (source, target) = (self.files.get(from.1)?, self.files.get(to.1)?);
        contain(Operation::CopyFileRange, move || {
            let (source_node, target_node) = (self.node(from.0), self.node(to.0));
            let from = CopyEnd { node: &source_node, file: &*source, offset: from.2 };
            let to = CopyEnd { node: &target_node, file: &*target, offset: to.2 };
            let size = self.handler.copy_file_range(req, from, to, length)?;
            plausible(size, usize::try_from(length).unwrap_or(usize::MAX))
        })
    }

    /// Gives an open file its handle.
    pub(super) fn keep_file(
        &self,
        req: &Request,
        inode: Inode,
        opened: Opened<H::File>,
    ) -> Result<OpenReply> {
        let Opened { file, options } = opened;
        match self.files.insert(file) {
            Ok(handle) => Ok(OpenReply { handle, options }),
            Err(file) => {
                self.handler.release(req, &self.node(inode), &file);
                Err(Errno::ENFILE)
            }
        }
    }
}

/// `ENOSYS` for an open would tell the kernel to do without opens from now on, and to send
/// operations on no handle.
pub(super) fn never_without(error: Errno) -> Errno {
    if error == Errno::ENOSYS { Errno::EOPNOTSUPP } else { error }
}

/// A handler that claims more than was asked for would send bytes that it never wrote, or confuse
/// the kernel.
fn plausible(size: usize, limit: usize) -> Result<usize> {
    if size > limit {
        tracing::error!(size, limit, "the handler claims to have moved more than was asked for");
        return Err(Errno::EIO);
    }
    Ok(size)
}
