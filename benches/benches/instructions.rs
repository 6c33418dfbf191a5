//! How many instructions the hot paths take, counted under valgrind: the same on a noisy machine.
//!
//! `cargo bench-instructions` compares them with `instructions.tsv`, and with `--update` writes it.
//! The cases do each operation a thousand times, so that what is around them does not count.

#![allow(missing_docs)] // of what the macros make

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use pinpath::{Inode, Kind, Name, Resolver};

const TIMES: usize = 1000;

struct Tree {
    resolver: Resolver,
    file: Inode,
    /// Names that are not there.
    fresh: Vec<String>,
}

fn name(name: &str) -> &Name {
    Name::new(name).expect("a name")
}

/// `alpha/beta/file`, after the threads' own structures were made.
fn tree() -> Tree {
    let resolver = Resolver::new(());
    let directory = |parent, child| resolver.lookup(parent, name(child), Kind::Directory, ());
    let alpha = directory(Inode::ROOT, "alpha").expect("new");
    let beta = directory(alpha, "beta").expect("new");
    let file = resolver.lookup(beta, name("file"), Kind::Leaf, ()).expect("new");
    drop(resolver.pin());
    drop(resolver.lease(file));
    let fresh = (0..TIMES).map(|number| format!("name-{number:011}")).collect();
    Tree { resolver, file, fresh }
}

/// The same with the paths kept.
fn kept() -> Tree {
    let tree = tree();
    for _ in 0..3 {
        tree.resolver.path(tree.file).expect("known");
    }
    tree
}

fn repeat<R>(tree: Tree, operation: impl Fn(&Resolver, Inode) -> R) -> Tree {
    for _ in 0..TIMES {
        black_box(operation(&tree.resolver, black_box(tree.file)));
    }
    tree
}

#[library_benchmark(setup = tree)]
fn nothing(tree: Tree) -> Tree {
    repeat(tree, |_, _| ())
}

#[library_benchmark(setup = tree)]
fn pin_and_drop(tree: Tree) -> Tree {
    repeat(tree, |resolver, _| drop(black_box(resolver.pin())))
}

#[library_benchmark(setup = kept)]
fn borrowed_path(tree: Tree) -> Tree {
    repeat(tree, |resolver, file| resolver.with_path(file, |path| path.as_os_str().len()))
}

#[library_benchmark(setup = kept)]
fn owned_path(tree: Tree) -> Tree {
    repeat(tree, |resolver, file| resolver.path(file))
}

#[library_benchmark(setup = kept)]
fn all_paths(tree: Tree) -> Tree {
    repeat(tree, |resolver, file| resolver.paths(file))
}

#[library_benchmark(setup = kept)]
fn components(tree: Tree) -> Tree {
    repeat(tree, |resolver, file| resolver.parts_paths(file))
}

#[library_benchmark(setup = tree)]
fn lease_and_drop(tree: Tree) -> Tree {
    repeat(tree, |resolver, file| drop(black_box(resolver.lease(file))))
}

#[library_benchmark(setup = tree)]
fn lookup_known(tree: Tree) -> Tree {
    let parent = tree.resolver.peek(Inode::ROOT, name("alpha")).expect("known").expect("known");
    repeat(tree, move |resolver, _| resolver.lookup(parent, name("beta"), Kind::Directory, ()))
}

#[library_benchmark(setup = tree)]
fn lookup_and_forget_new(tree: Tree) -> Tree {
    for fresh in &tree.fresh {
        let new = tree.resolver.lookup(Inode::ROOT, name(fresh), Kind::Leaf, ()).expect("new");
        tree.resolver.forget(new, 1);
    }
    tree
}

#[library_benchmark(setup = tree)]
fn rename_a_file(tree: Tree) -> Tree {
    let beta = tree.resolver.peek(Inode::ROOT, name("alpha")).expect("known").expect("known");
    let beta = tree.resolver.peek(beta, name("beta")).expect("known").expect("known");
    for pair in 0..TIMES {
        let (from, to) = if pair % 2 == 0 { ("file", "other") } else { ("other", "file") };
        tree.resolver.rename(beta, name(from), beta, name(to)).expect("known");
    }
    tree
}

library_benchmark_group!(
    name = hot,
    benchmarks = [
        nothing,
        pin_and_drop,
        borrowed_path,
        owned_path,
        all_paths,
        components,
        lease_and_drop,
        lookup_known,
        lookup_and_forget_new,
        rename_a_file
    ]
);

main!(library_benchmark_groups = hot);
