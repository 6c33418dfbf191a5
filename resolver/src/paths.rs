//! From an inode to its paths: the questions, and the paths that are kept to answer them again.
//!
//! A path is kept where it was asked for as a borrowed path, and for the parent of a node whose path
//! was copied out (its siblings are asked for next). All kept paths together take at most
//! `cache_limit` bytes; when they would take more, nothing new is kept but in the place of what is
//! outdated.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use crate::data::NodeData;
use crate::error::PathError;
use crate::inode::Inode;
use crate::link::Link;
use crate::path_cache::PathCache;
use crate::shared::Shared;
use crate::sync::{Ordering, epoch};
use crate::tree::TreeState;
use crate::walk::{Start, walk, walk_all};

impl<D: NodeData> Shared<D> {
    /// Clears `path` and writes the node's path into it, by the name `wanted` if it has it.
    pub(crate) fn path_into(
        &self,
        inode: Inode,
        wanted: Option<Link>,
        path: &mut Vec<u8>,
    ) -> Result<(), PathError> {
        path.clear();
        if inode == Inode::ROOT {
            return Ok(());
        }
        let guard = epoch::pin();
        let start = Start::new(self, inode, &guard)?;
        if let Some(cached) = start.link(wanted).and_then(|link| start.cached(link, &guard)) {
            path.extend_from_slice(cached);
            return Ok(());
        }
        let settled = walk(self, inode, wanted, &guard, |start, chain| {
            chain.write(path);
            start.settled().zip(chain.parent_to_keep())
        })?;
        if let Some((tree, parent)) = settled {
            let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            self.keep(parent, tree, &path[..end], &guard);
        }
        Ok(())
    }

    /// Runs `f` with the node's path, kept or built, without copying a kept one.
    #[inline]
    pub(crate) fn with_path<R>(
        &self,
        inode: Inode,
        wanted: Option<Link>,
        f: impl FnOnce(&Path) -> R,
    ) -> Result<R, PathError> {
        if inode == Inode::ROOT {
            return Ok(f(Path::new("")));
        }
        let guard = epoch::pin();
        let start = Start::new(self, inode, &guard)?;
        match start.link(wanted).and_then(|link| start.cached(link, &guard)) {
            Some(cached) => Ok(f(as_path(cached))),
            None => self.with_built_path(inode, wanted, &guard, f),
        }
    }

    fn with_built_path<R>(
        &self,
        inode: Inode,
        wanted: Option<Link>,
        guard: &epoch::Guard,
        f: impl FnOnce(&Path) -> R,
    ) -> Result<R, PathError> {
        let mut path = Vec::new();
        let keep = walk(self, inode, wanted, guard, |start, chain| {
            chain.write(&mut path);
            start.settled().zip(chain.own_to_keep())
        })?;
        if let Some((tree, own)) = keep {
            self.keep(own, tree, &path, guard);
        }
        Ok(f(as_path(&path)))
    }

    pub(crate) fn path(&self, inode: Inode, wanted: Option<Link>) -> Result<PathBuf, PathError> {
        let mut path = Vec::new();
        self.path_into(inode, wanted, &mut path)?;
        Ok(PathBuf::from(OsString::from_vec(path)))
    }

    pub(crate) fn paths(&self, inode: Inode) -> Result<Vec<PathBuf>, PathError> {
        if inode == Inode::ROOT {
            return Ok(vec![PathBuf::new()]);
        }
        walk_all(self, inode, &epoch::pin(), |chain| {
            let mut path = Vec::new();
            chain.write(&mut path);
            PathBuf::from(OsString::from_vec(path))
        })
    }

    pub(crate) fn parts_paths(&self, inode: Inode) -> Result<Vec<Vec<OsString>>, PathError> {
        if inode == Inode::ROOT {
            return Ok(vec![Vec::new()]);
        }
        walk_all(self, inode, &epoch::pin(), |chain| {
            chain.names().map(|name| name.as_os_str().to_os_string()).collect()
        })
    }

    /// Keeps a path that was built for `link` in the settled state `tree`, if there is room.
    fn keep(&self, link: Link, tree: TreeState, path: &[u8], guard: &epoch::Guard) {
        let old = link.cached();
        // SAFETY: found under the guard.
        let old_path = old.map(|old| unsafe { PathCache::read(old.as_ptr()) });
        if old_path.is_some_and(|(state, _)| state == tree) {
            return;
        }
        let more = PathCache::bytes(path.len());
        let less = old_path.map_or(0, |(_, path)| PathCache::bytes(path.len()));
        // Relaxed: a number that several threads add to; it publishes nothing.
        let before = self.cached.fetch_add(more, Ordering::Relaxed);
        let fits = before.saturating_add(more) <= self.cache_limit.saturating_add(less);
        let kept = fits.then(|| PathCache::new(tree, path)).flatten().filter(|fresh| {
            let kept = link.keep(old, *fresh);
            if !kept {
                // SAFETY: made above, and nobody has seen it.
                unsafe { PathCache::free(*fresh) };
            }
            kept
        });
        match (kept, old) {
            (None, _) => drop(self.cached.fetch_sub(more, Ordering::Relaxed)),
            (Some(_), Some(old)) => self.retire_cache(old, guard),
            (Some(_), None) => {}
        }
    }

    /// Frees a kept path that was taken out of its link, once no guard can see it.
    pub(crate) fn retire_cache(&self, cache: NonNull<PathCache>, guard: &epoch::Guard) {
        let cache = cache.as_ptr();
        // SAFETY: taken out by the caller, who retires it once; not freed before the guard ends.
        unsafe {
            let (_, path) = PathCache::read(cache);
            self.cached.fetch_sub(PathCache::bytes(path.len()), Ordering::Relaxed);
            guard.defer_unchecked(move || PathCache::free(cache));
        }
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
