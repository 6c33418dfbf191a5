//! Operations on directories that are open, and opening them.

use pinpath::{Counting, Inode};

use super::file::never_without;
use super::{Engine, OpenReply, Result, contain};
use crate::errno::Errno;
use crate::handler::{Handler, Opened, Request};
use crate::listing::{DirEntry, DirSink, Fit, Listing};
use crate::operation::Operation;

impl<H: Handler> Engine<H> {
    /// OPENDIR.
    pub fn opendir(&self, req: &Request, inode: Inode, flags: i32) -> Result<OpenReply> {
        self.on_inode(Operation::OpenDir, inode, |node| {
            let Opened { file, options } =
                self.handler.opendir(req, node, flags).map_err(never_without)?;
            match self.dirs.insert(file) {
                Ok(handle) => Ok(OpenReply { handle, options }),
                Err(dir) => {
                    self.handler.releasedir(req, node, &dir);
                    Err(Errno::ENFILE)
                }
            }
        })
    }

    /// READDIR. Entries go to `push` until it is full. The resolver is not concerned: the kernel
    /// learns of no inode by a name in a listing.
    pub fn readdir(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        offset: u64,
        push: &mut dyn FnMut(DirEntry<'_>) -> Fit,
    ) -> Result<()> {
        self.on_dir(Operation::ReadDir, inode, handle, |node, dir| {
            self.handler.readdir(req, node, dir, offset, &mut DirSink::new(push))
        })
    }

    /// READDIRPLUS. Appends an answer of at most `size` bytes to `out`, in the kernel's format.
    /// Each entry with attributes in it has counted one lookup; an error has counted none.
    pub fn readdirplus(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        offset: u64,
        size: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.on_dir(Operation::ReadDirPlus, inode, handle, |node, dir| {
            let mut listing = Listing::new(size);
            match self.handler.readdirplus(req, node, dir, offset, &mut listing.sink()) {
                // The kernel knows no way back from this one, so: names alone.
                Err(Errno::ENOSYS) => {
                    listing = Listing::new(size);
                    let mut names = listing.sink();
                    let mut push = |entry: DirEntry<'_>| {
                        names.add_name(entry.ino, entry.file_type, entry.name, entry.next)
                    };
                    self.handler.readdir(req, node, dir, offset, &mut DirSink::new(&mut push))?;
                }
                done => done?,
            }
            if !self.own_paths() {
                listing.encode(out, |attr| (attr.ino != 0).then_some(attr.ino));
                return Ok(());
            }
            // One visit to the resolver for the whole answer, after the handler is done: what it
            // offered and the sink refused was never counted.
            let nodes = self.resolver.list(inode, listing.known(), Counting::Counted)?;
            let mut nodes = nodes.into_iter();
            // One that the resolver refuses (a directory that was moved behind the mount, say) goes
            // out as a name: the kernel looks it up, and that is where such a thing is sorted out.
            listing.encode(out, |_| nodes.next()?.ok().map(Inode::raw));
            Ok(())
        })
    }

    /// RELEASEDIR. The handle is gone afterwards, whatever the handler did.
    pub fn releasedir(&self, req: &Request, inode: Inode, handle: u64) -> Result<()> {
        let done = self.on_dir(Operation::ReleaseDir, inode, handle, |node, dir| {
            self.handler.releasedir(req, node, dir);
            Ok(())
        });
        // Dropping the directory may run code of the handler's author.
        let dropped = contain(Operation::ReleaseDir, || {
            self.dirs.remove(handle);
            Ok(())
        });
        done.and(dropped)
    }

    /// FSYNCDIR.
    pub fn fsyncdir(
        &self,
        req: &Request,
        inode: Inode,
        handle: u64,
        data_only: bool,
    ) -> Result<()> {
        self.on_dir(Operation::FSyncDir, inode, handle, |node, dir| {
            self.handler.fsyncdir(req, node, dir, data_only)
        })
    }
}
