//! From an inode to its paths: the questions, and what is kept to answer them again.
//!
//! A path is kept where it was asked for as a borrowed path, and for the parent of a node whose path
//! was copied out (its siblings are asked for next), and from the second time on for the node itself.
//! `path_cache.rs` says how much is kept.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use crate::data::NodeData;
use crate::error::PathError;
use crate::inode::Inode;
use crate::link::Link;
use crate::path_buffer::{NamesUpwards, PathBuffer};
use crate::path_cache::{self, PathCache};
use crate::shared::Shared;
use crate::sync::{Ordering, epoch};
use crate::tree::TreeState;
use crate::walk::{Named, Parts, Start, kept_parts, walk, walk_all};

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
        match kept_parts(self, &start, &guard) {
            Some(parts) => {
                put_together(&parts, path);
                self.asked(&start, &parts, path, &guard);
            }
            None => drop(self.append_built(start, wanted, &guard, path)?),
        }
        Ok(())
    }

    #[inline]
    fn whole(&self, start: &Start<'_, D>, parts: &Parts<'_>, guard: &epoch::Guard) -> PathBuf {
        if parts.unkept.is_none() {
            return from_bytes(parts.name.to_vec());
        }
        let mut path = Vec::with_capacity(parts.prefix.len() + 1 + parts.name.len());
        put_together(parts, &mut path);
        self.asked(start, parts, &path, guard);
        from_bytes(path)
    }

    /// A node's path was put together with its parent's: it is kept from the second time on. Files
    /// that are looked at once, as by a listing of everything, are not worth it.
    #[inline]
    fn asked(&self, start: &Start<'_, D>, parts: &Parts<'_>, path: &[u8], guard: &epoch::Guard) {
        if let Some((link, tree)) = parts.unkept.zip(start.settled()) {
            if link.asked_again() {
                self.keep(link, tree, path, Room::AsItIs, guard);
            }
        }
    }

    pub(crate) fn path(&self, inode: Inode, wanted: Option<Link>) -> Result<PathBuf, PathError> {
        if inode == Inode::ROOT {
            return Ok(PathBuf::new());
        }
        let guard = epoch::pin();
        let start = Start::new(self, inode, &guard)?;
        // A node with one name goes by that, whatever was wanted.
        if let Some(parts) = kept_parts(self, &start, &guard) {
            return Ok(self.whole(&start, &parts, &guard));
        }
        let mut path = Vec::new();
        self.append_built(start, wanted, &guard, &mut path)?;
        Ok(from_bytes(path))
    }

    /// The same by a walk; keeps the path of the parent.
    #[inline(never)]
    fn append_built<'a>(
        &'a self,
        start: Start<'a, D>,
        wanted: Option<Link>,
        guard: &epoch::Guard,
        path: &mut Vec<u8>,
    ) -> Result<Named, PathError> {
        let mut built = PathBuffer::new();
        let walked = walk(self, start, wanted, guard, &mut built)?;
        if let Some((tree, parent)) = walked.settled.zip(walked.parent) {
            let own = walked.own.name().as_bytes().len() + 1;
            let path = built.bytes();
            self.keep(parent, tree, &path[..path.len() - own], Room::Make, guard);
        }
        path.extend_from_slice(built.bytes());
        Ok(walked.named)
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
        if let Some(cached) = start.link(wanted).and_then(|link| start.cached(link, &guard)) {
            return Ok(f(as_path(cached)));
        }
        let mut built = PathBuffer::new();
        self.build_and_keep(start, wanted, &guard, &mut built)?;
        Ok(f(as_path(built.bytes())))
    }

    #[inline(never)]
    fn build_and_keep<'a>(
        &'a self,
        start: Start<'a, D>,
        wanted: Option<Link>,
        guard: &epoch::Guard,
        built: &mut PathBuffer,
    ) -> Result<(), PathError> {
        let walked = walk(self, start, wanted, guard, built)?;
        if let Some(tree) = walked.settled {
            self.keep(walked.own, tree, built.bytes(), Room::Make, guard);
        }
        Ok(())
    }

    pub(crate) fn paths(&self, inode: Inode) -> Result<Vec<PathBuf>, PathError> {
        if inode == Inode::ROOT {
            return Ok(vec![PathBuf::new()]);
        }
        let guard = epoch::pin();
        let start = Start::new(self, inode, &guard)?;
        if let Some(parts) = kept_parts(self, &start, &guard) {
            return Ok(vec![self.whole(&start, &parts, &guard)]);
        }
        let mut path = Vec::new();
        match self.append_built(start, None, &guard, &mut path) {
            Ok(Named::Once) => Ok(vec![from_bytes(path)]),
            Ok(Named::Often) => walk_all(self, inode, &guard, &mut PathBuffer::new(), |path| {
                from_bytes(path.bytes().to_vec())
            }),
            Err(PathError::Unlinked(_)) => Ok(Vec::new()),
            Err(stale) => Err(stale),
        }
    }

    pub(crate) fn parts_paths(&self, inode: Inode) -> Result<Vec<Vec<OsString>>, PathError> {
        if inode == Inode::ROOT {
            return Ok(vec![Vec::new()]);
        }
        walk_all(self, inode, &epoch::pin(), &mut NamesUpwards::default(), |names| {
            names.0.iter().rev().map(|name| name.as_os_str().to_os_string()).collect()
        })
    }

    /// Keeps a path that was built for `link` in the settled state `tree`, if there is room.
    #[cold]
    #[inline(never)]
    fn keep(&self, link: Link, tree: TreeState, path: &[u8], room: Room, guard: &epoch::Guard) {
        let old = link.cached();
        // SAFETY: found under the guard.
        let old_path = old.map(|old| unsafe { PathCache::read(old.as_ptr()) });
        if old_path.is_some_and(|(state, _)| state == tree) || !path_cache::worth_keeping(tree) {
            return;
        }
        let more = PathCache::bytes(path.len());
        let less = old_path.map_or(0, |(_, path)| PathCache::bytes(path.len()));
        // Relaxed: a number that several threads add to; it publishes nothing.
        let before = self.cached.fetch_add(more, Ordering::Relaxed);
        let over = before.saturating_add(more).saturating_sub(less);
        let fits = over <= self.cache_limit
            || room == Room::Make && more <= self.cache_limit && self.make_room(more, guard);
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

    /// Takes kept paths out until there is room for `wanted` bytes, or enough nodes were looked at.
    #[cold]
    fn make_room(&self, wanted: usize, guard: &epoch::Guard) -> bool {
        /// Nodes looked at for one path that is to be kept: a bound on what one reader does for it.
        const SWEEP: usize = 64;
        let slots = self.table.slots();
        // Relaxed: threads may look at the same nodes; no harm is done.
        let hand = self.hand.fetch_add(SWEEP, Ordering::Relaxed);
        let mut freed = 0;
        for slot in (hand..hand + SWEEP).map(|slot| slot % slots) {
            let links = self.table.slot(slot as u32).links(guard);
            // SAFETY: read under the guard.
            for link in unsafe { links.as_slice() } {
                let Some(cache) = link.cached() else { continue };
                // SAFETY: found under the guard.
                let (_, path) = unsafe { PathCache::read(cache.as_ptr()) };
                if link.keep(Some(cache), std::ptr::null_mut()) {
                    freed += PathCache::bytes(path.len());
                    self.retire_cache(cache, guard);
                }
            }
            if freed >= wanted {
                return true;
            }
        }
        false
    }

    /// Frees a kept path that was taken out of its link, once no guard can see it.
    pub(crate) fn retire_cache(&self, cache: NonNull<PathCache>, guard: &epoch::Guard) {
        let cache = cache.as_ptr();
        // SAFETY: taken out by the caller, who retires it once; not freed before the guard ends.
        unsafe {
            let (_, path) = PathCache::read(cache);
            self.cached.fetch_sub(PathCache::bytes(path.len()), Ordering::Relaxed);
            guard.retire(cache, |cache| PathCache::free(cache));
        }
    }
}

/// Where there is no room to keep a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Others are dropped for it.
    Make,
    /// It isn't kept.
    AsItIs,
}

/// Appends the path that is in these parts. One check for room, none at each part.
#[inline]
fn put_together(parts: &Parts<'_>, path: &mut Vec<u8>) {
    let Parts { prefix, name, .. } = parts;
    let slash = usize::from(!prefix.is_empty());
    let length = prefix.len() + slash + name.len();
    if path.capacity() - path.len() < length {
        path.reserve_exact(length);
    }
    // SAFETY: there is room for `length` bytes more, and all of them are written: the prefix, the slash
    // after it unless it is empty, and the name.
    unsafe {
        let start = path.as_mut_ptr().add(path.len());
        std::ptr::copy_nonoverlapping(prefix.as_ptr(), start, prefix.len());
        // Written over by the name if there is no prefix. A name is not empty, so there is room.
        start.add(prefix.len()).write(b'/');
        let rest = start.add(prefix.len() + slash);
        std::ptr::copy_nonoverlapping(name.as_ptr(), rest, name.len());
        path.set_len(path.len() + length);
    }
}

fn from_bytes(path: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(path))
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
