//! Listings, and looking up.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirEntryExt, MetadataExt};

use super::*;
use crate::Fit;
use crate::listing::{DirEntry, Listing};

/// Lists in portions of `at_most` entries, as a kernel does: name, type, inode number, offset.
fn list(
    world: &World,
    node: &MirrorRef<'_>,
    dir: &MirrorDir,
    mut offset: u64,
    at_most: usize,
) -> Vec<(Vec<u8>, FileType, u64, u64)> {
    let mut all = Vec::new();
    loop {
        let before = all.len();
        let mut push = |entry: DirEntry<'_>| {
            if all.len() - before == at_most {
                return Fit::Full;
            }
            all.push((entry.name.to_owned(), entry.file_type, entry.ino, entry.next));
            Fit::Taken
        };
        world.mirror.readdir(&ME, node, dir, offset, &mut DirSink::new(&mut push)).unwrap();
        if all.len() == before {
            return all;
        }
        offset = all.last().unwrap().3;
    }
}

#[test]
fn a_listing_is_the_sources() {
    let world = World::new();
    std::fs::create_dir(world.source("d")).unwrap();
    world.write("f", "");
    std::os::unix::fs::symlink("f", world.source("l")).unwrap();
    let root = world.root();
    let dir = world.mirror.opendir(&ME, &root, 0).unwrap().file;
    let listed: BTreeMap<_, _> = list(&world, &root, &dir, 0, 2)
        .into_iter()
        .map(|(name, file_type, ino, _)| (String::from_utf8(name).unwrap(), (file_type, ino)))
        .collect();
    assert_eq!(listed.len(), 5);
    for entry in std::fs::read_dir(world.source("")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(listed[entry.file_name().to_str().unwrap()].1, entry.ino());
    }
    let root_ino = std::fs::metadata(world.source("")).unwrap().ino();
    assert_eq!(listed["."], (FileType::Directory, root_ino));
    assert_eq!(listed[".."], (FileType::Directory, root_ino), "nothing of what is above the root");
    assert_eq!(listed["l"].0, FileType::Symlink);
}

#[test]
fn streams_are_independent_and_can_go_back() {
    let world = World::new();
    for n in 0..500 {
        world.write(&format!("f{n}"), "");
    }
    let root = world.root();
    let first = world.mirror.opendir(&ME, &root, 0).unwrap().file;
    let second = world.mirror.opendir(&ME, &root, 0).unwrap().file;
    let all = list(&world, &root, &first, 0, 7);
    assert_eq!(all.len(), 502);
    assert_eq!(list(&world, &root, &second, 0, 100), all);
    let half = all[250].3;
    assert_eq!(list(&world, &root, &first, half, 9), all[251..]);
    for (name, ..) in all[..250].iter().filter(|entry| entry.0.starts_with(b"f")) {
        std::fs::remove_file(world.source("").join(OsStr::from_bytes(name))).unwrap();
    }
    assert_eq!(
        list(&world, &root, &second, half, 9),
        all[251..],
        "offsets outlive what they follow"
    );
    world.write("later", "");
    assert!(list(&world, &root, &first, 0, 50).iter().any(|entry| entry.0 == b"later"));
}

#[test]
fn attributes_in_a_listing_are_those_of_a_look_up() {
    let world = World::new();
    for n in 0..300 {
        world.write(&format!("f{n}"), &"x".repeat(n));
    }
    let root = world.root();
    let dir = world.mirror.opendir(&ME, &root, 0).unwrap().file;
    let mut listing = Listing::new(1 << 20);
    world.mirror.readdirplus(&ME, &root, &dir, 0, &mut listing.sink()).unwrap();
    let known: Vec<_> = listing
        .known()
        .map(|(name, kind, data)| (name.as_bytes().to_owned(), kind, data))
        .collect();
    assert_eq!(known.len(), 300, "no . and ..");
    for (name, kind, data) in known {
        let name = std::str::from_utf8(&name).unwrap().to_owned();
        assert_eq!(kind, pinpath::Kind::Leaf);
        let found = world.look(&name).unwrap();
        assert_eq!(found.with_data(MirrorNode::identity).unwrap(), data.identity());
    }
}

#[test]
fn what_vanishes_while_it_is_listed_is_left_out() {
    let world = World::new();
    for n in 0..300 {
        world.write(&format!("f{n}"), "");
    }
    let root = world.root();
    let dir = world.mirror.opendir(&ME, &root, 0).unwrap().file;
    // The first portion is read from the source as a whole; what follows is in memory.
    let first = list_one(&world, &root, &dir);
    for n in 0..300 {
        std::fs::remove_file(world.source(&format!("f{n}"))).unwrap();
    }
    let mut listing = Listing::new(1 << 20);
    world.mirror.readdirplus(&ME, &root, &dir, first, &mut listing.sink()).unwrap();
    assert_eq!(listing.known().count(), 0);
}

fn list_one(world: &World, root: &MirrorRef<'_>, dir: &MirrorDir) -> u64 {
    let mut next = 0;
    let mut push = |entry: DirEntry<'_>| {
        if next != 0 {
            return Fit::Full;
        }
        next = entry.next;
        Fit::Taken
    };
    world.mirror.readdir(&ME, root, dir, 0, &mut DirSink::new(&mut push)).unwrap();
    next
}

#[test]
fn that_a_name_is_missing_is_remembered_only_for_a_source_at_rest() {
    for (cache, remembered) in [(Cache::None, false), (Cache::Auto, false), (Cache::Always, true)] {
        let world = World::with(MirrorOptions { cache, ..MirrorOptions::default() });
        let found = world.mirror.lookup(&ME, &world.root(), name("none"));
        assert_eq!(matches!(found, Ok(Found::Nothing(_))), remembered, "{cache:?}");
        assert_eq!(matches!(found, Err(Errno::ENOENT)), !remembered, "{cache:?}");
    }
}

/// Any mount will do for the mirror's own: it is told by its device.
#[test]
fn its_own_mount_shows_as_an_empty_directory() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let (inside, other) = (world.source("m"), world.source("other"));
    let _mounts = [TestMount::tmpfs(&inside), TestMount::tmpfs(&other)];
    std::fs::write(inside.join("hidden"), "").unwrap();
    std::fs::write(other.join("seen"), "").unwrap();
    let device = std::fs::metadata(&inside).unwrap().dev();
    world.mirror.source.learn_own_mount((rustix::fs::major(device), rustix::fs::minor(device)));

    let m = world.look("m").unwrap();
    assert_eq!(world.attr(&m).unwrap().perm, 0o555);
    assert_eq!(world.look("m/hidden").map(drop), Err(Errno::ENOENT));
    let dir = world.mirror.opendir(&ME, &m, 0).unwrap().file;
    assert_eq!(list(&world, &m, &dir, 0, 1).len(), 2);
    assert_eq!(world.mirror.mkdir(&ME, &m, name("x"), 0o755, 0).map(drop), Err(Errno::EXDEV));
    assert_eq!(world.mirror.rmdir(&ME, &world.root(), name("m")), Err(Errno::EBUSY));
    assert!(world.mirror.statfs(&ME, &m).is_ok());
    let mut listing = Listing::new(1 << 20);
    let root = world.mirror.opendir(&ME, &world.root(), 0).unwrap().file;
    world.mirror.readdirplus(&ME, &world.root(), &root, 0, &mut listing.sink()).unwrap();
    assert_eq!(listing.known().count(), 2);

    // Another filesystem is part of the source, with inode numbers of its own.
    let seen = world.look("other/seen").unwrap();
    let (ours, theirs) =
        (world.attr(&seen).unwrap().ino, std::fs::metadata(other.join("seen")).unwrap().ino());
    assert_ne!(ours, theirs);
    assert_eq!(ours >> 63, 1);
}

struct TestMount(PathBuf);

impl TestMount {
    fn tmpfs(at: &Path) -> Self {
        std::fs::create_dir(at).unwrap();
        rustix::mount::mount("none", at, "tmpfs", rustix::mount::MountFlags::empty(), None)
            .unwrap();
        TestMount(at.to_owned())
    }
}

impl Drop for TestMount {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}
