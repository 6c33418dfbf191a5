//! As mount(8) and fstab call.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use super::assert_refused;
use crate::running::{
    PINPATH, Places, SOON, Unmounts, can_mount, has_program, is_mounted, mount_line, run,
};

/// The command under the name by which mount(8) calls it.
fn helper(places: &Places) -> Command {
    let mut command = Command::new(PINPATH);
    command.arg0("/sbin/mount.fuse.pinpath").arg(places.source()).arg(places.mountpoint());
    command
}

#[test]
fn it_mounts_in_the_background_without_a_word() {
    if !can_mount("it_mounts_in_the_background_without_a_word") {
        return;
    }
    let places = Places::new();
    let _unmounts = Unmounts(places.mountpoint());
    let finished =
        run(helper(&places).args(["-n", "-s", "-o", "rw,noatime,_netdev,noauto,shiny"]), SOON);
    assert!(finished.status.success(), "{finished:?}");
    assert!(finished.stdout.is_empty() && finished.stderr.is_empty(), "{finished:?}");
    assert!(places.mountpoint().join("hello").exists());
    let (options, ..) = mount_line(&places.mountpoint()).expect("a mount");
    // mount(8) doesn't pass on `suid` and `dev`: they are its defaults.
    assert!(!options.contains("nosuid") && !options.contains("nodev"), "{options}");
    assert!(run(Command::new("umount").arg(places.mountpoint()), SOON).status.success());
}

#[test]
fn options_it_does_not_know_are_refused_unless_sloppy() {
    let places = Places::new();
    assert_refused(
        &run(helper(&places).args(["-o", "rw,shiny"]), SOON),
        &["unknown mount option", "shiny"],
    );
    assert!(run(helper(&places).args(["-f", "-s", "-o", "rw,shiny"]), SOON).status.success());
    assert!(!is_mounted(&places.mountpoint()), "-f mounts nothing");
}

/// Runs a script of mount(8) in a mount namespace of its own, where programs can be put into
/// /sbin: `$0` is the command, `$1` the folder of the places.
fn with_own_sbin(script: &str, places: &Places) -> String {
    let setup = r#"
        set -e
        cd "$1"
        mkdir over
        mount -t tmpfs none over
        mkdir over/upper over/work
        mount -t overlay -o lowerdir=/usr/sbin,upperdir=over/upper,workdir=over/work overlay /usr/sbin
        trap 'umount -l mnt 2>/dev/null || true' EXIT
    "#;
    let mut command = Command::new("unshare");
    command
        .args(["-m", "--propagation", "private", "sh", "-c", &format!("{setup}{script}"), PINPATH])
        .arg(places.path());
    let finished = run(&mut command, Duration::from_secs(60));
    assert!(finished.status.success(), "{finished:?}");
    assert_eq!(finished.stderr, "");
    finished.out()
}

#[test]
fn mount_and_remount_and_fstab() {
    if !can_mount("mount_and_remount_and_fstab") {
        return;
    }
    let places = Places::new();
    let script = r#"
        ln -s "$0" /usr/sbin/mount.fuse.pinpath
        mount -t fuse.pinpath "$1/source" "$1/mnt" -o rw,allow_other,_netdev
        cat mnt/hello
        echo "first: $(findmnt -no FSTYPE,SOURCE "$1/mnt")"
        mount -o remount,ro "$1/mnt"
        if touch mnt/new 2>/dev/null; then echo "writable after remount,ro"; fi
        mount -o remount,rw "$1/mnt"
        touch mnt/new && echo "writable again"
        umount mnt

        echo "$1/source $1/mnt fuse.pinpath ro,noauto,nofail,x-systemd.automount 0 0" > fstab
        mount -T fstab "$1/mnt"
        cat mnt/hello
        if touch mnt/other 2>/dev/null; then echo "writable by fstab's ro"; fi
        umount mnt
    "#;
    let source = places.source();
    let expected =
        format!("hello\nfirst: fuse.pinpath {}\nwritable again\nhello\n", source.display());
    assert_eq!(with_own_sbin(script, &places), expected);
}

/// Without a helper of its own in /sbin, mount(8) asks libfuse's, which runs the command.
#[test]
fn mount_by_way_of_libfuse() {
    let test = "mount_by_way_of_libfuse";
    if !can_mount(test) || !has_program(test, "mount.fuse3") {
        return;
    }
    let script = r#"
        ln -s "$0" /usr/sbin/pinpath
        mount -t fuse.pinpath "$1/source" "$1/mnt" -o noatime
        cat mnt/hello
        findmnt -no FSTYPE,OPTIONS "$1/mnt" | cut -d, -f1-2
        umount mnt
    "#;
    let said = with_own_sbin(script, &Places::new());
    assert_eq!(said, "hello\nfuse.pinpath rw,noatime\n");
}
