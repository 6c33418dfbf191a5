//! What may be done with the names of [`Memory`](super::memory::Memory), as POSIX has it. A tree is
//! all its files by their paths; files of one inode number are hard links of each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pinpath_fuse::{Errno, FileType, RenameFlags};

use super::memory::File;

pub(super) type Tree = BTreeMap<PathBuf, File>;

type Result<T> = std::result::Result<T, Errno>;

fn file<'t>(tree: &'t Tree, path: &Path) -> Result<&'t File> {
    tree.get(path).ok_or(Errno::ENOENT)
}

fn is_directory(file: &File) -> bool {
    file.attr.file_type == FileType::Directory
}

/// # Errors
/// `ENOENT`, `ENOTDIR`.
pub(super) fn directory(tree: &Tree, path: &Path) -> Result<()> {
    if is_directory(file(tree, path)?) { Ok(()) } else { Err(Errno::ENOTDIR) }
}

/// Is there room for a new name?
fn vacant(tree: &Tree, path: &Path) -> Result<()> {
    directory(tree, path.parent().ok_or(Errno::EEXIST)?)?;
    if tree.contains_key(path) { Err(Errno::EEXIST) } else { Ok(()) }
}

/// What is in a directory, in the order of the names.
pub(super) fn children<'t>(
    tree: &'t Tree,
    path: &Path,
) -> impl Iterator<Item = (&'t PathBuf, &'t File)> {
    tree.iter().filter(move |(child, _)| child.parent() == Some(path))
}

fn is_empty(tree: &Tree, path: &Path) -> Result<()> {
    if children(tree, path).next().is_some() { Err(Errno::ENOTEMPTY) } else { Ok(()) }
}

pub(super) fn add(tree: &mut Tree, path: &Path, new: File) -> Result<()> {
    vacant(tree, path)?;
    tree.insert(path.to_owned(), new);
    Ok(())
}

pub(super) fn link(tree: &mut Tree, from: &Path, to: &Path) -> Result<()> {
    let source = file(tree, from)?.clone();
    if is_directory(&source) {
        return Err(Errno::EPERM);
    }
    add(tree, to, source)
}

pub(super) fn unlink(tree: &mut Tree, path: &Path) -> Result<()> {
    if is_directory(file(tree, path)?) {
        return Err(Errno::EISDIR);
    }
    tree.remove(path);
    Ok(())
}

pub(super) fn rmdir(tree: &mut Tree, path: &Path) -> Result<()> {
    directory(tree, path)?;
    is_empty(tree, path)?;
    tree.remove(path);
    Ok(())
}

pub(super) fn rename(tree: &mut Tree, from: &Path, to: &Path, flags: RenameFlags) -> Result<()> {
    if flags.whiteout {
        return Err(Errno::EINVAL);
    }
    let source = file(tree, from)?;
    directory(tree, to.parent().ok_or(Errno::EBUSY)?)?;
    let target = tree.get(to);
    if flags.no_replace && target.is_some() {
        return Err(Errno::EEXIST);
    }
    if target.is_some_and(|target| target.attr.ino == source.attr.ino) {
        return Ok(());
    }
    if to.starts_with(from) || (flags.exchange && from.starts_with(to)) {
        return Err(Errno::EINVAL);
    }
    match target {
        None if flags.exchange => return Err(Errno::ENOENT),
        Some(_) if flags.exchange => {
            let set_aside = Path::new("/exchanging");
            move_tree(tree, from, set_aside);
            move_tree(tree, to, from);
            move_tree(tree, set_aside, to);
            return Ok(());
        }
        Some(target) if is_directory(target) && !is_directory(source) => {
            return Err(Errno::EISDIR);
        }
        Some(target) if !is_directory(target) && is_directory(source) => {
            return Err(Errno::ENOTDIR);
        }
        Some(_) => is_empty(tree, to)?,
        None => {}
    }
    tree.remove(to);
    move_tree(tree, from, to);
    Ok(())
}

/// With all that is below, and without a question.
pub(super) fn move_tree(tree: &mut Tree, from: &Path, to: &Path) {
    let moved: Vec<PathBuf> = tree.keys().filter(|path| path.starts_with(from)).cloned().collect();
    let files: Vec<(PathBuf, File)> =
        moved.into_iter().filter_map(|path| tree.remove_entry(&path)).collect();
    for (path, file) in files {
        let rest = path.strip_prefix(from).expect("it starts with it");
        // `join` with nothing would end the path with a slash.
        let path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
        tree.insert(path, file);
    }
}
