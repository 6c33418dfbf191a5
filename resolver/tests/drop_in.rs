//! What a backend for easy_fuser's contract promises beyond the verbs it stands on.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use pinpath::drop_in::{
    ComponentsResolver, DropIn, Flavour, MappedResolver, NO_NODE, PathResolver, UNKNOWN_INODE,
};
use pinpath::{Inode, PathError};

const ROOT: Inode = Inode::ROOT;

fn name(name: &str) -> &OsStr {
    OsStr::new(name)
}

/// How many nodes there are besides the root, once all is reclaimed that may be.
fn nodes<F: Flavour>(table: &DropIn<F>) -> usize {
    // A node that was seen while it waited waits once more, and a parent waits for its children.
    for _ in 0..4 {
        table.resolver().reclaim();
    }
    table.resolver().validate().unwrap();
    table.resolver().stats().nodes - 1
}

#[test]
fn ids_are_given_out_from_two_on() {
    let table = MappedResolver::new();
    let ids = ["a", "b", "c"].map(|file| table.lookup(ROOT, name(file), true).unwrap().raw());
    assert_eq!(ids, [2, 3, 4]);
}

#[test]
fn each_flavour_has_its_word_for_a_file_and_for_the_root() {
    let paths = PathResolver::new();
    let dir = paths.lookup(ROOT, name("dir"), true).unwrap();
    let file = paths.lookup(dir, name("file"), true).unwrap();
    assert_eq!(paths.resolve(file).unwrap(), Path::new("dir/file"));
    assert_eq!(paths.resolve(ROOT).unwrap(), Path::new(""));

    let components = ComponentsResolver::new();
    let dir = components.lookup(ROOT, name("dir"), true).unwrap();
    let file = components.lookup(dir, name("file"), true).unwrap();
    assert_eq!(components.resolve(file).unwrap(), ["file", "dir"]);
    assert_eq!(components.resolve(ROOT).unwrap(), Vec::<OsString>::new());

    let mapped = MappedResolver::new();
    let dir = mapped.lookup(ROOT, name("dir"), true).unwrap();
    let file = mapped.resolve(mapped.lookup(dir, name("file"), true).unwrap()).unwrap();
    assert_eq!(file.paths(), [PathBuf::from("dir/file")]);
    assert_eq!(file.parts_paths(), [["dir", "file"]]);
    assert_eq!(mapped.resolve(ROOT).unwrap().paths(), [PathBuf::new()]);
}

#[test]
fn a_path_outlives_its_name_and_follows_nothing() {
    let table = PathResolver::new();
    let [a, b, c] = ["a", "b", "c"].map(|file| table.lookup(ROOT, name(file), true).unwrap());
    table.unlink(ROOT, name("a")).unwrap();
    assert_eq!(table.resolve(a).unwrap(), Path::new("a"));
    // The name is free: what is there next is another file.
    assert_ne!(table.lookup(ROOT, name("a"), true).unwrap(), a);
    // A file that was replaced had its last name there, and is not the root.
    table.rename(ROOT, name("b"), ROOT, name("c")).unwrap();
    assert_eq!(table.resolve(b).unwrap(), Path::new("c"));
    assert_eq!(table.resolve(c).unwrap(), Path::new("c"));
    // It is no longer than the node.
    table.forget(a, 1);
    table.resolver().reclaim();
    assert_eq!(table.resolve(a), Err(PathError::Stale(a)));
}

#[test]
fn below_a_removed_directory_paths_are_the_last_ones() {
    let table = PathResolver::new();
    let dir = table.lookup(ROOT, name("dir"), true).unwrap();
    let sub = table.lookup(dir, name("sub"), true).unwrap();
    let file = table.lookup(sub, name("file"), true).unwrap();
    table.unlink(ROOT, name("dir")).unwrap();
    assert_eq!(table.resolve(file).unwrap(), Path::new("dir/sub/file"));
    table.unlink(sub, name("file")).unwrap();
    assert_eq!(table.resolve(file).unwrap(), Path::new("dir/sub/file"));
    assert_eq!(nodes(&table), 3);
}

#[test]
fn a_mapped_inode_without_a_name_has_no_path() {
    let table = MappedResolver::new();
    let a = table.lookup(ROOT, name("a"), true).unwrap();
    let id = table.resolve(a).unwrap();
    table.unlink(ROOT, name("a")).unwrap();
    assert!(id.paths().is_empty());
    assert_eq!(id.inode(), a);
}

#[test]
fn handles_of_two_mounts_differ() {
    let (one, other) = (MappedResolver::new(), MappedResolver::new());
    assert_eq!(one.resolve(ROOT).unwrap(), one.clone().resolve(ROOT).unwrap());
    assert_ne!(one.resolve(ROOT).unwrap(), other.resolve(ROOT).unwrap());
}

#[test]
fn known_hard_links_outlive_the_kernels_interest_and_nothing_else_does() {
    let table = MappedResolver::new();
    let a = table.lookup(ROOT, name("a"), true).unwrap();
    let alone = table.lookup(ROOT, name("alone"), true).unwrap();
    assert!(table.link(a, ROOT, name("b")));
    table.forget(a, 2);
    table.forget(alone, 1);
    assert_eq!(nodes(&table), 1);
    assert_eq!(table.lookup(ROOT, name("b"), true).unwrap(), a);
}

#[test]
fn a_path_flavour_knows_two_names_as_two_files() {
    let table = PathResolver::new();
    let a = table.lookup(ROOT, name("a"), true).unwrap();
    assert!(!table.link(a, ROOT, name("b")));
    assert_ne!(table.lookup(ROOT, name("b"), true).unwrap(), a);
}

#[test]
fn a_link_over_a_name_that_was_known_takes_it() {
    let table = MappedResolver::new();
    let a = table.lookup(ROOT, name("a"), true).unwrap();
    let listed = table.add_children(ROOT, [name("b")], false)[0].1;
    assert!(table.link(a, ROOT, name("b")));
    assert_eq!(table.resolve(a).unwrap().paths().len(), 2);
    assert!(table.resolve(listed).unwrap().paths().is_empty());
    // Nothing but the listing knew it.
    assert_eq!(nodes(&table), 1);
}

#[test]
fn what_a_listing_showed_keeps_its_id_until_the_directory_is_forgotten() {
    let table = PathResolver::new();
    let dir = table.lookup(ROOT, name("dir"), true).unwrap();
    let listed = table.add_children(dir, [name("a"), name("b")], false);
    assert_eq!(nodes(&table), 3);
    let again = table.add_children(dir, [name("a"), name("b")], false);
    assert_eq!(listed, again);
    // One of them is looked up, and forgotten: it has the same id, and no more than a lookup's life.
    assert_eq!(table.lookup(dir, name("a"), true).unwrap(), listed[0].1);
    assert_eq!(table.resolver().lookup_count(listed[0].1), Some(1));
    table.forget(listed[0].1, 1);
    assert_eq!(nodes(&table), 2);
    table.forget(dir, 1);
    assert_eq!(nodes(&table), 0);
}

#[test]
fn what_only_a_listing_knew_goes_with_its_name() {
    let table = PathResolver::new();
    table.add_children(ROOT, ["a", "b", "c"].map(name), false);
    table.unlink(ROOT, name("a")).unwrap();
    assert_eq!(nodes(&table), 2);
    table.rename(ROOT, name("b"), ROOT, name("c")).unwrap();
    assert_eq!(nodes(&table), 1);
}

#[test]
fn pruning_lets_go_of_what_was_only_listed() {
    let table = PathResolver::new();
    table.add_children(ROOT, ["a", "b", "c"].map(name), false);
    table.lookup(ROOT, name("c"), true).unwrap();
    table.prune(|path| path == Path::new("b"));
    assert_eq!(nodes(&table), 2);
    table.prune(|_| false);
    assert_eq!(nodes(&table), 1);
}

#[test]
fn a_directory_that_is_listed_again_and_again_keeps_no_growing_list() {
    let table = PathResolver::new();
    for round in 0..5_000 {
        let file = format!("{round}");
        table.add_children(ROOT, [name(&file)], false);
        let inode = table.lookup(ROOT, name(&file), true).unwrap();
        table.forget(inode, 1);
    }
    assert_eq!(nodes(&table), 0);
    // A list of all that were ever held would be 40 kB.
    assert!(
        format!("{:?}", table.resolver().with_data(ROOT, |beside| format!("{beside:?}"))).len()
            < 4_000
    );
}

#[test]
fn dots_in_a_listing_are_the_directory_and_its_parent_and_count_nothing() {
    let table = PathResolver::new();
    let dir = table.lookup(ROOT, name("dir"), true).unwrap();
    for counted in [false, true] {
        let listed = table.add_children(dir, [".", "..", "a"].map(name), counted);
        assert_eq!([listed[0].1, listed[1].1], [dir, ROOT]);
        let listed = table.add_children(ROOT, [".", ".."].map(name), counted);
        assert_eq!([listed[0].1, listed[1].1], [ROOT, ROOT]);
    }
    assert_eq!(table.resolver().lookup_count(dir), Some(1));
    // But a LOOKUP of them is one.
    assert_eq!(table.lookup(dir, name("."), true).unwrap(), dir);
    assert_eq!(table.resolver().lookup_count(dir), Some(2));
}

#[test]
fn what_is_no_name_has_no_node_and_harms_no_other() {
    let table = PathResolver::new();
    let long = "x".repeat(256);
    let names = ["a/b", "", &long, "good"].map(name);
    for (counted, nothing) in [(true, NO_NODE), (false, UNKNOWN_INODE)] {
        let listed = table.add_children(ROOT, names, counted);
        assert!(listed[..3].iter().all(|(_, inode)| *inode == nothing));
        assert_eq!(table.resolve(listed[3].1).unwrap(), Path::new("good"));
    }
    assert!(table.lookup(ROOT, name(&long), true).is_err());
    assert!(table.unlink(ROOT, name("a/b")).is_err());
}

#[test]
fn changes_of_names_that_are_not_known_are_no_errors() {
    let table = PathResolver::new();
    let known = table.lookup(ROOT, name("known"), true).unwrap();
    table.unlink(ROOT, name("not")).unwrap();
    table.exchange(ROOT, name("not"), ROOT, name("known")).unwrap();
    assert_eq!(table.resolve(known).unwrap(), Path::new("not"));
    table.rename(ROOT, name("new"), ROOT, name("not")).unwrap();
    assert_ne!(table.lookup(ROOT, name("not"), true).unwrap(), known);
}

#[test]
fn a_request_keeps_what_was_known_when_it_began() {
    let table = PathResolver::new();
    let file = table.lookup(ROOT, name("file"), true).unwrap();
    let request = table.begin_request();
    table.forget(file, 1);
    table.prune(|_| false);
    assert_eq!(table.resolve(file).unwrap(), Path::new("file"));
    drop(request);
    table.prune(|_| false);
    assert_eq!(table.resolve(file), Err(PathError::Stale(file)));
}

/// Listings, lookups and forgets of the same names at once lose no count: in the end all is gone.
#[test]
fn listings_and_lookups_at_once_leave_nothing_behind() {
    let table = PathResolver::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for round in 0..2_000 {
                    let request = table.begin_request();
                    let dir = table.lookup(ROOT, name("dir"), true).unwrap();
                    let file = format!("{}", round % 3);
                    if thread % 2 == 0 {
                        table.add_children(dir, [name(&file)], false);
                    } else {
                        let inode = table.lookup(dir, name(&file), true).unwrap();
                        table.forget(inode, 1);
                    }
                    table.forget(dir, 1);
                    drop(request);
                }
            });
        }
    });
    assert_eq!(nodes(&table), 0);
}

/// What is kept beside a node is small. A million files, as where peers were measured.
#[test]
fn an_inode_takes_at_most_128_bytes() {
    let files = 1_000_000;
    let table = PathResolver::new();
    for file in 0..files {
        table.lookup(ROOT, name(&format!("{file:016}")), true).unwrap();
    }
    let bytes = table.resolver().stats().bytes / files;
    println!("{bytes} bytes an inode");
    assert!(bytes <= 128, "{bytes} bytes an inode");
}
