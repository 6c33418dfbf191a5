//! Extended attributes: sizes, errors, and every type of file.

use super::*;

fn get(world: &World, node: &MirrorRef<'_>, name: &str, size: usize) -> Result<Vec<u8>> {
    let mut buf = vec![0; size];
    let size = world.mirror.getxattr(&ME, node, OsStr::new(name), &mut buf)?;
    buf.truncate(size);
    Ok(buf)
}

#[test]
fn sizes_and_errors() {
    let world = World::new();
    world.write("f", "");
    let f = world.look("f").unwrap();
    let set = |name: &str, value: &[u8], flags| {
        world.mirror.setxattr(&ME, &f, OsStr::new(name), value, flags)
    };
    let mut none = [];
    assert_eq!(world.mirror.listxattr(&ME, &f, &mut none), Ok(0));
    set("user.k", &[7; 300], 0).unwrap();
    set("user.empty", b"", 0).unwrap();
    assert_eq!(
        world.mirror.getxattr(&ME, &f, OsStr::new("user.k"), &mut none),
        Ok(300),
        "only the size"
    );
    assert_eq!(get(&world, &f, "user.k", 10), Err(Errno::ERANGE));
    assert_eq!(get(&world, &f, "user.k", 300), Ok(vec![7; 300]));
    assert_eq!(get(&world, &f, "user.empty", 10), Ok(vec![]));
    assert_eq!(set("user.k", b"v", libc::XATTR_CREATE), Err(Errno::EEXIST));
    assert_eq!(set("user.none", b"v", libc::XATTR_REPLACE), Err(Errno::ENODATA));
    assert_eq!(get(&world, &f, "user.none", 10), Err(Errno::ENODATA));
    assert_eq!(world.mirror.removexattr(&ME, &f, OsStr::new("user.none")), Err(Errno::ENODATA));
    let mut buf = [0; 64];
    let size = world.mirror.listxattr(&ME, &f, &mut buf).unwrap();
    let mut names: Vec<_> = buf[..size].split_inclusive(|byte| *byte == 0).collect();
    names.sort();
    assert_eq!(names, [&b"user.empty\0"[..], b"user.k\0"]);
    assert_eq!(world.mirror.listxattr(&ME, &f, &mut buf[..3]), Err(Errno::ERANGE));
    world.mirror.removexattr(&ME, &f, OsStr::new("user.k")).unwrap();
    assert_eq!(get(&world, &f, "user.k", 300), Err(Errno::ENODATA));
}

#[test]
fn on_every_type_of_file_and_not_on_what_a_link_leads_to() {
    if !is_root() {
        return;
    }
    let world = World::new();
    std::fs::create_dir(world.source("d")).unwrap();
    world.write("f", "");
    std::os::unix::fs::symlink("f", world.source("l")).unwrap();
    let root = world.root();
    for (path, mode) in [("p", libc::S_IFIFO), ("s", libc::S_IFSOCK), ("c", libc::S_IFCHR)] {
        world.mirror.mknod(&ME, &root, name(path), mode | 0o644, 0, 0x103).unwrap();
    }
    for path in ["d", "l", "p", "s", "c", "f"] {
        let node = world.look(path).unwrap();
        assert_eq!(get(&world, &node, "trusted.k", 9), Err(Errno::ENODATA), "{path}");
        world.mirror.setxattr(&ME, &node, OsStr::new("trusted.k"), path.as_bytes(), 0).unwrap();
        assert_eq!(get(&world, &node, "trusted.k", 9).as_deref(), Ok(path.as_bytes()));
        let mut buf = [0; 64];
        assert_eq!(world.mirror.listxattr(&ME, &node, &mut buf), Ok(10));
        let caller = Request { uid: 12_345, ..ME };
        assert_eq!(world.mirror.listxattr(&caller, &node, &mut buf), Ok(0), "hidden from others");
    }
    for path in ["d", "l", "p", "s", "c", "f"] {
        let node = world.look(path).unwrap();
        world.mirror.removexattr(&ME, &node, OsStr::new("trusted.k")).unwrap();
    }
    let attr = world.attr(&world.look("c").unwrap()).unwrap();
    assert_eq!((attr.file_type, attr.rdev), (FileType::CharDevice, 0x103));
}
