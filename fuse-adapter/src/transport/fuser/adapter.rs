//! [`Adapter`]: fuser's callbacks, each in the same three steps. Choose the thread, call the engine,
//! send the answer.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, INodeNo, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, RenameFlags, ReplyAttr, ReplyBmap,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl,
    ReplyLock, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, TimeOrNow,
    WriteFlags,
};
use pinpath::Inode;

use super::session::{Init, Shared};
use super::{buffer, capabilities, convert, reply};
use crate::dispatch::{Call, Core, Dispatcher, Engine, Place, SetAttrArgs, Waiter};
use crate::errno::Errno;
use crate::handler::{Handler, Lock, PollNotifier};
use crate::listing::Fit;
use crate::negotiation::Negotiation;
use crate::operation::Operation;
use crate::transport::device::PollWaker;

/// An engine and a dispatcher as fuser wants to see them.
pub(super) struct Adapter<H: Handler> {
    engine: Arc<Engine<H>>,
    dispatcher: Dispatcher<Engine<H>>,
    wishes: Negotiation,
    shared: Arc<Shared>,
}

impl<H: Handler> Adapter<H> {
    pub(super) fn new(
        engine: Arc<Engine<H>>,
        dispatcher: Dispatcher<Engine<H>>,
        wishes: Negotiation,
        shared: Arc<Shared>,
    ) -> Self {
        Adapter { engine, dispatcher, wishes, shared }
    }
}

/// `run!(self, place, req, own(borrowed...), |engine, req| answer)`
///
/// Pins, then evaluates `answer` here or on a pool; the pin is dropped after it. `answer` is written
/// once and compiled twice, so that what the request only borrows (`own`) is copied where it goes
/// to another thread and nowhere else.
macro_rules! run {
    ($self:ident, $place:expr, $req:ident, own($($borrowed:ident),*), |$engine:ident| $answer:expr) => {{
        let $req = &convert::request($req);
        let pin = $self.engine.pin();
        match $place {
            Place::Here(turn) => {
                let $engine = &*$self.engine;
                turn.run(move || {
                    $answer;
                    drop(pin);
                });
            }
            Place::Away(away) => {
                let request = *$req;
                $(let $borrowed = $borrowed.to_owned();)*
                away.submit(Box::new(move |$engine: &Engine<H>| {
                    let $req = &request;
                    $(let $borrowed = &*$borrowed;)*
                    $answer;
                    drop(pin);
                }));
            }
        }
    }};
}

fn inode(ino: INodeNo) -> Inode {
    Inode::from_raw(ino.0)
}

/// A lock of this inode may have been released.
fn released<H: Handler>(core: &Option<Arc<Core<Engine<H>>>>, ino: INodeNo) {
    if let Some(core) = core {
        core.lock_round(core.lock_waiters().released(ino.0));
    }
}

impl<H: Handler> Adapter<H> {
    fn place(&self, operation: Operation) -> Place<'_, Engine<H>> {
        self.dispatcher.place(operation)
    }

    /// Who is to be told of what may have released a lock; `None` if no locks come here.
    fn releases(&self) -> Option<Arc<Core<Engine<H>>>> {
        match self.shared.init.get() {
            Some(Init::Agreed(agreed)) if agreed.posix_locks || agreed.flock_locks => {
                Some(self.dispatcher.core().clone())
            }
            _ => None,
        }
    }

    /// Asks for a lock; where somebody else holds it the request waits, but no thread.
    fn wait_for_lock(
        &self,
        req: &fuser::Request,
        inode: Inode,
        handle: u64,
        owner: u64,
        lock: Lock,
        reply: ReplyEmpty,
    ) {
        let core = self.dispatcher.core().clone();
        run!(self, self.place(Operation::SetLkWait), req, own(), |engine| {
            let releases = core.lock_waiters().releases();
            let had = engine.setlk(req, inode, handle, owner, lock, false);
            if had != Err(Errno::EAGAIN) {
                return reply::empty(reply, had);
            }
            let (request, mut reply) = (*req, Some(reply));
            let attempt = move |engine: &Engine<H>, call: Call| {
                // Not held while it waits: who waits has the file open, so the kernel knows it.
                let _pin = engine.pin();
                let had = match call {
                    Call::Try => engine.setlk(&request, inode, handle, owner, lock, false),
                    Call::Interrupted => Err(Errno::EINTR),
                };
                let over = had != Err(Errno::EAGAIN);
                if let Some(reply) = reply.take_if(|_| over) {
                    reply::empty(reply, had);
                }
                over
            };
            let attempt = Box::new(attempt);
            let waiter = Waiter { inode: inode.raw(), thread: request.pid, attempt };
            core.lock_round(core.lock_waiters().add(waiter, releases));
        });
    }
}

impl<H: Handler> Filesystem for Adapter<H> {
    fn init(&mut self, _req: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        let agreed = capabilities::negotiate(&self.wishes, config);
        let handler = self.engine.handler();
        let (init, result) = match catch_unwind(AssertUnwindSafe(|| handler.init(&agreed))) {
            Ok(Ok(())) => (Init::Agreed(agreed), Ok(())),
            Ok(Err(error)) => (Init::Refused, Err(error)),
            Err(_) => (Init::Panicked, Err(io::Error::from_raw_os_error(libc::EIO))),
        };
        // The kernel sends INIT once, so this is the first value.
        let _ = self.shared.init.set(init);
        result
    }

    fn destroy(&mut self) {
        self.dispatcher.finish();
        if let Some(Init::Agreed(_)) = self.shared.init.get() {
            self.engine.destroy();
        }
        // Release: whoever sees it sees all that the threads did.
        self.shared.finished.store(true, Ordering::Release);
    }

    // A batch comes here one by one: fuser does not export the type of its parts.
    fn forget(&self, _req: &fuser::Request, ino: INodeNo, nlookup: u64) {
        self.dispatcher.forget(|| self.engine.forget(inode(ino), nlookup));
    }

    fn lookup(&self, req: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        run!(self, self.place(Operation::Lookup), req, own(name), |engine| {
            let found =
                convert::name(name).and_then(|name| engine.lookup(req, inode(parent), name));
            reply::lookup(reply, found);
        });
    }

    fn getattr(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        run!(self, self.place(Operation::GetAttr), req, own(), |engine| {
            reply::attr(reply, engine.getattr(req, inode(ino), fh.map(u64::from)));
        });
    }

    fn setattr(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let args = SetAttrArgs {
            mode,
            uid,
            gid,
            size,
            atime: atime.map(convert::set_time),
            mtime: mtime.map(convert::set_time),
            ctime: ctime.map(convert::timestamp),
            handle: fh.map(u64::from),
        };
        run!(self, self.place(Operation::SetAttr), req, own(), |engine| {
            reply::attr(reply, engine.setattr(req, inode(ino), &args));
        });
    }

    fn readlink(&self, req: &fuser::Request, ino: INodeNo, reply: ReplyData) {
        run!(self, self.place(Operation::ReadLink), req, own(), |engine| {
            let target = engine.readlink(req, inode(ino));
            reply::data(
                reply,
                target.as_ref().map(|target| target.as_bytes()).map_err(|error| *error),
            );
        });
    }

    fn mknod(
        &self,
        req: &fuser::Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        run!(self, self.place(Operation::MkNod), req, own(name), |engine| {
            let made = convert::name(name)
                .and_then(|name| engine.mknod(req, inode(parent), name, mode, umask, rdev));
            reply::entry(reply, made);
        });
    }

    fn mkdir(
        &self,
        req: &fuser::Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        run!(self, self.place(Operation::MkDir), req, own(name), |engine| {
            let made = convert::name(name)
                .and_then(|name| engine.mkdir(req, inode(parent), name, mode, umask));
            reply::entry(reply, made);
        });
    }

    fn unlink(&self, req: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        run!(self, self.place(Operation::Unlink), req, own(name), |engine| {
            reply::empty(
                reply,
                convert::name(name).and_then(|name| engine.unlink(req, inode(parent), name)),
            );
        });
    }

    fn rmdir(&self, req: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        run!(self, self.place(Operation::RmDir), req, own(name), |engine| {
            reply::empty(
                reply,
                convert::name(name).and_then(|name| engine.rmdir(req, inode(parent), name)),
            );
        });
    }

    fn symlink(
        &self,
        req: &fuser::Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let target = target.as_os_str();
        run!(self, self.place(Operation::SymLink), req, own(link_name, target), |engine| {
            let made = convert::name(link_name)
                .and_then(|name| engine.symlink(req, inode(parent), name, target));
            reply::entry(reply, made);
        });
    }

    fn rename(
        &self,
        req: &fuser::Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        run!(self, self.place(Operation::Rename), req, own(name, newname), |engine| {
            let done = convert::name(name).and_then(|name| {
                let newname = convert::name(newname)?;
                engine.rename(req, inode(parent), name, inode(newparent), newname, flags.bits())
            });
            reply::empty(reply, done);
        });
    }

    fn link(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        run!(self, self.place(Operation::Link), req, own(newname), |engine| {
            let made = convert::name(newname)
                .and_then(|name| engine.link(req, inode(ino), inode(newparent), name));
            reply::entry(reply, made);
        });
    }

    fn open(&self, req: &fuser::Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        run!(self, self.place(Operation::Open), req, own(), |engine| {
            reply::open(reply, engine.open(req, inode(ino), flags.0));
        });
    }

    fn create(
        &self,
        req: &fuser::Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        run!(self, self.place(Operation::Create), req, own(name), |engine| {
            let made = convert::name(name)
                .and_then(|name| engine.create(req, inode(parent), name, mode, umask, flags));
            reply::create(reply, made);
        });
    }

    fn read(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        run!(self, self.place(Operation::Read), req, own(), |engine| {
            buffer::with(size as usize, |buf| {
                let read = engine.read(req, inode(ino), fh.0, offset, buf);
                reply::data(reply, read.map(|size| &buf[..size]));
            });
        });
    }

    // On a pool this costs one copy of the data: fuser reads the next request into the same buffer.
    fn write(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let cached = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        // As they are now: a program may change this one after the open.
        let append = !cached && flags.0 & libc::O_APPEND != 0;
        run!(self, self.place(Operation::Write), req, own(data), |engine| {
            let written = match append {
                true => engine.append(req, inode(ino), fh.0, offset, data),
                false => engine.write(req, inode(ino), fh.0, offset, data, cached),
            };
            reply::written(reply, written);
        });
    }

    fn flush(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let releases = self.releases();
        run!(self, self.place(Operation::Flush), req, own(), |engine| {
            reply::empty(reply, engine.flush(req, inode(ino), fh.0, lock_owner.0));
            released(&releases, ino);
        });
    }

    fn release(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let releases = self.releases();
        run!(self, self.place(Operation::Release), req, own(), |engine| {
            reply::empty(reply, engine.release(req, inode(ino), fh.0));
            released(&releases, ino);
        });
    }

    fn fsync(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        run!(self, self.place(Operation::FSync), req, own(), |engine| {
            reply::empty(reply, engine.fsync(req, inode(ino), fh.0, datasync));
        });
    }

    fn opendir(&self, req: &fuser::Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        run!(self, self.place(Operation::OpenDir), req, own(), |engine| {
            reply::open(reply, engine.opendir(req, inode(ino), flags.0));
        });
    }

    fn readdir(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        run!(self, self.place(Operation::ReadDir), req, own(), |engine| {
            let listed = engine.readdir(req, inode(ino), fh.0, offset, &mut |entry| {
                let (kind, name) =
                    (convert::file_type(entry.file_type), OsStr::from_bytes(entry.name));
                match reply.add(INodeNo(entry.ino), entry.next, kind, name) {
                    true => Fit::Full,
                    false => Fit::Taken,
                }
            });
            match listed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(convert::errno(error)),
            }
        });
    }

    fn readdirplus(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let shared = self.shared.clone();
        run!(self, self.place(Operation::ReadDirPlus), req, own(), |engine| {
            let size = reply::requested_size(&reply);
            buffer::with_vec(|out| {
                out.clear();
                let listed = engine.readdirplus(req, inode(ino), fh.0, offset, size, out);
                reply::directory_plus(reply, req.unique, &shared, listed.map(|()| &**out));
            });
        });
    }

    fn releasedir(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        run!(self, self.place(Operation::ReleaseDir), req, own(), |engine| {
            reply::empty(reply, engine.releasedir(req, inode(ino), fh.0));
        });
    }

    fn fsyncdir(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        run!(self, self.place(Operation::FSyncDir), req, own(), |engine| {
            reply::empty(reply, engine.fsyncdir(req, inode(ino), fh.0, datasync));
        });
    }

    fn statfs(&self, req: &fuser::Request, ino: INodeNo, reply: ReplyStatfs) {
        run!(self, self.place(Operation::StatFs), req, own(), |engine| {
            match engine.statfs(req, inode(ino)) {
                Ok(s) => reply.statfs(
                    s.blocks,
                    s.free,
                    s.available,
                    s.files,
                    s.files_free,
                    s.block_size,
                    s.name_max,
                    s.fragment_size,
                ),
                Err(error) => reply.error(convert::errno(error)),
            }
        });
    }

    fn setxattr(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        run!(self, self.place(Operation::SetXAttr), req, own(name, value), |engine| {
            reply::empty(reply, engine.setxattr(req, inode(ino), name, value, flags));
        });
    }

    fn getxattr(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        run!(self, self.place(Operation::GetXAttr), req, own(name), |engine| {
            buffer::with(size as usize, |buf| {
                let got = engine.getxattr(req, inode(ino), name, buf);
                reply::xattr(reply, got, buf);
            });
        });
    }

    fn listxattr(&self, req: &fuser::Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        run!(self, self.place(Operation::ListXAttr), req, own(), |engine| {
            buffer::with(size as usize, |buf| {
                let got = engine.listxattr(req, inode(ino), buf);
                reply::xattr(reply, got, buf);
            });
        });
    }

    fn removexattr(&self, req: &fuser::Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        run!(self, self.place(Operation::RemoveXAttr), req, own(name), |engine| {
            reply::empty(reply, engine.removexattr(req, inode(ino), name));
        });
    }

    fn access(&self, req: &fuser::Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        run!(self, self.place(Operation::Access), req, own(), |engine| {
            reply::empty(reply, engine.access(req, inode(ino), mask.bits()));
        });
    }

    fn getlk(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let lock = Lock { start, end, typ, pid };
        run!(self, self.place(Operation::GetLk), req, own(), |engine| {
            match engine.getlk(req, inode(ino), fh.0, lock_owner.0, lock) {
                Ok(held) => reply.locked(held.start, held.end, held.typ, held.pid),
                Err(error) => reply.error(convert::errno(error)),
            }
        });
    }

    fn setlk(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let lock = Lock { start, end, typ, pid };
        if sleep && typ != libc::F_UNLCK && self.dispatcher.lets_locks_wait() {
            return self.wait_for_lock(req, inode(ino), fh.0, lock_owner.0, lock, reply);
        }
        // The kernel says "wait" with an unlock too; there is nothing to wait for.
        let sleep = sleep && typ != libc::F_UNLCK;
        let (place, releases) = match (typ, sleep) {
            // Others may be waiting for just this.
            (libc::F_UNLCK, _) => (self.dispatcher.place_of_unlock(), self.releases()),
            (_, true) => (self.place(Operation::SetLkWait), None),
            (_, false) => (self.place(Operation::SetLk), None),
        };
        run!(self, place, req, own(), |engine| {
            reply::empty(reply, engine.setlk(req, inode(ino), fh.0, lock_owner.0, lock, sleep));
            released(&releases, ino);
        });
    }

    fn bmap(&self, req: &fuser::Request, ino: INodeNo, blocksize: u32, idx: u64, reply: ReplyBmap) {
        run!(self, self.place(Operation::BMap), req, own(), |engine| {
            match engine.bmap(req, inode(ino), blocksize, idx) {
                Ok(block) => reply.bmap(block),
                Err(error) => reply.error(convert::errno(error)),
            }
        });
    }

    fn ioctl(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: IoctlFlags,
        cmd: u32,
        in_data: &[u8],
        out_size: u32,
        reply: ReplyIoctl,
    ) {
        run!(self, self.place(Operation::IoCtl), req, own(in_data), |engine| {
            buffer::with(out_size as usize, |buf| {
                match engine.ioctl(req, inode(ino), fh.0, cmd, in_data, buf) {
                    Ok((result, size)) => reply.ioctl(result, &buf[..size]),
                    Err(error) => reply.error(convert::errno(error)),
                }
            });
        });
    }

    fn poll(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        ph: fuser::PollNotifier,
        events: PollEvents,
        flags: PollFlags,
        reply: ReplyPoll,
    ) {
        // The handler gets a notifier of ours, which does not outlive the connection.
        let wanted = flags.contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY);
        let notifier = wanted.then(|| {
            let device = Arc::downgrade(&self.shared.device);
            Box::new(PollWaker { device, handle: ph.handle().0 }) as Box<dyn PollNotifier>
        });
        drop(ph);
        run!(self, self.place(Operation::Poll), req, own(), |engine| {
            match engine.poll(req, inode(ino), fh.0, events.bits(), notifier) {
                Ok(ready) => reply.poll(PollEvents::from_bits_retain(ready)),
                Err(error) => reply.error(convert::errno(error)),
            }
        });
    }

    fn fallocate(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        run!(self, self.place(Operation::FAllocate), req, own(), |engine| {
            reply::empty(reply, engine.fallocate(req, inode(ino), fh.0, offset, length, mode));
        });
    }

    fn lseek(
        &self,
        req: &fuser::Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        run!(self, self.place(Operation::LSeek), req, own(), |engine| {
            match engine.lseek(req, inode(ino), fh.0, offset, whence) {
                Ok(offset) => reply.offset(offset),
                Err(error) => reply.error(convert::errno(error)),
            }
        });
    }

    fn copy_file_range(
        &self,
        req: &fuser::Request,
        ino_in: INodeNo,
        fh_in: FileHandle,
        offset_in: u64,
        ino_out: INodeNo,
        fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        if !flags.is_empty() {
            return reply.error(convert::errno(Errno::EINVAL));
        }
        // The answer has 32 bits for the length.
        let len = len.min(u64::from(u32::MAX));
        run!(self, self.place(Operation::CopyFileRange), req, own(), |engine| {
            let (from, to) =
                ((inode(ino_in), fh_in.0, offset_in), (inode(ino_out), fh_out.0, offset_out));
            reply::written(reply, engine.copy_file_range(req, from, to, len));
        });
    }
}
