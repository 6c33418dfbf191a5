//! Sources and mountpoints of every kind.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use crate::running::{Daemon, Places, SOON, can_mount, mount_line, run};

#[test]
fn paths_of_any_bytes_work_and_are_shown() {
    if !can_mount("paths_of_any_bytes_work_and_are_shown") {
        return;
    }
    let names: [&[u8]; 3] = [b"a b,c\\d", b"new\nline", b"\xff\xfe"];
    for name in names {
        let places = Places::new();
        let name = OsString::from_vec(name.to_vec());
        let source = places.path().join("sources").join(&name);
        fs::create_dir_all(&source).expect("a source");
        fs::write(source.join("hello"), "hello\n").expect("a file");
        let mountpoint = places.path().join(&name);
        let daemon = Daemon::start(&[&source, &mountpoint], &mountpoint);
        assert_eq!(fs::read(mountpoint.join("hello")).expect("a file"), b"hello\n", "{name:?}");
        let (_, fs_type, shown) = mount_line(&mountpoint).expect("a mount");
        assert_eq!(fs_type, "fuse.pinpath");
        assert_eq!(shown.to_string_lossy(), source.to_string_lossy(), "{name:?}");
        daemon.stop();
    }
}

#[test]
fn a_directory_can_be_mirrored_over_itself() {
    if !can_mount("a_directory_can_be_mirrored_over_itself") {
        return;
    }
    let places = Places::new();
    let source = places.source();
    let daemon = Daemon::start(&[&source, &source], &source);
    assert_eq!(fs::read(source.join("hello")).expect("a file"), b"hello\n");
    fs::write(source.join("through"), "the mount").expect("a write");
    let (_, fs_type, _) = mount_line(&source).expect("a mount");
    assert_eq!(fs_type, "fuse.pinpath");
    daemon.stop();
    assert_eq!(fs::read(source.join("through")).expect("a file"), b"the mount");
}

#[test]
fn a_mountpoint_inside_the_source_hangs_nobody() {
    if !can_mount("a_mountpoint_inside_the_source_hangs_nobody") {
        return;
    }
    let places = Places::new();
    let inside = places.source().join("inside");
    let daemon = Daemon::start(&[&places.source(), &inside], &inside);
    let found = run(Command::new("find").arg(&inside), SOON);
    assert!(found.out().contains("inside/hello"), "{found:?}");
    run(Command::new("ls").arg(inside.join("inside/inside/inside")), SOON);
    run(Command::new("df").arg(&inside), SOON);
    daemon.stop();
    assert!(!inside.exists());
}
