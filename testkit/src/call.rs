//! [`Call`] and [`Answer`]: one call of a verb, and what came back, from the resolver or from the
//! oracle.

use crate::oracle::{Begun, Change, NewEntry, Oracle, Place};
use crate::{Data, Identity, OwnedName, Resolver};
use pinpath::{Counting, Error, Inode, Kind, PathError, RenameMode, TransactionError};
use std::ffi::OsString;
use std::path::PathBuf;

/// One entry that a lookup or a listing tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OwnedName,
    /// May it have children?
    pub kind: Kind,
    /// The identity in its data.
    pub identity: Option<Identity>,
}

/// One call, with every argument as the resolver takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is the resolver's verb of that name, the fields its arguments"
)]
pub enum Call {
    Lookup { parent: Inode, entry: Entry },
    Peek(Place),
    List { parent: Inode, entries: Vec<Entry>, counting: Counting },
    Forget(Inode, u64),
    ForgetBatch(Vec<(Inode, u64)>),
    Link(Inode, Place),
    Unlink(Place),
    Rename(Place, Place),
    Exchange(Place, Place),
    Transact { change: Change, commit: bool },
    LookupCount(Inode),
    Path(Inode),
    Paths(Inode),
    PartsPaths(Inode),
    Lease(Inode),
}

/// What a call answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after what is answered")]
pub enum Answer {
    Inode(Result<Inode, Error>),
    MaybeInode(Result<Option<Inode>, Error>),
    List(Result<Vec<Result<Inode, Error>>, Error>),
    Done(Result<(), Error>),
    /// What the transaction told when it had begun, and, if it was committed, how that went.
    Transacted(Result<(Begun, Option<Result<(), Error>>), TransactionError>),
    Count(Option<u64>),
    Path(Result<PathBuf, PathError>),
    Paths(Vec<PathBuf>),
    PartsPaths(Vec<Vec<OsString>>),
}

/// The number of a node that the resolver did not make. No resolver hands it out.
pub const NO_INODE: Inode = Inode::from_raw(0);

impl Call {
    /// Makes the call on the resolver.
    pub fn on_resolver(&self, resolver: &Resolver) -> Answer {
        match self {
            Call::Lookup { parent, entry } => {
                let Entry { name, kind, identity } = entry;
                Answer::Inode(resolver.lookup(*parent, name.get(), *kind, Data(*identity)))
            }
            Call::Peek(place) => Answer::MaybeInode(resolver.peek(place.parent, place.name.get())),
            Call::List { parent, entries, counting } => {
                let entries = entries
                    .iter()
                    .map(|entry| (entry.name.get(), entry.kind, Data(entry.identity)));
                Answer::List(resolver.list(*parent, entries, *counting))
            }
            Call::Forget(inode, count) => {
                resolver.forget(*inode, *count);
                Answer::Done(Ok(()))
            }
            Call::ForgetBatch(batch) => {
                resolver.forget_batch(batch.iter().copied());
                Answer::Done(Ok(()))
            }
            Call::Link(inode, to) => Answer::Done(resolver.link(*inode, to.parent, to.name.get())),
            Call::Unlink(place) => {
                Answer::MaybeInode(resolver.unlink(place.parent, place.name.get()))
            }
            Call::Rename(from, to) => Answer::Done(resolver.rename(
                from.parent,
                from.name.get(),
                to.parent,
                to.name.get(),
            )),
            Call::Exchange(from, to) => Answer::Done(resolver.exchange(
                from.parent,
                from.name.get(),
                to.parent,
                to.name.get(),
            )),
            Call::Transact { change, commit } => {
                Answer::Transacted(transact(resolver, change, *commit))
            }
            Call::LookupCount(inode) => Answer::Count(resolver.lookup_count(*inode)),
            Call::Path(inode) => Answer::Path(resolver.path(*inode)),
            Call::Paths(inode) => Answer::Paths(resolver.paths(*inode)),
            Call::PartsPaths(inode) => Answer::PartsPaths(resolver.parts_paths(*inode)),
            Call::Lease(inode) => {
                Answer::Path(resolver.lease(*inode).and_then(|lease| lease.path()))
            }
        }
    }

    /// Makes the call on the oracle. A node that has to be made gets the number that `seen`, the
    /// resolver's answer to the same call, has in that position.
    pub fn on_oracle(&self, oracle: &mut Oracle, seen: &Answer) -> Answer {
        match self {
            Call::Lookup { parent, entry } => {
                let fresh = match seen {
                    Answer::Inode(Ok(inode)) => *inode,
                    _ => NO_INODE,
                };
                Answer::Inode(oracle.lookup(*parent, &entry.numbered(fresh)))
            }
            Call::Peek(place) => Answer::MaybeInode(oracle.peek(place)),
            Call::List { parent, entries, counting } => {
                let fresh = |index: usize| match seen {
                    Answer::List(Ok(list)) => {
                        list.get(index).copied().and_then(Result::ok).unwrap_or(NO_INODE)
                    }
                    _ => NO_INODE,
                };
                let entries: Vec<NewEntry> = entries
                    .iter()
                    .enumerate()
                    .map(|(index, entry)| entry.numbered(fresh(index)))
                    .collect();
                Answer::List(oracle.list(*parent, &entries, *counting))
            }
            Call::Forget(inode, count) => {
                oracle.forget(*inode, *count);
                Answer::Done(Ok(()))
            }
            Call::ForgetBatch(batch) => {
                for &(inode, count) in batch {
                    oracle.forget(inode, count);
                }
                Answer::Done(Ok(()))
            }
            Call::Link(inode, to) => Answer::Done(oracle.link(*inode, to)),
            Call::Unlink(place) => Answer::MaybeInode(oracle.unlink(place)),
            Call::Rename(from, to) => Answer::Done(oracle.rename(from, to)),
            Call::Exchange(from, to) => Answer::Done(oracle.exchange(from, to)),
            Call::Transact { change, commit } => {
                let begun = oracle.begin(change);
                Answer::Transacted(begun.map(|begun| (begun, commit.then(|| oracle.apply(change)))))
            }
            Call::LookupCount(inode) => Answer::Count(oracle.lookup_count(*inode)),
            Call::Path(inode) | Call::Lease(inode) => Answer::Path(oracle.path(*inode)),
            Call::Paths(inode) => Answer::Paths(oracle.paths(*inode)),
            Call::PartsPaths(inode) => Answer::PartsPaths(oracle.parts_paths(*inode)),
        }
    }
}

impl Call {
    /// Does it change nothing?
    pub fn only_reads(&self) -> bool {
        match self {
            Call::Lookup { .. } | Call::List { .. } | Call::Forget(..) | Call::ForgetBatch(_) => {
                false
            }
            Call::Link(..) | Call::Unlink(_) | Call::Rename(..) | Call::Exchange(..) => false,
            Call::Transact { commit, .. } => !commit,
            Call::Peek(_) | Call::LookupCount(_) | Call::Path(_) => true,
            Call::Paths(_) | Call::PartsPaths(_) | Call::Lease(_) => true,
        }
    }
}

impl Entry {
    fn numbered(&self, fresh: Inode) -> NewEntry {
        let Entry { name, kind, identity } = self.clone();
        NewEntry { name, kind, identity, fresh }
    }
}

impl Answer {
    /// The ids that this answer speaks of.
    pub fn inodes(&self) -> Vec<Inode> {
        match self {
            Answer::Inode(Ok(inode)) | Answer::MaybeInode(Ok(Some(inode))) => vec![*inode],
            Answer::List(Ok(list)) => list.iter().copied().filter_map(Result::ok).collect(),
            Answer::Transacted(Ok((begun, _))) => {
                begun.source.into_iter().chain(begun.target).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn transact(
    resolver: &Resolver,
    change: &Change,
    commit: bool,
) -> Result<(Begun, Option<Result<(), Error>>), TransactionError> {
    let transaction = match change {
        Change::Rename(from, to, mode) => {
            resolver.begin_rename(from.parent, from.name.get(), to.parent, to.name.get(), *mode)?
        }
        Change::Unlink(place) => resolver.begin_unlink(place.parent, place.name.get())?,
    };
    let begun = Begun {
        source: transaction.source(),
        target: transaction.target(),
        parent: transaction.parent().path(),
        new_parent: transaction.new_parent().path(),
    };
    // Dropped without a commit, it leaves everything as it was.
    let committed = commit.then(|| transaction.commit());
    Ok((begun, committed))
}

/// A way to write [`Change::Rename`] down in tests.
pub fn rename_mode(exchange: bool) -> RenameMode {
    if exchange { RenameMode::Exchange } else { RenameMode::Replace }
}
