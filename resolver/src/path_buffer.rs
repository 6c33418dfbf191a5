//! Where a walk puts what it meets: the path, from its end to its beginning.

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use crate::name::Name;

/// What a walk up from a node fills, the node's own name first.
pub(crate) trait Upwards<'g> {
    /// May the walk end at a directory whose path is kept?
    const TAKES_PREFIX: bool;

    /// Begins anew.
    fn clear(&mut self);

    /// The next name on the way up.
    fn name(&mut self, name: &'g Name);

    /// The path of what the last name is in: the walk ends here.
    fn prefix(&mut self, path: &[u8]);
}

/// Room for a path of usual length on the stack.
const INLINE: usize = 512;

/// A path that is written from its end to its beginning, in one pass and with nothing cleared first.
pub(crate) struct PathBuffer {
    /// Used until the path is longer.
    inline: [MaybeUninit<u8>; INLINE],
    long: Vec<MaybeUninit<u8>>,
    /// So many bytes at the end of the one in use are the path.
    length: usize,
}

impl PathBuffer {
    #[inline]
    pub(crate) fn new() -> Self {
        PathBuffer { inline: [MaybeUninit::uninit(); INLINE], long: Vec::new(), length: 0 }
    }

    #[inline]
    fn storage(&mut self) -> &mut [MaybeUninit<u8>] {
        if self.long.is_empty() { &mut self.inline } else { &mut self.long }
    }

    /// The path so far.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        let storage = if self.long.is_empty() { &self.inline[..] } else { &self.long[..] };
        let path = &storage[storage.len() - self.length..];
        // SAFETY: the last `length` bytes were written (`write_before`), and `u8` has the layout of
        // `MaybeUninit<u8>`.
        unsafe { std::slice::from_raw_parts(path.as_ptr().cast(), path.len()) }
    }

    /// Writes `bytes` and the slash between them and what is there.
    #[inline]
    fn write_before(&mut self, bytes: &[u8]) {
        let slash = usize::from(self.length > 0);
        let length = self.length + slash + bytes.len();
        if length > self.storage().len() {
            self.grow(length);
        }
        let old = self.length;
        let storage = self.storage();
        let start = storage.len() - length;
        if slash > 0 {
            let end = storage.len();
            storage[end - old - 1].write(b'/');
        }
        // SAFETY: `start + bytes.len()` is at most the storage's length, and nothing in it overlaps
        // bytes that are borrowed from elsewhere.
        unsafe {
            let to = storage.as_mut_ptr().add(start).cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.length = length;
    }

    #[cold]
    fn grow(&mut self, length: usize) {
        let mut larger = vec![MaybeUninit::uninit(); length.next_power_of_two()];
        let kept = self.length;
        let storage = self.storage();
        let (from, to) = (storage.len() - kept, larger.len() - kept);
        larger[to..].copy_from_slice(&storage[from..]);
        self.long = larger;
    }
}

impl<'g> Upwards<'g> for PathBuffer {
    const TAKES_PREFIX: bool = true;

    #[inline]
    fn clear(&mut self) {
        self.length = 0;
    }

    #[inline]
    fn name(&mut self, name: &'g Name) {
        self.write_before(name.as_bytes());
    }

    #[inline]
    fn prefix(&mut self, path: &[u8]) {
        self.write_before(path);
    }
}

/// The names on the way, leaf first.
#[derive(Debug, Default)]
pub(crate) struct NamesUpwards<'g>(pub(crate) SmallVec<[&'g Name; 24]>);

impl<'g> Upwards<'g> for NamesUpwards<'g> {
    const TAKES_PREFIX: bool = false;

    fn clear(&mut self) {
        self.0.clear();
    }

    fn name(&mut self, name: &'g Name) {
        self.0.push(name);
    }

    fn prefix(&mut self, _path: &[u8]) {}
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_path_grows_from_its_end() {
        let mut buffer = PathBuffer::new();
        for name in ["file", "dir", "a"] {
            buffer.name(Name::new(name).unwrap());
        }
        assert_eq!(buffer.bytes(), b"a/dir/file");
        buffer.clear();
        buffer.name(Name::new("x").unwrap());
        buffer.prefix(b"y/z");
        assert_eq!(buffer.bytes(), b"y/z/x");
    }

    #[test]
    fn a_long_path_moves_to_the_heap() {
        let mut buffer = PathBuffer::new();
        let name = "n".repeat(255);
        for _ in 0..100 {
            buffer.name(Name::new(&name).unwrap());
        }
        let expected = vec![name; 100].join("/");
        assert_eq!(buffer.bytes(), expected.as_bytes());
    }
}
