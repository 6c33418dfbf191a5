//! Where a handler puts the entries of a directory: [`DirSink`] and [`DirPlusSink`].
//!
//! A sink takes entries until they fill what the kernel asked for, and exactly those it took are
//! answered and counted. An entry whose name the kernel would refuse (empty, longer than 255 bytes,
//! with a `/` or a NUL in it) would make the whole listing fail, so a sink leaves it out.

use std::fmt;

use pinpath::{Name, NameError, NodeData};

use crate::attr::{Attr, FileType, Lifetimes};
use crate::handler::Entry;
use crate::transport::wire;

/// Did the entry fit?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fit {
    /// Yes: go on.
    Taken,
    /// No: stop here; the kernel asks again from the offset of the last one taken.
    Full,
}

/// One entry of a plain listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// The inode number that programs see (`d_ino`). Not 0: some programs take that for no entry.
    pub ino: u64,
    /// The type of the file.
    pub file_type: FileType,
    /// Its name.
    pub name: &'a [u8],
    /// The offset at which the next entry begins.
    pub next: u64,
}

/// Takes the entries of `readdir`.
pub struct DirSink<'a> {
    push: &'a mut dyn FnMut(DirEntry<'_>) -> Fit,
    full: bool,
}

impl<'a> DirSink<'a> {
    /// A sink that hands each entry to `push`, which belongs to the transport (or to a test).
    pub fn new(push: &'a mut dyn FnMut(DirEntry<'_>) -> Fit) -> Self {
        DirSink { push, full: false }
    }

    /// Offers an entry: its inode number as programs see it, type, name (`.` and `..` included if
    /// the handler lists them) and the offset at which the next entry begins.
    pub fn add(&mut self, ino: u64, file_type: FileType, name: &[u8], next: u64) -> Fit {
        if self.full {
            return Fit::Full;
        }
        if sort_of_name(name) == SortOfName::Unusable {
            return Fit::Taken;
        }
        let fit = (self.push)(DirEntry { ino, file_type, name, next });
        // Whoever goes on after `Full` must not slip a shorter name past the one that didn't fit:
        // the kernel would never ask for that one again.
        self.full = fit == Fit::Full;
        fit
    }
}

impl fmt::Debug for DirSink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirSink").field("full", &self.full).finish_non_exhaustive()
    }
}

/// Takes the entries of `readdirplus`.
#[derive(Debug)]
pub struct DirPlusSink<'a, D: NodeData> {
    listing: &'a mut Listing<D>,
}

impl<D: NodeData> DirPlusSink<'_, D> {
    /// Offers an entry with its attributes: the kernel will know it as if it had looked it up.
    /// (Not so `.` and `..`, which the kernel takes as names only.)
    pub fn add(&mut self, name: &[u8], next: u64, entry: Entry<D>) -> Fit {
        match sort_of_name(name) {
            SortOfName::Unusable => Fit::Taken,
            SortOfName::Dots => self.add_name(entry.attr.ino, entry.attr.file_type, name, next),
            SortOfName::Usable => {
                let Entry { attr, data, lifetimes } = entry;
                let about = About::Entry { attr, lifetimes, data: Some(data) };
                self.listing.take(name, next, about)
            }
        }
    }

    /// Offers a name alone: `.`, `..`, or one whose attributes could not be had.
    pub fn add_name(&mut self, ino: u64, file_type: FileType, name: &[u8], next: u64) -> Fit {
        match sort_of_name(name) {
            SortOfName::Unusable => Fit::Taken,
            _ => self.listing.take(name, next, About::Name { ino, file_type }),
        }
    }
}

#[derive(PartialEq)]
enum SortOfName {
    Usable,
    Dots,
    Unusable,
}

fn sort_of_name(name: &[u8]) -> SortOfName {
    match Name::new(name) {
        Ok(_) => SortOfName::Usable,
        Err(NameError::Dot) => SortOfName::Dots,
        Err(_) => {
            tracing::debug!(name = %name.escape_ascii(), "left out of a listing");
            SortOfName::Unusable
        }
    }
}

/// What was taken of a listing with attributes, before it is answered.
#[derive(Debug)]
pub(crate) struct Listing<D> {
    /// Bytes that the kernel still has room for.
    room: usize,
    full: bool,
    /// The names, one after the other.
    names: Vec<u8>,
    entries: Vec<Listed<D>>,
}

#[derive(Debug)]
struct Listed<D> {
    /// Where its name ends in `names`; it begins where the one before ends.
    name_end: usize,
    next: u64,
    about: About<D>,
}

#[derive(Debug)]
enum About<D> {
    Entry {
        attr: Attr,
        lifetimes: Lifetimes,
        /// Taken when the resolver gets it.
        data: Option<D>,
    },
    Name {
        ino: u64,
        file_type: FileType,
    },
}

impl<D: NodeData> Listing<D> {
    /// For an answer of at most `size` bytes.
    pub(crate) fn new(size: usize) -> Self {
        Listing { room: size, full: false, names: Vec::new(), entries: Vec::new() }
    }

    pub(crate) fn sink(&mut self) -> DirPlusSink<'_, D> {
        DirPlusSink { listing: self }
    }

    fn take(&mut self, name: &[u8], next: u64, about: About<D>) -> Fit {
        let size = wire::dir_entry_plus_size(name.len());
        if self.full || size > self.room {
            self.full = true;
            return Fit::Full;
        }
        self.room -= size;
        self.names.extend_from_slice(name);
        self.entries.push(Listed { name_end: self.names.len(), next, about });
        Fit::Taken
    }

    /// The entries that the kernel will know, in their order, with the data for the resolver. Each
    /// can be had once.
    pub(crate) fn known(&mut self) -> impl Iterator<Item = (&Name, pinpath::Kind, D)> {
        let names = &self.names;
        let mut start = 0;
        self.entries.iter_mut().filter_map(move |listed| {
            let name = &names[start..listed.name_end];
            start = listed.name_end;
            match &mut listed.about {
                About::Entry { attr, data, .. } => {
                    Some((Name::new(name).ok()?, attr.file_type.kind(), data.take()?))
                }
                About::Name { .. } => None,
            }
        })
    }

    /// The answer. `node_of` is asked once for each entry with attributes, in their order, and says
    /// its node id; `None` sends the name alone.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, mut node_of: impl FnMut(&Attr) -> Option<u64>) {
        let mut start = 0;
        for listed in &self.entries {
            let name = &self.names[start..listed.name_end];
            start = listed.name_end;
            match &listed.about {
                About::Entry { attr, lifetimes, .. } => match node_of(attr) {
                    Some(node) => {
                        let entry = wire::EntryOut::new(node, attr, lifetimes);
                        wire::push_dir_entry_plus(
                            out,
                            entry,
                            attr.ino,
                            attr.file_type,
                            name,
                            listed.next,
                        );
                    }
                    None => push_name(out, attr.ino, attr.file_type, name, listed.next),
                },
                About::Name { ino, file_type } => {
                    push_name(out, *ino, *file_type, name, listed.next)
                }
            }
        }
    }
}

/// Node id 0: the kernel takes the name and looks it up when somebody wants more.
fn push_name(out: &mut Vec<u8>, ino: u64, file_type: FileType, name: &[u8], next: u64) {
    wire::push_dir_entry_plus(out, wire::EntryOut::NAME_ONLY, ino, file_type, name, next);
}
