//! Operations that find or make something under a name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use pinpath::{Error, Inode, Name, PathLease};

use super::{
    Engine, EntryReply, LookupReply, OpenReply, Result, checked_ino, contain, gone_is_stale,
    has_identity,
};
use crate::errno::Errno;
use crate::handler::{Entry, Found, Handler, Opened, Request};
use crate::node::Node;
use crate::operation::Operation;

/// What a look at a name gave.
enum Finding {
    /// A node, counted once.
    Entry(EntryReply),
    /// A directory that is known under another name, as this inode. Nothing was counted.
    KnownAs(Inode),
    /// Nothing, and for how long the kernel may remember that, if it may.
    Nothing(Option<Duration>),
}

impl<H: Handler> Engine<H> {
    /// LOOKUP.
    pub fn lookup(&self, req: &Request, parent: Inode, name: &Name) -> Result<LookupReply> {
        contain(Operation::Lookup, || match self.find(req, parent, name)? {
            Finding::Entry(reply) => Ok(LookupReply::Entry(reply)),
            Finding::KnownAs(known) => {
                self.enter_again(req, parent, name, known).map(LookupReply::Entry)
            }
            Finding::Nothing(lifetime) => {
                self.denied(req, parent, name);
                lifetime.map(LookupReply::Nothing).ok_or(Errno::ENOENT)
            }
        })
    }

    /// Asks the handler for a name, and the resolver for the node of what it found.
    ///
    /// The kernel looks a name up again without any lock (when its lifetime is over), so a rename
    /// or removal of just this name may be under way. Had the handler answered before it and the
    /// resolver been asked after it, the name would be given back to a file that lost it. So the
    /// node that has the name is leased from before the one until after the other.
    fn find(&self, req: &Request, parent: Inode, name: &Name) -> Result<Finding> {
        let leases = self.hold_name(parent, name)?;
        let node = match &leases {
            Some([directory, _]) => self.leased(directory),
            None => self.node(parent),
        };
        match self.handler.lookup(req, &node, name) {
            Ok(Found::Entry(entry)) => self.enter_or_known(parent, name, entry),
            Ok(Found::Nothing(lifetime)) => Ok(Finding::Nothing(Some(lifetime))),
            Err(Errno::ENOENT) => Ok(Finding::Nothing(None)),
            Err(error) => Err(error),
        }
    }

    /// Leases of a directory and of what has a name in it; `None` where the name is not known.
    fn hold_name(&self, parent: Inode, name: &Name) -> Result<Option<[PathLease<'_, H::Data>; 2]>> {
        if !self.own_paths() {
            return Ok(None);
        }
        // Each round but the last means that a change of this name was completed meanwhile. Should
        // that never end, the answer is as good without.
        for _ in 0..16 {
            let Some(known) = self.resolver.peek(parent, name)? else { break };
            // Both or neither: nobody waits for one while holding the other.
            match self.resolver.lease_all([parent, known]) {
                Ok(leases) if self.resolver.peek(parent, name)? == Some(known) => {
                    return Ok(Some(leases));
                }
                Ok(_) => {}
                // The name went away between the two. (If it is the directory's that did, the name
                // in it is found again, and there is nothing to hold.)
                Err(_) if self.resolver.path(parent).is_ok() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// MKNOD.
    pub fn mknod(
        &self,
        req: &Request,
        parent: Inode,
        name: &Name,
        mode: u32,
        umask: u32,
        rdev: u32,
    ) -> Result<EntryReply> {
        self.make(Operation::MkNod, req, parent, name, |node| {
            self.handler.mknod(req, node, name, mode, umask, rdev)
        })
    }

    /// MKDIR.
    pub fn mkdir(
        &self,
        req: &Request,
        parent: Inode,
        name: &Name,
        mode: u32,
        umask: u32,
    ) -> Result<EntryReply> {
        self.make(Operation::MkDir, req, parent, name, |node| {
            self.handler.mkdir(req, node, name, mode, umask)
        })
    }

    /// SYMLINK.
    pub fn symlink(
        &self,
        req: &Request,
        parent: Inode,
        name: &Name,
        target: &OsStr,
    ) -> Result<EntryReply> {
        self.make(Operation::SymLink, req, parent, name, |node| {
            self.handler.symlink(req, node, name, target)
        })
    }

    /// CREATE.
    pub fn create(
        &self,
        req: &Request,
        parent: Inode,
        name: &Name,
        mode: u32,
        umask: u32,
        flags: i32,
    ) -> Result<(EntryReply, OpenReply)> {
        contain(Operation::Create, || {
            let (entry, opened) =
                self.handler.create(req, &self.node(parent), name, mode, umask, flags)?;
            let reply = match self.enter_new(req, parent, name, entry) {
                Ok(reply) => reply,
                Err(error) => {
                    self.give_up(req, parent, opened);
                    return Err(error);
                }
            };
            match self.keep_file(req, reply.node, opened) {
                Ok(open) => Ok((reply, open)),
                Err(error) => {
                    self.forget(reply.node, 1);
                    Err(error)
                }
            }
        })
    }

    /// LINK. The answer is the node that was linked, under the id that it had.
    pub fn link(
        &self,
        req: &Request,
        inode: Inode,
        newparent: Inode,
        newname: &Name,
    ) -> Result<EntryReply> {
        contain(Operation::Link, || {
            if !self.own_paths() {
                let entry =
                    self.handler.link(req, &self.node(inode), &self.node(newparent), newname)?;
                return self.enter(req, newparent, newname, entry);
            }
            // Both paths or neither: nobody waits for one while holding the other.
            let [source, directory] = self.resolver.lease_all([inode, newparent])?;
            let entry =
                self.handler.link(req, &self.leased(&source), &self.leased(&directory), newname)?;
            checked_ino(&entry.attr)?;
            self.resolver.link(inode, newparent, newname)?;
            Ok(EntryReply { node: inode, attr: entry.attr, lifetimes: entry.lifetimes })
        })
        .map_err(|error| gone_is_stale(inode, error))
    }

    fn make(
        &self,
        operation: Operation,
        req: &Request,
        parent: Inode,
        name: &Name,
        work: impl FnOnce(&Node<'_, H::Data>) -> Result<Entry<H::Data>>,
    ) -> Result<EntryReply> {
        contain(operation, || {
            let entry = work(&self.node(parent))?;
            self.enter_new(req, parent, name, entry)
        })
    }

    /// Releases what `create` opened and nobody will ever use.
    fn give_up(&self, req: &Request, parent: Inode, opened: Opened<H::File>) {
        self.handler.release(req, &self.node(parent), &opened.file);
    }

    /// The node of an entry, counted once. No lease may be held.
    fn enter(
        &self,
        req: &Request,
        parent: Inode,
        name: &Name,
        entry: Entry<H::Data>,
    ) -> Result<EntryReply> {
        match self.enter_or_known(parent, name, entry)? {
            Finding::Entry(reply) => Ok(reply),
            Finding::KnownAs(known) => self.enter_again(req, parent, name, known),
            Finding::Nothing(_) => Err(Errno::ENOENT),
        }
    }

    fn enter_or_known(&self, parent: Inode, name: &Name, entry: Entry<H::Data>) -> Result<Finding> {
        let ino = checked_ino(&entry.attr)?;
        let Entry { attr, data, lifetimes } = entry;
        if !self.own_paths() {
            return Ok(Finding::Entry(EntryReply { node: Inode::from_raw(ino), attr, lifetimes }));
        }
        match self.resolver.lookup(parent, name, attr.file_type.kind(), data) {
            Ok(node) => Ok(Finding::Entry(EntryReply { node, attr, lifetimes })),
            Err(Error::KnownElsewhere(known)) => Ok(Finding::KnownAs(known)),
            Err(error) => Err(error.into()),
        }
    }

    /// The same for something that was made just now. Where nothing but the name identifies it, a
    /// node of that name is another file's, which went behind the mount: it loses the name.
    fn enter_new(
        &self,
        req: &Request,
        parent: Inode,
        name: &Name,
        entry: Entry<H::Data>,
    ) -> Result<EntryReply> {
        if self.own_paths()
            && !has_identity(&entry.data)
            && self.resolver.peek(parent, name)?.is_some()
        {
            self.resolver.unlink(parent, name)?;
            (self.retired)();
        }
        self.enter(req, parent, name, entry)
    }

    /// A directory that is known under another name, as `known`. Rare, so it is simply asked for
    /// again once the resolver can tell the two apart.
    fn enter_again(
        &self,
        req: &Request,
        parent: Inode,
        name: &Name,
        known: Inode,
    ) -> Result<EntryReply> {
        let seen_twice = self.handler.still_there(&self.node(known));
        if !seen_twice {
            self.follow_move(known, parent, name)?;
        }
        let Found::Entry(Entry { attr, mut data, lifetimes }) =
            self.handler.lookup(req, &self.node(parent), name)?
        else {
            return Err(Errno::ENOENT);
        };
        checked_ino(&attr)?;
        if seen_twice {
            data = self.handler.without_identity(data);
        }
        let node = self.resolver.lookup(parent, name, attr.file_type.kind(), data)?;
        Ok(EntryReply { node, attr, lifetimes })
    }

    /// A directory was moved behind the mount: its node follows.
    fn follow_move(&self, known: Inode, newparent: Inode, newname: &Name) -> Result<()> {
        let old = self.resolver.path(known)?;
        let mut parent = Inode::ROOT;
        let mut names = old.as_os_str().as_bytes().split(|&byte| byte == b'/').peekable();
        while let Some(name) = names.next() {
            let name = Name::new(name)?;
            if names.peek().is_none() {
                self.resolver.rename(parent, name, newparent, newname)?;
                (self.retired)();
                return Ok(());
            }
            parent = self.resolver.peek(parent, name)?.ok_or(Errno::ESTALE)?;
        }
        Err(Errno::ESTALE)
    }

    /// The handler knows nothing under this name. If the resolver does, the thing went behind the
    /// mount (or never had this name): the node loses the name, so that it is found by another one
    /// or said to have none.
    ///
    /// Unless somebody renames or makes it just now: the handler sees such a change before the
    /// resolver does. So it is asked again in a transaction, which waits for those.
    fn denied(&self, req: &Request, parent: Inode, name: &Name) {
        if !self.own_paths() || !matches!(self.resolver.peek(parent, name), Ok(Some(_))) {
            return;
        }
        let Ok(transaction) = self.resolver.begin_unlink(parent, name) else { return };
        if transaction.source().is_none() {
            return;
        }
        let again = self.handler.lookup(req, &self.leased(transaction.parent()), name);
        if matches!(again, Ok(Found::Nothing(_)) | Err(Errno::ENOENT)) {
            // It can fail only if the name is gone already, which is what is wanted.
            let _ = transaction.commit();
            (self.retired)();
        }
    }
}
