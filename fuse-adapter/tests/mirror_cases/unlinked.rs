//! Files that are in use without a name, or under another.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, XattrFlags};

use super::*;

fn read_write(path: impl AsRef<Path>) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Temporary files are used like this by every second program (B01).
#[test]
fn an_unlinked_open_file() {
    everywhere(|at| {
        let file = read_write(at.join("t"));
        file.write_all_at(b"hello", 0).unwrap();
        std::fs::remove_file(at.join("t")).unwrap();
        file.set_len(2).unwrap();
        file.set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
        rustix::fs::fsetxattr(&file, "user.k", b"v", XattrFlags::empty()).unwrap();
        let meta = file.metadata().unwrap();
        assert_eq!((meta.nlink(), meta.len(), meta.mode() & 0o777), (0, 2, 0o600));
        let mut buf = [0; 9];
        assert_eq!(file.read_at(&mut buf, 0).unwrap(), 2);
        assert_eq!(rustix::fs::fgetxattr(&file, "user.k", &mut buf), Ok(1));
        let proc = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let linked = rustix::fs::linkat(CWD, &*proc, CWD, at.join("back"), AtFlags::SYMLINK_FOLLOW);
        assert_eq!(linked, Err(rustix::io::Errno::NOENT));
        // Once more, through the descriptor.
        let again = File::open(&proc).unwrap();
        assert_eq!(again.metadata().unwrap().len(), 2);
        // A new file of that name is another.
        write(at.join("t"), "another");
        assert_eq!((file.metadata().unwrap().len(), read(at.join("t")).as_str()), (2, "another"));
    });
}

/// dpkg does this to its status file (B02).
#[test]
fn a_target_of_a_rename_that_is_open() {
    everywhere(|at| {
        write(at.join("a"), "new");
        write(at.join("b"), "old");
        let file = read_write(at.join("b"));
        std::fs::rename(at.join("a"), at.join("b")).unwrap();
        let before = std::fs::metadata(at.join("b")).unwrap();
        assert_eq!((file.metadata().unwrap().nlink(), file.metadata().unwrap().len()), (0, 3));
        file.set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
        file.set_len(1).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let mut buf = [0; 9];
        assert_eq!(file.read_at(&mut buf, 0).unwrap(), 1);
        let after = std::fs::metadata(at.join("b")).unwrap();
        assert_eq!(read(at.join("b")), "new");
        assert_eq!(
            (before.mode(), before.len(), before.mtime()),
            (after.mode(), after.len(), after.mtime())
        );
    });
}

/// What a shell does with a pipe between two commands that it starts.
#[test]
fn an_unlinked_pipe_that_is_open() {
    everywhere(|at| {
        rustix::fs::mknodat(CWD, at.join("p"), FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        let pipe = read_write(at.join("p"));
        std::fs::remove_file(at.join("p")).unwrap();
        let meta = pipe.metadata().unwrap();
        assert!(meta.file_type().is_fifo());
        assert_eq!(meta.nlink(), 0);
        pipe.set_permissions(PermissionsExt::from_mode(0o640)).unwrap();
        assert_eq!(pipe.metadata().unwrap().mode() & 0o777, 0o640);
    });
}

#[test]
fn a_removed_directory_that_is_open() {
    everywhere(|at| {
        std::fs::create_dir(at.join("d")).unwrap();
        std::fs::create_dir(at.join("e")).unwrap();
        let open = File::open(at.join("d")).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let held = rustix::fs::openat(CWD, at.join("e"), flags, Mode::empty()).unwrap();
        for (name, fd) in [("d", open.as_fd()), ("e", held.as_fd())] {
            std::fs::remove_dir(at.join(name)).unwrap();
            let stat = rustix::fs::fstat(fd).unwrap();
            assert_eq!(FileType::from_raw_mode(stat.st_mode), FileType::Directory, "{name}");
            let made = rustix::fs::mkdirat(fd, "x", Mode::from_raw_mode(0o755));
            assert_eq!(made, Err(rustix::io::Errno::NOENT));
            let opened = rustix::fs::openat(
                fd,
                "f",
                OFlags::CREATE | OFlags::RDWR,
                Mode::from_raw_mode(0o600),
            );
            assert_eq!(opened.map(drop), Err(rustix::io::Errno::NOENT));
        }
    });
}

/// The original name removed, the other used, the first made anew (B13).
#[test]
fn a_hard_link_outlives_the_first_name() {
    everywhere(|at| {
        write(at.join("a"), "1");
        std::fs::hard_link(at.join("a"), at.join("b")).unwrap();
        std::fs::remove_file(at.join("a")).unwrap();
        assert_eq!(read(at.join("b")), "1");
        write(at.join("a"), "fresh");
        assert_eq!(read(at.join("b")), "1");
        assert_eq!(std::fs::metadata(at.join("b")).unwrap().nlink(), 1);
        std::fs::rename(at.join("b"), at.join("c")).unwrap();
        assert_eq!((read(at.join("c")).as_str(), read(at.join("a")).as_str()), ("1", "fresh"));
    });
}

/// A change through one name is seen through the other (B12).
#[test]
fn hard_links_are_one_file() {
    let same = |one: &Path, other: &Path| {
        let (one, other) = (std::fs::metadata(one).unwrap(), std::fs::metadata(other).unwrap());
        assert_eq!((one.ino(), one.len(), one.nlink()), (other.ino(), other.len(), other.nlink()));
        assert_eq!((one.mode(), one.mtime_nsec()), (other.mode(), other.mtime_nsec()));
        (one.len(), one.nlink())
    };
    everywhere(|at| {
        let (f1, f2, f3) = (at.join("f1"), at.join("f2"), at.join("f3"));
        write(&f1, "first\n");
        std::fs::hard_link(&f1, &f2).unwrap();
        assert_eq!(same(&f1, &f2), (6, 2));
        let append = OpenOptions::new().append(true).open(&f1).unwrap();
        std::io::Write::write_all(&mut &append, b"more\n").unwrap();
        assert_eq!(same(&f1, &f2), (11, 2));
        std::fs::set_permissions(&f1, PermissionsExt::from_mode(0o600)).unwrap();
        same(&f1, &f2);
        assert_eq!(read(&f2), "first\nmore\n");
        std::fs::hard_link(&f2, &f3).unwrap();
        assert_eq!((same(&f1, &f3), same(&f2, &f3)), ((11, 3), (11, 3)));
        std::fs::remove_file(&f1).unwrap();
        assert_eq!(same(&f2, &f3), (11, 2));
        // Renaming one over the other does nothing at all.
        std::fs::rename(&f2, &f3).unwrap();
        assert_eq!(same(&f2, &f3), (11, 2));
    });
    // Links that were there before the mount, or were made behind it.
    for cache in [Cache::None, Cache::Auto] {
        let source = open_directory();
        write(source.path().join("a"), "1");
        std::fs::hard_link(source.path().join("a"), source.path().join("b")).unwrap();
        let Some(mountpoint) = mountpoint() else { return };
        let mut options = MirrorOptions::default();
        options.cache = cache;
        let mirror = Mirror::open(source.path(), options).unwrap();
        let mirrored = Mirrored::of(mirror, mountpoint, source).unwrap();
        same(&mirrored.at("a"), &mirrored.at("b"));
        std::fs::hard_link(mirrored.behind("a"), mirrored.behind("c")).unwrap();
        write(mirrored.at("c"), "longer");
        assert_eq!(same(&mirrored.at("a"), &mirrored.at("c")), (6, 3));
        same(&mirrored.at("b"), &mirrored.at("c"));
    }
}

#[test]
fn a_second_name_of_a_socket_is_the_socket() {
    everywhere(|at| {
        let listener = std::os::unix::net::UnixListener::bind(at.join("s")).unwrap();
        std::fs::hard_link(at.join("s"), at.join("s2")).unwrap();
        std::os::unix::net::UnixStream::connect(at.join("s2")).unwrap();
        listener.accept().unwrap();
    });
}
