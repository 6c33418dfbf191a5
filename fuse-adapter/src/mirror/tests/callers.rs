//! Whose new files are, and that a thread keeps nothing of it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use super::credentials::ActingAs;
use super::*;

const CALLER: Request = Request { unique: 1, uid: 12_345, gid: 23_456, pid: 0 };

/// Filesystem ids and capabilities of this thread.
fn thread() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    status
        .lines()
        .filter(|line| ["Uid", "Gid", "Cap"].iter().any(|word| line.starts_with(word)))
        .collect()
}

#[test]
fn new_things_are_the_callers_and_a_setgid_directory_gives_its_group() {
    if !is_root() {
        return;
    }
    let world = World::new();
    for (dir, group, mode, made) in
        [("plain", 23_456, 0o755, 0o755), ("setgid", 4242, 0o2777, 0o2755)]
    {
        std::fs::create_dir(world.source(dir)).unwrap();
        chown(world.source(dir), None, Some(4242)).unwrap();
        std::fs::set_permissions(world.source(dir), PermissionsExt::from_mode(mode)).unwrap();
        let parent = world.look(dir).unwrap();
        let mirror = &world.mirror;
        let entries = [
            mirror.mkdir(&CALLER, &parent, name("d"), 0o777, 0o022),
            mirror.mknod(&CALLER, &parent, name("p"), libc::S_IFIFO | 0o666, 0o022, 0),
            mirror.mknod(&CALLER, &parent, name("n"), libc::S_IFREG | 0o666, 0o022, 0),
            mirror.symlink(&CALLER, &parent, name("l"), OsStr::new("x")),
            mirror
                .create(&CALLER, &parent, name("f"), libc::S_IFREG | 0o666, 0o022, libc::O_RDWR)
                .map(|made| made.0),
        ];
        for entry in entries {
            let attr = entry.unwrap().attr;
            assert_eq!((attr.uid, attr.gid), (12_345, group), "{attr:?}");
        }
        let mode = |name: &str| {
            std::fs::symlink_metadata(world.source(dir).join(name)).unwrap().mode() & 0o7777
        };
        assert_eq!((mode("d"), mode("p"), mode("f"), mode("n")), (made, 0o644, 0o644, 0o644));
    }
}

/// The directory may be one that the caller reaches only by a group the request doesn't name; the
/// kernel has seen that it does.
#[test]
fn what_the_kernel_has_allowed_is_not_refused_again() {
    if !is_root() {
        return;
    }
    let world = World::new();
    std::fs::create_dir(world.source("d")).unwrap();
    std::fs::set_permissions(world.source("d"), PermissionsExt::from_mode(0o770)).unwrap();
    chown(world.source("d"), None, Some(27)).unwrap();
    let entry =
        world.mirror.mkdir(&CALLER, &world.look("d").unwrap(), name("x"), 0o755, 0).unwrap();
    assert_eq!(entry.attr.uid, 12_345);
}

#[test]
fn the_thread_is_itself_again_after_a_panic_too() {
    let before = thread();
    let panicked = std::panic::catch_unwind(|| {
        let _acting = ActingAs::caller(&CALLER, 0o022);
        if rustix::process::geteuid().is_root() {
            assert_ne!(thread(), before, "it did change");
        }
        panic!("as a handler might");
    });
    assert!(panicked.is_err());
    assert_eq!(thread(), before);
}

#[test]
fn the_umask_counts_once_and_not_under_a_default_acl() {
    let world = World::new();
    for dir in ["plain", "acl"] {
        std::fs::create_dir(world.source(dir)).unwrap();
    }
    // Version 2; user, group and others: rwx.
    let acl: Vec<u8> = [2u32.to_le_bytes()]
        .concat()
        .into_iter()
        .chain([0x01u16, 0x04, 0x20].into_iter().flat_map(|tag| {
            [&tag.to_le_bytes()[..], &7u16.to_le_bytes(), &u32::MAX.to_le_bytes()].concat()
        }))
        .collect();
    let acl_dir = world.look("acl").unwrap();
    match world.mirror.setxattr(&ME, &acl_dir, OsStr::new("system.posix_acl_default"), &acl, 0) {
        Err(Errno::EOPNOTSUPP) => {
            return eprintln!("SKIPPED: the filesystem of the temporary directory has no ACLs");
        }
        other => other.unwrap(),
    }
    let outer = rustix::process::umask(0o027.into());
    rustix::process::umask(outer);
    for (dir, file_mode, dir_mode) in [("plain", 0o600, 0o700), ("acl", 0o666, 0o777)] {
        let parent = world.look(dir).unwrap();
        let (entry, _) =
            world.mirror.create(&ME, &parent, name("f"), 0o100_666, 0o077, libc::O_RDWR).unwrap();
        assert_eq!(entry.attr.perm, file_mode, "{dir}/f");
        let entry = world.mirror.mkdir(&ME, &parent, name("m"), 0o777, 0o077).unwrap();
        assert_eq!(entry.attr.perm, dir_mode, "{dir}/m");
        let entry =
            world.mirror.mknod(&ME, &parent, name("p"), libc::S_IFIFO | 0o666, 0o002, 0).unwrap();
        assert_eq!(entry.attr.perm, if dir == "acl" { 0o666 } else { 0o664 });
    }
}

#[test]
fn an_acl_takes_setgid_from_who_is_not_in_the_group() {
    if !is_root() {
        return;
    }
    let world = World::new();
    world.write("f", "");
    let f = world.look("f").unwrap();
    // Version 2; user rw-, group r-x, others r--: what a chmod to 0654 would say.
    let entry = |tag: u16, perm: u16| {
        [&tag.to_le_bytes()[..], &perm.to_le_bytes(), &u32::MAX.to_le_bytes()].concat()
    };
    let acl =
        [2u32.to_le_bytes().to_vec(), entry(0x01, 6), entry(0x04, 5), entry(0x20, 4)].concat();
    for (gid, left) in [(4242, 0o2654), (23_456, 0o654)] {
        let set = SetAttr { perm: Some(0o2654), uid: Some(12_345), gid: Some(4242), ..NOTHING };
        world.mirror.setattr(&ME, &f, &set).unwrap();
        let req = Request { gid, ..CALLER };
        world.mirror.setxattr(&req, &f, OsStr::new("system.posix_acl_access"), &acl, 0).unwrap();
        assert_eq!(world.attr(&f).unwrap().perm, left, "as a member of {gid}");
    }
}
