//! [`KernelRequest`]: the words of an arbitrary history of requests.
//!
//! A request says *which* of what there is, not what that is called, so that most of a random
//! history means something; and some of the numbers mean what is not there: ids that were
//! forgotten, ids and handles that nobody ever gave out, names that are none.

use arbitrary::{Arbitrary, Unstructured};

/// An inode: most values are one that the kernel holds.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePick(pub(crate) u8);

/// An open file or directory: most values are one that is open.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandlePick(pub(crate) u8);

/// A name.
#[derive(Arbitrary, Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamePick {
    /// One of a few, so that names meet.
    Usual(u8),
    /// One that the kernel has in its cache, with its directory.
    Known(u8),
    /// Any bytes.
    Bytes(Vec<u8>),
}

/// A name in a directory.
#[derive(Arbitrary, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) parent: NodePick,
    pub(crate) name: NamePick,
}

/// How many lookups are forgotten.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountPick {
    All,
    One,
    Number(u64),
}

/// Where in a file or listing.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffsetPick {
    Start,
    Near(u8),
    /// So far off the end of everything.
    Far(u8),
}

/// What goes on behind the mount.
#[derive(Arbitrary, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    File(Place),
    Directory(Place),
    /// A hard link, or a directory that is seen twice.
    Again(NodePick, Place),
    Remove(NodePick),
    Move(NodePick, Place),
}

/// How the handler fails.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    NoEntry,
    Stale,
    NotImplemented,
    Number(i32),
    Panic,
}

/// What the kernel may send, and what may happen between two requests.
#[derive(Arbitrary, Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelRequest {
    Lookup(Place),
    Forget(NodePick, CountPick),
    ForgetBatch(Vec<(NodePick, CountPick)>),
    GetAttr(NodePick, Option<HandlePick>),
    SetAttr(NodePick, Option<HandlePick>, Option<OffsetPick>, Option<u16>),
    ReadLink(NodePick),
    MkNod(Place),
    MkDir(Place),
    SymLink(Place, Vec<u8>),
    Create(Place),
    Link(NodePick, Place),
    Unlink(Place),
    RmDir(Place),
    Rename(Place, Place, u8),
    Open(NodePick),
    Read(NodePick, HandlePick, OffsetPick, u8),
    Write(NodePick, HandlePick, OffsetPick, Vec<u8>),
    Release(NodePick, HandlePick),
    OpenDir(NodePick),
    ReadDir(NodePick, HandlePick, OffsetPick, u8),
    ReadDirPlus(NodePick, HandlePick, OffsetPick, u16),
    ReleaseDir(NodePick, HandlePick),
    /// The requests that concern neither names nor counts, by number.
    Other(u8, NodePick, HandlePick, u64),
    /// A request comes in that is answered only later, or one of those is answered.
    BeginLong,
    EndLong(u8),
    /// The handler fails when it is next called, if that is in the next request.
    HandlerFails(Failure),
    Behind(Behind),
    Reclaim,
}

/// A history, with what the handler is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct History {
    /// Do inode numbers tell files apart?
    pub(crate) identities: bool,
    /// Does the handler list with attributes?
    pub(crate) plus: bool,
    /// Is a directory that turns up twice really there twice?
    pub(crate) seen_twice: bool,
    pub(crate) requests: Vec<KernelRequest>,
}

/// Where the bytes end the history does. (A `Vec` would ask after each element whether another one
/// follows, and be short.)
impl<'a> Arbitrary<'a> for History {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let [identities, plus, seen_twice] = <[bool; 3]>::arbitrary(bytes)?;
        let mut requests = Vec::new();
        while !bytes.is_empty() {
            requests.push(KernelRequest::arbitrary(bytes)?);
        }
        Ok(History { identities, plus, seen_twice, requests })
    }
}
