//! Whose files are, and who may do what.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};

use rustix::fs::{Access, AtFlags, CWD, FallocateFlags, FileType, Mode, XattrFlags};

use super::*;

const USER: u32 = 12_345;

fn owner(path: impl AsRef<Path>) -> (u32, u32) {
    let meta = std::fs::symlink_metadata(path).unwrap();
    (meta.uid(), meta.gid())
}

fn chmod(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// New files are the caller's, in a setgid directory with its group (B37).
#[test]
fn new_files_are_the_callers() {
    everywhere(|at| {
        for (dir, mode, group) in [("plain", 0o777, USER), ("setgid", 0o2777, 4242)] {
            let dir = at.join(dir);
            std::fs::create_dir(&dir).unwrap();
            chown(&dir, None, Some(4242)).unwrap();
            chmod(&dir, mode);
            as_user(USER, USER, &[], || {
                File::create(dir.join("f")).unwrap();
                std::fs::create_dir(dir.join("d")).unwrap();
                symlink("f", dir.join("l")).unwrap();
                rustix::fs::mknodat(
                    CWD,
                    dir.join("p"),
                    FileType::Fifo,
                    Mode::from_raw_mode(0o644),
                    0,
                )
                .unwrap();
                std::fs::hard_link(dir.join("f"), dir.join("h")).unwrap();
                std::os::unix::net::UnixListener::bind(dir.join("s")).unwrap();
            });
            for name in ["f", "d", "l", "p", "h", "s"] {
                assert_eq!(owner(dir.join(name)), (USER, group), "{dir:?} {name}");
            }
            assert_eq!(perm(dir.join("d")) & 0o2000, mode & 0o2000);
        }
        // And root's are root's again afterwards.
        File::create(at.join("mine")).unwrap();
        assert_eq!(owner(at.join("mine")), (0, 0));
    });
}

/// Supplementary groups count, also to make something (B38).
#[test]
fn permissions_are_checked_with_all_groups() {
    everywhere(|at| {
        write(at.join("group"), "seen");
        chown(at.join("group"), None, Some(27)).unwrap();
        chmod(at.join("group"), 0o040);
        write(at.join("others"), "");
        chown(at.join("others"), None, Some(27)).unwrap();
        chmod(at.join("others"), 0o004);
        std::fs::create_dir(at.join("shared")).unwrap();
        chown(at.join("shared"), None, Some(27)).unwrap();
        chmod(at.join("shared"), 0o770);
        as_user(USER, USER, &[27], || {
            assert_eq!(read(at.join("group")), "seen");
            let may = |name: &str, access| {
                rustix::fs::accessat(CWD, at.join(name), access, AtFlags::EACCESS).is_ok()
            };
            assert!(
                may("group", Access::READ_OK)
                    && !may("others", Access::READ_OK)
                    && !may("group", Access::WRITE_OK)
            );
            write(at.join("shared/f"), "");
        });
        assert_eq!(owner(at.join("shared/f")), (USER, USER));
        as_user(USER, USER, &[], || {
            assert_eq!(errno(File::open(at.join("group"))), libc::EACCES);
            assert_eq!(errno(std::fs::metadata(at.join("shared/f"))), libc::EACCES);
        });
        // What others looked up is not open to everybody.
        chmod(at.join("shared"), 0o700);
        as_user(USER, USER, &[27], || {
            assert_eq!(errno(File::open(at.join("shared/f"))), libc::EACCES)
        });
    });
}

/// Setuid and setgid don't survive a change by who isn't privileged, nor any change of owner (B36).
#[test]
fn setuid_is_cleared() {
    everywhere(|at| {
        let fresh = |name: &str| {
            let path = at.join(name);
            let _ = std::fs::remove_file(&path);
            write(&path, "content");
            chmod(&path, 0o6777);
            assert_eq!(perm(&path), 0o6777);
            path
        };
        let open = |path: &Path| OpenOptions::new().write(true).open(path).unwrap();
        let as_them = |work: &(dyn Fn(&Path) + Sync)| {
            let path = fresh("f");
            as_user(USER, USER, &[], || work(&path));
            perm(&path)
        };
        assert_eq!(as_them(&|path| open(path).write_all(b"x").unwrap()), 0o777, "write");
        assert_eq!(as_them(&|path| open(path).set_len(1).unwrap()), 0o777, "ftruncate");
        assert_eq!(as_them(&|path| drop(File::create(path).unwrap())), 0o777, "open with O_TRUNC");
        let allocate = |path: &Path| {
            rustix::fs::fallocate(open(path), FallocateFlags::empty(), 0, 9999).unwrap()
        };
        assert_eq!(as_them(&allocate), 0o777, "fallocate");

        let path = fresh("f");
        open(&path).write_all(b"x").unwrap();
        assert_eq!(perm(&path), 0o6777, "root may write without clearing them");
        for (uid, gid) in [(Some(USER), None), (None, Some(USER)), (None, None)] {
            let path = fresh("g");
            chown(&path, uid, gid).unwrap();
            assert_eq!(perm(&path), 0o777, "chown to {uid:?} {gid:?}");
        }
        // Where the group may not run it, its members leave the bit alone.
        let group = std::os::unix::fs::MetadataExt::gid(&std::fs::metadata(fresh("h")).unwrap());
        for (groups, left) in [(&[][..], 0o767), (&[group][..], 0o2767)] {
            let path = fresh("h");
            chmod(&path, 0o6767);
            as_user(USER, USER, groups, || open(&path).write_all(b"x").unwrap());
            assert_eq!(perm(&path), left, "groups {groups:?}");
        }
    });
}

/// The right to do more goes with the first change by another (B52).
#[test]
fn file_capabilities_are_cleared() {
    everywhere(|at| {
        // Version 2: effective, CAP_NET_RAW permitted.
        let mut capability = [0_u8; 20];
        capability[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
        capability[5] = 0x20;
        let name = "security.capability";
        for change in ["write", "truncate", "fallocate", "chown"] {
            let path = at.join(change);
            write(&path, "content");
            chmod(&path, 0o777);
            rustix::fs::setxattr(&path, name, &capability, XattrFlags::empty()).unwrap();
            let open = || OpenOptions::new().write(true).open(&path).unwrap();
            match change {
                "chown" => chown(&path, Some(USER), None).unwrap(),
                _ => as_user(USER, USER, &[], || match change {
                    "write" => open().write_all(b"x").unwrap(),
                    "truncate" => open().set_len(1).unwrap(),
                    _ => rustix::fs::fallocate(open(), FallocateFlags::empty(), 0, 9999).unwrap(),
                }),
            }
            assert_eq!(
                rustix::fs::getxattr_query(&path, name),
                Err(rustix::io::Errno::NODATA),
                "{change}"
            );
        }
    });
}

fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        bytes.extend([&tag.to_le_bytes()[..], &perm.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    bytes
}

const NO_ID: u32 = u32::MAX;

/// The umask counts once, and not at all under a default ACL (B39).
#[test]
fn the_umask_counts_once() {
    let _process = support::own_process();
    let everything = acl(&[(1, 7, NO_ID), (4, 7, NO_ID), (0x20, 7, NO_ID)]);
    everywhere(|at| {
        std::fs::create_dir(at.join("acl")).unwrap();
        rustix::fs::setxattr(
            at.join("acl"),
            "system.posix_acl_default",
            &everything,
            XattrFlags::empty(),
        )
        .unwrap();
        for (umask, file, dir) in [(0o077, 0o600, 0o700), (0o002, 0o664, 0o775), (0, 0o666, 0o777)]
        {
            let made = |dir: &Path, name: &str| {
                let path = dir.join(format!("{name}-{umask:o}"));
                let before = rustix::process::umask(Mode::from_raw_mode(umask));
                match name {
                    "file" => drop(
                        OpenOptions::new()
                            .write(true)
                            .create_new(true)
                            .mode(0o666)
                            .open(&path)
                            .unwrap(),
                    ),
                    "dir" => std::fs::create_dir(&path).unwrap(),
                    _ => rustix::fs::mknodat(
                        CWD,
                        &path,
                        FileType::Fifo,
                        Mode::from_raw_mode(0o666),
                        0,
                    )
                    .unwrap(),
                }
                rustix::process::umask(before);
                perm(path)
            };
            assert_eq!(
                (made(at, "file"), made(at, "dir"), made(at, "pipe")),
                (file, dir, file),
                "umask {umask:o}"
            );
            let acl = at.join("acl");
            assert_eq!(
                (made(&acl, "file"), made(&acl, "dir"), made(&acl, "pipe")),
                (0o666, 0o777, 0o666)
            );
        }
    });
}

/// An access ACL grants and denies what its entries say.
#[test]
fn access_acls_are_honoured() {
    everywhere(|at| {
        let f = at.join("f");
        write(&f, "seen");
        chmod(&f, 0o600);
        let granting =
            acl(&[(1, 6, NO_ID), (2, 4, USER), (4, 0, NO_ID), (0x10, 4, NO_ID), (0x20, 0, NO_ID)]);
        as_user(USER, USER, &[], || assert_eq!(errno(File::open(&f)), libc::EACCES));
        rustix::fs::setxattr(&f, "system.posix_acl_access", &granting, XattrFlags::empty())
            .unwrap();
        assert_eq!(perm(&f), 0o640, "the mask shows as the group's bits");
        as_user(USER, USER, &[], || {
            assert_eq!(read(&f), "seen");
            assert_eq!(errno(OpenOptions::new().write(true).open(&f)), libc::EACCES);
        });
        as_user(USER + 1, USER, &[], || assert_eq!(errno(File::open(&f)), libc::EACCES));
        // A smaller mode narrows the mask.
        chmod(&f, 0o600);
        as_user(USER, USER, &[], || assert_eq!(errno(File::open(&f)), libc::EACCES));
        rustix::fs::removexattr(&f, "system.posix_acl_access").unwrap();
        let mut buf = [0; 99];
        assert_eq!(
            rustix::fs::getxattr(&f, "system.posix_acl_access", &mut buf),
            Err(rustix::io::Errno::NODATA)
        );
    });
}

/// A mode that forbids what the descriptor may do (B24).
#[test]
fn a_new_read_only_file_can_be_written_by_its_maker() {
    everywhere(|at| {
        chmod(at, 0o777);
        as_user(USER, USER, &[], || {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o444)
                .open(at.join("f"))
                .unwrap();
            file.write_all_at(b"content", 0).unwrap();
            file.set_len(1).unwrap();
            rustix::fs::futimens(
                file.as_fd(),
                &rustix::fs::Timestamps {
                    last_access: rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 },
                    last_modification: rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 },
                },
            )
            .unwrap();
            assert_eq!(errno(OpenOptions::new().write(true).open(at.join("f"))), libc::EACCES);
            let none = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o0)
                .open(at.join("g"))
                .unwrap();
            none.write_all_at(b"x", 0).unwrap();
            none.set_len(0).unwrap();
            std::fs::remove_file(at.join("g")).unwrap();
        });
        assert_eq!((read(at.join("f")).as_str(), perm(at.join("f"))), ("c", 0o444));
    });
}

/// Only root gives files away; sticky directories protect from others.
#[test]
fn what_users_may_not() {
    everywhere(|at| {
        write(at.join("f"), "");
        std::fs::create_dir(at.join("sticky")).unwrap();
        chmod(at.join("sticky"), 0o1777);
        write(at.join("sticky/roots"), "");
        as_user(USER, USER, &[], || {
            assert_eq!(errno(chown(at.join("f"), Some(USER), None)), libc::EPERM);
            assert_eq!(
                errno(std::fs::set_permissions(at.join("f"), PermissionsExt::from_mode(0o777))),
                libc::EPERM
            );
            assert_eq!(errno(std::fs::remove_file(at.join("sticky/roots"))), libc::EPERM);
            write(at.join("sticky/mine"), "");
            assert_eq!(errno(chown(at.join("sticky/mine"), None, Some(0))), libc::EPERM);
            std::fs::remove_file(at.join("sticky/mine")).unwrap();
            let made = rustix::fs::mknodat(
                CWD,
                at.join("sticky/c"),
                FileType::CharacterDevice,
                Mode::from_raw_mode(0o600),
                0x103,
            );
            assert_eq!(made, Err(rustix::io::Errno::PERM));
        });
    });
}
