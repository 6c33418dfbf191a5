//! Proptest strategies for the vocabulary, weighted toward what is valid.

use crate::op::{
    CountPick, DirectoryPick, IdentityPick, KindPick, NamePick, NodePick, Op, PlacePick,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Operations, at most `most` of them.
pub fn operations(most: usize) -> impl Strategy<Value = Vec<Op>> {
    vec(operation(), 1..=most)
}

/// One operation.
pub fn operation() -> impl Strategy<Value = Op> {
    let listing = (directory(), vec((name(), kind(), identity()), 0..4), any::<bool>());
    let rename = (place(), place(), any::<bool>(), any::<bool>());
    prop_oneof![
        30 => (fresh_or_taken(), kind(), identity()).prop_map(|(at, k, i)| Op::Lookup(at, k, i)),
        2 => place().prop_map(Op::Peek),
        5 => listing.prop_map(|(parent, entries, counted)| Op::List { parent, entries, counted }),
        12 => (node(), count()).prop_map(|(node, count)| Op::Forget(node, count)),
        2 => vec((node(), count()), 0..4).prop_map(Op::ForgetBatch),
        10 => (node(), place()).prop_map(|(node, to)| Op::Link(node, to)),
        8 => place().prop_map(Op::Unlink),
        12 => (place(), place()).prop_map(|(from, to)| Op::Rename(from, to)),
        6 => (place(), place()).prop_map(|(from, to)| Op::Exchange(from, to)),
        6 => rename.prop_map(|(from, to, exchange, commit)| {
            Op::TransactRename { from, to, exchange, commit }
        }),
        3 => (place(), any::<bool>()).prop_map(|(at, commit)| Op::TransactUnlink { at, commit }),
        1 => node().prop_map(Op::LookupCount),
        4 => node().prop_map(Op::Path),
        2 => node().prop_map(Op::Paths),
        1 => node().prop_map(Op::PartsPaths),
        2 => node().prop_map(Op::Lease),
        2 => Just(Op::Pin),
        2 => any::<u8>().prop_map(Op::Unpin),
        1 => Just(Op::Reclaim),
    ]
}

/// Operations on few nodes, which are forgotten and found again while pins come and go.
pub fn operations_under_pins(most: usize) -> impl Strategy<Value = Vec<Op>> {
    let few = || {
        let anywhere = (0_u8..3, 0_u8..2);
        prop_oneof![
            3 => any::<u8>().prop_map(PlacePick::Taken),
            1 => anywhere.prop_map(|(d, n)| PlacePick::Any(DirectoryPick(d), NamePick(n))),
        ]
    };
    let listing = (directory(), vec((name(), kind(), identity()), 1..3), any::<bool>());
    let operation = prop_oneof![
        6 => (few(), kind(), identity()).prop_map(|(at, k, i)| Op::Lookup(at, k, i)),
        4 => few().prop_map(Op::Peek),
        2 => listing.prop_map(|(parent, entries, counted)| Op::List { parent, entries, counted }),
        8 => node().prop_map(|node| Op::Forget(node, CountPick::All)),
        1 => few().prop_map(Op::Unlink),
        1 => (few(), few()).prop_map(|(from, to)| Op::Rename(from, to)),
        5 => Just(Op::Pin),
        5 => any::<u8>().prop_map(Op::Unpin),
        1 => Just(Op::Reclaim),
    ];
    vec(operation, 1..=most)
}

/// Operations that make the tree in which a concurrent history happens.
pub fn setup() -> impl Strategy<Value = Vec<Op>> {
    let lookup = (fresh_or_taken(), kind(), identity());
    let operation = prop_oneof![
        5 => lookup.prop_map(|(at, kind, identity)| Op::Lookup(at, kind, identity)),
        1 => (node(), place()).prop_map(|(node, to)| Op::Link(node, to)),
    ];
    vec(operation, 1..8)
}

/// One operation of those whose histories must be linearizable.
pub fn concurrent_operation() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (place(), kind(), identity()).prop_map(|(at, k, i)| Op::Lookup(at, k, i)),
        1 => place().prop_map(Op::Peek),
        4 => (node(), count()).prop_map(|(node, count)| Op::Forget(node, count)),
        2 => (node(), place()).prop_map(|(node, to)| Op::Link(node, to)),
        3 => place().prop_map(Op::Unlink),
        5 => (place(), place()).prop_map(|(from, to)| Op::Rename(from, to)),
        3 => (place(), place()).prop_map(|(from, to)| Op::Exchange(from, to)),
        5 => node().prop_map(Op::Path),
        3 => node().prop_map(Op::Paths),
    ]
}

fn node() -> impl Strategy<Value = NodePick> {
    any::<u8>().prop_map(NodePick)
}

fn directory() -> impl Strategy<Value = DirectoryPick> {
    any::<u8>().prop_map(DirectoryPick)
}

fn name() -> impl Strategy<Value = NamePick> {
    any::<u8>().prop_map(NamePick)
}

fn place() -> impl Strategy<Value = PlacePick> {
    prop_oneof![
        3 => any::<u8>().prop_map(PlacePick::Taken),
        2 => (directory(), name()).prop_map(|(parent, name)| PlacePick::Any(parent, name)),
    ]
}

/// For lookups, which should make more nodes than they meet.
fn fresh_or_taken() -> impl Strategy<Value = PlacePick> {
    prop_oneof![
        1 => any::<u8>().prop_map(PlacePick::Taken),
        3 => (directory(), name()).prop_map(|(parent, name)| PlacePick::Any(parent, name)),
    ]
}

fn kind() -> impl Strategy<Value = KindPick> {
    prop_oneof![
        6 => Just(KindPick::Fitting),
        3 => Just(KindPick::Leaf),
        2 => Just(KindPick::Directory),
        1 => Just(KindPick::Unknown),
    ]
}

fn identity() -> impl Strategy<Value = IdentityPick> {
    prop_oneof![
        4 => Just(IdentityPick::None),
        3 => Just(IdentityPick::Fitting),
        2 => any::<u8>().prop_map(IdentityPick::Any),
    ]
}

fn count() -> impl Strategy<Value = CountPick> {
    prop_oneof![
        5 => Just(CountPick::All),
        3 => Just(CountPick::One),
        2 => any::<u8>().prop_map(CountPick::Some),
        1 => Just(CountPick::TooMany),
    ]
}
