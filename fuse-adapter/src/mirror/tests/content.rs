//! Open files, and setting attributes.

use std::os::unix::fs::MetadataExt;

use super::*;
use crate::{SetTime, Timestamp};

#[test]
fn appending_goes_to_the_end_wherever_that_is_by_now() {
    let world = World::new();
    world.write("log", "one\n");
    let log = world.look("log").unwrap();
    let file = world.mirror.open(&ME, &log, libc::O_WRONLY | libc::O_APPEND).unwrap().file;
    world.write("log", "one\ntwo\n");
    files::append(&file, b"three\n").unwrap();
    assert_eq!(world.read("log"), "one\ntwo\nthree\n");
    // A page of the kernel's cache goes where the kernel says, whoever's descriptor it uses.
    files::write(&file, 0, b"ONE").unwrap();
    assert_eq!(world.read("log"), "ONE\ntwo\nthree\n");
}

#[test]
fn with_the_writeback_cache_a_file_opened_for_writing_can_be_read() {
    let world = World::new();
    let agreed = Negotiation { writeback_cache: true, ..Negotiation::default() };
    world.mirror.init(&agreed).unwrap();
    world.write("f", "foo\n");
    let f = world.look("f").unwrap();
    let flags = libc::O_WRONLY | libc::O_APPEND;
    let opened = world.mirror.open(&ME, &f, flags).unwrap().file;
    let (_, created) =
        world.mirror.create(&ME, &world.root(), name("g"), 0o100_200, 0, flags).unwrap();
    for file in [opened, created.file] {
        files::write(&file, 4, b"bar\n").unwrap();
        let mut buf = [0; 4];
        assert_eq!(files::read(&file, 4, &mut buf), Ok(4));
        assert_eq!(&buf, b"bar\n");
    }
    assert_eq!(world.read("f"), "foo\nbar\n");
}

#[test]
fn a_mode_that_forbids_writing_counts_for_the_next_open() {
    let world = World::new();
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
    let (entry, opened) =
        world.mirror.create(&ME, &world.root(), name("f"), 0o100_444, 0, flags).unwrap();
    assert_eq!(entry.attr.perm, 0o444);
    let f = world.node(world.enter(Inode::ROOT, name("f"), entry));
    files::write(&opened.file, 0, b"content").unwrap();
    let set = SetAttr { size: Some(1), file: Some(&opened.file), ..NOTHING };
    assert_eq!(world.mirror.setattr(&ME, &f, &set).unwrap().0.size, 1);
    let again = world.mirror.create(&ME, &world.root(), name("f"), 0o100_444, 0, flags);
    assert_eq!(again.map(drop), Err(Errno::EEXIST));
}

#[test]
fn create_opens_what_somebody_else_made_meanwhile() {
    let world = World::new();
    world.write("f", "theirs");
    for (flags, expected) in [(libc::O_RDWR, "theirs"), (libc::O_RDWR | libc::O_TRUNC, "")] {
        let (entry, _) =
            world.mirror.create(&ME, &world.root(), name("f"), 0o100_600, 0, flags).unwrap();
        assert_eq!(world.read("f"), expected);
        assert_eq!(entry.attr.size, expected.len() as u64);
    }
    assert_eq!(
        std::fs::metadata(world.source("f")).unwrap().mode() & 0o777,
        0o644,
        "not made anew"
    );
}

#[test]
fn truncating_with_the_open_clears_setuid_unless_root_does_it() {
    if !is_root() {
        return;
    }
    let world = World::new();
    for (uid, left) in [(0, 0o6777), (12_345, 0o0777)] {
        world.write("f", "content");
        let f = world.look("f").unwrap();
        world.mirror.setattr(&ME, &f, &SetAttr { perm: Some(0o6777), ..NOTHING }).unwrap();
        world.mirror.open(&Request { uid, ..ME }, &f, libc::O_WRONLY | libc::O_TRUNC).unwrap();
        let attr = world.attr(&f).unwrap();
        assert_eq!((attr.perm, attr.size), (left, 0), "as user {uid}");
    }
}

#[test]
fn times_are_exact_and_each_alone() {
    let world = World::new();
    world.write("f", "");
    let f = world.look("f").unwrap();
    let times = [
        (-1500_i64, 999_999_999),
        (-2, 500_000_000),
        (0, 0),
        (7_258_118_400, 1),
        (i64::from(i32::MIN), 0),
    ];
    for (secs, nanos) in times {
        let wanted = Timestamp { secs, nanos };
        let before = world.attr(&f).unwrap();
        let set = SetAttr { mtime: Some(SetTime::At(wanted)), ..NOTHING };
        let after = world.mirror.setattr(&ME, &f, &set).unwrap().0;
        assert_eq!((after.mtime, after.atime), (wanted, before.atime), "atime stays");
        let set =
            SetAttr { atime: Some(SetTime::At(wanted)), mtime: Some(SetTime::Now), ..NOTHING };
        let after = world.mirror.setattr(&ME, &f, &set).unwrap().0;
        assert_eq!(after.atime, wanted);
        assert!(after.mtime.secs > 1_700_000_000);
        let seen = std::fs::metadata(world.source("f")).unwrap();
        assert_eq!((seen.atime(), seen.atime_nsec()), (secs, i64::from(nanos)));
    }
}

#[test]
fn special_mode_bits_survive_and_links_stay_themselves() {
    let world = World::new();
    std::fs::create_dir(world.source("s")).unwrap();
    world.write("t", "");
    std::os::unix::fs::symlink("t", world.source("l")).unwrap();
    let set = |path: &str, set: SetAttr<'_, MirrorFile>| {
        world.mirror.setattr(&ME, &world.look(path).unwrap(), &set).map(|(attr, _)| attr)
    };
    assert_eq!(set("t", SetAttr { perm: Some(0o6755), ..NOTHING }).unwrap().perm, 0o6755);
    assert_eq!(set("s", SetAttr { perm: Some(0o3777), ..NOTHING }).unwrap().perm, 0o3777);
    let target = world.attr(&world.look("t").unwrap()).unwrap();
    let time = Some(SetTime::At(Timestamp { secs: 5, nanos: 0 }));
    assert_eq!(set("l", SetAttr { atime: time, mtime: time, ..NOTHING }).unwrap().mtime.secs, 5);
    if is_root() {
        assert_eq!(
            set("l", SetAttr { uid: Some(111), gid: Some(222), ..NOTHING }).unwrap().uid,
            111
        );
    }
    assert_eq!(world.attr(&world.look("t").unwrap()).unwrap(), target, "the target is untouched");
    let attr = world.attr(&world.look("l").unwrap()).unwrap();
    assert_eq!((attr.file_type, attr.size), (FileType::Symlink, 1));
}

#[test]
fn data_holes_and_allocation() {
    let world = World::new();
    let (_, file) = world.create("sparse");
    files::write(&file, 2 << 20, &[1; 4096]).unwrap();
    files::allocate(&file, 0, 4 << 20, 0).unwrap();
    assert_eq!(std::fs::metadata(world.source("sparse")).unwrap().len(), 4 << 20);
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    files::allocate(&file, 0, 2 << 20, punch).unwrap();
    files::allocate(&file, (2 << 20) + 4096, (2 << 20) - 4096, punch).unwrap();
    assert_eq!(files::seek(&file, 0, libc::SEEK_DATA), Ok(2 << 20));
    assert_eq!(files::seek(&file, 2 << 20, libc::SEEK_HOLE), Ok((2 << 20) + 4096));
    assert_eq!(files::seek(&file, (2 << 20) + 4096, libc::SEEK_DATA), Err(Errno::ENXIO));
    assert_eq!(files::seek(&file, -1, libc::SEEK_DATA), Err(Errno::ENXIO));
    assert_eq!(files::seek(&file, 0, libc::SEEK_SET), Err(Errno::EINVAL));
    assert_eq!(files::allocate(&file, 0, 4096, 0x4000_0000), Err(Errno::EOPNOTSUPP));
}

#[test]
fn copies_within_the_source() {
    let world = World::new();
    let (_, from) = world.create("from");
    let (_, to) = world.create("to");
    files::write(&from, 0, b"0123456789").unwrap();
    assert_eq!(files::copy_range(&from, 2, &to, 1, 5), Ok(5));
    assert_eq!(world.read("to"), "\0\x32\x33\x34\x35\x36");
}

#[test]
fn descriptors_go_with_the_open_files() {
    let world = World::new();
    let before = world.descriptors();
    let files: Vec<_> = (0..50).map(|n| world.create(&format!("f{n}"))).collect();
    assert_eq!(world.descriptors(), before + 50);
    for (inode, file) in &files {
        files::flush(file).unwrap();
        files::sync(file, true).unwrap();
        world.attr(&world.node(*inode)).unwrap();
    }
    drop(files);
    assert_eq!(world.descriptors(), before);
}
