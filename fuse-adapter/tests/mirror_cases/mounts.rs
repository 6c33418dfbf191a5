//! Other filesystems below the source, and the mirror's own mount.

use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};

use super::*;

/// A small filesystem in memory, mounted as long as this lives.
pub(super) struct Tmpfs(Mounted);

/// Something mounted here, until this is dropped.
pub(super) struct Mounted(PathBuf);

impl Tmpfs {
    pub(super) fn on(at: &Path, options: &str) -> Option<Self> {
        let options = std::ffi::CString::new(options).unwrap();
        match rustix::mount::mount("none", at, "tmpfs", MountFlags::empty(), Some(&*options)) {
            Ok(()) => Some(Tmpfs(Mounted(at.to_owned()))),
            Err(error) => {
                eprintln!("\n*** SKIPPED, because no tmpfs can be mounted: {error} ***\n");
                None
            }
        }
    }

    fn unmount(&self) -> rustix::io::Result<()> {
        rustix::mount::unmount(&self.0.0, UnmountFlags::empty())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Equal inode numbers on two filesystems are two files (B46).
#[test]
fn several_filesystems_below_the_source() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    let places = ["m1", "m2"].map(|name| {
        std::fs::create_dir(mirrored.behind(name)).unwrap();
        mirrored.behind(name)
    });
    let mounts: Vec<_> = places.iter().filter_map(|place| Tmpfs::on(place, "size=1m")).collect();
    let [one, _two] = &mounts[..] else { return };
    write(mirrored.at("m1/f"), "one");
    write(mirrored.at("m2/f"), "two");
    assert_eq!(
        (read(mirrored.at("m1/f")).as_str(), read(mirrored.at("m2/f")).as_str()),
        ("one", "two")
    );
    assert_eq!(read(mirrored.behind("m1/f")), "one");
    let behind = |name: &str| std::fs::metadata(mirrored.behind(name)).unwrap().ino();
    assert_eq!(behind("m1/f"), behind("m2/f"), "the numbers are the same in the source");
    let inos: std::collections::HashSet<_> = ["m1", "m2", "m1/f", "m2/f"]
        .iter()
        .map(|name| std::fs::metadata(mirrored.at(name)).unwrap().ino())
        .collect();
    assert_eq!(inos.len(), 4);
    for dir in ["m1", "m2"] {
        for entry in std::fs::read_dir(mirrored.at(dir)).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(
                std::os::unix::fs::DirEntryExt::ino(&entry),
                entry.metadata().unwrap().ino()
            );
        }
    }
    assert_eq!(errno(std::fs::rename(mirrored.at("m1/f"), mirrored.at("m2/g"))), libc::EXDEV);
    assert_eq!(errno(std::fs::hard_link(mirrored.at("m1/f"), mirrored.at("g"))), libc::EXDEV);
    let sizes = rustix::fs::statvfs(mirrored.at("m1")).unwrap();
    assert_eq!(sizes.f_blocks * sizes.f_frsize, 1 << 20, "df of a filesystem below");
    // Nothing of ours keeps it busy.
    support::eventually("can be unmounted", LIMIT / 2, || {
        super::listings::drop_caches();
        one.unmount().is_ok()
    });
    assert!(!mirrored.at("m1/f").exists() || std::fs::metadata(mirrored.at("m1/f")).is_err());
}

/// One directory in two places (a bind mount) is two directories with one content.
#[test]
fn a_bind_mount_below_the_source() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    std::fs::create_dir_all(mirrored.behind("a/sub")).unwrap();
    std::fs::create_dir(mirrored.behind("b")).unwrap();
    write(mirrored.behind("a/sub/f"), "content");
    if rustix::mount::mount_bind(mirrored.behind("a"), mirrored.behind("b")).is_err() {
        return eprintln!("\n*** SKIPPED, because nothing can be bind-mounted ***\n");
    }
    let _mount = Mounted(mirrored.behind("b"));
    for place in ["a/sub/f", "b/sub/f", "a/sub/f"] {
        assert_eq!(read(mirrored.at(place)), "content");
    }
    write(mirrored.at("b/sub/g"), "new");
    assert_eq!(read(mirrored.at("a/sub/g")), "new");
    std::fs::rename(mirrored.at("a/sub"), mirrored.at("a/moved")).unwrap();
    assert_eq!(read(mirrored.at("a/moved/g")), "new");
    support::eventually("it moved there too", LIMIT / 2, || {
        std::fs::read_to_string(mirrored.at("b/moved/g")).is_ok_and(|content| content == "new")
    });
}

/// The mountpoint inside the source (B57).
#[test]
fn the_mirror_meets_itself() {
    let source = open_directory();
    std::fs::create_dir_all(source.path().join("d/m")).unwrap();
    write(source.path().join("d/f"), "content");
    write(source.path().join("d/m/covered"), "");
    let Some(_) = mountpoint() else { return };
    for cache in [Cache::None, Cache::Auto] {
        let mut options = MirrorOptions::default();
        options.cache = cache;
        let at = source.path().join("d/m");
        let mirror = Mirror::open(source.path(), options).unwrap();
        let mut mount_options = MountOptions::default();
        // As tight as it gets: a handler that asked its own mount would wait for ever.
        mount_options.threads.readers = 1;
        mount_options.threads.handlers = 1;
        let mount = pinpath_fuse::mount(mirror, &at, &mount_options).unwrap();
        let watchdog = Watchdog::start(LIMIT / 2, Some(mount.unmounter()));
        assert_eq!(read(at.join("d/f")), "content");
        assert_eq!(std::fs::read_dir(at.join("d")).unwrap().count(), 2);
        assert!(std::fs::metadata(at.join("d/m")).unwrap().is_dir());
        assert_eq!(std::fs::read_dir(at.join("d/m")).unwrap().count(), 0, "an empty directory");
        assert_eq!(errno(std::fs::metadata(at.join("d/m/d"))), libc::ENOENT);
        assert_eq!(errno(std::fs::write(at.join("d/m/x"), "")), libc::EXDEV);
        assert_eq!(errno(std::fs::remove_dir(at.join("d/m"))), libc::EBUSY);
        assert!(rustix::fs::statvfs(at.join("d/m")).is_ok());
        let mut found = 0;
        let mut todo = vec![at.clone()];
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                found += 1;
                if entry.metadata().unwrap().is_dir() {
                    todo.push(entry.path());
                }
            }
        }
        assert_eq!(found, 3, "d, d/f and d/m");
        mount.unmount().unwrap();
        drop(watchdog);
    }
}

/// The mirror is brought into its source by a bind mount, over a directory below which it knows
/// files: it must not look for them through itself.
#[test]
fn the_mirror_is_bound_over_what_it_knows() {
    let Some(mirrored) = Mirrored::new(Cache::None) else { return };
    std::fs::create_dir_all(mirrored.behind("d/m/sub")).unwrap();
    write(mirrored.behind("d/m/sub/f"), "content");
    let flags = OFlags::PATH;
    let file = rustix::fs::open(mirrored.at("d/m/sub/f"), flags, Mode::empty()).unwrap();
    let dir = rustix::fs::open(mirrored.at("d/m/sub"), flags, Mode::empty()).unwrap();
    rustix::mount::mount_bind(mirrored.mountpoint.path(), mirrored.behind("d/m")).unwrap();
    let _bound = Mounted(mirrored.behind("d/m"));
    assert_eq!(rustix::fs::fstat(&file).unwrap_err(), rustix::io::Errno::STALE);
    assert_eq!(
        rustix::fs::statat(&dir, "f", AtFlags::empty()).unwrap_err(),
        rustix::io::Errno::STALE
    );
    assert_eq!(std::fs::read_dir(mirrored.at("d/m")).unwrap().count(), 0, "an empty directory");
    assert!(!mirrored.at("d/m/sub/f").exists());
    // Every thread would be asleep by now.
    for _ in 0..20 {
        assert_eq!(std::fs::read_dir(mirrored.at("d")).unwrap().count(), 1);
    }
}

/// Mounted over its own source (B57).
#[test]
fn the_mirror_covers_its_source() {
    let source = open_directory();
    std::fs::create_dir(source.path().join("d")).unwrap();
    write(source.path().join("d/f"), "content");
    let Some(_) = mountpoint() else { return };
    let mirror = Mirror::open(source.path(), MirrorOptions::default()).unwrap();
    let mount = pinpath_fuse::mount(mirror, source.path(), &MountOptions::default()).unwrap();
    let watchdog = Watchdog::start(LIMIT / 2, Some(mount.unmounter()));
    assert_eq!(read(source.path().join("d/f")), "content");
    write(source.path().join("d/g"), "new");
    assert_eq!(std::fs::read_dir(source.path().join("d")).unwrap().count(), 2);
    mount.unmount().unwrap();
    drop(watchdog);
    assert_eq!(read(source.path().join("d/g")), "new");
}

/// Opening and closing much faster than is released (B33).
#[test]
fn open_files_do_not_pile_up() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    for n in 0..16 {
        write(mirrored.at(&format!("f{n}")), "x");
    }
    // Of this source: other tests run in this process.
    let opened = || {
        let source = mirrored.source.path();
        support::descriptors().iter().filter(|path| path.starts_with(source)).count()
    };
    std::thread::scope(|scope| {
        for n in 0..32 {
            let path = mirrored.at(&format!("f{}", n % 16));
            scope.spawn(move || {
                for _ in 0..200 {
                    assert_eq!(read(&path), "x");
                }
            });
        }
        for _ in 0..10 {
            assert!(opened() < 500, "{} open", opened());
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    // The mirror's own root stays.
    support::eventually("all are closed", LIMIT / 2, || opened() <= 1);
}
