//! Renaming, and names and paths of every shape.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::*;

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(CWD, from, CWD, to, flags)
}

/// An exchange carried out as a plain rename destroys a file (B10).
#[test]
fn exchange_and_the_other_flags_of_rename() {
    everywhere(|at| {
        let (a, b) = (at.join("a"), at.join("b"));
        std::fs::create_dir(&a).unwrap();
        write(a.join("in"), "inner");
        write(&b, "B");
        let inodes = |path: &Path| std::fs::metadata(path).unwrap().ino();
        let (was_a, was_b) = (inodes(&a), inodes(&b));
        rename(&a, &b, RenameFlags::EXCHANGE).unwrap();
        assert_eq!((inodes(&a), inodes(&b)), (was_b, was_a));
        assert_eq!((read(&a).as_str(), read(b.join("in")).as_str()), ("B", "inner"));

        std::fs::create_dir(at.join("d")).unwrap();
        write(at.join("d/x"), "X");
        rename(&at.join("d/x"), &b, RenameFlags::EXCHANGE).unwrap();
        assert_eq!((read(&b).as_str(), read(at.join("d/x/in")).as_str()), ("X", "inner"));

        assert_eq!(rename(&a, &b, RenameFlags::NOREPLACE), Err(Errno::EXIST));
        assert_eq!(rename(&a, &at.join("none"), RenameFlags::EXCHANGE), Err(Errno::NOENT));
        let both = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
        assert_eq!(rename(&a, &b, both), Err(Errno::INVAL));
        assert_eq!(rename(&a, &b, RenameFlags::from_bits_retain(1 << 10)), Err(Errno::INVAL));
        assert_eq!((read(&a).as_str(), read(&b).as_str()), ("B", "X"), "nothing was changed");
        rename(&a, &at.join("e"), RenameFlags::NOREPLACE).unwrap();
        assert_eq!(read(at.join("e")), "B");
        rename(&at.join("e"), &at.join("g"), RenameFlags::WHITEOUT).unwrap();
        let left = rustix::fs::statat(CWD, at.join("e"), AtFlags::SYMLINK_NOFOLLOW).unwrap();
        assert_eq!(
            (FileType::from_raw_mode(left.st_mode), left.st_rdev),
            (FileType::CharacterDevice, 0)
        );
        assert_eq!(read(at.join("g")), "B");
    });
}

#[test]
fn what_a_rename_refuses() {
    everywhere(|at| {
        std::fs::create_dir_all(at.join("d/sub")).unwrap();
        std::fs::create_dir_all(at.join("full/in")).unwrap();
        write(at.join("f"), "");
        let try_it = |from: &str, to: &str| std::fs::rename(at.join(from), at.join(to));
        assert_eq!(errno(try_it("d", "d/sub/x")), libc::EINVAL);
        assert_eq!(errno(try_it("d", "full")), libc::ENOTEMPTY);
        assert_eq!(errno(try_it("d", "f")), libc::ENOTDIR);
        assert_eq!(errno(try_it("f", "d")), libc::EISDIR);
        assert_eq!(errno(try_it("none", "f")), libc::ENOENT);
        try_it("d", "e").unwrap();
        try_it("e", "e").unwrap();
        assert!(at.join("e/sub").exists() && !at.join("d").exists());
        assert_eq!(errno(std::fs::remove_file(at.join("e"))), libc::EISDIR);
        assert_eq!(errno(std::fs::remove_dir(at.join("f"))), libc::ENOTDIR);
        assert_eq!(errno(std::fs::remove_dir(at.join("full"))), libc::ENOTEMPTY);
    });
}

/// Descendants move along, and new ones of their old names are others (B08).
#[test]
fn a_renamed_parent() {
    everywhere(|at| {
        std::fs::create_dir_all(at.join("a/b/c")).unwrap();
        write(at.join("a/b/c/f"), "one");
        let held = std::fs::File::open(at.join("a/b/c")).unwrap();
        std::fs::rename(at.join("a"), at.join("z")).unwrap();
        std::fs::create_dir_all(at.join("a/b/c")).unwrap();
        assert_eq!(read(at.join("z/b/c/f")), "one");
        assert_eq!(std::fs::read_dir(at.join("a/b/c")).unwrap().count(), 0);
        write(at.join("a/b/c/f"), "two");
        assert_eq!(read(at.join("z/b/c/f")), "one");
        let file = rustix::fs::openat(&held, "f", OFlags::RDONLY, Mode::empty()).unwrap();
        let mut buf = [0; 8];
        assert_eq!(rustix::io::read(&file, &mut buf), Ok(3));
        assert_eq!(&buf[..3], b"one");
        std::fs::rename(at.join("z/b/c/f"), at.join("z/moved")).unwrap();
        std::fs::remove_dir(at.join("z/b/c")).unwrap();
        std::fs::create_dir(at.join("z/b/c")).unwrap();
        write(at.join("z/b/c/f"), "three");
        assert_eq!(
            (read(at.join("z/b/c/f")).as_str(), read(at.join("z/moved")).as_str()),
            ("three", "one")
        );
    });
}

/// Names are bytes (B48), and as long as the source allows (B50).
#[test]
fn names_of_every_kind() {
    everywhere(|at| {
        let longest = [b'n'; 255];
        let names: [&[u8]; 9] = [
            b"\xff\xfe",
            b"a\nb",
            &longest,
            b" ",
            b"-x",
            b"a\\b",
            b"...",
            "e\u{301}".as_bytes(),
            "\u{e9}".as_bytes(),
        ];
        for name in names {
            let path = at.join(OsStr::from_bytes(name));
            write(&path, name);
            let moved = at.join("moved");
            std::fs::rename(&path, &moved).unwrap();
            std::fs::hard_link(&moved, &path).unwrap();
            std::fs::remove_file(&moved).unwrap();
            symlink(OsStr::from_bytes(name), &moved).unwrap();
            assert_eq!(std::fs::read_link(&moved).unwrap().as_os_str().as_bytes(), name);
            std::fs::remove_file(&moved).unwrap();
            rustix::fs::setxattr(&path, "user.k", name, rustix::fs::XattrFlags::empty()).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), name);
        }
        let listed: BTreeSet<Vec<u8>> = std::fs::read_dir(at)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().as_bytes().to_owned())
            .collect();
        assert_eq!(listed, names.iter().map(|name| name.to_vec()).collect());

        let too_long = at.join("x".repeat(256));
        assert_eq!(errno(std::fs::metadata(&too_long)), libc::ENAMETOOLONG);
        assert_eq!(errno(std::fs::create_dir(&too_long)), libc::ENAMETOOLONG);
        assert_eq!(errno(symlink("x", &too_long)), libc::ENAMETOOLONG);
        assert_eq!(errno(std::fs::rename(at.join("a\nb"), &too_long)), libc::ENAMETOOLONG);
    });
}

/// Far below PATH_MAX, by descriptors (B49).
fn deep(at: &Path, name: &str, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dirs: Vec<OwnedFd> = vec![rustix::fs::openat(CWD, at, flags, Mode::empty()).unwrap()];
    for _ in 0..levels {
        let last = dirs.last().unwrap();
        rustix::fs::mkdirat(last, name, Mode::from_raw_mode(0o755)).unwrap();
        let next = rustix::fs::openat(last, name, flags, Mode::empty()).unwrap();
        // A few open ones are enough: a descriptor for each level is not what is tested.
        if dirs.len() > 3 {
            dirs.remove(1);
        }
        dirs.push(next);
    }
    let bottom = dirs.last().unwrap();
    let leaf = rustix::fs::openat(
        bottom,
        "leaf",
        OFlags::CREATE | OFlags::RDWR,
        Mode::from_raw_mode(0o644),
    )
    .unwrap();
    assert_eq!(rustix::io::write(&leaf, b"deep"), Ok(4));
    drop(leaf);
    rustix::fs::renameat(bottom, "leaf", bottom, "moved").unwrap();
    assert_eq!(rustix::fs::statat(bottom, "moved", AtFlags::SYMLINK_NOFOLLOW).unwrap().st_size, 4);
    let listed: Vec<_> = rustix::fs::Dir::read_from(bottom)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect();
    assert_eq!(listed.len(), 3);
    assert!(listed.iter().any(|name| **name == *c"moved"));
    rustix::fs::unlinkat(bottom, "moved", AtFlags::empty()).unwrap();
    drop(dirs);
    std::fs::remove_dir_all(at.join(name)).unwrap();
}

#[test]
fn paths_longer_than_path_max() {
    everywhere(|at| deep(at, &"x".repeat(100), 60));
}

#[test]
fn a_thousand_levels() {
    everywhere(|at| deep(at, "a", 1000));
}

/// So deep that no path of it fits into a system call, nor the removal of it into the descriptors
/// that a process may have.
#[test]
fn ten_thousand_levels() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    const LEVELS: usize = 10_000;
    let at = mirrored.mountpoint.path();
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o755);
    let top = rustix::fs::openat(CWD, at, flags, Mode::empty()).unwrap();
    let mut dir = top.try_clone().unwrap();
    for _ in 0..LEVELS {
        rustix::fs::mkdirat(&dir, "a", mode).unwrap();
        dir = rustix::fs::openat(&dir, "a", flags, Mode::empty()).unwrap();
    }
    let made = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
    let leaf = rustix::fs::openat(&dir, "leaf", made, mode).unwrap();
    assert_eq!(rustix::io::write(&leaf, b"deep"), Ok(4));
    rustix::fs::renameat(&dir, "leaf", &dir, "moved").unwrap();
    drop(leaf);
    // Everything is forgotten, and found again on a path of twenty thousand bytes.
    listings::drop_caches();
    assert_eq!(rustix::fs::statat(&dir, "moved", AtFlags::SYMLINK_NOFOLLOW).unwrap().st_size, 4);
    rustix::fs::unlinkat(&dir, "moved", AtFlags::empty()).unwrap();
    drop(dir);
    // Taken down from the top: what is below the first comes beside it.
    for _ in 0..LEVELS - 1 {
        rustix::fs::renameat(&top, "a/a", &top, "b").unwrap();
        rustix::fs::unlinkat(&top, "a", AtFlags::REMOVEDIR).unwrap();
        rustix::fs::renameat(&top, "b", &top, "a").unwrap();
    }
    rustix::fs::unlinkat(&top, "a", AtFlags::REMOVEDIR).unwrap();
    assert_eq!(std::fs::read_dir(at).unwrap().count(), 0);
}

/// Symbolic links as themselves (B34).
#[test]
fn symbolic_links() {
    everywhere(|at| {
        write(at.join("t"), "target");
        symlink("t", at.join("l")).unwrap();
        let before = std::fs::metadata(at.join("t")).unwrap();
        std::os::unix::fs::lchown(at.join("l"), Some(111), Some(222)).unwrap();
        let time = rustix::fs::Timespec { tv_sec: 5, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, at.join("l"), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let link = std::fs::symlink_metadata(at.join("l")).unwrap();
        assert_eq!((link.uid(), link.gid(), link.mtime(), link.len()), (111, 222, 5, 1));
        let after = std::fs::metadata(at.join("t")).unwrap();
        assert_eq!(
            (before.uid(), before.mtime(), before.ctime_nsec()),
            (after.uid(), after.mtime(), after.ctime_nsec())
        );
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::lsetxattr(at.join("l"), "trusted.k", b"v", flags).unwrap();
        let mut buf = [0; 8];
        assert_eq!(rustix::fs::lgetxattr(at.join("l"), "trusted.k", &mut buf), Ok(1));
        assert_eq!(rustix::fs::getxattr(at.join("t"), "trusted.k", &mut buf), Err(Errno::NODATA));

        let long = "t/".repeat(2000) + "x";
        for target in ["/etc/passwd", "a\nb", "dangling", &long] {
            let _ = std::fs::remove_file(at.join("n"));
            symlink(target, at.join("n")).unwrap();
            assert_eq!(std::fs::read_link(at.join("n")).unwrap(), Path::new(target));
            assert_eq!(std::fs::symlink_metadata(at.join("n")).unwrap().len(), target.len() as u64);
        }
        let _ = std::fs::remove_file(at.join("n"));
        symlink("/etc/passwd", at.join("n")).unwrap();
        assert_eq!(read(at.join("n")), read("/etc/passwd"), "the caller's root, not the source's");
    });
}
