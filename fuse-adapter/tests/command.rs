//! The command `pinpath` as a user meets it: its messages, its signals, its way to the background.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

mod running;

use running::{
    Daemon, Finished, PINPATH, Places, SOON, Unmounts, can_mount, is_mounted, mount_line, run, sh, until,
};

/// An idle mount is gone within this.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Runs `pinpath mirror` with these arguments; for calls that return by themselves.
fn mirror<S: AsRef<OsStr>>(arguments: &[S]) -> Finished {
    run(Command::new(PINPATH).arg("mirror").args(arguments), SOON)
}

/// The command must have failed as a user can understand: with status 1, and these words.
#[track_caller]
fn assert_refused(finished: &Finished, words: &[&str]) {
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    for word in words {
        assert!(finished.stderr.contains(word), "no {word:?} in: {}", finished.stderr);
    }
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("backtrace"), "{}", finished.stderr);
}

mod what_is_wrong {
    use super::*;

    #[test]
    fn no_such_source() {
        let places = Places::new();
        let refused = mirror(&[places.path().join("none"), places.path().join("new")]);
        assert_refused(&refused, &["source", "none", "does not exist"]);
        assert!(!places.path().join("new").exists(), "a mountpoint was left behind");
    }

    #[test]
    fn a_source_that_is_a_file() {
        let places = Places::new();
        let refused = mirror(&[places.source().join("hello"), places.path().join("new")]);
        assert_refused(&refused, &["hello", "not a directory"]);
        assert!(!places.path().join("new").exists(), "a mountpoint was left behind");
    }

    #[test]
    fn a_mountpoint_that_is_a_file() {
        let places = Places::new();
        let file = places.path().join("file");
        fs::write(&file, "").expect("a file");
        let refused = mirror(&[places.source(), file]);
        assert_refused(&refused, &["mountpoint", "file", "not a directory"]);
    }

    #[test]
    fn a_mountpoint_without_a_parent() {
        let places = Places::new();
        let refused = mirror(&[places.source(), places.path().join("a/b")]);
        assert_refused(&refused, &["mountpoint", "parent"]);
    }

    #[test]
    fn missing_and_unknown_arguments() {
        assert_refused(&mirror(&["/"]), &["MOUNTPOINT"]);
        assert_refused(&mirror(&["/", "/mnt", "--shiny"]), &["--shiny"]);
        assert_refused(&mirror(&["/", "/mnt", "--readers", "0"]), &["readers", "from 1"]);
        assert_refused(&mirror(&["/", "/mnt", "-o", "rw,shiny"]), &["unknown mount option", "shiny"]);
        assert_refused(&run(Command::new(PINPATH).arg("miror"), SOON), &["miror", "mirror"]);
    }

    #[test]
    fn help_is_no_error() {
        let help = mirror(&["--help"]);
        assert!(help.status.success() && help.stderr.is_empty());
        for word in ["SOURCE", "MOUNTPOINT", "--clear-stale", "Examples", "fstab"] {
            assert!(help.out().contains(word), "no {word} in {}", help.out());
        }
        assert!(run(Command::new(PINPATH).arg("--version"), SOON).status.success());
    }

    /// Runs in a mount namespace of its own, as `user`, after `setup`.
    fn in_namespace(setup: &str, user: &str, places: &Places) -> Finished {
        // The tests' own folder may be closed to that user.
        let program = places.path().join("pinpath");
        fs::copy(PINPATH, &program).expect("a copy of the program");
        running::open_to_all(&program);
        let script = format!("setpriv=$(command -v setpriv) && {setup} && exec {user} \"$0\" mirror \"$1\" \"$2\"");
        run(
            Command::new("unshare")
                .args(["-m", "sh", "-c", &script])
                .arg(&program)
                .arg(places.source())
                .arg(places.mountpoint()),
            SOON,
        )
    }

    const NOBODY: &str = "$setpriv --reuid 65534 --regid 65534 --clear-groups";

    #[test]
    fn no_device() {
        if !can_mount("no_device") {
            return;
        }
        let places = Places::new();
        let refused = in_namespace("mount -t tmpfs none /dev", "", &places);
        assert_refused(&refused, &["no /dev/fuse", "modprobe fuse"]);
    }

    #[test]
    fn a_device_that_only_root_may_open() {
        if !can_mount("a_device_that_only_root_may_open") {
            return;
        }
        let places = Places::new();
        let device = "mount -t tmpfs none /dev && mknod -m 600 /dev/fuse c 10 229";
        assert_refused(&in_namespace(device, NOBODY, &places), &["/dev/fuse", "ermission denied", "root"]);
    }

    #[test]
    fn no_fusermount3() {
        if !can_mount("no_fusermount3") {
            return;
        }
        let places = Places::new();
        let device = "mount -t tmpfs none /dev && mknod -m 666 /dev/fuse c 10 229 && mknod -m 666 /dev/null c 1 3 \
                      && export PATH=/none";
        assert_refused(&in_namespace(device, NOBODY, &places), &["fusermount3", "install", "fuse3"]);
    }

    #[test]
    fn what_only_root_may_ask_for() {
        if !can_mount("what_only_root_may_ask_for") {
            return;
        }
        let places = Places::new();
        let program = places.path().join("pinpath");
        fs::copy(PINPATH, &program).expect("a copy of the program");
        running::open_to_all(&program);
        let mut command = Command::new(&program);
        command.arg("mirror").arg(places.source()).arg(places.mountpoint()).args(["-o", "suid"]);
        command.uid(65534).gid(65534);
        assert_refused(&run(&mut command, SOON), &["suid", "root"]);
    }
}

#[test]
fn mounted_twice_is_refused_and_the_first_lives_on() {
    if !can_mount("mounted_twice_is_refused_and_the_first_lives_on") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    let refused = mirror(&[places.source(), places.mountpoint()]);
    assert_refused(&refused, &["mounted there already", "umount"]);
    assert_eq!(fs::read(places.mountpoint().join("hello")).expect("a file"), b"hello\n");
    daemon.stop();
}

#[test]
fn one_line_says_what_is_mounted_where_and_how_to_stop_it() {
    if !can_mount("one_line_says_what_is_mounted_where_and_how_to_stop_it") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    let said = daemon.said();
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in [
        places.source().display().to_string(),
        format!("umount {}", places.mountpoint().display()),
        "Ctrl-C".into(),
    ] {
        assert!(said.contains(&word), "{said}");
    }
    assert_eq!(daemon.complained(), "");
    daemon.stop();
}

#[test]
fn signals_unmount_and_end_well() {
    if !can_mount("signals_unmount_and_end_well") {
        return;
    }
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let places = Places::new();
        let made = places.path().join("made");
        let mut daemon = Daemon::start(&[places.source(), made.clone()], &made);
        assert!(made.join("hello").exists());
        let begun = Instant::now();
        daemon.signal(signal);
        let status = daemon.wait(SOON);
        assert!(status.success(), "{signal:?}: {status}: {}", daemon.complained());
        assert!(begun.elapsed() < AT_ONCE, "{signal:?}: {:?}", begun.elapsed());
        assert!(!is_mounted(&made), "{signal:?}");
        assert!(!made.exists(), "{signal:?}: the mountpoint that was made is still there");
        assert_eq!(daemon.complained(), "", "{signal:?}");
    }
}

#[test]
fn a_mountpoint_that_was_there_stays() {
    if !can_mount("a_mountpoint_that_was_there_stays") {
        return;
    }
    let places = Places::new();
    fs::write(places.mountpoint().join("below"), "").expect("a file");
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    assert!(!places.mountpoint().join("below").exists());
    daemon.stop();
    assert!(places.mountpoint().join("below").exists());
}

#[test]
fn a_busy_mount_goes_out_of_sight_and_ends_with_its_last_user() {
    if !can_mount("a_busy_mount_goes_out_of_sight_and_ends_with_its_last_user") {
        return;
    }
    let places = Places::new();
    let made = places.path().join("made");
    let mut daemon = Daemon::start(&[places.source(), made.clone()], &made);
    let mut file = fs::File::options().read(true).append(true).open(made.join("hello")).expect("a file");
    daemon.signal(Signal::TERM);
    assert!(until(SOON, || !is_mounted(&made)), "still in sight");
    assert!(until(SOON, || daemon.complained().contains("second signal")), "{}", daemon.complained());
    assert!(daemon.complained().contains("still in use"), "{}", daemon.complained());
    // The open file works until it is closed.
    file.write_all(b"more\n").expect("a write");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("a read");
    drop(file);
    let status = daemon.wait(SOON);
    assert!(status.success(), "{status}: {}", daemon.complained());
    assert_eq!(fs::read(places.source().join("hello")).expect("a file"), b"hello\nmore\n");
    assert!(!made.exists());
}

#[test]
fn a_second_signal_ends_a_busy_mount_at_once() {
    if !can_mount("a_second_signal_ends_a_busy_mount_at_once") {
        return;
    }
    let places = Places::new();
    let made = places.path().join("made");
    let mut daemon = Daemon::start(&[places.source(), made.clone()], &made);
    let file = fs::File::open(made.join("hello")).expect("a file");
    daemon.signal(Signal::INT);
    assert!(until(SOON, || daemon.complained().contains("second signal")), "{}", daemon.complained());
    let begun = Instant::now();
    daemon.signal(Signal::INT);
    let status = daemon.wait(SOON);
    assert!(begun.elapsed() < 3 * AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(status.code(), Some(1), "{}", daemon.complained());
    assert!(file.metadata().is_err(), "the connection is still there");
    assert!(!is_mounted(&made) && !made.exists());
}

#[test]
fn unmounted_from_outside_it_ends_well() {
    if !can_mount("unmounted_from_outside_it_ends_well") {
        return;
    }
    for flag in [None, Some("-l")] {
        let places = Places::new();
        let mut daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
        let mut umount = Command::new("umount");
        umount.args(flag).arg(places.mountpoint());
        assert!(run(&mut umount, SOON).status.success());
        let status = daemon.wait(SOON);
        assert!(status.success(), "{status}: {}", daemon.complained());
        assert_eq!(daemon.complained(), "");
    }
}

mod in_the_background {
    use super::*;

    #[test]
    fn it_returns_when_the_mount_answers() {
        if !can_mount("it_returns_when_the_mount_answers") {
            return;
        }
        let places = Places::new();
        let made = places.path().join("made");
        let _unmounts = Unmounts(made.clone());
        for _ in 0..5 {
            // A pipe, as `$(...)` makes one: it must see an end.
            let script = format!(
                "said=$({PINPATH} mirror --background {} {made} 2>&1) && ls {made} && echo \"$said\"",
                places.source().display(),
                made = made.display(),
            );
            let out = sh(&script, SOON).expect_success();
            assert!(out.starts_with("hello\n") && out.contains("is mounted on"), "{out}");
            let umount = run(Command::new("umount").arg(&made), SOON);
            assert!(umount.status.success(), "{umount:?}");
            assert!(until(SOON, || !made.exists()), "the mountpoint is still there");
        }
    }

    #[test]
    fn it_holds_on_to_nothing_of_its_caller() {
        if !can_mount("it_holds_on_to_nothing_of_its_caller") {
            return;
        }
        let places = Places::new();
        let _unmounts = Unmounts(places.mountpoint());
        // A pipe, whose reader waits until everybody has let go of it.
        let script = "cd \"$1\" && \"$0\" mirror --background source \"$2\" 2>&1 | cat";
        let mut command = Command::new("sh");
        command.args(["-c", script, PINPATH]).arg(places.path()).arg(places.mountpoint());
        run(&mut command, SOON).expect_success();
        let pids = running::processes_with(&places.mountpoint());
        assert_eq!(pids.len(), 1, "{pids:?}");
        let proc = PathBuf::from(format!("/proc/{}", pids[0].as_raw_nonzero()));
        assert_eq!(fs::read_link(proc.join("cwd")).expect("a link"), Path::new("/"));
        for stream in ["fd/0", "fd/1", "fd/2"] {
            assert_eq!(fs::read_link(proc.join(stream)).expect("a link"), Path::new("/dev/null"), "{stream}");
        }
        let stat = fs::read_to_string(proc.join("stat")).expect("stat");
        let session = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3));
        assert_eq!(session, Some(pids[0].as_raw_nonzero().to_string().as_str()), "not a session of its own");
        assert!(run(Command::new("umount").arg(places.mountpoint()), SOON).status.success());
        assert!(until(SOON, || !proc.exists()), "the daemon is still there");
    }

    #[test]
    fn what_goes_wrong_is_said_and_is_the_exit_status() {
        let places = Places::new();
        let file = places.path().join("file");
        fs::write(&file, "").expect("a file");
        let arguments = [OsStr::new("--background"), places.source().as_os_str(), file.as_os_str()].map(OsString::from);
        assert_refused(&mirror(&arguments), &["mountpoint", "not a directory"]);
    }

    #[test]
    fn signals_end_it_as_well() {
        if !can_mount("signals_end_it_as_well") {
            return;
        }
        let places = Places::new();
        let _unmounts = Unmounts(places.mountpoint());
        let mut command = Command::new(PINPATH);
        command.args(["mirror", "--background"]).arg(places.source()).arg(places.mountpoint());
        assert!(run(&mut command, SOON).status.success());
        let pid = running::processes_with(&places.mountpoint())[0];
        rustix::process::kill_process(pid, Signal::TERM).expect("a process");
        assert!(until(SOON, || running::processes_with(&places.mountpoint()).is_empty()));
        assert!(!is_mounted(&places.mountpoint()));
    }
}

#[test]
fn a_dead_mount_is_recognised_and_cleared() {
    if !can_mount("a_dead_mount_is_recognised_and_cleared") {
        return;
    }
    for cache in ["none", "always"] {
        let places = Places::new();
        let arguments = [places.source(), places.mountpoint()];
        let mut daemon = Daemon::start(
            &[arguments[0].as_os_str(), arguments[1].as_os_str(), "--cache".as_ref(), cache.as_ref()],
            &places.mountpoint(),
        );
        // What the kernel remembers of it must not make it look alive.
        assert!(places.mountpoint().join("hello").exists());
        daemon.signal(Signal::KILL);
        daemon.wait(SOON);
        assert!(fs::read(places.mountpoint().join("hello")).is_err());

        let refused = mirror(&arguments);
        assert_refused(&refused, &["transport endpoint is not connected", "--clear-stale", "umount -l"]);
        let again = Daemon::start(
            &[arguments[0].as_os_str(), arguments[1].as_os_str(), "--clear-stale".as_ref()],
            &places.mountpoint(),
        );
        assert_eq!(fs::read(places.mountpoint().join("hello")).expect("a file"), b"hello\n");
        again.stop();
        assert!(!is_mounted(&places.mountpoint()), "{cache}: the dead mount is still below");
    }
}

#[test]
fn clearing_leaves_living_mounts_alone() {
    if !can_mount("clearing_leaves_living_mounts_alone") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    let arguments =
        [places.source().as_os_str(), places.mountpoint().as_os_str(), "--clear-stale".as_ref()].map(OsString::from);
    assert_refused(&mirror(&arguments), &["mounted there already"]);
    assert!(places.mountpoint().join("hello").exists());
    daemon.stop();
}

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

mod mount_options {
    use super::*;

    /// The kernel's view of a mount made with these options after `-o`.
    fn seen(list: &str) -> String {
        let places = Places::new();
        let daemon = Daemon::start(
            &[places.source().as_os_str(), places.mountpoint().as_os_str(), "-o".as_ref(), list.as_ref()],
            &places.mountpoint(),
        );
        let (options, ..) = mount_line(&places.mountpoint()).expect("a mount");
        daemon.stop();
        format!(",{options},")
    }

    #[test]
    fn each_option_reaches_the_kernel() {
        if !can_mount("each_option_reaches_the_kernel") {
            return;
        }
        let default = seen("defaults,_netdev,nofail,x-any=1");
        assert!(default.contains(",rw,") && default.contains(",nosuid,") && default.contains(",nodev,"), "{default}");
        let open = seen("suid,dev");
        assert!(!open.contains(",nosuid,") && !open.contains(",nodev,"), "{open}");
        for option in ["ro", "noexec", "noatime"] {
            assert!(seen(option).contains(&format!(",{option},")), "{option}");
        }
    }

    #[test]
    fn read_only_refuses_every_change() {
        if !can_mount("read_only_refuses_every_change") {
            return;
        }
        let places = Places::new();
        let daemon = Daemon::start(
            &[places.source().as_os_str(), places.mountpoint().as_os_str(), "--read-only".as_ref()],
            &places.mountpoint(),
        );
        let mountpoint = places.mountpoint();
        let read_only = Some(libc::EROFS);
        assert_eq!(fs::write(mountpoint.join("new"), "").expect_err("refused").raw_os_error(), read_only);
        assert_eq!(fs::write(mountpoint.join("hello"), "x").expect_err("refused").raw_os_error(), read_only);
        assert_eq!(fs::remove_file(mountpoint.join("hello")).expect_err("refused").raw_os_error(), read_only);
        assert_eq!(fs::create_dir(mountpoint.join("dir")).expect_err("refused").raw_os_error(), read_only);
        daemon.stop();
    }

    #[test]
    fn other_users_are_let_in_only_when_asked_and_checked_then() {
        if !can_mount("other_users_are_let_in_only_when_asked_and_checked_then") {
            return;
        }
        let places = Places::new();
        let secret = places.source().join("secret");
        fs::write(&secret, "secret\n").expect("a file");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("a mode");
        let as_nobody = |file: &str| {
            let mut cat = Command::new("cat");
            cat.arg(places.mountpoint().join(file)).uid(65534).gid(65534);
            run(&mut cat, SOON).status.success()
        };
        let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
        assert!(!as_nobody("hello"));
        daemon.stop();
        let daemon = Daemon::start(
            &[places.source().as_os_str(), places.mountpoint().as_os_str(), "--allow-other".as_ref()],
            &places.mountpoint(),
        );
        assert!(as_nobody("hello"));
        assert!(!as_nobody("secret"));
        daemon.stop();
    }
}

mod by_mount {
    use super::*;

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
        let finished = run(helper(&places).args(["-n", "-s", "-o", "rw,noatime,_netdev,noauto,shiny"]), SOON);
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
        assert_refused(&run(helper(&places).args(["-o", "rw,shiny"]), SOON), &["unknown mount option", "shiny"]);
        assert!(run(helper(&places).args(["-f", "-s", "-o", "rw,shiny"]), SOON).status.success());
        assert!(!is_mounted(&places.mountpoint()), "-f mounts nothing");
    }

    /// The real mount(8) with a helper in /sbin, in a mount namespace where that can be put there.
    #[test]
    fn mount_and_remount_and_fstab() {
        if !can_mount("mount_and_remount_and_fstab") {
            return;
        }
        let places = Places::new();
        for name in ["sbin", "upper", "work"] {
            fs::create_dir(places.path().join(name)).expect("a folder");
        }
        let script = r#"
            set -e
            cd "$1"
            mount -t tmpfs none upper
            mkdir upper/u upper/w
            mount -t overlay -o lowerdir=/usr/sbin,upperdir=upper/u,workdir=upper/w overlay /usr/sbin
            ln -s "$0" /usr/sbin/mount.fuse.pinpath
            trap 'umount -l mnt 2>/dev/null || true' EXIT

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
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", script, PINPATH]).arg(places.path());
        let finished = run(&mut command, Duration::from_secs(60));
        assert!(finished.status.success(), "{finished:?}");
        let source = places.source();
        let expected = format!("hello\nfirst: fuse.pinpath {}\nwritable again\nhello\n", source.display());
        assert_eq!(finished.out(), expected, "{}", finished.stderr);
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

#[test]
fn modes_and_limits_are_the_callers_and_the_machines() {
    if !can_mount("modes_and_limits_are_the_callers_and_the_machines") {
        return;
    }
    let places = Places::new();
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 077; ulimit -Sn 64; exec \"$@\"", "sh", PINPATH, "mirror"])
        .arg(places.source())
        .arg(places.mountpoint());
    let daemon = Daemon::start_command(&mut command, &places.mountpoint());
    let made = places.mountpoint().join("open");
    let touch = format!("umask 0; touch {}", made.display());
    sh(&touch, SOON).expect_success();
    assert_eq!(fs::metadata(places.source().join("open")).expect("a file").mode() & 0o7777, 0o666);
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.pid().as_raw_nonzero())).expect("limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let fields: Vec<_> = line.split_whitespace().collect();
    assert_eq!(fields[3], fields[4], "soft and hard differ");
    daemon.stop();
}

#[test]
fn the_log_reports_what_was_asked_for() {
    if !can_mount("the_log_reports_what_was_asked_for") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(
        &[places.source().as_os_str(), places.mountpoint().as_os_str(), "--log".as_ref(), "debug".as_ref()],
        &places.mountpoint(),
    );
    assert!(places.mountpoint().join("hello").exists());
    let log = daemon.complained();
    assert!(log.contains("DEBUG") || log.contains("INFO"), "{log}");
    daemon.stop();
}

/// The log of a mirror in the background goes to the file that the caller gave, and nowhere else.
#[test]
fn a_log_in_a_file_is_kept_in_the_background() {
    if !can_mount("a_log_in_a_file_is_kept_in_the_background") {
        return;
    }
    let places = Places::new();
    let _unmounts = Unmounts(places.mountpoint());
    let log = places.path().join("log");
    let script = format!(
        "{PINPATH} mirror --background --log debug {} {} 2>{} && umount {1}",
        places.source().display(),
        places.mountpoint().display(),
        log.display(),
    );
    sh(&script, SOON).expect_success();
    assert!(until(SOON, || running::processes_with(&places.mountpoint()).is_empty()));
    let text = fs::read_to_string(&log).expect("a log");
    assert!(!text.is_empty() && !text.contains('\x1b'), "{text}");
}
