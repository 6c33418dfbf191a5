//! Requests that find, make, move and remove names; and the same behind the mount.

use std::path::PathBuf;

use pinpath_fuse::dispatch::{EntryReply, LookupReply};
use pinpath_fuse::{Errno, FileType, Inode, Name};

use crate::kernel::{Kernel, Known};
use crate::request::{Behind, Place};
use crate::serve::CALLER;

impl Kernel {
    /// The directory and the name of a place. The transport refuses a name that is none in the same
    /// way, before the engine hears of it.
    fn place(&self, place: &Place) -> Option<Known> {
        let (parent, name) = self.name(&place.name);
        Name::new(&name).ok()?;
        Some((parent.unwrap_or_else(|| self.node(place.parent)), name))
    }

    pub(crate) fn lookup(&mut self, at: &Place) {
        let Some((parent, bytes)) = self.place(at) else { return };
        let name = as_name(&bytes);
        let is_there = self.is_there(parent, name);
        let answer = self.engine.lookup(&CALLER, parent, name);
        let found = matches!(answer, Ok(LookupReply::Entry(_)));
        assert!(is_there.is_none_or(|there| there == found), "{name:?} in {parent:?}: {answer:?}");
        match answer {
            Ok(LookupReply::Entry(entry)) => self.told((parent, bytes), &entry),
            // The kernel drops the name from its cache.
            Ok(LookupReply::Nothing(_)) | Err(Errno::ENOENT) => {
                self.names.remove(&(parent, bytes));
            }
            Err(_) => {}
        }
    }

    /// Makes something, or one more name of it; answers its inode number.
    pub(crate) fn make(
        &mut self,
        at: &Place,
        call: impl FnOnce(&Kernel, Inode, &Name) -> Result<EntryReply, Errno>,
    ) -> Option<u64> {
        let (parent, bytes) = self.place(at)?;
        let entry = call(self, parent, as_name(&bytes)).ok()?;
        self.told((parent, bytes), &entry);
        Some(entry.attr.ino)
    }

    pub(crate) fn remove(
        &mut self,
        at: &Place,
        call: impl FnOnce(&Kernel, Inode, &Name) -> Result<(), Errno>,
    ) {
        let Some((parent, bytes)) = self.place(at) else { return };
        if call(self, parent, as_name(&bytes)).is_ok() {
            self.names.remove(&(parent, bytes));
        }
    }

    pub(crate) fn rename(&mut self, from: &Place, to: &Place, flags: u8) {
        let (Some(from), Some(to)) = (self.place(from), self.place(to)) else { return };
        let flags = match flags {
            0..100 => 0,
            100..140 => libc::RENAME_NOREPLACE,
            140..220 => libc::RENAME_EXCHANGE,
            // Those that are known, and some that are not, in all combinations.
            220.. => u32::from(flags) & 15,
        };
        let (name, newname) = (as_name(&from.1), as_name(&to.1));
        let answer = self.engine.rename(&CALLER, from.0, name, to.0, newname, flags);
        if answer.is_err() {
            return;
        }
        let (moved, target) = (self.names.get(&from).copied(), self.names.get(&to).copied());
        if moved.is_some() && moved == target {
            return; // Two names of one file: rename(2) does nothing.
        }
        self.names.remove(&from);
        self.names.remove(&to);
        let exchanged = if flags & libc::RENAME_EXCHANGE != 0 { target } else { None };
        self.names.extend(moved.map(|inode| (to, inode)));
        self.names.extend(exchanged.map(|inode| (from, inode)));
    }

    /// Takes up a listing with attributes. Reads the kernel's format (`struct fuse_direntplus`) by
    /// itself.
    pub(crate) fn listed(&mut self, directory: Inode, mut bytes: &[u8]) {
        let u64_at = |bytes: &[u8], at: usize| {
            u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        while !bytes.is_empty() {
            let (node, ino) = (u64_at(bytes, 0), u64_at(bytes, 128));
            let len = u32::from_ne_bytes(bytes[144..148].try_into().expect("four bytes")) as usize;
            let name = &bytes[152..152 + len];
            assert!(Name::new(name).is_ok() && ino != 0, "{name:?}, {ino}");
            if node != 0 {
                assert_eq!(u64_at(bytes, 40), ino, "both inode numbers of the entry");
                self.told_of((directory, name.to_vec()), Inode::from_raw(node), ino);
            }
            bytes = &bytes[(152 + len).next_multiple_of(8)..];
        }
    }

    pub(crate) fn behind(&mut self, change: &Behind) {
        self.undisturbed = false;
        let handler = self.engine.handler();
        match change {
            Behind::File(at) | Behind::Directory(at) => {
                let directory = matches!(change, Behind::Directory(_));
                let file_type = if directory { FileType::Directory } else { FileType::Regular };
                if let Some(path) = self.vacant(at) {
                    handler.put(path, file_type, b"");
                }
            }
            Behind::Again(node, at) => {
                let from = self.engine.resolver().path(self.node(*node)).ok();
                let file = from.and_then(|from| handler.tree().get(&from).cloned());
                if let (Some(file), Some(path)) = (file, self.vacant(at)) {
                    handler.tree().insert(path, file);
                }
            }
            Behind::Remove(node) => match self.engine.resolver().path(self.node(*node)) {
                Ok(path) if !path.as_os_str().is_empty() => {
                    handler.tree().retain(|other, _| !other.starts_with(&path));
                }
                _ => {}
            },
            Behind::Move(node, at) => {
                let from = self.engine.resolver().path(self.node(*node));
                let (Ok(from), Some(to)) = (from, self.vacant(at)) else { return };
                if !from.as_os_str().is_empty() && !to.starts_with(&from) {
                    handler.move_tree(from, to);
                }
            }
        }
    }

    /// The path of a place where something can be put behind the mount.
    fn vacant(&self, at: &Place) -> Option<PathBuf> {
        let (parent, bytes) = self.place(at)?;
        let directory = self.engine.resolver().path(parent).ok()?;
        let path = directory.join(as_name(&bytes).as_os_str());
        let tree = self.engine.handler().tree();
        let is_directory = tree.get(&directory)?.attr.file_type == FileType::Directory;
        (is_directory && !tree.contains_key(&path)).then_some(path)
    }
}

fn as_name(bytes: &[u8]) -> &Name {
    Name::new(bytes).expect("`place` has looked")
}
