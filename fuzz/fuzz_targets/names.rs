//! Any bytes as names: `Name` accepts what a file name may be and nothing else, and a path is the
//! names of the way joined by '/', whatever bytes they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinpath::{Inode, Kind, Name, PathError, Resolver};
use pinpath_testkit::is_name;
use std::os::unix::ffi::OsStrExt;

fuzz_target!(|input: Vec<Vec<u8>>| {
    let resolver: Resolver = Resolver::new(());
    let mut parent = Inode::ROOT;
    let mut way: Vec<&[u8]> = Vec::new();
    for bytes in &input {
        let name = Name::new(bytes);
        assert_eq!(name.is_ok(), is_name(bytes));
        let Ok(name) = name else { continue };
        assert_eq!((name.as_bytes(), name.as_os_str().as_bytes()), (&bytes[..], &bytes[..]));
        parent = resolver.lookup(parent, name, Kind::Directory, ()).unwrap();
        way.push(bytes);
        check_path(&resolver, parent, &way);
    }
    // Renaming what is uppermost changes the path of all below it.
    if let [uppermost, ..] = way[..] {
        let name = Name::new(uppermost).unwrap();
        let renamed = Name::new("renamed").unwrap();
        resolver.rename(Inode::ROOT, name, Inode::ROOT, renamed).unwrap();
        way[0] = b"renamed";
        check_path(&resolver, parent, &way);
        resolver.unlink(Inode::ROOT, renamed).unwrap();
        assert_eq!(resolver.path(parent), Err(PathError::Unlinked(parent)));
    }
    resolver.validate().unwrap();
});

fn check_path(resolver: &Resolver, inode: Inode, way: &[&[u8]]) {
    let expected = way.join(&b'/');
    let mut buffer = Vec::new();
    // The second time it may come from what was kept.
    for _ in 0..2 {
        resolver.path_into(inode, &mut buffer).unwrap();
        assert_eq!(buffer, expected);
    }
    let parts = resolver.parts_paths(inode);
    assert!(
        parts.len() == 1 && parts[0].iter().map(|part| part.as_bytes()).eq(way.iter().copied())
    );
}
