//! Listings.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::time::Instant;

use rustix::fs::{RawDir, SeekFrom};

use super::*;

fn fill(at: &Path, count: usize) {
    for n in 0..count {
        File::create(at.join(format!("file-{n}"))).unwrap();
    }
}

/// The names that follow the position of an open directory, with the offsets behind them.
fn rest(dir: impl AsFd) -> Vec<(Vec<u8>, u64)> {
    let mut buf = Vec::with_capacity(4096);
    let mut entries = RawDir::new(dir, buf.spare_capacity_mut());
    let mut all = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry.unwrap();
        all.push((entry.file_name().to_bytes().to_owned(), entry.next_entry_cookie()));
    }
    all
}

fn names(entries: &[(Vec<u8>, u64)]) -> BTreeSet<Vec<u8>> {
    entries.iter().map(|(name, _)| name.clone()).collect()
}

/// Two streams at once, rewinding, going back (B17).
#[test]
fn streams_are_independent() {
    everywhere(|at| {
        fill(at, 3000);
        let (mut one, mut other) = (std::fs::read_dir(at).unwrap(), std::fs::read_dir(at).unwrap());
        let mut counts = (0, 0);
        loop {
            match (one.next(), other.next()) {
                (None, None) => break,
                (a, b) => counts = (counts.0 + a.iter().count(), counts.1 + b.iter().count()),
            }
        }
        assert_eq!(counts, (3000, 3000));

        let dir = File::open(at).unwrap();
        let all = rest(&dir);
        assert_eq!((all.len(), names(&all).len()), (3002, 3002));
        File::create(at.join("later")).unwrap();
        rustix::fs::seek(&dir, SeekFrom::Start(0)).unwrap();
        assert!(names(&rest(&dir)).contains(&b"later"[..]), "reads anew from the start");
        for back in [2900, 10, 1500] {
            rustix::fs::seek(&dir, SeekFrom::Start(all[back].1)).unwrap();
            let found = names(&rest(&dir));
            assert!(
                names(&all[back + 1..]).is_subset(&found) && found.len() <= 3002 - back,
                "from {back}"
            );
        }
    });
}

/// Deleting what is listed, while it is listed (B18).
#[test]
fn deletion_while_listing() {
    everywhere(|at| {
        fill(at, 5000);
        for entry in std::fs::read_dir(at).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        assert_eq!(std::fs::read_dir(at).unwrap().count(), 0);
    });
}

#[test]
fn a_tree_is_removed_by_eight_at_once() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    for n in 0..40 {
        std::fs::create_dir_all(mirrored.at(&format!("t/d{n}"))).unwrap();
        fill(&mirrored.at(&format!("t/d{n}")), 50);
    }
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while mirrored.at("t").exists() {
                    // Others are faster now and then.
                    let _ = std::fs::remove_dir_all(mirrored.at("t"));
                }
            });
        }
    });
    assert!(!mirrored.behind("t").exists());
}

/// What vanishes in between neither fails the listing nor is shown with no size (B19).
#[test]
fn entries_that_vanish() {
    for cache in [Cache::None, Cache::Auto] {
        let Some(mirrored) = Mirrored::new(cache) else { return };
        fill(&mirrored.at(""), 50);
        let stop = Instant::now() + Duration::from_secs(2);
        std::thread::scope(|scope| {
            for place in [mirrored.at("come-and-go"), mirrored.behind("behind")] {
                scope.spawn(move || {
                    while Instant::now() < stop {
                        write(&place, "x");
                        std::fs::remove_file(&place).unwrap();
                    }
                });
            }
            while Instant::now() < stop {
                let listed = std::fs::read_dir(mirrored.at("")).unwrap().filter(|entry| {
                    let entry = entry.as_ref().unwrap();
                    // As `ls -l` does.
                    match entry.metadata() {
                        Ok(_) => entry.file_name().to_string_lossy().starts_with("file-"),
                        Err(error) => {
                            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
                            false
                        }
                    }
                });
                assert_eq!(listed.count(), 50);
            }
        });
    }
}

/// st_ino, d_ino and the source's number are one, and stay it (B45).
#[test]
fn inode_numbers_are_the_sources() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    fill(&mirrored.behind(""), 20);
    std::fs::create_dir_all(mirrored.behind("d/e")).unwrap();
    for round in 0..2 {
        for dir in ["", "d", "d/e"] {
            let listed: Vec<_> =
                std::fs::read_dir(mirrored.at(dir)).unwrap().map(|entry| entry.unwrap()).collect();
            for entry in listed {
                let behind = mirrored.behind(dir).join(entry.file_name());
                let ino = std::fs::symlink_metadata(behind).unwrap().ino();
                assert_eq!(
                    (entry.ino(), entry.metadata().unwrap().ino()),
                    (ino, ino),
                    "round {round}"
                );
            }
        }
        let root = std::fs::metadata(mirrored.behind("")).unwrap().ino();
        assert_eq!(std::fs::metadata(mirrored.at("")).unwrap().ino(), root);
        drop_caches();
    }
}

/// All that isn't in use is forgotten, by the kernel and then here.
pub(super) fn drop_caches() {
    // Not permitted in some containers; the kernel then forgets when it likes.
    let _ = std::fs::write("/proc/sys/vm/drop_caches", "2");
}

/// `find` over much leaves nothing behind, neither nodes nor descriptors (B16, B31, B32).
#[test]
fn nothing_is_kept_of_what_was_listed() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    for n in 0..50 {
        std::fs::create_dir(mirrored.behind(&format!("d{n}"))).unwrap();
        fill(&mirrored.behind(&format!("d{n}")), 100);
    }
    // Of this source: other tests run in this process.
    let opened = || {
        let source = mirrored.source.path();
        support::descriptors().iter().filter(|path| path.starts_with(source)).count()
    };
    for _ in 0..3 {
        let mut files = 0;
        for n in 0..50 {
            files += std::fs::read_dir(mirrored.at(&format!("d{n}")))
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().metadata().unwrap().is_file())
                .count();
        }
        assert_eq!(files, 5000);
        assert!(opened() < 40, "no descriptor for each node");
    }
    if std::fs::write("/proc/sys/vm/drop_caches", "2").is_err() {
        return;
    }
    support::eventually("the nodes are gone", LIMIT / 2, || {
        drop_caches();
        mirrored.mount().stats().resolver.nodes < 10
    });
}
