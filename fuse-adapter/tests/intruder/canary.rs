//! The tree outside, and what it was like.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};

/// What no user of the mount may ever read.
pub(crate) const SECRET: &str = "SECRET";

/// A name that is in every directory of the canary, and nowhere in the source.
pub(crate) const ONLY_THERE: &str = "canary-only";

/// Everything about a file that reading or changing it changes.
type Look = (u64, u32, u32, u32, u64, [(i64, i64); 3]);

pub(crate) struct Canary {
    root: PathBuf,
    looks: BTreeMap<PathBuf, Look>,
}

impl Canary {
    pub(crate) fn new(root: &Path) -> Self {
        // Older than the last change, so that the first access is recorded also where later ones
        // would not be (relatime).
        let at = |secs| Timespec { tv_sec: secs, tv_nsec: 0 };
        let times =
            Timestamps { last_access: at(1_000_000_000), last_modification: at(1_100_000_000) };
        let all: Vec<_> = names(root).collect();
        for path in &all {
            rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        }
        let looks = all.into_iter().map(|path| (path.clone(), look(&path))).collect();
        Canary { root: root.to_owned(), looks }
    }

    /// It must be as it was.
    #[track_caller]
    pub(crate) fn check(&self) {
        for (path, then) in &self.looks {
            assert_eq!(&look(path), then, "{path:?} was read or changed");
        }
        // Only now: this reads the directories.
        assert_eq!(names(&self.root).count(), self.looks.len(), "something was made");
        for path in self.looks.keys().filter(|path| path.is_file()) {
            assert_eq!(std::fs::read_to_string(path).unwrap(), SECRET, "{path:?}");
        }
    }
}

/// The root and all that is below it, the directories before what is in them.
fn names(root: &Path) -> impl Iterator<Item = PathBuf> {
    let mut all = vec![root.to_owned()];
    let mut next = 0;
    while next < all.len() {
        if all[next].is_dir() {
            let entries: Vec<_> =
                std::fs::read_dir(&all[next]).unwrap().map(|entry| entry.unwrap().path()).collect();
            all.extend(entries);
        }
        next += 1;
    }
    all.into_iter()
}

fn look(path: &Path) -> Look {
    let found = path.symlink_metadata().unwrap();
    let times = [
        (found.atime(), found.atime_nsec()),
        (found.mtime(), found.mtime_nsec()),
        (found.ctime(), found.ctime_nsec()),
    ];
    (found.ino(), found.mode(), found.uid(), found.gid(), found.size(), times)
}
