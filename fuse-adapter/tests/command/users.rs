//! Who may mount: root, users with `fusermount3`, and nobody without a device.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use super::assert_refused;
use crate::running::{self, Finished, PINPATH, Places, SOON, can_mount, has_program, run};

/// Runs a script in a mount namespace of its own. In it, `$pinpath` is the command, `$source` and
/// `$mnt` are its arguments, and `$nobody` before a command runs that as another user.
fn in_namespace(script: &str, places: &Places) -> Finished {
    // The tests' own folder may be closed to that user.
    let program = places.path().join("pinpath");
    fs::copy(PINPATH, &program).expect("a copy of the program");
    running::open_to_all(&program);
    let setup = r#"
        set -e
        pinpath=$0 source=$1 mnt=$2
        nobody="$(command -v setpriv) --reuid 65534 --regid 65534 --clear-groups"
        hide_devices() { mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3; }
        open_device() { hide_devices && mknod -m 666 /dev/fuse c 10 229; }
    "#;
    run(
        Command::new("unshare")
            .args(["-m", "--propagation", "private", "sh", "-c", &format!("{setup}{script}")])
            .arg(&program)
            .arg(places.source())
            .arg(places.mountpoint()),
        SOON,
    )
}

fn give_to_nobody(places: &Places) {
    for path in [places.source(), places.source().join("hello"), places.mountpoint()] {
        chown(path, Some(65534), Some(65534)).expect("an owner");
    }
}

#[test]
fn without_a_device() {
    if !can_mount("without_a_device") {
        return;
    }
    let refused = in_namespace("hide_devices; exec $pinpath mirror $source $mnt", &Places::new());
    assert_refused(&refused, &["no /dev/fuse", "modprobe fuse"]);
}

#[test]
fn with_a_device_that_only_root_may_open() {
    if !can_mount("with_a_device_that_only_root_may_open") {
        return;
    }
    let script = "open_device; chmod 600 /dev/fuse; exec $nobody $pinpath mirror $source $mnt";
    assert_refused(
        &in_namespace(script, &Places::new()),
        &["/dev/fuse", "ermission denied", "root"],
    );
}

#[test]
fn without_fusermount3() {
    if !can_mount("without_fusermount3") {
        return;
    }
    let script = "open_device; PATH=/none; exec $nobody $pinpath mirror $source $mnt";
    assert_refused(
        &in_namespace(script, &Places::new()),
        &["fusermount3", "not here", "install it", "fuse3"],
    );
}

#[test]
fn what_only_root_may_ask_for() {
    if !can_mount("what_only_root_may_ask_for") {
        return;
    }
    for option in ["suid", "dev"] {
        let script = format!("exec $nobody $pinpath mirror $source $mnt -o {option}");
        assert_refused(&in_namespace(&script, &Places::new()), &[option, "is for root"]);
    }
}

#[test]
fn an_ordinary_user_mounts_and_unmounts() {
    let test = "an_ordinary_user_mounts_and_unmounts";
    if !can_mount(test) || !has_program(test, "fusermount3") {
        return;
    }
    let places = Places::new();
    give_to_nobody(&places);
    let script = r#"
        open_device
        $nobody $pinpath mirror --background "$source" "$mnt"
        $nobody cat "$mnt/hello"
        $nobody sh -c 'echo new > "$0/new"' "$mnt"
        findmnt -no FSTYPE,SOURCE "$mnt"
        $nobody fusermount3 -u "$mnt"

        $nobody $pinpath mirror "$source" "$mnt" & pid=$!
        until mountpoint -q "$mnt" || $nobody test -e "$mnt/hello"; do sleep 0.01; done
        kill -TERM $pid; wait $pid; echo "ended with $?"
        mountpoint -q "$mnt" || echo "gone"
    "#;
    let finished = in_namespace(script, &places);
    assert!(finished.status.success(), "{finished:?}");
    let (source, mnt) = (places.source(), places.mountpoint());
    let (source, mnt) = (source.display(), mnt.display());
    let expected = [
        format!("pinpath: {source} is mounted on {mnt}; to stop: fusermount3 -u {mnt}"),
        "hello".into(),
        format!("fuse.pinpath {source}"),
        format!("pinpath: {source} is mounted on {mnt}; to stop: Ctrl-C, or: fusermount3 -u {mnt}"),
        "ended with 0".into(),
        "gone".into(),
    ];
    assert_eq!(finished.out().lines().collect::<Vec<_>>(), expected, "{}", finished.stderr);
    assert_eq!(fs::read(places.source().join("new")).expect("a file"), b"new\n");
}

#[test]
fn a_user_may_not_mount_on_what_belongs_to_others() {
    let test = "a_user_may_not_mount_on_what_belongs_to_others";
    if !can_mount(test) || !has_program(test, "fusermount3") {
        return;
    }
    let script = "open_device; exec $nobody $pinpath mirror $source $mnt";
    let refused = in_namespace(script, &Places::new());
    assert_refused(&refused, &["not permitted", "directory of your own", "root"]);
}

#[test]
fn a_user_needs_leave_to_let_others_in() {
    let test = "a_user_needs_leave_to_let_others_in";
    if !can_mount(test) || !has_program(test, "fusermount3") {
        return;
    }
    let places = Places::new();
    give_to_nobody(&places);
    let script =
        "open_device; : > $source/../fuse.conf; mount --bind $source/../fuse.conf /etc/fuse.conf
                  exec $nobody $pinpath mirror --allow-other $source $mnt";
    assert_refused(&in_namespace(script, &places), &["user_allow_other", "/etc/fuse.conf"]);
}

/// The mount of a daemon that is killed is gone by itself.
#[test]
fn auto_unmount_outlives_the_daemon() {
    let test = "auto_unmount_outlives_the_daemon";
    if !can_mount(test) || !has_program(test, "fusermount3") {
        return;
    }
    let places = Places::new();
    let arguments = [places.source().into_os_string(), places.mountpoint().into_os_string()];
    let options = ["-o", "auto_unmount,allow_other"].map(Into::into);
    let mut daemon =
        running::Daemon::start(&[&arguments[..], &options].concat(), &places.mountpoint());
    assert!(places.mountpoint().join("hello").exists());
    daemon.signal(rustix::process::Signal::KILL);
    daemon.wait(SOON);
    assert!(running::until(SOON, || !running::is_mounted(&places.mountpoint())), "still mounted");
}
