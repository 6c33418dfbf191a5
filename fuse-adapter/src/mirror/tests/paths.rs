//! Names and paths of every shape.

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags};

use super::*;

/// Makes directories one in the other and looks them up; answers the last.
fn descend<'w>(world: &'w World, names: impl Iterator<Item = String>) -> MirrorRef<'w> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut at: OwnedFd = rustix::fs::openat(CWD, world.source(""), flags, Mode::empty()).unwrap();
    let mut inode = Inode::ROOT;
    for component in names {
        rustix::fs::mkdirat(&at, &*component, 0o755.into()).unwrap();
        at = rustix::fs::openat(&at, &*component, flags, Mode::empty()).unwrap();
        let Ok(Found::Entry(entry)) =
            world.mirror.lookup(&ME, &world.node(inode), name(&component))
        else {
            panic!("not found");
        };
        inode = world.enter(inode, name(&component), entry);
    }
    world.node(inode)
}

fn use_directory(world: &World, deep: &MirrorRef<'_>) {
    let (entry, opened) =
        world.mirror.create(&ME, deep, name("leaf"), 0o100_644, 0o022, libc::O_RDWR).unwrap();
    files::write(&opened.file, 0, b"deep").unwrap();
    drop(opened);
    let leaf = world.node(world.enter(deep.inode(), name("leaf"), entry));
    assert_eq!(world.attr(&leaf).unwrap().size, 4);
    assert!(world.mirror.open(&ME, &leaf, libc::O_RDONLY).is_ok());
    world
        .mirror
        .rename(&ME, deep, name("leaf"), deep, name("moved"), RenameFlags::default())
        .unwrap();
    world.resolver.rename(deep.inode(), name("leaf"), deep.inode(), name("moved")).unwrap();
    world.unlink(deep, "moved").unwrap();
    assert!(world.mirror.opendir(&ME, deep, 0).is_ok());
}

#[test]
fn paths_longer_than_path_max() {
    let world = World::new();
    let deep = descend(&world, (0..60).map(|_| "x".repeat(100)));
    assert!(deep.path().unwrap().as_os_str().len() > 6000);
    use_directory(&world, &deep);
}

#[test]
fn every_length_around_path_max() {
    // Paths of 3839 + n bytes: the cut falls before, at and behind the limit of one call.
    for last in [250, 254, 255] {
        for step in [1, 2, 255] {
            let world = World::new();
            let names = (0..15).map(|_| "y".repeat(255)).chain([
                "z".repeat(last),
                "s".repeat(step),
                "t".into(),
                "u".repeat(255),
            ]);
            use_directory(&world, &descend(&world, names));
        }
    }
}

#[test]
fn three_thousand_levels() {
    let world = World::new();
    let deep = descend(&world, (0..3000).map(|_| "a".into()));
    use_directory(&world, &deep);
}

#[test]
fn names_are_bytes() {
    let world = World::new();
    let longest = [b'n'; 255];
    let names: [&[u8]; 8] = [
        b"\xff\xfe",
        b"a\nb",
        &longest,
        b" ",
        b"-x",
        b"a\\b",
        "e\u{301}".as_bytes(),
        "\u{e9}".as_bytes(),
    ];
    let mut inodes = std::collections::HashSet::new();
    for bytes in names {
        let name = Name::new(bytes).unwrap();
        let entry = world.mirror.mknod(&ME, &world.root(), name, 0o100_644, 0, 0).unwrap();
        inodes.insert(world.enter(Inode::ROOT, name, entry));
        assert!(world.source("").join(name.as_os_str()).exists());
    }
    assert_eq!(inodes.len(), names.len());
}

#[test]
fn link_targets_are_bytes_of_any_length() {
    let world = World::new();
    let long = "t/".repeat(2047) + "x";
    for (index, target) in ["/etc/passwd", "a\nb", "dangling", &long].into_iter().enumerate() {
        let link = format!("l{index}");
        let entry =
            world.mirror.symlink(&ME, &world.root(), name(&link), OsStr::new(target)).unwrap();
        assert_eq!(entry.attr.size, target.len() as u64);
        let node = world.node(world.enter(Inode::ROOT, name(&link), entry));
        assert_eq!(world.mirror.readlink(&ME, &node).unwrap(), target);
    }
}

#[test]
fn a_name_too_long_for_the_source_says_so() {
    let world = World::new();
    // The type `Name` ends at 255 bytes, and so do ext4 and tmpfs; a target may be longer.
    let target = "x".repeat(4096);
    let made = world.mirror.symlink(&ME, &world.root(), name("l"), OsStr::new(&target));
    assert_eq!(made.map(drop), Err(Errno::ENAMETOOLONG));
    assert_eq!(world.mirror.statfs(&ME, &world.root()).unwrap().name_max, 255);
}
