//! [`Segments`]: an array that grows without moving what is in it.
//!
//! Segment k holds `FIRST << k` elements, so an index leads to its segment and its place in it by
//! counting leading zeros. A segment is published once, by a compare-exchange of its pointer, and
//! stays until the whole is dropped. Reaching an element takes no lock and no read-modify-write.

use std::fmt;

use crate::sync::{AtomicPtr, Ordering};

/// Elements of the first segment. Tiny under loom, so that its models see growth.
const FIRST: usize = if cfg!(loom) { 2 } else { 64 };
/// Enough for 2^32 elements.
const SEGMENTS: usize = if cfg!(loom) { 4 } else { 27 };

/// Elements that can be made from zeroed memory, all at once and without touching it.
///
/// # Safety
/// All-zero bytes must be a valid value of the type, equal to `Default`.
pub(crate) unsafe trait Zeroed: Default {}

pub(crate) struct Segments<T> {
    segments: [AtomicPtr<T>; SEGMENTS],
}

/// (segment, place in it)
#[inline(always)]
fn locate(index: usize) -> (usize, usize) {
    let shifted = index + FIRST;
    let segment = shifted.ilog2() - FIRST.ilog2();
    (segment as usize, shifted - (FIRST << segment))
}

impl<T> Segments<T> {
    pub(crate) fn new() -> Self {
        Segments { segments: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())) }
    }

    /// The element, if its segment is there.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (segment, place) = locate(index);
        // Acquire: pairs with the AcqRel in `grow`; the elements are whole before they are reached.
        let elements = self.segments.get(segment)?.load(Ordering::Acquire);
        if elements.is_null() {
            return None;
        }
        // SAFETY: a published segment k holds `FIRST << k` elements (`grow`), `place` is below
        // that (`locate`), and it is freed only in `drop`.
        Some(unsafe { &*elements.add(place) })
    }

    /// All elements of the segments that are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.segments.iter().enumerate().flat_map(|(segment, elements)| {
            let elements = elements.load(Ordering::Acquire);
            let length = if elements.is_null() { 0 } else { FIRST << segment };
            // SAFETY: as in `get`; each place is below the segment's length.
            (0..length).map(move |place| unsafe { &*elements.add(place) })
        })
    }

    /// Bytes that the segments take.
    pub(crate) fn bytes(&self) -> usize {
        let lengths = self.segments.iter().enumerate().map(|(segment, elements)| {
            if elements.load(Ordering::Relaxed).is_null() { 0 } else { FIRST << segment }
        });
        lengths.sum::<usize>() * size_of::<T>()
    }
}

impl<T: Zeroed> Segments<T> {
    /// The element; its segment is made if it isn't there.
    ///
    /// # Panics
    /// If `index` is 2^32 or more.
    #[inline]
    pub(crate) fn get_or_grow(&self, index: usize) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => self.grow(index),
        }
    }

    #[cold]
    fn grow(&self, index: usize) -> &T {
        let (segment, _) = locate(index);
        let fresh = allocate::<T>(FIRST << segment);
        // AcqRel: publishes the elements to the Acquire in `get`; on failure we take the other
        // thread's segment, hence Acquire there too.
        let published = self.segments[segment].compare_exchange(
            std::ptr::null_mut(),
            fresh,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if published.is_err() {
            // SAFETY: ours, of this length, and nobody has seen it.
            unsafe { free(fresh, FIRST << segment) };
        }
        self.get(index).expect("the segment is there now")
    }
}

impl<T> Drop for Segments<T> {
    fn drop(&mut self) {
        for (segment, elements) in self.segments.iter().enumerate() {
            let elements = elements.load(Ordering::Relaxed);
            if !elements.is_null() {
                // SAFETY: made by `allocate` with this length; `&mut self`: nobody is in it.
                unsafe { free(elements, FIRST << segment) };
            }
        }
    }
}

/// Zeroed memory straight from the system: pages of a large segment that nobody writes cost nothing.
#[cfg(not(any(loom, shuttle)))]
fn allocate<T: Zeroed>(length: usize) -> *mut T {
    let layout = layout::<T>(length);
    // SAFETY: the layout isn't empty: lengths are at least `FIRST`, elements have a size (asserted).
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    if memory.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    memory.cast()
}

/// loom's atomics must be made one by one.
#[cfg(any(loom, shuttle))]
fn allocate<T: Zeroed>(length: usize) -> *mut T {
    let elements: Box<[T]> = (0..length).map(|_| T::default()).collect();
    Box::into_raw(elements).cast()
}

fn layout<T>(length: usize) -> std::alloc::Layout {
    const { assert!(size_of::<T>() > 0) };
    std::alloc::Layout::array::<T>(length).expect("a segment is smaller than the address space")
}

/// # Safety
/// `elements` comes from `allocate` with this length and is not used any more.
unsafe fn free<T>(elements: *mut T, length: usize) {
    let slice = std::ptr::slice_from_raw_parts_mut(elements, length);
    // SAFETY: the caller's promise; zeroed elements are valid values (`Zeroed`). The layout is the
    // one it was allocated with (loom's `Box<[T]>` has the same).
    unsafe {
        std::ptr::drop_in_place(slice);
        std::alloc::dealloc(elements.cast(), layout::<T>(length));
    }
}

impl<T> fmt::Debug for Segments<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segments").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    #[derive(Debug, Default)]
    struct Element(AtomicU64);

    // SAFETY: an `AtomicU64` of zero bytes is 0.
    unsafe impl Zeroed for Element {}

    #[test]
    fn indices_fill_segments_without_gaps() {
        let mut last = (0, 0);
        assert_eq!(locate(0), last);
        for index in 1..10_000 {
            let (segment, place) = locate(index);
            let expected = if place == 0 { (last.0 + 1, 0) } else { (last.0, last.1 + 1) };
            assert_eq!((segment, place), expected);
            last = (segment, place);
        }
        assert_eq!(locate(u32::MAX as usize).0, SEGMENTS - 1);
    }

    #[test]
    fn elements_stay_where_they_are() {
        let segments = Segments::<Element>::new();
        assert!(segments.get(5).is_none());
        let first = std::ptr::from_ref(segments.get_or_grow(5));
        segments.get_or_grow(100_000).0.store(9, Ordering::Relaxed);
        assert!(std::ptr::eq(segments.get(5).unwrap(), first));
        assert_eq!(segments.get(100_000).unwrap().0.load(Ordering::Relaxed), 9);
    }

    #[test]
    fn an_index_beyond_every_segment_is_not_there() {
        assert!(Segments::<Element>::new().get(usize::MAX / 2).is_none());
    }
}
