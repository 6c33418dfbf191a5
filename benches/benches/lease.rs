//! What does it cost to keep a path true, and what does a change of the namespace pay for it?
//!
//! * `lease`: taking and dropping one, beside a bare `crossbeam_epoch::pin()`, which is what a reader
//!   of a lock-free structure pays at least; and the same with the path copied out. The file lies
//!   three directories deep, as most do.
//! * `transaction`: beginning and giving up a removal of a file and a rename of a directory, with no
//!   lease held elsewhere and with 64, the number of requests that a busy mount has in flight. The
//!   heavy fence (a membarrier) is in it. With other threads running it costs more, because they are
//!   interrupted: `beside a running thread` has one that takes and drops leases all the time.

mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pinpath::{Inode, Kind, Name, RenameMode, Resolver};
use pinpath_benches::cases;

/// `/a/b/c/file`, and the inodes on the way.
struct Tree {
    resolver: Resolver,
    b: Inode,
    c: Inode,
    file: Inode,
}

fn name(name: &str) -> &Name {
    Name::new(name).expect("a name")
}

fn tree() -> Tree {
    let resolver = Resolver::new(());
    let dir = |parent, child| resolver.lookup(parent, name(child), Kind::Directory, ()).unwrap();
    let a = dir(Inode::ROOT, "a");
    let b = dir(a, "b");
    let c = dir(b, "c");
    let file = resolver.lookup(c, name("file"), Kind::Leaf, ()).unwrap();
    Tree { b, c, file, resolver: resolver.clone() }
}

fn lease(criterion: &mut Criterion) {
    common::bench(criterion, "lease", &cases::lease::cases());
}

fn transaction(criterion: &mut Criterion) {
    let tree = tree();
    let Tree { resolver, b, c, file } = &tree;
    let mut group = criterion.benchmark_group("transaction");
    for leases in [0, 64] {
        // Held on a directory that is not below what moves.
        let held: Vec<_> = (0..leases).map(|_| resolver.lease(*b).unwrap()).collect();
        group.bench_function(BenchmarkId::new("file", leases), |bencher| {
            bencher.iter(|| drop(black_box(resolver.begin_unlink(*c, name("file")).unwrap())));
        });
        group.bench_function(BenchmarkId::new("directory", leases), |bencher| {
            bencher.iter(|| begin_directory(&tree));
        });
        drop(held);
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                drop(black_box(resolver.lease(*b).unwrap()));
            }
        });
        group.bench_function("file, beside a running thread", |bencher| {
            bencher.iter(|| drop(black_box(resolver.begin_unlink(*c, name("file")).unwrap())));
        });
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(resolver.path(*file).unwrap().to_str(), Some("a/b/c/file"), "nothing was committed");
    group.finish();
}

fn begin_directory(tree: &Tree) {
    let (from, to) = (name("c"), name("d"));
    let transaction = tree.resolver.begin_rename(tree.b, from, tree.b, to, RenameMode::Replace);
    drop(black_box(transaction.unwrap()));
}

criterion_group!(benches, lease, transaction);
criterion_main!(benches);
