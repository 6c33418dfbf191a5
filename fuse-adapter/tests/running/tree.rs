//! What a directory tree looks like, for comparing two of them.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Everything that must be equal of one file. Not its inode number, and not the times of access
/// and of the last change of attributes, which looking or copying changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// A directory's own size and link count are its filesystem's affair.
    pub(crate) size: Option<u64>,
    pub(crate) nlink: Option<u64>,
    pub(crate) rdev: u64,
    pub(crate) mtime: (i64, i64),
    /// Of a regular file's content, or of a symbolic link's target.
    pub(crate) hash: Option<u64>,
}

/// The tree below `root`, by path relative to it.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut entries = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        for found in fs::read_dir(root.join(&folder)).expect("a directory to read") {
            let path = folder.join(found.expect("an entry").file_name());
            let entry = entry(&root.join(&path));
            if entry.mode & libc::S_IFMT == libc::S_IFDIR {
                waiting.push(path.clone());
            }
            assert!(entries.insert(path.clone(), entry).is_none(), "{path:?} is listed twice");
        }
    }
    entries
}

fn entry(path: &Path) -> Entry {
    let found = path.symlink_metadata().unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let kind = found.file_type();
    let hash = if kind.is_file() {
        Some(hash(&fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))))
    } else if kind.is_symlink() {
        Some(hash(fs::read_link(path).expect("a target").as_os_str().as_bytes()))
    } else {
        None
    };
    let device = kind.is_block_device() || kind.is_char_device();
    Entry {
        mode: found.mode(),
        uid: found.uid(),
        gid: found.gid(),
        size: (!kind.is_dir()).then_some(found.size()),
        nlink: (!kind.is_dir()).then_some(found.nlink()),
        rdev: if device { found.rdev() } else { 0 },
        mtime: (found.mtime(), found.mtime_nsec()),
        hash,
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Fails unless the two trees are equal, naming the first few differences.
#[track_caller]
pub(crate) fn assert_equal(one: &Path, other: &Path) {
    let (ours, theirs) = (tree(one), tree(other));
    let mut differences = Vec::new();
    for (path, entry) in &ours {
        match theirs.get(path) {
            Some(same) if same == entry => {}
            Some(differs) => differences.push(format!("{path:?}: {entry:?} but {differs:?}")),
            None => differences.push(format!("{path:?} only in {one:?}")),
        }
    }
    let only_there = theirs.keys().filter(|path| !ours.contains_key(*path));
    differences.extend(only_there.map(|path| format!("{path:?} only in {other:?}")));
    let shown = differences.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences\n{shown}", differences.len());
}
