//! [`Op`]: the vocabulary from which random tests make their sentences.
//!
//! An operation names nodes and places by small numbers, taken modulo what exists when it is its
//! turn ([`Known`]). So every sequence of operations means something, most of it valid, and stays
//! meaningful when a shrinker takes operations away.

use crate::call::{Call, Entry, rename_mode};
use crate::oracle::{Change, Oracle, Place};
use crate::{Identity, OwnedName};
use pinpath::{Counting, Inode, Kind};

/// The names. Few, so that they collide; one of them is no UTF-8.
pub const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"\xff"];

/// How many identities there are.
pub const IDENTITIES: u8 = 5;

/// Chooses a node. Mostly one that is known, sometimes one that no longer or never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct NodePick(pub u8);

/// Chooses a directory. Mostly one, sometimes any [`NodePick`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct DirectoryPick(pub u8);

/// Chooses one of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct NamePick(pub u8);

/// Chooses a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum PlacePick {
    /// One at which a node is known.
    Taken(u8),
    /// Any name in a directory.
    Any(DirectoryPick, NamePick),
}

/// Chooses what an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum KindPick {
    /// What the node at this place, or with this identity, is known to be; a directory if none is.
    Fitting,
    /// A directory.
    Directory,
    /// What has no children.
    Leaf,
    /// The lister did not say.
    Unknown,
}

/// Chooses the identity of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum IdentityPick {
    /// The filesystem gives none.
    None,
    /// The one that the node at this place is known to have, as an honest backend would say.
    Fitting,
    /// Any of the [`IDENTITIES`].
    Any(u8),
}

/// Chooses how much is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum CountPick {
    /// All that was counted.
    All,
    /// One.
    One,
    /// So many, perhaps too many.
    Some(u8),
    /// More than can have been counted.
    TooMany,
}

/// An operation of the vocabulary. Most are verbs of the resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[expect(missing_docs, reason = "each is a verb, the fields its arguments")]
pub enum Op {
    Lookup(PlacePick, KindPick, IdentityPick),
    Peek(PlacePick),
    List {
        parent: DirectoryPick,
        entries: Vec<(NamePick, KindPick, IdentityPick)>,
        counted: bool,
    },
    Forget(NodePick, CountPick),
    ForgetBatch(Vec<(NodePick, CountPick)>),
    Link(NodePick, PlacePick),
    Unlink(PlacePick),
    Rename(PlacePick, PlacePick),
    Exchange(PlacePick, PlacePick),
    TransactRename {
        from: PlacePick,
        to: PlacePick,
        exchange: bool,
        commit: bool,
    },
    TransactUnlink {
        at: PlacePick,
        commit: bool,
    },
    LookupCount(NodePick),
    Path(NodePick),
    Paths(NodePick),
    PartsPaths(NodePick),
    Lease(NodePick),
    /// Begins one more pin.
    Pin,
    /// Drops one of the pins.
    Unpin(u8),
    /// Reclaims what can be reclaimed.
    Reclaim,
}

/// What an operation can choose from.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Nodes, the root among them.
    pub nodes: Vec<Inode>,
    /// Those that may have children.
    pub directories: Vec<Inode>,
    /// Places at which a node is known.
    pub places: Vec<Place>,
    /// Ids of nodes that were reclaimed, and ids that never were.
    pub stale: Vec<Inode>,
}

impl Known {
    /// What the oracle knows, and nothing stale but two numbers that never were an id.
    pub fn of(oracle: &Oracle) -> Self {
        let nodes = oracle.nodes();
        Known {
            nodes: nodes.map(|(inode, _)| inode).collect(),
            directories: oracle
                .nodes()
                .filter(|(_, node)| node.kind != Kind::Leaf)
                .map(|(inode, _)| inode)
                .collect(),
            places: oracle.nodes().flat_map(|(_, node)| node.names.iter().cloned()).collect(),
            stale: vec![Inode::from_raw(0), Inode::from_raw(u64::MAX)],
        }
    }

    fn node(&self, NodePick(n): NodePick) -> Inode {
        match n {
            0..240 => self.nodes[usize::from(n) % self.nodes.len()],
            _ => self.stale[usize::from(n - 240) % self.stale.len()],
        }
    }

    fn directory(&self, DirectoryPick(n): DirectoryPick) -> Inode {
        match n {
            0..240 => self.directories[usize::from(n) % self.directories.len()],
            240..248 => self.nodes[usize::from(n - 240) % self.nodes.len()],
            _ => self.stale[usize::from(n - 248) % self.stale.len()],
        }
    }

    fn place(&self, pick: PlacePick) -> Place {
        match pick {
            PlacePick::Taken(n) if !self.places.is_empty() => {
                self.places[usize::from(n) % self.places.len()].clone()
            }
            PlacePick::Taken(n) => Place { parent: Inode::ROOT, name: NamePick(n).name() },
            PlacePick::Any(directory, name) => {
                Place { parent: self.directory(directory), name: name.name() }
            }
        }
    }
}

impl NamePick {
    fn name(self) -> OwnedName {
        let bytes = NAMES[usize::from(self.0) % NAMES.len()];
        OwnedName::new(pinpath::Name::new(bytes).expect("the alphabet is made of names"))
    }
}

impl Op {
    /// The call that this operation is, where `oracle` and `known` say what there is. `None` for
    /// those that are no verb: pins, and `Reclaim`.
    pub fn call(&self, oracle: &Oracle, known: &Known) -> Option<Call> {
        let node = |pick| known.node(pick);
        let place = |pick| known.place(pick);
        let forget = |(pick, count): (NodePick, CountPick)| {
            let inode = known.node(pick);
            (inode, count.of(oracle, inode))
        };
        Some(match *self {
            Op::Lookup(at, kind, identity) => {
                let place = place(at);
                let entry = entry(oracle, &place, kind, identity);
                Call::Lookup { parent: place.parent, entry }
            }
            Op::Peek(at) => Call::Peek(place(at)),
            Op::List { parent, ref entries, counted } => {
                let parent = known.directory(parent);
                let entry = |&(name, kind, identity): &(NamePick, KindPick, IdentityPick)| {
                    entry(oracle, &Place { parent, name: name.name() }, kind, identity)
                };
                let counting = if counted { Counting::Counted } else { Counting::Uncounted };
                Call::List { parent, entries: entries.iter().map(entry).collect(), counting }
            }
            Op::Forget(pick, count) => {
                let (inode, count) = forget((pick, count));
                Call::Forget(inode, count)
            }
            Op::ForgetBatch(ref batch) => {
                Call::ForgetBatch(batch.iter().copied().map(forget).collect())
            }
            Op::Link(pick, to) => Call::Link(node(pick), place(to)),
            Op::Unlink(at) => Call::Unlink(place(at)),
            Op::Rename(from, to) => Call::Rename(place(from), place(to)),
            Op::Exchange(from, to) => Call::Exchange(place(from), place(to)),
            Op::TransactRename { from, to, exchange, commit } => {
                let change = Change::Rename(place(from), place(to), rename_mode(exchange));
                Call::Transact { change, commit }
            }
            Op::TransactUnlink { at, commit } => {
                Call::Transact { change: Change::Unlink(place(at)), commit }
            }
            Op::LookupCount(pick) => Call::LookupCount(node(pick)),
            Op::Path(pick) => Call::Path(node(pick)),
            Op::Paths(pick) => Call::Paths(node(pick)),
            Op::PartsPaths(pick) => Call::PartsPaths(node(pick)),
            Op::Lease(pick) => Call::Lease(node(pick)),
            Op::Pin | Op::Unpin(_) | Op::Reclaim => return None,
        })
    }
}

fn entry(oracle: &Oracle, place: &Place, kind: KindPick, identity: IdentityPick) -> Entry {
    let there = oracle.at(place).and_then(|inode| oracle.node(inode));
    let identity: Option<Identity> = match identity {
        IdentityPick::None => None,
        IdentityPick::Fitting => there.and_then(|node| node.identity),
        IdentityPick::Any(n) => Some(n % IDENTITIES),
    };
    let same = identity.and_then(|identity| {
        oracle.nodes().map(|(_, node)| node).find(|node| node.identity == Some(identity))
    });
    let kind = match kind {
        KindPick::Fitting => same.or(there).map_or(Kind::Directory, |node| node.kind),
        KindPick::Directory => Kind::Directory,
        KindPick::Leaf => Kind::Leaf,
        KindPick::Unknown => Kind::Unknown,
    };
    Entry { name: place.name.clone(), kind, identity }
}

impl CountPick {
    fn of(self, oracle: &Oracle, inode: Inode) -> u64 {
        match self {
            CountPick::All => oracle.lookup_count(inode).unwrap_or(1),
            CountPick::One => 1,
            CountPick::Some(n) => u64::from(n % 4),
            CountPick::TooMany => u64::MAX,
        }
    }
}
