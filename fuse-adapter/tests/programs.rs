//! Real programs in a mirror behave as on a directory of the disk.
//!
//! Each test does the same work twice, in a plain directory and in the mount, and expects the same
//! answers; then mount and source show the same tree, and all of it can be removed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};

mod running;

use running::tree::assert_equal;
use running::{Daemon, Places, SOON, can_mount, has_program, run, run_ok, until};

/// The longest that one program may take.
const LIMIT: Duration = Duration::from_secs(240);

/// Where some work is done, and what may be used for it.
struct Workplace<'a> {
    /// The directory, on the disk or in the mount.
    folder: PathBuf,
    /// What was made beforehand, on the disk, the same for both.
    given: &'a Path,
}

impl Workplace<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs a line of shell in the folder; `$GIVEN` is what was made beforehand.
    #[track_caller]
    fn sh(&self, script: &str) -> String {
        let mut command = Command::new("bash");
        command
            .args(["-c", &format!("set -euo pipefail\n{script}")])
            .current_dir(&self.folder)
            .env("GIVEN", self.given)
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        run_ok(&mut command, LIMIT)
    }
}

/// Does `work` on the disk and in a mirror. `prepare` makes what both start from.
#[track_caller]
fn same_in_both(
    test: &str,
    programs: &[&str],
    prepare: impl Fn(&Path),
    work: impl Fn(&Workplace<'_>) -> String,
) {
    if !can_mount(test) || !programs.iter().all(|program| has_program(test, program)) {
        return;
    }
    let places = Places::new();
    let given = places.path().join("given");
    fs::create_dir(&given).expect("a folder");
    prepare(&given);
    let arguments = [places.source().into_os_string(), places.mountpoint().into_os_string()];
    let options = ["--allow-other", "-o", "suid,dev"].map(Into::into);
    let daemon = Daemon::start(&[&arguments[..], &options[..]].concat(), &places.mountpoint());

    let at = |folder: PathBuf| {
        fs::create_dir(&folder).expect("a folder");
        work(&Workplace { folder, given: &given })
    };
    let on_disk = at(places.path().join("plain"));
    let in_mount = at(places.mountpoint().join("work"));
    assert_eq!(on_disk, in_mount, "on the disk, and in the mount");
    assert_equal(&places.mountpoint().join("work"), &places.source().join("work"));

    run_ok(Command::new("rm").arg("-rf").arg(places.mountpoint().join("work")), LIMIT);
    assert!(!places.source().join("work").exists() && !places.mountpoint().join("work").exists());
    assert!(until(SOON, || daemon.complained().is_empty()), "{}", daemon.complained());
    daemon.stop();
}

/// A repository with a thousand files and a little history.
fn repository(given: &Path) {
    let root = given.join("origin");
    for number in 0..1000 {
        let folder = root.join(format!("folder{}/sub{}", number % 20, number % 3));
        fs::create_dir_all(&folder).expect("a folder");
        let text = format!("file {number}\n").repeat(number % 50 + 1);
        fs::write(folder.join(format!("file{number}.txt")), text).expect("a file");
    }
    fs::write(root.join("run.sh"), "#!/bin/sh\necho ran\n").expect("a file");
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("a mode");
    symlink("folder0/sub0", root.join("link")).expect("a link");
    let place = Workplace { folder: root, given };
    place.sh(&format!(
        "{GIT}
         git init -q -b main . && git add -A && git commit -q -m one
         for f in folder1/sub*/*.txt; do echo changed >> $f; done
         git rm -q -r folder2/sub2 && git mv folder3 moved && git add -A && git commit -q -m two"
    ));
}

/// The same commits wherever and whenever they are made, whoever makes them.
const GIT: &str = "
    export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE='2026-01-01T00:00:00Z'
    export GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@example.org GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
    export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=gc.auto GIT_CONFIG_VALUE_0=0
    export GIT_CONFIG_KEY_1=advice.detachedHead GIT_CONFIG_VALUE_1=false
";

#[test]
fn git() {
    same_in_both("git", &["git"], repository, |place| {
        place.sh(&format!(
            "{GIT}
             git clone -q $GIVEN/origin clone
             cd clone
             echo status:; git status --porcelain
             ls -R | wc -l; ./run.sh; readlink link
             git clone -q . ../second            # within the mount: hard links
             git -C ../second fsck --full --strict
             for f in folder4/sub*/*.txt; do echo more >> $f; done
             rm -r folder5; echo new > new.txt
             echo changes:; git status --porcelain
             git add -A; git commit -q -m three; git rev-parse HEAD
             git checkout -q HEAD~2; git status --porcelain; git checkout -q main
             git branch side; git stash list; echo edit >> new.txt; git stash -q; git status --porcelain; git stash pop -q
             git reset -q --hard
             git gc -q; git fsck --full --strict; git count-objects -v | grep -E '^(count|in-pack|packs|garbage)'
             echo end:; git status --porcelain; git log --oneline | wc -l
             git -C ../second pull -q; git -C ../second rev-parse HEAD; git -C ../second status --porcelain"
        ))
    });
}

/// One of everything that a tree can hold.
fn one_of_everything(given: &Path) {
    let root = given.join("tree");
    fs::create_dir_all(root.join("a/b/c")).expect("folders");
    fs::create_dir(root.join("empty")).expect("a folder");
    for number in 0..300 {
        let text = format!("{number} ").repeat(number * 7);
        fs::write(root.join(format!("a/b/file{number}")), text).expect("a file");
    }
    fs::write(root.join("large"), vec![7; 3 << 20]).expect("a file");
    for name in
        [&b"blank s"[..], b"new\nline", b"\xff\xfe not utf8", b"-dash", "\u{fc}ber".as_bytes()]
    {
        fs::write(root.join(std::ffi::OsStr::from_bytes(name)), name).expect("a file");
    }
    fs::write(root.join("x".repeat(255)), "long name").expect("a file");
    fs::hard_link(root.join("large"), root.join("a/large again")).expect("a link");
    fs::hard_link(root.join("a/b/file1"), root.join("a/b/c/first")).expect("a link");
    fs::hard_link(root.join("a/b/file1"), root.join("second")).expect("a link");
    symlink("a/b/file1", root.join("to a file")).expect("a link");
    symlink("nowhere/at all", root.join("to nothing")).expect("a link");
    for (name, mode) in [("secret", 0o600), ("setuid", 0o4755), ("setgid", 0o2755), ("none", 0o000)]
    {
        fs::write(root.join(name), name).expect("a file");
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o1777)).expect("a mode");
    std::os::unix::fs::chown(root.join("secret"), Some(1234), Some(5678)).expect("an owner");
    std::os::unix::fs::lchown(root.join("to nothing"), Some(12), Some(34)).expect("an owner");
    let mode = Mode::from_raw_mode(0o640);
    mknodat(CWD, root.join("fifo"), FileType::Fifo, mode, 0).expect("a fifo");
    mknodat(CWD, root.join("null"), FileType::CharacterDevice, mode, makedev(1, 3))
        .expect("a device");
    setxattr(root.join("secret"), "user.colour", b"\x00green\xff", XattrFlags::empty())
        .expect("an attribute");
    setxattr(root.join("a"), "user.of a folder", b"", XattrFlags::empty()).expect("an attribute");
    let place = Workplace { folder: root, given };
    place.sh("setfacl -m u:4321:rw,g:100:r second
         setfacl -d -m u:4321:rwx a/b/c
         touch -d '1965-03-04 05:06:07.123456789' 'to a file' a/b/file2
         touch -h -d '2001-02-03 04:05:06.5' 'to nothing' 'to a file'
         touch -d '2011-12-13 14:15:16.987654321' null fifo
         touch -d '2100-01-01' a/b/file3
         find . -depth -type d -exec touch -d '2020-02-02 02:02:02.2' {} +");
}

#[test]
fn rsync() {
    same_in_both("rsync", &["rsync", "setfacl"], one_of_everything, |place| {
        let first = place.sh("rsync -aHAX --itemize-changes --stats $GIVEN/tree/ copy/ | grep -vE 'seconds|speedup|bytes/sec|time:'");
        let second = place.sh("rsync -aHAX --itemize-changes $GIVEN/tree/ copy/");
        assert_eq!(second, "", "the second run moved something");
        let contents = place.sh("rsync -aHAXcn --delete --itemize-changes $GIVEN/tree/ copy/");
        assert_eq!(contents, "", "the copy differs");
        assert_equal(&place.given.join("tree"), &place.path("copy"));
        // A change moves exactly that.
        let third = place.sh(
            "cp -a copy changed && echo more >> changed/a/b/file7 && rm changed/second && mv changed/a changed/z
             rsync -aHAX --delete --itemize-changes changed/ copy/ | sort",
        );
        first + &third
    });
}

/// The whole of a tree as one stream: names, owners, modes, times to the nanosecond, contents,
/// attributes and ACLs.
const TAR: &str = "tar --sort=name --format=posix --xattrs --acls \
                   --pax-option='exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime' -c";

#[test]
fn tar() {
    let prepare = |given: &Path| {
        one_of_everything(given);
        Workplace { folder: given.to_owned(), given }
            .sh(&format!("{TAR} -C tree . > archive.tar && sha256sum < archive.tar > sum"));
    };
    same_in_both("tar", &["tar", "setfacl"], prepare, |place| {
        place.sh("mkdir out && tar --xattrs --xattrs-include='*' --acls --same-owner -xpf $GIVEN/archive.tar -C out");
        let sum = place.sh(&format!("{TAR} -C out . | sha256sum"));
        assert_eq!(
            sum,
            fs::read_to_string(place.given.join("sum")).expect("a sum"),
            "the archive of what was unpacked differs"
        );
        sum
    });
}

/// A crate without dependencies, with every kind of test.
fn small_crate(given: &Path) {
    let root = given.join("small");
    for folder in ["src", "tests"] {
        fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"small\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[workspace]\n",
        ),
        (
            "src/lib.rs",
            "/// ```\n/// assert_eq!(small::twice(2), 4);\n/// ```\npub fn twice(n: u32) -> u32 { 2 * n }\n\
             #[cfg(test)]\nmod tests {\n#[test]\nfn inside() { assert_eq!(super::twice(3), 6); }\n}\n",
        ),
        ("src/main.rs", "fn main() { println!(\"twice 21 is {}\", small::twice(21)); }\n"),
        ("tests/outside.rs", "#[test]\nfn outside() { assert_eq!(small::twice(4), 8); }\n"),
    ];
    for (name, text) in files {
        fs::write(root.join(name), text).expect("a file");
    }
}

#[test]
fn cargo() {
    same_in_both("cargo", &["cargo"], small_crate, |place| {
        let cargo = "export CARGO_TARGET_DIR=$PWD/target CARGO_TERM_COLOR=never
                     unset RUSTFLAGS RUSTDOCFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET";
        place.sh(&format!(
            "{cargo}
             cp -r $GIVEN/small . && cd small
             cargo build --offline -q
             ../target/debug/small 2>/dev/null || target/debug/small
             cargo test --offline 2>&1 | grep -E '^test ' | sed 's/; finished in.*//'
             echo fresh:; cargo build --offline 2>&1 | grep -c Compiling || true
             sleep 1; echo '// changed' >> src/lib.rs
             echo changed:; cargo build --offline 2>&1 | grep -c Compiling
             cargo build --release --offline -q && ../target/release/small 2>/dev/null || target/release/small"
        ))
    });
}

/// Two writers at once, each statement its own transaction, then one killed in the middle of one.
fn sqlite(place: &Workplace<'_>, journal: &str) -> String {
    place.sh(&format!(
        r#"sqlite3 db 'PRAGMA journal_mode={journal}; CREATE TABLE t(who, n); CREATE INDEX i ON t(n, who);'
           writer() {{
               for n in $(seq 150); do echo "INSERT INTO t VALUES('$1', $n);"; done
           }}
           (echo '.timeout 60000'; writer one) | sqlite3 db & one=$!
           (echo '.timeout 60000'; writer two) | sqlite3 db & two=$!
           wait $one; wait $two
           sqlite3 db 'PRAGMA integrity_check; SELECT who, count(*), sum(n) FROM t GROUP BY who;'

           mkfifo wait
           (echo 'BEGIN IMMEDIATE; DELETE FROM t WHERE who = "one"; PRAGMA cache_spill = 1;'; cat wait) | sqlite3 -batch db & killed=$!
           exec 9> wait
           sleep 0.3; kill -9 $killed; exec 9>&-; wait $killed || true
           sqlite3 -cmd '.timeout 60000' db 'PRAGMA integrity_check; SELECT count(*) FROM t; VACUUM; PRAGMA integrity_check; PRAGMA journal_mode;'
           rm -f wait
           sqlite3 db 'SELECT who, n FROM t ORDER BY who, n;' | sha256sum"#
    ))
}

#[test]
fn sqlite_with_a_rollback_journal() {
    same_in_both(
        "sqlite_with_a_rollback_journal",
        &["sqlite3"],
        |_| {},
        |place| {
            let answers = sqlite(place, "delete");
            assert!(answers.contains("ok\none|150|11325\ntwo|150|11325\n"), "{answers}");
            answers
        },
    );
}

#[test]
fn sqlite_with_wal() {
    same_in_both(
        "sqlite_with_wal",
        &["sqlite3"],
        |_| {},
        |place| {
            let answers = sqlite(place, "wal");
            assert!(answers.starts_with("wal\nok\none|150|11325\ntwo|150|11325\n"), "{answers}");
            answers
        },
    );
}

/// Everyday tools, and what they leave behind.
#[test]
fn everyday_tools() {
    same_in_both("everyday_tools", &["tar", "setfacl"], one_of_everything, |place| {
        place.sh(
            "cp -a $GIVEN/tree copy
             diff -r --no-dereference $GIVEN/tree/a copy/a
             mv copy/a/b copy/b; mv copy/b/file9 copy/file9; mv -T copy/b copy/empty
             sed -i 's/1/2/g' copy/empty/file12
             find copy -type f -links +1 | sort
             find copy -name 'file1*' -printf '%P %s %m %n\\n' | sort
             truncate -s 10M sparse; dd if=/dev/urandom of=sparse bs=4k seek=500 count=2 conv=notrunc status=none
             cp --sparse=always sparse thin; cmp sparse thin; du -k thin | cut -f1
             (flock 9; echo locked) 9> lock
             seq 100000 | sort -R --random-source=/dev/zero -T . | sort -n -S 1M -T . | tail -1
             mkfifo pipe; (echo through > pipe &); cat pipe
             ln -s . here; ls here/here/here/copy | wc -l",
        )
    });
}

/// What is compared must be able to differ.
#[test]
fn trees_that_differ_are_told_apart() {
    let places = Places::new();
    let other = places.path().join("other");
    run(Command::new("cp").arg("-a").arg(places.source()).arg(&other), SOON).expect_success();
    assert_equal(&places.source(), &other);
    fs::write(other.join("hello"), "hallo\n").expect("a file");
    let time = fs::metadata(places.source().join("hello"))
        .and_then(|found| found.modified())
        .expect("a time");
    fs::File::options()
        .write(true)
        .open(other.join("hello"))
        .and_then(|file| file.set_modified(time))
        .expect("a time");
    assert_ne!(running::tree::tree(&places.source()), running::tree::tree(&other));
}
