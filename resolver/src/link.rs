//! [`Link`]: one name of one node, and [`Links`]: all names of a node, in one pointer.
//!
//! A link is one allocation: the parent, the owner, the name's hash and bytes, and the path that was
//! built for it last. The index points to the same allocation, so a name is stored once.
//!
//! A link's parent, owner and name never change; a rename makes a new link. What a node's names are
//! is one word, [`Links`], that a change replaces with one store:
//!
//! | tag | the word points to | meaning |
//! | --- | --- | --- |
//! | 0 | nothing | no name: unlinked (or the root) |
//! | 0 | a `Link` | one name |
//! | 1 | a `LinkSet` | several; the first is the one that `path()` gives |
//! | 2 | an `Intent` | what holds is decided by the intent's change (`change.rs`) |
//!
//! What a word points to is freed by epoch after it was replaced, so whoever holds an epoch guard
//! may follow it.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use crate::inode::Inode;
use crate::name::Name;
use crate::path_cache::PathCache;
use crate::sync::{AtomicPtr, Ordering, epoch};

/// The fixed part of a link; the bytes of the name follow it in the same allocation.
#[repr(C)]
struct Header {
    parent: Inode,
    cache: AtomicPtr<PathCache>,
    hash: u32,
    owner: u32,
    length: u8,
}

/// In the place of a cache: the link has been retired and keeps nothing any more.
const CLOSED: *mut PathCache = std::ptr::without_provenance_mut(1);

/// In the place of a cache: the path was asked for once, and is kept when it is asked for again.
const ASKED: *mut PathCache = std::ptr::without_provenance_mut(2);

/// Where the name's bytes begin: right after `length`, inside what would be padding.
const NAME: usize = std::mem::offset_of!(Header, length) + 1;

#[inline(always)]
fn is_kept(cache: *mut PathCache) -> bool {
    // Null and the two constants are below any address.
    cache.addr() > ASKED.addr()
}

/// A pointer to a link. Copying it copies the pointer; `free` ends the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(NonNull<Header>);

// SAFETY: what it points to is immutable but for an atomic.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

impl Link {
    pub(crate) fn new(parent: Inode, name: &Name, hash: u32, owner: u32) -> Self {
        let bytes = name.as_bytes();
        let layout = Self::layout(bytes.len());
        // SAFETY: the layout isn't empty.
        let memory = unsafe { alloc(layout) };
        let Some(header) = NonNull::new(memory.cast::<Header>()) else {
            handle_alloc_error(layout)
        };
        // SAFETY: freshly allocated with room for the header's fields and the name. The fields are
        // written one by one because the allocation may end before the header's padding does.
        // A name has at most 255 bytes, so its length fits.
        unsafe {
            let at = header.as_ptr();
            (&raw mut (*at).parent).write(parent);
            (&raw mut (*at).cache).write(AtomicPtr::new(std::ptr::null_mut()));
            (&raw mut (*at).hash).write(hash);
            (&raw mut (*at).owner).write(owner);
            (&raw mut (*at).length).write(bytes.len() as u8);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.add(NAME), bytes.len());
        }
        Link(header)
    }

    fn layout(name: usize) -> Layout {
        Layout::from_size_align(NAME + name, align_of::<Header>()).expect("a name is short")
    }

    /// Bytes that a link with a name of this length takes.
    pub(crate) fn bytes(self) -> usize {
        NAME + self.name().as_bytes().len()
    }

    // The accessors below read fields that no one writes after `new`, of a link that has not been
    // freed: whoever has a `Link` holds the epoch guard under which it was found, or the lock that
    // keeps it in the index, or owns it.

    pub(crate) fn parent(self) -> Inode {
        // SAFETY: see above.
        unsafe { (*self.0.as_ptr()).parent }
    }

    pub(crate) fn hash(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0.as_ptr()).hash }
    }

    /// The slot of the node that has this name.
    pub(crate) fn owner(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0.as_ptr()).owner }
    }

    pub(crate) fn name<'a>(self) -> &'a Name {
        // SAFETY: see above; `length` bytes follow. The lifetime is the caller's to keep within
        // the guard, lock or ownership under which it has the link.
        unsafe {
            let header = self.0.as_ptr();
            let length = (*header).length as usize;
            let start = header.cast::<u8>().add(NAME);
            Name::trusted(std::slice::from_raw_parts(start, length))
        }
    }

    pub(crate) fn is(self, parent: Inode, name: &Name) -> bool {
        self.parent() == parent && self.name() == name
    }

    fn cache<'a>(self) -> &'a AtomicPtr<PathCache> {
        // SAFETY: see above.
        unsafe { &(*self.0.as_ptr()).cache }
    }

    /// The path that was kept last for this link, if any.
    #[inline]
    pub(crate) fn cached(self) -> Option<NonNull<PathCache>> {
        // Acquire: pairs with the Release in `keep`; the path is whole before it is read.
        let cache = self.cache().load(Ordering::Acquire);
        if is_kept(cache) { NonNull::new(cache) } else { None }
    }

    /// The path was asked for: true if it was before, or was kept once. Writes only the first time.
    #[inline]
    pub(crate) fn asked_again(self) -> bool {
        let cache = self.cache();
        // Relaxed: a hint, which publishes nothing and is lost if another thread is faster.
        let before = cache.load(Ordering::Relaxed);
        if before.is_null() {
            let _ = cache.compare_exchange(before, ASKED, Ordering::Relaxed, Ordering::Relaxed);
        }
        !before.is_null()
    }

    /// Keeps `fresh` in the place of `old`. False, and `fresh` stays the caller's, if another
    /// thread was faster or the link has been retired.
    pub(crate) fn keep(self, old: Option<NonNull<PathCache>>, fresh: *mut PathCache) -> bool {
        let old = match old {
            Some(old) => old.as_ptr(),
            // Relaxed: only whether it is one of the two that stand for nothing kept.
            None => match self.cache().load(Ordering::Relaxed) {
                kept if is_kept(kept) => return false,
                CLOSED => return false,
                nothing => nothing,
            },
        };
        // Release: pairs with the Acquire in `cached`. Relaxed on failure: nothing is read then.
        self.cache().compare_exchange(old, fresh, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Nothing is kept from now on; answers what was.
    pub(crate) fn close_cache(self) -> Option<NonNull<PathCache>> {
        // Acquire: what was kept is whole, for whoever frees it.
        NonNull::new(self.cache().swap(CLOSED, Ordering::Acquire))
            .filter(|cache| is_kept(cache.as_ptr()))
    }

    /// Frees it once no guard can see it.
    ///
    /// # Safety
    /// The link is in no index and no `Links`, its cache is closed, and it is retired once.
    pub(crate) unsafe fn retire(self, guard: &epoch::Guard) {
        // SAFETY: the caller's promise. The pointer is that of a link, so not null.
        unsafe {
            guard.retire(self.0.as_ptr(), |link| Link(NonNull::new_unchecked(link)).free());
        }
    }

    /// # Safety
    /// The link is in no index and no `Links`, its cache is closed, and every epoch guard under
    /// which it could be found has ended.
    pub(crate) unsafe fn free(self) {
        let layout = Self::layout(self.name().as_bytes().len());
        // SAFETY: nobody else has the link; the layout is that of `new`.
        unsafe { dealloc(self.0.as_ptr().cast(), layout) };
    }
}

/// Several names of one node, in order.
#[derive(Debug)]
pub(crate) struct LinkSet(Box<[Link]>);

/// All names of a node: a word as it stands in the node, or as it will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Links(*mut ());

const TAG: usize = 0b11;
const SET: usize = 1;
const INTENT: usize = 2;

impl Links {
    pub(crate) const NONE: Links = Links(std::ptr::null_mut());

    pub(crate) fn from_raw(raw: *mut ()) -> Self {
        Links(raw)
    }

    pub(crate) fn raw(self) -> *mut () {
        self.0
    }

    fn tag(self) -> usize {
        self.0.addr() & TAG
    }

    fn untagged<T>(self) -> *mut T {
        self.0.map_addr(|address| address & !TAG).cast()
    }

    /// The word for these names. A set is allocated where there are several.
    pub(crate) fn of(links: &[Link]) -> Self {
        match links {
            [] => Links::NONE,
            [link] => Links(link.0.as_ptr().cast()),
            _ => {
                let set = Box::into_raw(Box::new(LinkSet(links.into())));
                Links(set.cast::<()>().map_addr(|address| address | SET))
            }
        }
    }

    /// The word for a pending change of a node's names.
    pub(crate) fn intent<T>(intent: *mut T) -> Self {
        Links(intent.cast::<()>().map_addr(|address| address | INTENT))
    }

    pub(crate) fn as_intent<T>(self) -> Option<*mut T> {
        (self.tag() == INTENT).then(|| self.untagged())
    }

    /// The link, if the word is exactly one.
    #[inline]
    pub(crate) fn single(self) -> Option<Link> {
        if self.tag() == 0 { NonNull::new(self.0.cast()).map(Link) } else { None }
    }

    pub(crate) fn is_none(self) -> bool {
        self.0.is_null()
    }

    /// The names, first first.
    ///
    /// # Safety
    /// The word is no intent, and what it points to can't be freed while the slice is used: an epoch guard
    /// is held since before the word was read, or the caller owns it.
    pub(crate) unsafe fn as_slice(&self) -> &[Link] {
        match self.tag() {
            // SAFETY: a set until freed, which the caller excludes.
            SET => unsafe { &(*self.untagged::<LinkSet>()).0 },
            _ if self.is_none() => &[],
            // SAFETY: `Links` is a transparent-sized word: a non-null pointer with tag 0, which is
            // exactly a `Link` (a `NonNull` of the same size and representation).
            _ => unsafe { std::slice::from_raw_parts((&raw const self.0).cast::<Link>(), 1) },
        }
    }

    /// Frees the set, if it is one, and not the links in it, once no guard can see it.
    ///
    /// # Safety
    /// The word has been replaced in its node, and nobody else retires it.
    pub(crate) unsafe fn retire_set(self, guard: &epoch::Guard) {
        if self.tag() == SET {
            let set = self.untagged::<LinkSet>();
            // SAFETY: made by `Box::into_raw` in `of`, retired once, and freed after every guard
            // that was held when it was replaced.
            unsafe { guard.retire(set, |set| drop(Box::from_raw(set))) };
        }
    }

    /// Frees the set, if it is one, now.
    ///
    /// # Safety
    /// Nobody else can see the word any more.
    pub(crate) unsafe fn free_set(self) {
        if self.tag() == SET {
            // SAFETY: as in `retire_set`.
            drop(unsafe { Box::from_raw(self.untagged::<LinkSet>()) });
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn link(name: &str) -> Link {
        Link::new(Inode::ROOT, Name::new(name).unwrap(), 7, 3)
    }

    #[test]
    fn a_link_keeps_what_it_was_made_of() {
        for name in ["a", "sixteen bytes...", &"n".repeat(255)] {
            let link = link(name);
            assert!(link.is(Inode::ROOT, Name::new(name).unwrap()));
            assert_eq!((link.hash(), link.owner()), (7, 3));
            // SAFETY: ours alone.
            unsafe { link.free() };
        }
    }

    #[test]
    fn a_word_holds_none_one_or_several() {
        let (a, b) = (link("a"), link("b"));
        for links in [&[][..], &[a], &[a, b]] {
            let word = Links::of(links);
            // SAFETY: ours alone.
            unsafe {
                assert_eq!(word.as_slice(), links);
                word.free_set();
            }
        }
        // SAFETY: ours alone.
        unsafe {
            a.free();
            b.free();
        }
    }
}
