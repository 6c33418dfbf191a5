//! [`Kernel`]: sends requests to an engine, and believes what it is answered.
//!
//! What it has been told (lookups counted, names, which file an id means, what is in a file) is all
//! that it goes by; after each request the engine and its resolver must agree with it. While nothing
//! happens behind the mount that can be held against the handler's tree too: every path leads to
//! the file that the kernel means, and what is there is found.

use std::collections::BTreeMap;

use pinpath_fuse::dispatch::{Engine, EntryReply};
use pinpath_fuse::pinpath::{PathError, RequestPin};
use pinpath_fuse::{Errno, Inode, Name};

use crate::memory::Memory;
use crate::request::{HandlePick, History, NamePick, NodePick};

/// A name in the kernel's cache.
pub(crate) type Known = (Inode, Vec<u8>);

/// An open file or directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) handle: u64,
    /// The file's inode number, where that is certain.
    pub(crate) ino: Option<u64>,
}

/// The open files, or the open directories.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    open: Vec<Open>,
    closed: Vec<u64>,
}

pub(crate) struct Kernel {
    pub(crate) engine: Engine<Memory>,
    /// How often it was told of each inode and has not forgotten it: never 0.
    pub(crate) counts: BTreeMap<Inode, u64>,
    /// The inode number of the file that each id meant, when it was last told of it.
    pub(crate) inos: BTreeMap<Inode, u64>,
    pub(crate) names: BTreeMap<Known, Inode>,
    /// What is in each file, by its inode number.
    pub(crate) contents: BTreeMap<u64, Vec<u8>>,
    pub(crate) files: Handles,
    pub(crate) dirs: Handles,
    /// Requests that are not answered yet.
    pub(crate) long: Vec<RequestPin>,
    /// Has nothing changed behind the mount?
    pub(crate) undisturbed: bool,
    /// May the handler fail in this request?
    pub(crate) failing: bool,
}

const USUAL_NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

impl Kernel {
    pub(crate) fn new(history: &History) -> Self {
        let memory = Memory {
            identities: history.identities,
            plus: history.plus,
            seen_twice: history.seen_twice,
            ..Memory::default()
        };
        Kernel {
            engine: Engine::new(memory),
            counts: BTreeMap::new(),
            inos: BTreeMap::new(),
            names: BTreeMap::new(),
            contents: BTreeMap::new(),
            files: Handles::default(),
            dirs: Handles::default(),
            long: Vec::new(),
            undisturbed: true,
            failing: false,
        }
    }

    pub(crate) fn node(&self, NodePick(n): NodePick) -> Inode {
        let held: Vec<Inode> =
            [Inode::ROOT].into_iter().chain(self.counts.keys().copied()).collect();
        let held = |n: u8| held[usize::from(n) % held.len()];
        match n {
            0..200 => held(n),
            200..224 => {
                let forgotten: Vec<&Inode> =
                    self.inos.keys().filter(|inode| !self.counts.contains_key(inode)).collect();
                match forgotten.len() {
                    0 => held(n),
                    len => *forgotten[usize::from(n) % len],
                }
            }
            224..228 => Inode::from_raw([0, u64::MAX, 1 << 63, 1 << 32][usize::from(n - 224)]),
            // Another slot, or another use of the same slot.
            228.. => Inode::from_raw(held(n / 2).raw() ^ 1 << (n % 4 * 15)),
        }
    }

    /// A name as bytes, which may be none; and, for one of the cache, its directory.
    pub(crate) fn name(&self, pick: &NamePick) -> (Option<Inode>, Vec<u8>) {
        match pick {
            NamePick::Bytes(bytes) => (None, bytes.clone()),
            NamePick::Known(n) if !self.names.is_empty() => {
                let index = usize::from(*n) % self.names.len();
                let (parent, name) = self.names.keys().nth(index).expect("within the length");
                (Some(*parent), name.clone())
            }
            NamePick::Known(n) | NamePick::Usual(n) => {
                (None, USUAL_NAMES[usize::from(*n) % USUAL_NAMES.len()].to_vec())
            }
        }
    }

    /// Takes up an answer that tells of an inode under a name.
    pub(crate) fn told(&mut self, known: Known, reply: &EntryReply) {
        self.told_of(known, reply.node, reply.attr.ino);
    }

    pub(crate) fn told_of(&mut self, known: Known, inode: Inode, ino: u64) {
        assert!(inode.raw() > Inode::ROOT.raw(), "{inode:?} is no id of a file");
        if self.undisturbed {
            let before = self.inos.get(&inode);
            assert!(before.is_none_or(|before| *before == ino), "{inode:?} is another file now");
            let held = self.names.get(&known).filter(|held| self.counts.contains_key(held));
            assert!(held.is_none_or(|held| *held == inode), "{known:?} is {inode:?}, was {held:?}");
        }
        *self.counts.entry(inode).or_default() += 1;
        self.inos.insert(inode, ino);
        self.names.insert(known, inode);
    }

    pub(crate) fn forgets(&mut self, inode: Inode, count: u64) {
        if let Some(held) = self.counts.get_mut(&inode) {
            *held = held.saturating_sub(count);
            if *held == 0 {
                self.counts.remove(&inode);
            }
        }
    }

    /// The inode number of what the handler has under a name, where the kernel's idea of the tree
    /// and the handler's must agree and the directory can be named.
    pub(crate) fn is_there(&self, parent: Inode, name: &Name) -> Option<bool> {
        if !self.undisturbed || self.failing {
            return None;
        }
        let path = self.engine.resolver().path(parent).ok()?.join(name.as_os_str());
        Some(self.engine.handler().tree().contains_key(&path))
    }

    /// Does everybody agree?
    pub(crate) fn check(&self, closely: bool) {
        let resolver = self.engine.resolver();
        if let Err(why) = resolver.validate() {
            panic!("{why}");
        }
        let stats = resolver.stats();
        assert_eq!((stats.leases, stats.pins), (0, self.long.len()), "leases and pins");
        for inode in self.inos.keys() {
            let count = resolver.lookup_count(*inode);
            match self.counts.get(inode) {
                Some(held) => assert_eq!(count, Some(*held), "lookups of {inode:?}"),
                None => assert!(matches!(count, None | Some(0)), "{inode:?}: {count:?}, not 0"),
            }
        }
        if self.undisturbed && closely {
            self.check_names();
        }
    }

    fn check_names(&self) {
        let resolver = self.engine.resolver();
        let tree = self.engine.handler().tree();
        for inode in self.counts.keys() {
            let ino = self.inos[inode];
            match resolver.path(*inode) {
                Ok(path) => {
                    assert_eq!(tree.get(&path).map(|file| file.attr.ino), Some(ino), "{path:?}")
                }
                Err(PathError::Unlinked(_)) => {}
                Err(error) => panic!("{inode:?} is held: {error}"),
            }
            for path in resolver.paths(*inode) {
                assert_eq!(tree.get(&path).map(|file| file.attr.ino), Some(ino), "{path:?}");
            }
        }
        for ((parent, name), child) in &self.names {
            if self.counts.contains_key(child) {
                let name = Name::new(name).expect("it was answered under that name");
                let found = resolver.peek(*parent, name);
                assert_eq!(found, Ok(Some(*child)), "{name:?} in {parent:?}");
            }
        }
    }

    /// The kernel closes and forgets everything: nothing may be left.
    pub(crate) fn finish(mut self) {
        for Open { handle, .. } in std::mem::take(&mut self.files.open) {
            self.engine.release(&crate::serve::CALLER, Inode::ROOT, handle).expect("it is open");
        }
        for Open { handle, .. } in std::mem::take(&mut self.dirs.open) {
            self.engine.releasedir(&crate::serve::CALLER, Inode::ROOT, handle).expect("it is open");
        }
        self.long.clear();
        self.engine.forget_batch(std::mem::take(&mut self.counts));
        self.check(true);
        let resolver = self.engine.resolver();
        resolver.prune();
        // What was looked up again after it was forgotten takes one round more.
        for _ in 0..100 {
            resolver.reclaim();
        }
        let stats = resolver.stats();
        assert_eq!((stats.nodes, stats.links), (1, 0), "the root: {stats:?}");
        let (opened, released) = self.engine.handler().opened_and_released();
        assert_eq!(opened, released, "every file is released");
    }
}

impl Handles {
    pub(crate) fn opened(&mut self, handle: u64, ino: Option<u64>) {
        assert!(!self.closed.contains(&handle), "a handle of the past names another file");
        assert!(self.get(handle).is_none(), "two files have one handle");
        self.open.push(Open { handle, ino });
    }

    pub(crate) fn closed(&mut self, handle: u64) {
        self.open.retain(|open| open.handle != handle);
        self.closed.push(handle);
    }

    pub(crate) fn get(&self, handle: u64) -> Option<Open> {
        self.open.iter().find(|open| open.handle == handle).copied()
    }

    pub(crate) fn pick(&self, HandlePick(n): HandlePick) -> u64 {
        let open = |n: u8| match self.open.len() {
            0 => 0,
            len => self.open[usize::from(n) % len].handle,
        };
        match n {
            0..200 => open(n),
            200..224 if !self.closed.is_empty() => self.closed[usize::from(n) % self.closed.len()],
            224..226 => [0, u64::MAX][usize::from(n % 2)],
            _ => open(n / 2) ^ 1 << (n % 64),
        }
    }

    /// A handle that is none must be refused, and one that is open never.
    pub(crate) fn judge<T>(&self, handle: u64, answer: &Result<T, Errno>) {
        let refused = matches!(answer, Err(Errno::EBADF));
        assert_eq!(refused, self.get(handle).is_none(), "handle {handle:#x} of {self:?}");
    }
}
