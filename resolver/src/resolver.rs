//! [`Resolver`]: the public verbs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::data::NodeData;
use crate::error::{Error, PathError};
use crate::inode::Inode;
use crate::lease::{self, PathLease};
use crate::lookup::Sighting;
use crate::mapped::MappedInode;
use crate::name::Name;
use crate::pin::RequestPin;
use crate::reclaim;
use crate::shared::Shared;
use crate::state::Kind;
use crate::sync::{Arc, Ordering, epoch};
use crate::transaction::{self, RenameMode, Transaction, TransactionError};

/// Does a listing count a lookup for each entry?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Yes: the kernel learns the nodes (READDIRPLUS).
    Counted,
    /// No: the ids are made known and go when no request needs them any more.
    Uncounted,
}

/// How a resolver is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes may be used to keep paths that were built; 0: none are kept. When there is
    /// no room for one more, others are dropped, without regard to which are used most. What
    /// several threads keep at the same moment may go beyond it by a path each.
    pub path_cache_bytes: usize,
}

impl Default for Options {
    /// 64 MiB of kept paths.
    fn default() -> Self {
        Options { path_cache_bytes: 64 << 20 }
    }
}

/// What a resolver holds at some moment. Each number is exact while nothing changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Nodes, the root included.
    pub nodes: usize,
    /// Names.
    pub links: usize,
    /// Nodes that are forgotten and wait for the requests that may need them.
    pub retired: usize,
    /// Requests that are pinned.
    pub pins: usize,
    /// Leases that are held.
    pub leases: usize,
    /// Bytes of the table, the indexes, the names and the kept paths (an estimate: what the
    /// allocator adds is not known).
    pub bytes: usize,
    /// Bytes of the kept paths among them.
    pub path_cache_bytes: usize,
}

/// The table: from inodes to paths, for any number of threads.
///
/// Cloning it is cheap and makes another handle of the same table. See the [crate](crate) for what
/// each verb promises while others run.
///
/// ```
/// use pinpath::{Inode, Kind, Name, Resolver};
///
/// let resolver = Resolver::new(());
/// let name = |name| Name::new(name).unwrap();
/// let dir = resolver.lookup(Inode::ROOT, name("dir"), Kind::Directory, ()).unwrap();
/// let file = resolver.lookup(dir, name("file"), Kind::Leaf, ()).unwrap();
///
/// let pin = resolver.pin(); // a request comes in
/// resolver.forget(file, 1); // the kernel forgets the file meanwhile
/// resolver.rename(Inode::ROOT, name("dir"), Inode::ROOT, name("moved")).unwrap();
/// assert_eq!(resolver.path(file).unwrap().as_os_str(), "moved/file");
/// drop(pin); // answered
/// ```
#[derive(Debug)]
pub struct Resolver<D: NodeData = ()> {
    shared: Arc<Shared<D>>,
}

impl<D: NodeData> Clone for Resolver<D> {
    fn clone(&self) -> Self {
        Resolver { shared: Arc::clone(&self.shared) }
    }
}

impl<D: NodeData> Resolver<D> {
    /// A table with nothing in it but the root, and `root` beside that.
    pub fn new(root: D) -> Self {
        Self::with_options(root, Options::default())
    }

    /// The same with other than the default options.
    pub fn with_options(root: D, options: Options) -> Self {
        Resolver { shared: Arc::new(Shared::new(root, options.path_cache_bytes)) }
    }

    pub(crate) fn shared(&self) -> &Shared<D> {
        &self.shared
    }

    /// Begins a request: no node that is known now is reclaimed until the pin is dropped.
    #[inline]
    pub fn pin(&self) -> RequestPin {
        let domain = self.shared.domain;
        if domain.pressing() {
            reclaim::advance(&self.shared);
        }
        RequestPin::begin(domain)
    }

    // ---- what the kernel knows ----

    /// The node of a name: the one that is known, or a new one. Counts one lookup, which a later
    /// [`forget`](Self::forget) takes back.
    ///
    /// `data` is kept beside a new node, and dropped where there is one already. If it has an
    /// identity:
    /// * a name that is known for another identity now leads to another file: the old node loses it;
    /// * an identity that is known under another name is one more link of that node, and the name
    ///   just seen becomes its first; a directory, which can't have two, is refused.
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::NotADirectory`] for the parent, [`Error::KnownElsewhere`] as
    /// above, [`Error::Cycle`] for a directory found below itself, [`Error::Full`].
    pub fn lookup(&self, parent: Inode, name: &Name, kind: Kind, data: D) -> Result<Inode, Error> {
        self.see(parent, name, kind, data, 1)
    }

    /// The node of a name, if it is known. Counts nothing: the answer is good as long as something
    /// else keeps the node (a count, a pin).
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::NotADirectory`] for the parent.
    pub fn peek(&self, parent: Inode, name: &Name) -> Result<Option<Inode>, Error> {
        self.shared.peek(parent, name)
    }

    /// The nodes of the entries of a listing, in their order; each as with
    /// [`lookup`](Self::lookup), with or without counting it.
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::NotADirectory`] for the parent. For an entry as `lookup`; the
    /// others are not affected.
    pub fn list<'n>(
        &self,
        parent: Inode,
        entries: impl IntoIterator<Item = (&'n Name, Kind, D)>,
        counting: Counting,
    ) -> Result<Vec<Result<Inode, Error>>, Error> {
        let count = match counting {
            Counting::Counted => 1,
            Counting::Uncounted => 0,
        };
        self.shared.list(parent, entries, count)
    }

    fn see(
        &self,
        parent: Inode,
        name: &Name,
        kind: Kind,
        data: D,
        count: u64,
    ) -> Result<Inode, Error> {
        let key = self.shared.names.key(parent, name);
        self.shared.lookup(Sighting { key, kind, data, count })
    }

    /// Takes back `count` lookups. Ids that are not known are ignored, and so is what a node was
    /// not counted: a kernel that forgets too much does no harm.
    pub fn forget(&self, inode: Inode, count: u64) {
        self.forget_batch([(inode, count)]);
    }

    /// The same for many.
    pub fn forget_batch(&self, batch: impl IntoIterator<Item = (Inode, u64)>) {
        {
            let guard = epoch::pin();
            let mut queue = self.shared.retired.queue();
            for (inode, count) in batch {
                self.shared.forget(inode, count, &mut queue, &guard);
            }
        }
        if self.shared.domain.pressing() {
            reclaim::advance(&self.shared);
        }
    }

    /// How many lookups the node is counted; `None` if the id is stale. (The root: 1.)
    pub fn lookup_count(&self, inode: Inode) -> Option<u64> {
        self.shared.table.get(inode).map(|node| node.state.settled_count())
    }

    // ---- the namespace ----

    /// The backend has given a node one more name: the last of its names. Counts one lookup,
    /// because the answer to LINK carries an entry. A node that had the name before loses it.
    ///
    /// Without an identity a node with several names is kept until it loses all but one, even if
    /// the kernel forgets it: nothing else would tell that they are one file.
    ///
    /// # Errors
    /// [`Error::Stale`] for the node or the parent, [`Error::DirectoryLink`],
    /// [`Error::NotADirectory`], [`Error::Root`].
    pub fn link(&self, inode: Inode, parent: Inode, name: &Name) -> Result<(), Error> {
        self.shared.link(inode, parent, name)
    }

    /// The name is gone. Answers the node that had it, if it is known; it lives on as long as
    /// something refers to it.
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::NotADirectory`] for the parent.
    pub fn unlink(&self, parent: Inode, name: &Name) -> Result<Option<Inode>, Error> {
        self.shared.unlink(parent, name)
    }

    /// What had the first name has the second, in one step with the loss of what had that. If both
    /// are names of one node nothing happens, as with rename(2).
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::NotADirectory`] for a parent, [`Error::Cycle`].
    pub fn rename(
        &self,
        parent: Inode,
        name: &Name,
        new_parent: Inode,
        new_name: &Name,
    ) -> Result<(), Error> {
        let names = &self.shared.names;
        self.shared.rename(names.key(parent, name), names.key(new_parent, new_name))
    }

    /// What had either name has the other, in one step.
    ///
    /// # Errors
    /// As [`rename`](Self::rename).
    pub fn exchange(
        &self,
        parent: Inode,
        name: &Name,
        new_parent: Inode,
        new_name: &Name,
    ) -> Result<(), Error> {
        let names = &self.shared.names;
        self.shared.exchange(names.key(parent, name), names.key(new_parent, new_name))
    }

    // ---- paths ----

    /// The path of a node now, relative to the root, whose own is empty. Of several names the
    /// first. Lock-free. The answer may be outdated as soon as it is given; a
    /// [`lease`](Self::lease) keeps it true.
    ///
    /// # Errors
    /// [`PathError::Unlinked`] if the node or a directory above it has no name any more,
    /// [`PathError::Stale`] if there is no such node.
    pub fn path(&self, inode: Inode) -> Result<PathBuf, PathError> {
        self.shared.path(inode, None)
    }

    /// The same, written into a buffer, which is cleared first. Allocates only to grow it.
    ///
    /// # Errors
    /// As [`path`](Self::path).
    pub fn path_into(&self, inode: Inode, path: &mut Vec<u8>) -> Result<(), PathError> {
        self.shared.path_into(inode, None, path)
    }

    /// The same, borrowed: nothing is copied if the path was built before and is still true. `f`
    /// should be short: memory that others free waits for it.
    ///
    /// # Errors
    /// As [`path`](Self::path).
    #[inline]
    pub fn with_path<R>(&self, inode: Inode, f: impl FnOnce(&Path) -> R) -> Result<R, PathError> {
        self.shared.with_path(inode, None, f)
    }

    /// All paths of a node, as of one moment, in the order of its names. Empty if it has none, or
    /// there is no such node. Lock-free.
    pub fn paths(&self, inode: Inode) -> Vec<PathBuf> {
        self.shared.paths(inode).unwrap_or_default()
    }

    /// The same as lists of names from the root down.
    pub fn parts_paths(&self, inode: Inode) -> Vec<Vec<OsString>> {
        self.shared.parts_paths(inode).unwrap_or_default()
    }

    /// Runs `f` with what is kept beside the node; `None` if there is no such node. `f` should be
    /// short: memory that others free waits for it.
    pub fn with_data<R>(&self, inode: Inode, f: impl FnOnce(&D) -> R) -> Option<R> {
        let _guard = epoch::pin();
        let node = self.shared.table.get(inode)?;
        // SAFETY: the node was alive after the guard began.
        Some(f(unsafe { node.data() }))
    }

    /// An owned handle of a node. It doesn't keep the node alive.
    pub fn mapped(&self, inode: Inode) -> MappedInode<D> {
        MappedInode::new(self.clone(), inode)
    }

    // ---- leases and transactions ----

    /// Keeps the path of a node true until the lease is dropped. Waits, holding nothing, while a
    /// transaction moves the node or a directory above it.
    ///
    /// # Errors
    /// As [`path`](Self::path), as far as the node itself goes: a lease below a directory that has
    /// no name may succeed, and asking it for the path then says `Unlinked`.
    pub fn lease(&self, inode: Inode) -> Result<PathLease<'_, D>, PathError> {
        lease::lease(self, inode)
    }

    /// Leases of several nodes, all or none.
    ///
    /// # Errors
    /// As [`lease`](Self::lease), for the first that fails.
    pub fn lease_all<const N: usize>(
        &self,
        inodes: [Inode; N],
    ) -> Result<[PathLease<'_, D>; N], PathError> {
        lease::lease_all(self, inodes)
    }

    /// Prepares a rename: waits until nobody has a lease on or below what it moves, and keeps new
    /// ones away until the transaction ends. The caller must hold no lease.
    ///
    /// # Errors
    /// As [`rename`](Self::rename), and [`PathError`] for a parent without a path. [`Error::Cycle`]
    /// also if what has the new name is above what has the old one.
    pub fn begin_rename(
        &self,
        parent: Inode,
        name: &Name,
        new_parent: Inode,
        new_name: &Name,
        mode: RenameMode,
    ) -> Result<Transaction<'_, D>, TransactionError> {
        transaction::begin_rename(self, (parent, name), (new_parent, new_name), mode)
    }

    /// Prepares the removal of a name, of a directory or of anything else, in the same way.
    ///
    /// # Errors
    /// As [`unlink`](Self::unlink), and [`PathError`] for a parent without a path.
    pub fn begin_unlink(
        &self,
        parent: Inode,
        name: &Name,
    ) -> Result<Transaction<'_, D>, TransactionError> {
        transaction::begin_unlink(self, parent, name)
    }

    // ---- upkeep ----

    /// Reclaims forgotten nodes, as far as no request needs them; answers how many. Never blocks.
    /// Requests do this by themselves when many wait; a table that falls idle keeps the last few
    /// until this is called.
    pub fn reclaim(&self) -> usize {
        let reclaimed = reclaim::advance(&self.shared);
        // What was reclaimed is freed when the epochs move on, which they do only if somebody pins.
        epoch::pin().flush();
        if reclaimed > 0 && !self.shared.domain.pressing() {
            self.shared.names.shrink();
            self.shared.identities.shrink();
        }
        reclaimed
    }

    /// How many nodes there are, the root included: [`Stats::nodes`] alone, and cheap enough to be
    /// asked often.
    pub fn nodes(&self) -> usize {
        self.shared.table.nodes() + 1
    }

    /// How many forgotten nodes wait to be reclaimed. Cheap, unlike [`stats`](Self::stats).
    pub fn waiting(&self) -> usize {
        self.shared.retired.waiting()
    }

    /// Lets go of nodes that the kernel has forgotten and that are kept for their several names;
    /// answers how many. They are reclaimed later.
    pub fn prune(&self) -> usize {
        reclaim::prune(&self.shared)
    }

    /// What the table holds. Takes every shard's lock in turn: for diagnosis, not for each request.
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        let mut names = 0;
        let mut links = 0;
        shared.names.for_each(|link| {
            links += 1;
            names += link.bytes();
        });
        let path_cache_bytes = shared.cached.load(Ordering::Relaxed);
        Stats {
            nodes: shared.table.nodes() + 1,
            links,
            retired: shared.retired.waiting(),
            pins: usize::try_from(shared.domain.inside()).unwrap_or(usize::MAX),
            leases: shared.domain.published(),
            bytes: names
                + path_cache_bytes
                + shared.table.bytes()
                + shared.names.bytes()
                + shared.identities.bytes()
                + shared.retired.bytes(),
            path_cache_bytes,
        }
    }

    /// Checks every invariant of the table, in both directions. Nothing may change meanwhile.
    ///
    /// # Errors
    /// What is wrong. For tests.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), String> {
        crate::validate::validate(&self.shared)
    }
}
