//! A backend for libraries with easy_fuser's resolver contract: a [`DropIn`] answers what
//! easy_fuser 0.7.1's own resolvers of components, paths and `MappedInode`s answer.
//!
//! The contract tells less than [`Resolver`]'s verbs want to know: a name comes without its kind
//! and without an identity, and a rename is told when the handler has done it. So all nodes are
//! [`Kind::Unknown`], hard links are known only if they were made through [`DropIn::link`], and no
//! transaction keeps paths true; [`DropIn::resolver`] gives the whole table to who can say more.
//!
//! What the table doesn't have by itself is built here, out of data beside the nodes:
//!
//! * A node that a listing made known without counting it keeps its id until the kernel forgets the
//!   directory ([`DropIn::add_children`]).
//! * A node without a name can still tell the last path it had ([`Flavour::REMEMBERS`]).
//!
//! `docs/easy_fuser.md` in the repository lists where the answers differ from easy_fuser's own.

mod beside;
mod flavour;
mod mapped;
mod upwards;

use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

pub use beside::Beside;
pub use flavour::{Components, Flavour, Mapped, Paths};
pub use mapped::MappedInode;

use crate::{Error, Inode, Kind, Name, NameError, PathError, RequestPin, Resolver};

/// For users who identify files by lists of names, from the file up.
pub type ComponentsResolver = DropIn<Components>;
/// For users who identify files by a path.
pub type PathResolver = DropIn<Paths>;
/// For users who identify files by an inode that can tell its paths.
pub type MappedResolver = DropIn<Mapped>;

/// In the place of an inode: an entry of READDIRPLUS that the kernel shows as a name alone.
pub const NO_NODE: Inode = Inode::from_raw(0);

/// In the place of an inode: an entry of READDIR whose inode number isn't known (the kernel's and
/// libfuse's `FUSE_UNKNOWN_INO`).
pub const UNKNOWN_INODE: Inode = Inode::from_raw(0xffff_ffff);

/// Why a name was not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// It is no name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The table refuses it.
    #[error(transparent)]
    Table(#[from] Error),
}

/// The table behind easy_fuser's contract. Cloning it makes another handle of the same table.
///
/// ```
/// use pinpath::Inode;
/// use pinpath::drop_in::PathResolver;
/// use std::ffi::OsStr;
///
/// let table = PathResolver::new();
/// let request = table.begin_request();
/// let file = table.lookup(Inode::ROOT, OsStr::new("a.txt"), true).unwrap();
/// assert_eq!(file.raw(), 2);
/// assert_eq!(table.resolve(file).unwrap().as_os_str(), "a.txt");
/// table.unlink(Inode::ROOT, OsStr::new("a.txt")).unwrap();
/// assert_eq!(table.resolve(file).unwrap().as_os_str(), "a.txt"); // what it was called last
/// drop(request);
/// ```
#[derive(Debug)]
pub struct DropIn<F: Flavour> {
    resolver: Resolver<Beside>,
    flavour: PhantomData<fn() -> F>,
}

impl<F: Flavour> Clone for DropIn<F> {
    fn clone(&self) -> Self {
        DropIn { resolver: self.resolver.clone(), flavour: PhantomData }
    }
}

impl<F: Flavour> Default for DropIn<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Flavour> DropIn<F> {
    /// A table with nothing in it but the root. Ids are given out from 2 on.
    pub fn new() -> Self {
        DropIn { resolver: Resolver::new(Beside::default()), flavour: PhantomData }
    }

    /// The table itself, for what the contract has no verb for.
    pub fn resolver(&self) -> &Resolver<Beside> {
        &self.resolver
    }

    /// Begins a request. What the kernel knows now is kept until it is dropped, on any thread.
    #[inline]
    pub fn begin_request(&self) -> RequestPin {
        self.resolver.pin()
    }

    /// By what a handler of this flavour knows the file.
    ///
    /// # Errors
    /// [`PathError::Stale`] for an id that is not known. [`PathError::Unlinked`] if neither the
    /// node nor those above it remember a path.
    pub fn resolve(&self, inode: Inode) -> Result<F::Id, PathError> {
        F::resolve(self, inode)
    }

    /// The node of a name, known or new. With `counted` the kernel is told of it in a reply that
    /// carries an entry; without, it keeps its id until the parent is forgotten.
    ///
    /// `.` and `..` are the directory itself and the one above it.
    ///
    /// # Errors
    /// [`EntryError`] for what can't be entered.
    pub fn lookup(&self, parent: Inode, child: &OsStr, counted: bool) -> Result<Inode, EntryError> {
        let name = match Name::from_os_str(child) {
            Ok(name) => name,
            Err(NameError::Dot) => return self.lookup_dots(parent, child, counted),
            Err(error) => return Err(error.into()),
        };
        if counted {
            return Ok(self.see_counted(parent, name)?);
        }
        let (inode, held) = self.see_uncounted(parent, name)?;
        beside::keep_until_forgotten(&self.resolver, parent, held);
        Ok(inode)
    }

    /// The nodes of the entries of a listing, in their order. READDIRPLUS counts its entries, but
    /// not `.` and `..`, as the kernel doesn't either.
    ///
    /// An entry that can't be entered gets [`NO_NODE`] in a counted listing, and
    /// [`UNKNOWN_INODE`] in another.
    pub fn add_children<N: AsRef<OsStr>>(
        &self,
        parent: Inode,
        children: impl IntoIterator<Item = N>,
        counted: bool,
    ) -> Vec<(N, Inode)> {
        let nothing = if counted { NO_NODE } else { UNKNOWN_INODE };
        let mut held = Vec::new();
        let mut add = |child: &OsStr| match Name::from_os_str(child) {
            Ok(name) if counted => Ok(self.see_counted(parent, name)?),
            Ok(name) => self.see_uncounted(parent, name).map(|(inode, hold)| {
                held.extend(hold);
                inode
            }),
            Err(NameError::Dot) => Ok(self.dots(parent, child)),
            Err(error) => Err(error.into()),
        };
        let added = children.into_iter().map(|child| {
            let inode = add(child.as_ref()).unwrap_or(nothing);
            (child, inode)
        });
        let added = added.collect();
        beside::keep_until_forgotten(&self.resolver, parent, held);
        added
    }

    /// Takes back lookups. What nothing refers to any more is reclaimed when the requests that were
    /// there have ended; a file with several known names stays, and so do those names.
    pub fn forget(&self, inode: Inode, lookups: u64) {
        self.resolver.forget(inode, lookups);
        if inode != Inode::ROOT && self.resolver.lookup_count(inode) == Some(0) {
            beside::let_go_of_children(&self.resolver, inode);
        }
    }

    /// Lets go of what listings made known and the kernel never asked for, unless `keep` says no,
    /// and reclaims what can be.
    pub fn prune(&self, keep: impl Fn(F::Id) -> bool) {
        let keep = |inode| self.resolve(inode).is_ok_and(&keep);
        beside::let_go_of_all(&self.resolver, keep);
        self.resolver.reclaim();
    }

    /// The handler has renamed something. What had the new name has lost it. A name that isn't
    /// known is no error: what has the other one loses it.
    ///
    /// # Errors
    /// As [`Resolver::rename`].
    pub fn rename(
        &self,
        parent: Inode,
        name: &OsStr,
        new_parent: Inode,
        new_name: &OsStr,
    ) -> Result<(), EntryError> {
        let (name, new_name) = (Name::from_os_str(name)?, Name::from_os_str(new_name)?);
        let target = self.remember(new_parent, new_name);
        self.resolver.rename(parent, name, new_parent, new_name)?;
        self.let_go_if_lost(target, new_parent, new_name);
        Ok(())
    }

    /// The handler has exchanged two names.
    ///
    /// # Errors
    /// As [`Resolver::exchange`].
    pub fn exchange(
        &self,
        parent: Inode,
        name: &OsStr,
        new_parent: Inode,
        new_name: &OsStr,
    ) -> Result<(), EntryError> {
        let (name, new_name) = (Name::from_os_str(name)?, Name::from_os_str(new_name)?);
        Ok(self.resolver.exchange(parent, name, new_parent, new_name)?)
    }

    /// The handler has given a file one more name. True if the name is the file's from now on, and
    /// counted; false if this flavour doesn't know hard links ([`Flavour::LINKS`]) or the table
    /// refuses: the name is to be looked up as another file then.
    pub fn link(&self, inode: Inode, parent: Inode, name: &OsStr) -> bool {
        let Ok(name) = Name::from_os_str(name) else { return false };
        if !F::LINKS {
            return false;
        }
        let target = self.remember(parent, name);
        let linked = self.resolver.link(inode, parent, name).is_ok();
        if linked {
            // A node that only a listing knew is the kernel's now.
            beside::let_go(&self.resolver, inode);
            self.let_go_if_lost(target, parent, name);
        }
        linked
    }

    /// The handler has removed a name, of a file or of a directory.
    ///
    /// # Errors
    /// As [`Resolver::unlink`].
    pub fn unlink(&self, parent: Inode, name: &OsStr) -> Result<(), EntryError> {
        let name = Name::from_os_str(name)?;
        self.remember(parent, name);
        if let Some(inode) = self.resolver.unlink(parent, name)? {
            beside::let_go_if_nameless(&self.resolver, inode);
        }
        Ok(())
    }

    fn see_counted(&self, parent: Inode, name: &Name) -> Result<Inode, Error> {
        let inode = self.resolver.lookup(parent, name, Kind::Unknown, Beside::default())?;
        // It is counted as the kernel's now, and needs no other count.
        beside::let_go(&self.resolver, inode);
        Ok(inode)
    }

    /// The node, and the same once more if it is held now until the parent is forgotten.
    fn see_uncounted(
        &self,
        parent: Inode,
        name: &Name,
    ) -> Result<(Inode, Option<Inode>), EntryError> {
        let inode = self.resolver.lookup(parent, name, Kind::Unknown, Beside::default())?;
        let held = beside::hold(&self.resolver, inode);
        Ok((inode, held.then_some(inode)))
    }

    fn dots(&self, directory: Inode, name: &OsStr) -> Inode {
        if name == "." { directory } else { upwards::parent(&self.resolver, directory) }
    }

    /// LOOKUP of `.` or `..`, which the kernel sends for a filesystem that NFS exports.
    fn lookup_dots(
        &self,
        directory: Inode,
        name: &OsStr,
        counted: bool,
    ) -> Result<Inode, EntryError> {
        let inode = self.dots(directory, name);
        match upwards::first_name(&self.resolver, inode) {
            // Counted by way of its name.
            Some((parent, own)) if counted => self.lookup(parent, &own, true),
            None if counted && inode != Inode::ROOT => Err(Error::Stale(inode).into()),
            _ => Ok(inode),
        }
    }

    /// Before a name is taken from what has it: lets that node remember the path.
    fn remember(&self, parent: Inode, name: &Name) -> Option<Inode> {
        let inode = self.resolver.peek(parent, name).ok().flatten()?;
        if F::REMEMBERS {
            if let Ok(path) = self.resolver.path(inode).or_else(|_| self.last_path(inode)) {
                self.resolver.with_data(inode, |beside| beside.remember(path));
            }
        }
        Some(inode)
    }

    /// What had a name before a change may have none now, and then no listing's either.
    fn let_go_if_lost(&self, before: Option<Inode>, parent: Inode, name: &Name) {
        let Some(before) = before else { return };
        if self.resolver.peek(parent, name).ok().flatten() != Some(before) {
            beside::let_go_if_nameless(&self.resolver, before);
        }
    }

    /// The last path of a node that has no name, or below one that has none.
    fn last_path(&self, inode: Inode) -> Result<std::path::PathBuf, PathError> {
        let mut names: Vec<OsString> = Vec::new();
        let mut at = inode;
        let mut path = loop {
            if let Some(path) = self.resolver.with_data(at, Beside::last_path).flatten() {
                let nameless = upwards::first_name(&self.resolver, at).is_none();
                if nameless {
                    break path;
                }
            }
            match upwards::first_name(&self.resolver, at) {
                Some((parent, name)) if names.len() < upwards::DEEPEST => {
                    names.push(name);
                    at = parent;
                }
                _ if at == Inode::ROOT => break std::path::PathBuf::new(),
                _ => return Err(PathError::Unlinked(inode)),
            }
        };
        path.extend(names.iter().rev());
        Ok(path)
    }
}
