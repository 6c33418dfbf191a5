//! The right file, or none: what is open, what was unlinked, what was changed behind the mirror.

use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};

use super::*;

#[test]
fn an_unlinked_open_file_can_still_be_used() {
    let world = World::new();
    let (inode, file) = world.create("t");
    let node = world.node(inode);
    files::write(&file, 0, b"hello").unwrap();
    world.unlink(&world.root(), "t").unwrap();
    assert_eq!(node.path().map(drop), Err(Errno::ENOENT), "it has no path any more");

    let set = SetAttr { size: Some(2), file: Some(&file), ..NOTHING };
    world.mirror.setattr(&ME, &node, &set).unwrap();
    world.mirror.setattr(&ME, &node, &SetAttr { perm: Some(0o600), ..NOTHING }).unwrap();
    world.mirror.setxattr(&ME, &node, OsStr::new("user.k"), b"v", 0).unwrap();
    let attr = world.attr(&node).unwrap();
    assert_eq!((attr.nlink, attr.size, attr.perm), (0, 2, 0o600));
    let mut buf = [0; 9];
    assert_eq!(world.mirror.getxattr(&ME, &node, OsStr::new("user.k"), &mut buf), Ok(1));
    assert_eq!(files::read(&file, 0, &mut buf), Ok(2));
    assert_eq!(&buf[..2], b"he");
    // A file without a name can't get one again.
    assert_eq!(
        world.mirror.link(&ME, &node, &world.root(), name("back")).map(drop),
        Err(Errno::ENOENT)
    );
    // It can be opened once more.
    assert!(world.mirror.open(&ME, &node, libc::O_RDWR).is_ok());

    drop(file);
    assert_eq!(world.attr(&node), Err(Errno::ENOENT), "nothing leads to it any more");
}

#[test]
fn an_unlinked_pipe_is_known_until_it_is_forgotten() {
    let world = World::new();
    let root = world.root();
    let entry = world.mirror.mknod(&ME, &root, name("p"), libc::S_IFIFO | 0o644, 0, 0).unwrap();
    let inode = world.enter(Inode::ROOT, name("p"), entry);
    let before = world.descriptors();
    world.unlink(&root, "p").unwrap();
    let attr = world.attr(&world.node(inode)).unwrap();
    assert_eq!((attr.file_type, attr.nlink), (FileType::Fifo, 0));
    assert_eq!(world.descriptors(), before + 1, "one descriptor stands for it");
    world.resolver.forget(inode, 1);
    // Two grace periods, and then others must have gone on too.
    for _ in 0..100_000 {
        if world.resolver.reclaim() == 0 && world.descriptors() == before {
            break;
        }
        let _ = world.look("none");
    }
    assert_eq!(world.descriptors(), before, "and goes with it");
}

#[test]
fn a_removed_directory_is_known_while_it_is_in_use() {
    let world = World::new();
    std::fs::create_dir(world.source("d")).unwrap();
    std::fs::create_dir(world.source("e")).unwrap();
    let (d, e) = (world.look("d").unwrap(), world.look("e").unwrap());
    let opened = world.mirror.opendir(&ME, &e, 0).unwrap().file;
    for (node, name) in [(&d, name("d")), (&e, name("e"))] {
        world.mirror.rmdir(&ME, &world.root(), name).unwrap();
        world.resolver.unlink(Inode::ROOT, name).unwrap();
        assert_eq!(world.attr(node).unwrap().file_type, FileType::Directory);
    }
    // Listing it is refused by the kernel before it comes here; the source says the same.
    let mut push = |_: crate::listing::DirEntry<'_>| crate::Fit::Taken;
    let mut sink = DirSink::new(&mut push);
    assert_eq!(world.mirror.readdir(&ME, &e, &opened, 0, &mut sink), Err(Errno::ENOENT));
    assert!(world.mirror.mkdir(&ME, &e, name("x"), 0o755, 0).is_err());
}

#[test]
fn a_target_that_was_open_is_not_the_file_that_replaced_it() {
    let world = World::new();
    world.write("a", "new");
    world.write("b", "old");
    let (a, b) = (world.look("a").unwrap(), world.look("b").unwrap());
    let file = world.mirror.open(&ME, &b, libc::O_RDWR).unwrap().file;
    let root = world.root();
    world.mirror.rename(&ME, &root, name("a"), &root, name("b"), RenameFlags::default()).unwrap();
    world.resolver.rename(Inode::ROOT, name("a"), Inode::ROOT, name("b")).unwrap();

    let attr = world.attr(&b).unwrap();
    assert_eq!((attr.nlink, attr.size), (0, 3));
    world.mirror.setattr(&ME, &b, &SetAttr { perm: Some(0o600), ..NOTHING }).unwrap();
    world.mirror.setattr(&ME, &b, &SetAttr { size: Some(1), ..NOTHING }).unwrap();
    let mut buf = [0; 9];
    assert_eq!(files::read(&file, 0, &mut buf), Ok(1));
    assert_eq!((world.read("b").as_str(), world.attr(&a).unwrap().perm), ("new", 0o644));
}

#[test]
fn a_file_that_took_the_name_behind_the_mirror_is_left_alone() {
    let world = World::new();
    world.write("f", "first");
    let f = world.look("f").unwrap();
    std::fs::remove_file(world.source("f")).unwrap();
    // Made anew until it has the same inode number: only its birth tells it from the first.
    let ino = world
        .look("f")
        .map(|_| 0)
        .unwrap_or_else(|_| f.with_data(|data| data.identity().ino).unwrap());
    for attempt in 0..64 {
        world.write("f", "second");
        if std::fs::metadata(world.source("f")).unwrap().ino() == ino {
            break;
        }
        std::fs::rename(world.source("f"), world.source(&format!("other-{attempt}"))).unwrap();
    }
    if !world.source("f").exists() {
        world.write("f", "second");
    }
    assert_eq!(world.attr(&f), Err(Errno::ESTALE));
    let set = [
        SetAttr { size: Some(0), ..NOTHING },
        SetAttr { perm: Some(0), ..NOTHING },
        SetAttr { uid: Some(7), ..NOTHING },
        SetAttr { mtime: Some(crate::SetTime::Now), ..NOTHING },
    ];
    for set in set {
        assert_eq!(world.mirror.setattr(&ME, &f, &set).map(drop), Err(Errno::ESTALE));
    }
    assert_eq!(
        world.mirror.open(&ME, &f, libc::O_RDWR | libc::O_TRUNC).map(drop),
        Err(Errno::ESTALE)
    );
    assert_eq!(world.mirror.setxattr(&ME, &f, OsStr::new("user.k"), b"v", 0), Err(Errno::ESTALE));
    assert_eq!(world.mirror.link(&ME, &f, &world.root(), name("g")).map(drop), Err(Errno::ESTALE));
    assert_eq!(world.read("f"), "second");
    assert!(!world.source("g").exists());
}

#[test]
fn an_open_file_is_followed_where_it_was_moved_behind_the_mirror() {
    let world = World::new();
    std::fs::create_dir(world.source("d")).unwrap();
    world.write("d/f", "A");
    let f = world.look("d/f").unwrap();
    let file = world.mirror.open(&ME, &f, libc::O_RDWR).unwrap().file;
    std::fs::rename(world.source("d"), world.source("e")).unwrap();
    std::fs::create_dir(world.source("d")).unwrap();
    world.write("d/f", "B");
    world.mirror.setattr(&ME, &f, &SetAttr { perm: Some(0o600), ..NOTHING }).unwrap();
    world
        .mirror
        .setattr(&ME, &f, &SetAttr { size: Some(0), file: Some(&file), ..NOTHING })
        .unwrap();
    assert_eq!((world.read("d/f").as_str(), world.read("e/f").as_str()), ("B", ""));
    assert_eq!(std::fs::metadata(world.source("e/f")).unwrap().mode() & 0o777, 0o600);
    // A directory that isn't open and was replaced is not looked into.
    let d = world.node(world.resolver.peek(Inode::ROOT, name("d")).unwrap().unwrap());
    drop(file);
    assert_eq!(world.mirror.lookup(&ME, &d, name("f")).map(drop), Err(Errno::ESTALE));
    assert_eq!(world.mirror.unlink(&ME, &d, name("f")), Err(Errno::ESTALE));
    assert_eq!(world.read("d/f"), "B");
}

#[test]
fn another_name_serves_where_the_first_was_taken_away() {
    let world = World::new();
    world.write("a", "1");
    std::fs::hard_link(world.source("a"), world.source("b")).unwrap();
    let (a, b) = (world.look("a").unwrap(), world.look("b").unwrap());
    assert_eq!(a.inode(), b.inode(), "two names of one file are one node");
    for gone in ["b", "a"] {
        std::fs::remove_file(world.source(gone)).unwrap();
        assert_eq!(world.attr(&a).unwrap().nlink, 1, "without {gone}");
        assert!(world.mirror.open(&ME, &a, libc::O_RDWR).is_ok());
        world.mirror.link(&ME, &a, &world.root(), name(gone)).unwrap();
    }
}

#[test]
fn no_symbolic_link_of_the_source_is_followed() {
    let world = World::new();
    std::fs::create_dir(world.outside("secret")).unwrap();
    std::fs::write(world.outside("secret/f"), "untouched").unwrap();
    std::fs::create_dir_all(world.source("d/sub")).unwrap();
    world.write("d/f", "mine");
    let (f, d, sub) =
        (world.look("d/f").unwrap(), world.look("d").unwrap(), world.look("d/sub").unwrap());
    std::fs::rename(world.source("d"), world.source("was-d")).unwrap();
    symlink(world.outside("secret"), world.source("d")).unwrap();

    assert_eq!(world.mirror.lookup(&ME, &d, name("f")).map(drop), Err(Errno::ESTALE));
    for node in [&f, &d, &sub] {
        assert_eq!(world.attr(node), Err(Errno::ESTALE));
        assert_eq!(
            world.mirror.setattr(&ME, node, &SetAttr { perm: Some(0), ..NOTHING }).map(drop),
            Err(Errno::ESTALE)
        );
    }
    assert_eq!(
        world.mirror.open(&ME, &f, libc::O_RDWR | libc::O_TRUNC).map(drop),
        Err(Errno::ESTALE)
    );
    assert_eq!(world.mirror.unlink(&ME, &d, name("f")), Err(Errno::ESTALE));
    assert_eq!(world.mirror.mkdir(&ME, &d, name("new"), 0o755, 0).map(drop), Err(Errno::ESTALE));
    assert!(world.mirror.opendir(&ME, &d, 0).is_err());
    assert_eq!(std::fs::read_to_string(world.outside("secret/f")).unwrap(), "untouched");
    assert_eq!(std::fs::read_dir(world.outside("secret")).unwrap().count(), 1);
    // The link itself is a file of the source.
    let link = world.look("d").unwrap();
    assert_eq!(
        world.mirror.readlink(&ME, &link).unwrap(),
        world.outside("secret").into_os_string()
    );
}

#[test]
fn a_device_or_pipe_in_a_files_place_is_never_opened() {
    let world = World::new();
    world.write("f", "");
    let f = world.look("f").unwrap();
    std::fs::remove_file(world.source("f")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.source("f"),
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    // Opening the pipe for writing would wait for a reader.
    assert_eq!(world.mirror.open(&ME, &f, libc::O_WRONLY).map(drop), Err(Errno::ESTALE));
    let flags = libc::O_WRONLY | libc::O_CREAT;
    let made = world.mirror.create(&ME, &world.root(), name("f"), 0o100_644, 0, flags);
    assert_eq!(made.map(drop), Err(Errno::ESTALE), "the kernel looks it up and opens it itself");
    assert!(std::fs::symlink_metadata(world.source("f")).unwrap().file_type().is_fifo());
}
