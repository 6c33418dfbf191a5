//! Modes, times, extended attributes, sizes.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, XattrFlags,
};
use rustix::io::Errno;

use super::*;

/// Nanoseconds, and before 1970 (B21).
#[test]
fn times_are_exact() {
    everywhere(|at| {
        let f = at.join("f");
        write(&f, "");
        let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        let set = |last_access, last_modification| {
            let times = Timestamps { last_access, last_modification };
            rustix::fs::utimensat(CWD, &f, &times, AtFlags::empty()).unwrap();
            let meta = std::fs::metadata(&f).unwrap();
            ((meta.atime(), meta.atime_nsec()), (meta.mtime(), meta.mtime_nsec()))
        };
        // -1.500000001 s and -86399.999999877 s, and 2200.
        let (a, m) = ((-2, 499_999_999), (-86_400, 123));
        assert_eq!(set(time(a.0, a.1), time(m.0, m.1)), (a, m));
        // The first second that ext4 knows, without fractions; its last is in 2446.
        let first = i64::from(i32::MIN);
        assert_eq!(set(time(first, 0), time(5, 0)), ((first, 0), (5, 0)));
        for whole in [-1, -1500, 0, 1, first + 1, 7_258_118_400] {
            for nanos in [0, 1, 999_999_999] {
                assert_eq!(
                    set(time(whole, nanos), time(5, 0)),
                    ((whole, nanos), (5, 0)),
                    "{whole}.{nanos}"
                );
            }
        }
        // One alone, in every combination.
        let omit = time(0, UTIME_OMIT);
        set(time(1, 0), time(2, 0));
        assert_eq!(set(omit, time(3, 7)), ((1, 0), (3, 7)));
        assert_eq!(set(time(4, 9), omit), ((4, 9), (3, 7)));
        assert_eq!(set(omit, omit), ((4, 9), (3, 7)));
        let now = time(0, UTIME_NOW);
        let ((atime, _), mtime) = set(now, omit);
        assert!(atime > 1_700_000_000 && mtime == (3, 7));
        let ((_, _), (mtime, _)) = set(time(4, 0), now);
        assert!(mtime > 1_700_000_000);
    });
}

#[test]
fn times_are_the_sources() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    write(mirrored.at("f"), "x");
    let times = Timestamps {
        last_access: Timespec { tv_sec: -7, tv_nsec: 500_000_000 },
        last_modification: Timespec { tv_sec: -1, tv_nsec: 1 },
    };
    rustix::fs::utimensat(CWD, mirrored.behind("g"), &times, AtFlags::empty()).unwrap_err();
    write(mirrored.behind("g"), "x");
    rustix::fs::utimensat(CWD, mirrored.behind("g"), &times, AtFlags::empty()).unwrap();
    for name in ["f", "g"] {
        let (here, behind) = (
            std::fs::metadata(mirrored.at(name)).unwrap(),
            std::fs::metadata(mirrored.behind(name)).unwrap(),
        );
        assert_eq!((here.mtime(), here.mtime_nsec()), (behind.mtime(), behind.mtime_nsec()));
        assert_eq!((here.atime(), here.atime_nsec()), (behind.atime(), behind.atime_nsec()));
        assert_eq!((here.ctime(), here.ctime_nsec()), (behind.ctime(), behind.ctime_nsec()));
        assert_eq!((here.blocks(), here.blksize()), (behind.blocks(), behind.blksize()));
    }
}

/// Setuid, setgid, sticky (B35).
#[test]
fn special_mode_bits() {
    everywhere(|at| {
        write(at.join("f"), "");
        std::fs::set_permissions(at.join("f"), PermissionsExt::from_mode(0o6755)).unwrap();
        std::fs::create_dir(at.join("s")).unwrap();
        std::fs::set_permissions(at.join("s"), PermissionsExt::from_mode(0o3777)).unwrap();
        std::fs::create_dir(at.join("s/sub")).unwrap();
        assert_eq!(
            (perm(at.join("f")), perm(at.join("s")), perm(at.join("s/sub"))),
            (0o6755, 0o3777, 0o2755)
        );
    });
}

#[test]
fn special_files() {
    everywhere(|at| {
        let device = rustix::fs::makedev(259, 65_537);
        let kinds = [
            ("p", FileType::Fifo, 0),
            ("s", FileType::Socket, 0),
            ("c", FileType::CharacterDevice, rustix::fs::makedev(1, 3)),
            ("b", FileType::BlockDevice, device),
            ("r", FileType::RegularFile, 0),
        ];
        for (name, file_type, device) in kinds {
            rustix::fs::mknodat(CWD, at.join(name), file_type, Mode::from_raw_mode(0o640), device)
                .unwrap();
            let stat = rustix::fs::statat(CWD, at.join(name), AtFlags::SYMLINK_NOFOLLOW).unwrap();
            assert_eq!((FileType::from_raw_mode(stat.st_mode), stat.st_rdev), (file_type, device));
            assert_eq!(stat.st_mode & 0o7777, 0o640);
        }
        // The device is the system's, not a file of the mirror.
        std::fs::write(at.join("c"), "into /dev/null").unwrap();
        assert_eq!(std::fs::metadata(at.join("c")).unwrap().len(), 0);
    });
}

/// Sizes and errors of extended attributes, on every type of file (B51).
#[test]
fn extended_attributes() {
    everywhere(|at| {
        let f = at.join("f");
        write(&f, "");
        std::fs::set_permissions(&f, PermissionsExt::from_mode(0o400)).unwrap();
        let none = XattrFlags::empty();
        let mut buf = vec![0; 70_000];
        assert_eq!(rustix::fs::listxattr(&f, &mut buf[..]), Ok(0));
        rustix::fs::setxattr(&f, "user.k", &[7; 300], none).unwrap();
        assert_eq!(rustix::fs::getxattr_query(&f, "user.k"), Ok(300));
        assert_eq!(rustix::fs::getxattr(&f, "user.k", &mut buf[..10]), Err(Errno::RANGE));
        assert_eq!(rustix::fs::getxattr(&f, "user.k", &mut buf[..300]), Ok(300));
        rustix::fs::setxattr(&f, "user.empty", b"", none).unwrap();
        assert_eq!(rustix::fs::getxattr(&f, "user.empty", &mut buf[..]), Ok(0));
        assert_eq!(rustix::fs::setxattr(&f, "user.k", b"", XattrFlags::CREATE), Err(Errno::EXIST));
        assert_eq!(
            rustix::fs::setxattr(&f, "user.n", b"", XattrFlags::REPLACE),
            Err(Errno::NODATA)
        );
        assert_eq!(rustix::fs::getxattr(&f, "user.n", &mut buf[..]), Err(Errno::NODATA));
        assert_eq!(rustix::fs::removexattr(&f, "user.n"), Err(Errno::NODATA));
        assert_eq!(rustix::fs::setxattr(&f, "nonsense", b"", none), Err(Errno::OPNOTSUPP));
        rustix::fs::removexattr(&f, "user.k").unwrap();
        assert_eq!(rustix::fs::getxattr_query(&f, "user.k"), Err(Errno::NODATA));
        assert_eq!(rustix::fs::listxattr(&f, &mut buf[..]), Ok(11));

        std::fs::create_dir(at.join("d")).unwrap();
        std::os::unix::fs::symlink("f", at.join("l")).unwrap();
        for (name, file_type) in [("p", FileType::Fifo), ("s", FileType::Socket)] {
            rustix::fs::mknodat(CWD, at.join(name), file_type, Mode::from_raw_mode(0o600), 0)
                .unwrap();
        }
        for name in ["d", "l", "p", "s", "f"] {
            let path = at.join(name);
            rustix::fs::lsetxattr(&path, "trusted.k", name.as_bytes(), none).unwrap();
            assert_eq!(rustix::fs::lgetxattr(&path, "trusted.k", &mut buf[..]), Ok(1));
            assert_eq!(buf[0], name.as_bytes()[0]);
            // What only the privileged may see, the others don't.
            let listed = as_user(12_345, 12_345, &[], || {
                rustix::fs::llistxattr(&path, &mut [0; 99]).unwrap()
            });
            assert_eq!(listed, if name == "f" { 11 } else { 0 }, "{name}");
        }
        let refused = rustix::fs::lsetxattr(at.join("p"), "user.k", b"v", none);
        assert_eq!(refused, Err(Errno::PERM), "users' attributes are for files and directories");
    });
}

/// A value of 64 KiB needs a filesystem that takes it; ext4 takes less than a block.
#[test]
fn the_longest_extended_attribute() {
    everywhere(|at| {
        let large = vec![7; 65_536];
        let (plain, f) = (tempfile::NamedTempFile::new().unwrap(), at.join("f"));
        write(&f, "");
        let set = |path: &Path, size| {
            rustix::fs::setxattr(path, "user.k", &large[..size], XattrFlags::empty())
        };
        for size in [3000, 60_000, 65_536] {
            assert_eq!(set(&f, size), set(plain.path(), size), "{size} bytes");
        }
    });
}

/// `df` (B71).
#[test]
fn sizes_of_the_filesystem() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    let (here, behind) = (
        rustix::fs::statvfs(mirrored.at("")).unwrap(),
        rustix::fs::statvfs(mirrored.behind("")).unwrap(),
    );
    assert!(here.f_blocks > 0 && here.f_namemax == 255);
    assert_eq!(
        (here.f_bsize, here.f_frsize, here.f_blocks),
        (behind.f_bsize, behind.f_frsize, behind.f_blocks)
    );
    assert_eq!((here.f_files, here.f_namemax), (behind.f_files, behind.f_namemax));
    assert!(
        here.f_bavail.abs_diff(behind.f_bavail) < 10_000,
        "what users may use, not what is free"
    );
    assert!(here.f_bfree.abs_diff(behind.f_bfree) < 10_000);
}

/// Links of directories, and of what is in them.
#[test]
fn link_counts_and_times_follow_at_once() {
    everywhere(|at| {
        let meta = |path: &str| std::fs::metadata(at.join(path)).unwrap();
        std::fs::create_dir(at.join("d")).unwrap();
        assert_eq!(meta("d").nlink(), 2);
        std::fs::create_dir(at.join("d/e")).unwrap();
        assert_eq!(meta("d").nlink(), 3);
        let before = meta("d");
        std::thread::sleep(Duration::from_millis(20));
        File::create(at.join("d/f")).unwrap();
        let after = meta("d");
        assert!((after.mtime(), after.mtime_nsec()) > (before.mtime(), before.mtime_nsec()));
        std::fs::remove_dir(at.join("d/e")).unwrap();
        assert_eq!(meta("d").nlink(), 2);
        let before = meta("d/f");
        std::thread::sleep(Duration::from_millis(20));
        std::fs::set_permissions(at.join("d/f"), PermissionsExt::from_mode(0o600)).unwrap();
        let after = meta("d/f");
        assert!((after.ctime(), after.ctime_nsec()) > (before.ctime(), before.ctime_nsec()));
        assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
    });
}
