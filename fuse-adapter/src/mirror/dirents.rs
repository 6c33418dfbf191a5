//! [`Dirents`]: a directory read in portions, from any of its own offsets on.
//!
//! The offsets are the source's: hashes on ext4, opaque anywhere. That of an entry stays good when
//! entries before it are removed, which a position in a list would not.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::SeekFrom;

use crate::attr::FileType;
use crate::errno::Errno;

type Result<T> = std::result::Result<T, Errno>;

/// Bytes read in one go, about a thousand short names.
const PORTION: usize = 32 * 1024;

/// Where the name begins in the kernel's `struct linux_dirent64`, after the inode number, the
/// offset of the next entry, the length of the record and the type.
const HEAD: usize = 19;

/// One entry as the source lists it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirent<'a> {
    pub(super) ino: u64,
    /// `None` where the filesystem doesn't keep types with names.
    pub(super) file_type: Option<FileType>,
    pub(super) name: &'a [u8],
    /// Where the next entry begins.
    pub(super) next: u64,
}

/// A stream of a directory's entries.
#[derive(Debug, Default)]
pub(super) struct Dirents {
    /// What was read and not yet taken: whole records.
    portion: Vec<u8>,
    taken: usize,
    /// The offset at which the first of them begins, or the descriptor stands if there are none.
    offset: u64,
}

impl Dirents {
    /// Goes to an offset that an entry gave as its next, or to 0: the directory is read anew.
    pub(super) fn seek(&mut self, dir: impl AsFd, offset: u64) -> Result<()> {
        if offset != 0 && offset == self.offset {
            return Ok(());
        }
        self.forget_portion();
        rustix::fs::seek(dir, SeekFrom::Start(offset))?;
        self.offset = offset;
        Ok(())
    }

    /// The entry at the current offset, `None` at the end. It is the same one again until
    /// [`advance`](Dirents::advance).
    pub(super) fn peek(&mut self, dir: impl AsFd) -> Result<Option<Dirent<'_>>> {
        if self.taken == self.portion.len() {
            self.taken = 0;
            read_portion(dir.as_fd(), &mut self.portion)?;
        }
        if self.portion.is_empty() {
            // Nothing more is expected to be read, so why hold the memory.
            self.forget_portion();
            return Ok(None);
        }
        parse(&self.portion[self.taken..]).map(|(dirent, _)| Some(dirent))
    }

    /// Goes past the entry that was looked at.
    pub(super) fn advance(&mut self) -> Result<()> {
        let (next, length) =
            parse(&self.portion[self.taken..]).map(|(dirent, length)| (dirent.next, length))?;
        self.offset = next;
        self.taken += length;
        Ok(())
    }

    fn forget_portion(&mut self) {
        self.portion = Vec::new();
        self.taken = 0;
    }
}

/// Reads the next records; none at the end.
fn read_portion(dir: BorrowedFd<'_>, portion: &mut Vec<u8>) -> Result<()> {
    portion.clear();
    portion.reserve_exact(PORTION);
    let room = portion.spare_capacity_mut();
    // SAFETY: the kernel writes at most `room.len()` bytes to `room`.
    let read = unsafe {
        libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), room.as_mut_ptr(), room.len())
    };
    let Ok(read) = usize::try_from(read) else {
        return Err(std::io::Error::last_os_error().into());
    };
    // SAFETY: so many bytes the kernel says that it has written, and they are within the capacity.
    unsafe { portion.set_len(read) };
    Ok(())
}

/// The first of some records, and how long it is.
///
/// # Errors
/// `EIO` if it isn't whole, which no kernel does.
fn parse(records: &[u8]) -> Result<(Dirent<'_>, usize)> {
    let number = |at: usize| records.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    let head = || {
        Some((
            number(0)?,
            number(8)?,
            records.get(16..18)?.try_into().ok().map(u16::from_ne_bytes)?,
        ))
    };
    let (ino, next, length) = head().ok_or(Errno::EIO)?;
    let record = records.get(..usize::from(length)).ok_or(Errno::EIO)?;
    let (file_type, name) =
        (record.get(HEAD - 1).ok_or(Errno::EIO)?, record.get(HEAD..).ok_or(Errno::EIO)?);
    // Padded with NULs.
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    // The types of directory entries are those of modes, 12 bits lower.
    let file_type = FileType::from_mode(u32::from(*file_type) << 12);
    Ok((Dirent { ino, file_type, name: &name[..end], next }, record.len()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::File;

    use super::*;

    fn names_from(stream: &mut Dirents, dir: &File, offset: u64) -> Vec<(Vec<u8>, u64)> {
        stream.seek(dir, offset).unwrap();
        let mut found = Vec::new();
        while let Some(dirent) = stream.peek(dir).unwrap() {
            found.push((dirent.name.to_owned(), dirent.next));
            stream.advance().unwrap();
        }
        found
    }

    #[test]
    fn every_entry_once_and_any_offset_again() {
        let temp = tempfile::tempdir().unwrap();
        let expected: BTreeSet<Vec<u8>> =
            (0..3000).map(|n| format!("file-{n}").into_bytes()).collect();
        for name in &expected {
            File::create(temp.path().join(std::str::from_utf8(name).unwrap())).unwrap();
        }
        let dir = File::open(temp.path()).unwrap();
        let mut stream = Dirents::default();
        let all = names_from(&mut stream, &dir, 0);
        assert_eq!(all.len(), 3002, "with . and ..");
        let named: BTreeSet<Vec<u8>> = all.iter().map(|(name, _)| name.clone()).collect();
        assert!(named.is_superset(&expected));
        for at in [0, 1, 700, 1500, 3000] {
            assert_eq!(names_from(&mut stream, &dir, all[at].1), all[at + 1..], "after entry {at}");
        }
        File::create(temp.path().join("later")).unwrap();
        assert_eq!(names_from(&mut stream, &dir, 0).len(), 3003, "offset 0 reads anew");

        // Also where the first entry was read and nothing of it taken.
        let small = tempfile::tempdir().unwrap();
        let dir = File::open(small.path()).unwrap();
        let mut stream = Dirents::default();
        stream.seek(&dir, 0).unwrap();
        assert!(stream.peek(&dir).unwrap().is_some());
        File::create(small.path().join("later")).unwrap();
        assert_eq!(names_from(&mut stream, &dir, 0).len(), 3);
    }

    #[test]
    fn a_broken_record_is_an_error() {
        assert!(parse(&[]).is_err());
        assert!(parse(&[0; 24]).is_err(), "a record of no length would never end");
        let mut long = [0; 24];
        long[16..18].copy_from_slice(&100u16.to_ne_bytes());
        assert!(parse(&long).is_err());
    }
}
