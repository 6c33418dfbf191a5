//! From a word of the history to a call of the engine, and what the kernel learns from the answer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use std::path::Path;
use std::time::Duration;

use pinpath_fuse::dispatch::SetAttrArgs;
use pinpath_fuse::{Attr, DirEntry, Errno, Fit, Inode, Lock, Name, Operation, Request};

use crate::kernel::Kernel;
use crate::request::{CountPick, Failure, History, KernelRequest, NodePick, OffsetPick};

pub(crate) const CALLER: Request = Request { unique: 1, uid: 0, gid: 0, pid: 1 };

/// What a handler panics with when it is told to.
pub(crate) const ON_PURPOSE: &str = "on purpose";

/// Runs a history from an empty tree to one of which nothing is known.
///
/// # Panics
/// The engine, its resolver and the kernel don't agree.
pub(crate) fn run(history: &History, most: usize, closely: bool) {
    let mut kernel = Kernel::new(history);
    let mut failure = None;
    for request in history.requests.iter().take(most) {
        if let KernelRequest::HandlerFails(next) = request {
            failure = Some(*next);
            continue;
        }
        kernel.failing = failure.is_some();
        kernel.engine.handler().set_hook(fail_once(failure.take()));
        let pin = kernel.engine.pin();
        kernel.serve(request);
        drop(pin);
        kernel.check(closely);
    }
    kernel.engine.handler().set_hook(|_, _| Ok(()));
    kernel.finish();
}

fn fail_once(failure: Option<Failure>) -> impl Fn(Operation, &Path) -> Result<(), Errno> {
    let failed = AtomicBool::new(false);
    move |_, _| match failure {
        Some(failure) if !failed.swap(true, Ordering::Relaxed) => Err(match failure {
            Failure::NoEntry => Errno::ENOENT,
            Failure::Stale => Errno::ESTALE,
            Failure::NotImplemented => Errno::ENOSYS,
            Failure::Number(raw) => Errno::from_raw(raw),
            Failure::Panic => std::panic::panic_any(ON_PURPOSE),
        }),
        _ => Ok(()),
    }
}

impl OffsetPick {
    fn offset(self) -> u64 {
        match self {
            OffsetPick::Start => 0,
            OffsetPick::Near(n) => n.into(),
            OffsetPick::Far(n) => u64::MAX >> (n % 24),
        }
    }
}

impl Kernel {
    fn serve(&mut self, request: &KernelRequest) {
        match request {
            KernelRequest::Lookup(place) => self.lookup(place),
            KernelRequest::Forget(node, count) => {
                let (inode, count) = self.lookups(*node, *count);
                self.engine.forget(inode, count);
                self.forgets(inode, count);
            }
            KernelRequest::ForgetBatch(batch) => {
                let batch: Vec<_> =
                    batch.iter().map(|(node, count)| self.lookups(*node, *count)).collect();
                self.engine.forget_batch(batch.iter().copied());
                batch.into_iter().for_each(|(inode, count)| self.forgets(inode, count));
            }
            KernelRequest::GetAttr(node, handle) => {
                let (inode, handle) = (self.node(*node), handle.map(|pick| self.files.pick(pick)));
                let has_path = self.engine.resolver().path(inode).is_ok();
                let answer = self.engine.getattr(&CALLER, inode, handle);
                self.attributes(inode, handle, has_path, &answer);
            }
            KernelRequest::SetAttr(node, handle, size, mode) => {
                let inode = self.node(*node);
                let args = SetAttrArgs {
                    handle: handle.map(|pick| self.files.pick(pick)),
                    size: size.map(OffsetPick::offset),
                    mode: mode.map(u32::from),
                    ..SetAttrArgs::default()
                };
                let answer = self.engine.setattr(&CALLER, inode, &args);
                self.attributes(inode, args.handle, false, &answer);
                if let (Ok((attr, _)), Some(size)) = (answer, args.size) {
                    self.contents.entry(attr.ino).or_default().resize(size as usize, 0);
                }
            }
            KernelRequest::ReadLink(node) => {
                let _ = self.engine.readlink(&CALLER, self.node(*node));
            }
            KernelRequest::MkNod(at) => {
                self.make(at, |kernel, at, name| {
                    kernel.engine.mknod(&CALLER, at, name, libc::S_IFREG | 0o644, 0, 0)
                });
            }
            KernelRequest::MkDir(at) => {
                self.make(at, |kernel, at, name| kernel.engine.mkdir(&CALLER, at, name, 0o755, 0));
            }
            KernelRequest::SymLink(at, target) => {
                let made = self.make(at, |kernel, at, name| {
                    kernel.engine.symlink(&CALLER, at, name, OsStr::from_bytes(target))
                });
                if let Some(ino) = made {
                    self.contents.insert(ino, target.clone());
                }
            }
            KernelRequest::Create(at) => {
                let mut handle = None;
                let made = self.make(at, |kernel, at, name| {
                    let (entry, open) = kernel.engine.create(&CALLER, at, name, 0o644, 0, 0)?;
                    handle = Some(open.handle);
                    Ok(entry)
                });
                if let Some(handle) = handle {
                    self.files.opened(handle, made.filter(|_| self.undisturbed));
                }
            }
            KernelRequest::Link(node, at) => {
                let inode = self.node(*node);
                self.make(at, |kernel, at, name| {
                    let reply = kernel.engine.link(&CALLER, inode, at, name)?;
                    assert_eq!(reply.node, inode, "a link is the same inode");
                    Ok(reply)
                });
            }
            KernelRequest::Unlink(at) => {
                self.remove(at, |kernel, at, name| kernel.engine.unlink(&CALLER, at, name));
            }
            KernelRequest::RmDir(at) => {
                self.remove(at, |kernel, at, name| kernel.engine.rmdir(&CALLER, at, name));
            }
            KernelRequest::Rename(from, to, flags) => self.rename(from, to, *flags),
            KernelRequest::Open(node) => {
                let inode = self.node(*node);
                if let Ok(open) = self.engine.open(&CALLER, inode, 0) {
                    let ino = self.inos.get(&inode).copied().filter(|_| self.undisturbed);
                    self.files.opened(open.handle, ino);
                }
            }
            KernelRequest::Read(node, pick, offset, size) => {
                let (inode, handle) = (self.node(*node), self.files.pick(*pick));
                let mut buf = vec![0; usize::from(*size)];
                let answer = self.engine.read(&CALLER, inode, handle, offset.offset(), &mut buf);
                self.files.judge(handle, &answer);
                let ino = self.files.get(handle).and_then(|open| open.ino);
                if let (Ok(size), Some(ino), true) = (answer, ino, self.undisturbed) {
                    let content = self.contents.get(&ino).map_or(&[][..], Vec::as_slice);
                    let rest = content.get(offset.offset() as usize..).unwrap_or_default();
                    assert_eq!(buf[..size], rest[..rest.len().min(buf.len())], "content of {ino}");
                }
            }
            KernelRequest::Write(node, pick, offset, data) => {
                let (inode, handle) = (self.node(*node), self.files.pick(*pick));
                let offset = offset.offset();
                let answer = self.engine.write(&CALLER, inode, handle, offset, data, false);
                self.files.judge(handle, &answer);
                let ino = self.files.get(handle).and_then(|open| open.ino);
                if let (Ok(size), Some(ino)) = (answer, ino) {
                    let content = self.contents.entry(ino).or_default();
                    let (start, end) = (offset as usize, offset as usize + size);
                    content.resize(content.len().max(end), 0);
                    content[start..end].copy_from_slice(&data[..size]);
                }
            }
            KernelRequest::Release(node, pick) => {
                let handle = self.files.pick(*pick);
                let answer = self.engine.release(&CALLER, self.node(*node), handle);
                self.files.judge(handle, &answer);
                if answer.is_ok() {
                    self.files.closed(handle);
                }
            }
            KernelRequest::OpenDir(node) => {
                if let Ok(open) = self.engine.opendir(&CALLER, self.node(*node), 0) {
                    self.dirs.opened(open.handle, None);
                }
            }
            KernelRequest::ReadDir(node, pick, offset, room) => {
                let (inode, handle) = (self.node(*node), self.dirs.pick(*pick));
                let mut room = *room % 8;
                let mut push = |entry: DirEntry<'_>| {
                    assert!(entry.ino != 0 && Name::new(entry.name).is_ok(), "{entry:?}");
                    if room == 0 {
                        return Fit::Full;
                    }
                    room -= 1;
                    Fit::Taken
                };
                let answer =
                    self.engine.readdir(&CALLER, inode, handle, offset.offset(), &mut push);
                self.dirs.judge(handle, &answer);
            }
            KernelRequest::ReadDirPlus(node, pick, offset, size) => {
                let (inode, handle) = (self.node(*node), self.dirs.pick(*pick));
                let (offset, size) = (offset.offset(), usize::from(*size % 2048));
                let mut out = Vec::new();
                let answer =
                    self.engine.readdirplus(&CALLER, inode, handle, offset, size, &mut out);
                self.dirs.judge(handle, &answer);
                assert!(out.len() <= size, "{} bytes instead of {size}", out.len());
                if answer.is_ok() {
                    self.listed(inode, &out);
                }
            }
            KernelRequest::ReleaseDir(node, pick) => {
                let handle = self.dirs.pick(*pick);
                let answer = self.engine.releasedir(&CALLER, self.node(*node), handle);
                self.dirs.judge(handle, &answer);
                if answer.is_ok() {
                    self.dirs.closed(handle);
                }
            }
            KernelRequest::Other(which, node, handle, number) => {
                let (node, file) = (self.node(*node), self.files.pick(*handle));
                self.other(*which, node, file, self.dirs.pick(*handle), *number);
            }
            KernelRequest::BeginLong => self.long.extend(self.engine.pin()),
            KernelRequest::EndLong(n) if !self.long.is_empty() => {
                drop(self.long.swap_remove(usize::from(*n) % self.long.len()));
            }
            KernelRequest::EndLong(_) | KernelRequest::HandlerFails(_) => {}
            KernelRequest::Behind(change) => self.behind(change),
            KernelRequest::Reclaim => {
                self.engine.resolver().reclaim();
            }
        }
    }
    fn lookups(&self, node: NodePick, count: CountPick) -> (Inode, u64) {
        let inode = self.node(node);
        let count = match count {
            CountPick::All => self.counts.get(&inode).copied().unwrap_or(1),
            CountPick::One => 1,
            CountPick::Number(count) => count,
        };
        (inode, count)
    }

    /// Judges an answer with the attributes of an inode.
    fn attributes(
        &self,
        inode: Inode,
        handle: Option<u64>,
        must_be_had: bool,
        answer: &Result<(Attr, Duration), Errno>,
    ) {
        if let Some(handle) = handle {
            self.files.judge(handle, answer);
            if self.files.get(handle).is_none() {
                return;
            }
        }
        if !self.undisturbed || self.failing {
            return;
        }
        assert!(!must_be_had || answer.is_ok(), "{inode:?} has a path: {answer:?}");
        if let (Ok((attr, _)), Some(ino)) = (answer, self.inos.get(&inode)) {
            assert_eq!(attr.ino, *ino, "{inode:?} is another file now");
        }
    }

    /// Nothing that is asked here changes what the kernel knows.
    fn other(&self, which: u8, inode: Inode, file: u64, dir: u64, number: u64) {
        let (engine, mut buf) = (&self.engine, [0; 16]);
        let name = OsStr::from_bytes(b"user.name");
        let lock = Lock { start: number, end: number, typ: libc::F_WRLCK, pid: 1 };
        let answer = match which % 18 {
            0 => engine.statfs(&CALLER, inode).map(drop),
            1 => engine.access(&CALLER, inode, number as i32),
            2 => engine.getxattr(&CALLER, inode, name, &mut buf).map(drop),
            3 => engine.listxattr(&CALLER, inode, &mut buf).map(drop),
            4 => engine.setxattr(&CALLER, inode, name, &buf, number as i32),
            5 => engine.removexattr(&CALLER, inode, name),
            6 => engine.bmap(&CALLER, inode, 4096, number).map(drop),
            7 => {
                let answer = engine.fsyncdir(&CALLER, inode, dir, number % 2 == 0);
                return self.dirs.judge(dir, &answer);
            }
            8 => engine.flush(&CALLER, inode, file, number),
            9 => engine.fsync(&CALLER, inode, file, number % 2 == 0),
            10 => engine.getlk(&CALLER, inode, file, number, lock).map(drop),
            11 => engine.setlk(&CALLER, inode, file, number, lock, false),
            12 => engine.ioctl(&CALLER, inode, file, number as u32, &[], &mut buf).map(drop),
            13 => engine.poll(&CALLER, inode, file, number as u32, None).map(drop),
            14 => engine.fallocate(&CALLER, inode, file, number, number, 0),
            15 => engine.lseek(&CALLER, inode, file, number as i64, libc::SEEK_HOLE).map(drop),
            16 => {
                let (from, to) = ((inode, file, 0), (Inode::ROOT, file, number));
                engine.copy_file_range(&CALLER, from, to, number).map(drop)
            }
            _ => return engine.forget(Inode::ROOT, number),
        };
        if (8..17).contains(&(which % 18)) {
            self.files.judge(file, &answer);
        }
    }
}
