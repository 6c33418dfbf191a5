//! The source changed behind the mirror.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::*;

/// The path names another file by now; what is open is followed (B30).
#[test]
fn a_directory_moved_away_under_an_open_file() {
    for cache in [Cache::None, Cache::Auto, Cache::Always] {
        let Some(mirrored) = Mirrored::new(cache) else { return };
        std::fs::create_dir(mirrored.behind("d")).unwrap();
        write(mirrored.behind("d/f"), "A");
        let file = OpenOptions::new().read(true).write(true).open(mirrored.at("d/f")).unwrap();
        std::fs::rename(mirrored.behind("d"), mirrored.behind("e")).unwrap();
        std::fs::create_dir(mirrored.behind("d")).unwrap();
        write(mirrored.behind("d/f"), "B");
        chmod_600(&file);
        file.set_len(0).unwrap();
        file.write_all_at(b"new", 0).unwrap();
        assert_eq!(
            (read(mirrored.behind("d/f")).as_str(), read(mirrored.behind("e/f")).as_str()),
            ("B", "new")
        );
        assert_eq!((perm(mirrored.behind("d/f")), perm(mirrored.behind("e/f"))), (0o644, 0o600));
    }
}

fn chmod_600(file: &File) {
    file.set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
}

/// Another type under the name, and the same inode number again (B29).
#[test]
fn something_else_under_the_name() {
    for cache in [Cache::None, Cache::Auto] {
        let Some(mirrored) = Mirrored::new(cache) else { return };
        write(mirrored.behind("p"), "file");
        assert_eq!(read(mirrored.at("p")), "file");
        let held = rustix::fs::openat(CWD, mirrored.at("p"), OFlags::PATH, Mode::empty()).unwrap();
        let ino = std::fs::metadata(mirrored.behind("p")).unwrap().ino();
        std::fs::remove_file(mirrored.behind("p")).unwrap();
        let mut others = 0;
        // Until a file has the number again, or there are enough others.
        while others < 100 {
            let other = mirrored.behind(&format!("q{others}"));
            write(&other, "another");
            if std::fs::metadata(&other).unwrap().ino() == ino {
                break;
            }
            others += 1;
        }
        std::thread::sleep(Duration::from_millis(1100));
        // Gone, or what it was; never the other's.
        let seen = rustix::fs::fstat(&held).map(|stat| stat.st_size);
        assert!([Ok(4), Err(Errno::STALE)].contains(&seen), "{seen:?}");
        std::fs::create_dir(mirrored.behind("p")).unwrap();
        support::eventually("the directory is seen", Duration::from_secs(5), || {
            std::fs::metadata(mirrored.at("p")).is_ok_and(|meta| meta.is_dir())
        });
        std::fs::remove_dir(mirrored.behind("p")).unwrap();
        symlink("q0", mirrored.behind("p")).unwrap();
        support::eventually("the link is seen", Duration::from_secs(5), || {
            std::fs::symlink_metadata(mirrored.at("p")).is_ok_and(|meta| meta.is_symlink())
        });
    }
}

/// Content and size, in each mode as promised (B43).
#[test]
fn changed_content_is_seen() {
    for (cache, wait) in [(Cache::None, 0), (Cache::Auto, 1100)] {
        let Some(mirrored) = Mirrored::new(cache) else { return };
        write(mirrored.behind("f"), "one");
        assert_eq!(read(mirrored.at("f")), "one");
        let open = File::open(mirrored.at("f")).unwrap();
        // The same size, so only the time tells; ext4 counts it in ticks.
        std::thread::sleep(Duration::from_millis(20));
        write(mirrored.behind("f"), "two");
        std::thread::sleep(Duration::from_millis(wait));
        assert_eq!(read(mirrored.at("f")), "two", "{cache:?}, opened again");
        std::thread::sleep(Duration::from_millis(20));
        write(mirrored.behind("f"), "longer");
        std::thread::sleep(Duration::from_millis(wait));
        open.metadata().unwrap();
        let mut buf = [0; 9];
        assert_eq!(open.read_at(&mut buf, 0).unwrap(), 6, "{cache:?}, still open");
        assert_eq!(&buf[..6], b"longer");
        write(mirrored.behind("new"), "");
        assert!(mirrored.at("new").exists());
        std::fs::remove_file(mirrored.behind("new")).unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        assert!(!mirrored.at("new").exists());
    }
}

/// That a name is missing isn't remembered where others may make it (B42).
#[test]
fn a_missing_name_appears() {
    for cache in [Cache::None, Cache::Auto] {
        let Some(mirrored) = Mirrored::new(cache) else { return };
        for n in 0..20 {
            let name = format!("n{n}");
            assert!(!mirrored.at(&name).exists());
            write(mirrored.behind(&name), "");
            assert!(mirrored.at(&name).exists());
        }
    }
}

/// Directories swapped for links that lead outside, as fast as possible.
#[test]
fn nothing_outside_is_reached() {
    let Some(mirrored) = Mirrored::new(Cache::None) else { return };
    let outside = open_directory();
    write(outside.path().join("f"), "secret");
    std::fs::create_dir(mirrored.behind("d")).unwrap();
    write(mirrored.behind("d/f"), "mine");
    let stop = std::time::Instant::now() + Duration::from_secs(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while std::time::Instant::now() < stop {
                std::fs::rename(mirrored.behind("d"), mirrored.behind("aside")).unwrap();
                symlink(outside.path(), mirrored.behind("d")).unwrap();
                std::fs::remove_file(mirrored.behind("d")).unwrap();
                std::fs::rename(mirrored.behind("aside"), mirrored.behind("d")).unwrap();
            }
        });
        for worker in 0..3 {
            let mirrored = &mirrored;
            scope.spawn(move || {
                while std::time::Instant::now() < stop {
                    // By descriptor: this process must not follow the link by itself.
                    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                    let Ok(dir) = rustix::fs::openat(CWD, mirrored.at("d"), flags, Mode::empty())
                    else {
                        continue;
                    };
                    let flags = OFlags::RDWR | OFlags::NOFOLLOW;
                    if let Ok(file) = rustix::fs::openat(&dir, "f", flags, Mode::empty()) {
                        let mut buf = [0; 16];
                        let read = rustix::io::pread(&file, &mut buf, 0).unwrap_or(0);
                        assert!(!buf[..read].starts_with(b"sec"));
                        let _ = rustix::io::pwrite(&file, b"mine", 0);
                    }
                    let made = format!("made-{worker}");
                    let _ = rustix::fs::mkdirat(&dir, &*made, Mode::from_raw_mode(0o700));
                    let _ = rustix::fs::unlinkat(&dir, &*made, rustix::fs::AtFlags::REMOVEDIR);
                }
            });
        }
    });
    assert_eq!(read(outside.path().join("f")), "secret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}
