//! Stands in the place of easy_fuser's `src/inode_mapping/resolver.rs` when `cargo xtask drop-in`
//! runs: the same traits and types over `pinpath::drop_in`. The tests of the replaced file follow
//! at the end, joined when the command runs.
//!
//! Also here, because it holds the table: `MappedInode`, which `types/file_id_type.rs` names.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fmt,
    ops::Deref,
    path::PathBuf,
    sync::Arc,
};

use pinpath::drop_in::{self, Beside, Components, DropIn, Flavour, Mapped, Paths};
use pinpath::{Anchor, AnchoredRequest};

use crate::types::*;

pub trait InodeResolvable {
    type Resolver: FileIdResolver<ResolvedType = Self> + Lend;

    fn create_resolver() -> Self::Resolver;
}

impl InodeResolvable for Inode {
    type Resolver = InodeResolver;

    fn create_resolver() -> InodeResolver {
        InodeResolver::new()
    }
}

impl InodeResolvable for PathBuf {
    type Resolver = PathResolver;

    fn create_resolver() -> PathResolver {
        Backed::new()
    }
}

impl InodeResolvable for Vec<OsString> {
    type Resolver = ComponentsResolver;

    fn create_resolver() -> ComponentsResolver {
        Backed::new()
    }
}

impl InodeResolvable for MappedInode {
    type Resolver = MappedResolver;

    fn create_resolver() -> MappedResolver {
        Backed::new()
    }
}

/// What the driver calls. All of it may be called from any thread.
pub trait FileIdResolver: Send + Sync + 'static {
    type ResolvedType: FileIdType;

    fn new() -> Self;
    fn resolve_id(&self, ino: Inode) -> Self::ResolvedType;
    fn lookup(
        &self,
        parent: Inode,
        child: &OsStr,
        id: <Self::ResolvedType as FileIdType>::_Id,
        increment: bool,
    ) -> Inode;
    fn add_children(
        &self,
        parent: Inode,
        children: Vec<(OsString, <Self::ResolvedType as FileIdType>::_Id)>,
        increment: bool,
    ) -> Vec<(OsString, Inode)>;
    fn forget(&self, ino: Inode, nlookup: u64);
    fn prune(&self, keep: &HashSet<Self::ResolvedType>);
    fn rename(&self, parent: Inode, name: &OsStr, newparent: Inode, newname: &OsStr);
    fn exchange(&self, _parent: Inode, _name: &OsStr, _newparent: Inode, _newname: &OsStr) {}
    /// True if the name is one more of `ino`'s from now on.
    fn link(&self, _ino: Inode, _parent: Inode, _name: &OsStr) -> bool {
        false
    }
    fn unlink(&self, _parent: Inode, _name: &OsStr) {}
}

/// A resolver that requests can keep.
pub trait Lend: FileIdResolver {
    /// What a request has of it, on whichever thread, until it has been answered.
    type Lent: Deref<Target: FileIdResolver<ResolvedType = Self::ResolvedType>>
        + Send
        + Sync
        + 'static;

    fn lend(&self) -> Self::Lent;
}

/// The resolver as one request sees it: what the kernel knows now, and the table, stay until this is
/// dropped. It is lent, not cloned: an `Arc` would be one more count that all requests share.
pub(crate) struct RequestResolver<R: Lend>(R::Lent);

impl<R: Lend> RequestResolver<R> {
    #[inline]
    pub(crate) fn new(resolver: &Arc<R>) -> Self {
        RequestResolver(resolver.lend())
    }
}

impl<R: Lend> Deref for RequestResolver<R> {
    type Target = <R::Lent as Deref>::Target;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// For handlers that number their files themselves: there is nothing to map.
pub struct InodeResolver;

impl FileIdResolver for InodeResolver {
    type ResolvedType = Inode;

    fn new() -> Self {
        InodeResolver
    }

    fn resolve_id(&self, ino: Inode) -> Inode {
        ino
    }

    fn lookup(&self, _parent: Inode, _child: &OsStr, id: Inode, _increment: bool) -> Inode {
        id
    }

    fn add_children(
        &self,
        _parent: Inode,
        children: Vec<(OsString, Inode)>,
        _increment: bool,
    ) -> Vec<(OsString, Inode)> {
        children
    }

    fn forget(&self, _ino: Inode, _nlookup: u64) {}

    fn prune(&self, _keep: &HashSet<Inode>) {}

    fn rename(&self, _parent: Inode, _name: &OsStr, _newparent: Inode, _newname: &OsStr) {}

    fn link(&self, _ino: Inode, _parent: Inode, _name: &OsStr) -> bool {
        true
    }
}

impl Lend for InodeResolver {
    type Lent = &'static InodeResolver;

    fn lend(&self) -> &'static InodeResolver {
        // There is nothing to keep.
        &InodeResolver
    }
}

pub type ComponentsResolver = Backed<Components>;
pub type PathResolver = Backed<Paths>;
pub type MappedResolver = Backed<Mapped>;

/// A flavour of pinpath's, and the id type that goes with it here.
pub trait IdOf: Flavour {
    type FileId: FileIdType<_Id = ()>;

    fn file_id(id: Self::Id) -> Self::FileId;
}

impl IdOf for Components {
    type FileId = Vec<OsString>;

    fn file_id(id: Vec<OsString>) -> Vec<OsString> {
        id
    }
}

impl IdOf for Paths {
    type FileId = PathBuf;

    fn file_id(id: PathBuf) -> PathBuf {
        id
    }
}

impl IdOf for Mapped {
    type FileId = MappedInode;

    fn file_id(id: drop_in::MappedInode) -> MappedInode {
        MappedInode { inode: theirs(id.inode()), known: id }
    }
}

/// A resolver over pinpath's table, owned by the mount. The field is called as it is because tests
/// look through it.
pub struct Backed<F: IdOf> {
    resolver: Anchor<Table<F>>,
}

pub struct Table<F: IdOf> {
    mapper: View<F>,
}

struct View<F: IdOf>(DropIn<F>);

impl<F: IdOf> Table<F> {
    fn table(&self) -> &DropIn<F> {
        &self.mapper.0
    }
}

impl<F: IdOf> AsRef<pinpath::Resolver<Beside>> for Table<F> {
    fn as_ref(&self) -> &pinpath::Resolver<Beside> {
        self.table().resolver()
    }
}

impl<F: IdOf> Lend for Backed<F> {
    type Lent = AnchoredRequest<Table<F>>;

    #[inline]
    fn lend(&self) -> AnchoredRequest<Table<F>> {
        self.resolver.begin_request()
    }
}

/// Methods that the table has too.
macro_rules! handed_on {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $answer:ty)?;)*) => {
        $(#[inline]
        fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
            self.resolver.$name($($argument),*)
        })*
    };
}

impl<F: IdOf> FileIdResolver for Backed<F> {
    type ResolvedType = F::FileId;

    fn new() -> Self {
        Backed { resolver: Anchor::new(Table::new()) }
    }

    handed_on! {
        fn resolve_id(&self, ino: Inode) -> F::FileId;
        fn lookup(&self, parent: Inode, child: &OsStr, id: (), increment: bool) -> Inode;
        fn add_children(&self, parent: Inode, children: Vec<(OsString, ())>, increment: bool)
            -> Vec<(OsString, Inode)>;
        fn forget(&self, ino: Inode, nlookup: u64);
        fn prune(&self, keep: &HashSet<F::FileId>);
        fn rename(&self, parent: Inode, name: &OsStr, newparent: Inode, newname: &OsStr);
        fn exchange(&self, parent: Inode, name: &OsStr, newparent: Inode, newname: &OsStr);
        fn link(&self, ino: Inode, parent: Inode, name: &OsStr) -> bool;
        fn unlink(&self, parent: Inode, name: &OsStr);
    }
}

fn ours(ino: Inode) -> pinpath::Inode {
    pinpath::Inode::from_raw(ino.0)
}

fn theirs(inode: pinpath::Inode) -> Inode {
    fuser::INodeNo(inode.raw())
}

impl<F: IdOf> FileIdResolver for Table<F> {
    type ResolvedType = F::FileId;

    fn new() -> Self {
        Table { mapper: View(DropIn::new()) }
    }

    fn resolve_id(&self, ino: Inode) -> F::FileId {
        // The contract has no answer for an id that is not known.
        F::file_id(self.table().resolve(ours(ino)).expect("Failed to resolve inode"))
    }

    fn lookup(&self, parent: Inode, child: &OsStr, _id: (), increment: bool) -> Inode {
        let inode = self.table().lookup(ours(parent), child, increment).unwrap_or_else(|error| {
            // To the kernel this inode means that there is nothing.
            log::warn!("{child:?} in {parent:?}: {error}");
            drop_in::NO_NODE
        });
        theirs(inode)
    }

    fn add_children(
        &self,
        parent: Inode,
        children: Vec<(OsString, ())>,
        increment: bool,
    ) -> Vec<(OsString, Inode)> {
        let names = children.into_iter().map(|(name, ())| name);
        let added = self.table().add_children(ours(parent), names, increment);
        added.into_iter().map(|(name, inode)| (name, theirs(inode))).collect()
    }

    fn forget(&self, ino: Inode, nlookup: u64) {
        self.table().forget(ours(ino), nlookup);
        // Reclamation is lazy. The tests look right after a forget for what is gone, so there each
        // forget asks for it; the benchmarks, built for release, run as users do.
        #[cfg(all(test, debug_assertions))]
        self.table().resolver().reclaim();
    }

    fn prune(&self, keep: &HashSet<F::FileId>) {
        self.table().prune(|id| keep.contains(&F::file_id(id)));
    }

    fn rename(&self, parent: Inode, name: &OsStr, newparent: Inode, newname: &OsStr) {
        let renamed = self.table().rename(ours(parent), name, ours(newparent), newname);
        warn_of(renamed, "rename", name, newname);
    }

    fn exchange(&self, parent: Inode, name: &OsStr, newparent: Inode, newname: &OsStr) {
        let exchanged = self.table().exchange(ours(parent), name, ours(newparent), newname);
        warn_of(exchanged, "exchange", name, newname);
    }

    fn link(&self, ino: Inode, parent: Inode, name: &OsStr) -> bool {
        self.table().link(ours(ino), ours(parent), name)
    }

    fn unlink(&self, parent: Inode, name: &OsStr) {
        warn_of(self.table().unlink(ours(parent), name), "unlink", name, name);
    }
}

/// The handler has done it already, and the contract has no way to say that the table can't follow.
fn warn_of(done: Result<(), drop_in::EntryError>, what: &str, name: &OsStr, new_name: &OsStr) {
    if let Err(error) = done {
        log::warn!("{what} of {name:?} and {new_name:?} not entered: {error}");
    }
}

/// An inode that can tell its paths, relative to the mount's root.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MappedInode {
    /// `types/file_id_type.rs` reads it.
    pub(crate) inode: Inode,
    known: drop_in::MappedInode,
}

impl MappedInode {
    pub fn inode(&self) -> Inode {
        self.inode
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.known.paths()
    }

    pub fn parts_paths(&self) -> Vec<Vec<OsString>> {
        self.known.parts_paths()
    }
}

impl fmt::Debug for MappedInode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known.fmt(f)
    }
}

/// What the joined tests ask of the replaced file's insides, answered out of pinpath's table, so
/// that they check what this backend keeps and lets go.
#[cfg(test)]
mod inside {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::AtomicU64;

    pub(super) struct Look<'a, F: IdOf>(&'a DropIn<F>);

    pub(super) struct Node {
        pub(super) inode: &'static Inode,
        pub(super) data: AtomicU64,
    }

    impl<F: IdOf> View<F> {
        /// What is there once all is reclaimed that may be.
        pub(super) fn read(&self) -> Result<Look<'_, F>, Infallible> {
            self.0.resolver().reclaim();
            Ok(Look(&self.0))
        }
    }

    impl<F: IdOf> Look<'_, F> {
        pub(super) fn get(&self, ino: &Inode) -> Option<Node> {
            let count = self.0.resolver().lookup_count(ours(*ino))?;
            Some(Node { inode: Box::leak(Box::new(*ino)), data: AtomicU64::new(count) })
        }

        pub(super) fn lookup(&self, parent: &Inode, name: &OsStr) -> Option<Node> {
            let name = pinpath::Name::from_os_str(name).ok()?;
            let inode = self.0.resolver().peek(ours(*parent), name).ok()??;
            self.get(&theirs(inode))
        }
    }
}

// For the joined tests, which begin with `use super::*`.
#[cfg(test)]
use std::sync::atomic::Ordering;
