//! [`Engine`]: one method per operation, from decoded arguments to a plain result.

mod directory;
mod file;
mod inode;
mod moving;
mod naming;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use pinpath::{Inode, NodeData, PathLease, RequestPin, Resolver};

use crate::attr::{Attr, Lifetimes};
use crate::errno::Errno;
use crate::handler::{Handler, Numbering, OpenOptions};
use crate::handles::Handles;
use crate::node::Node;
use crate::operation::Operation;

pub use inode::SetAttrArgs;

type Result<T> = std::result::Result<T, Errno>;

/// An answer that tells the kernel of an inode, and has counted one lookup of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryReply {
    /// The node id.
    pub node: Inode,
    /// Its attributes.
    pub attr: Attr,
    /// How long the kernel may remember them.
    pub lifetimes: Lifetimes,
}

/// The answer to a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupReply {
    /// The inode of that name.
    Entry(EntryReply),
    /// There is none, and the kernel may remember that for so long.
    Nothing(Duration),
}

/// The answer to an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReply {
    /// What the kernel will call the open file.
    pub handle: u64,
    /// How it shall treat it.
    pub options: OpenOptions,
}

/// A handler, its resolver and its open files: one method per operation, from decoded arguments to
/// a plain result.
///
/// What every operation gets here, whatever the transport and the handler:
///
/// - A panic of the handler is an `EIO` for its request. Leases and transactions that it held are
///   released as the stack unwinds, a transaction without having changed anything.
/// - Every result that carries an entry has counted exactly one lookup of it; an error has counted
///   none.
/// - "No such file" about an inode (not about a name in a directory) becomes `ESTALE`, upon which
///   the kernel looks the name up again instead of telling the program that its file is missing.
///   The look-up says what is true of the name by then.
/// - A handle that is none is `EBADF`; a file stays while an operation uses it.
///
/// An engine needs no mount: tests and fuzzers drive it directly.
pub struct Engine<H: Handler> {
    handler: H,
    resolver: Resolver<H::Data>,
    numbering: Numbering,
    files: Handles<H::File>,
    dirs: Handles<H::Dir>,
    /// Called when something may have been retired in the resolver.
    retired: Box<dyn Fn() + Send + Sync>,
}

impl<H: Handler> Engine<H> {
    /// An engine for `handler`, with a resolver that knows the root only.
    pub fn new(handler: H) -> Self {
        Engine::with_reclaimer(handler, Box::new(|| ()))
    }

    /// As [`Engine::new`]; `retired` is called when a request may have left something behind that
    /// [`Resolver::reclaim`] frees later. It must be cheap.
    pub fn with_reclaimer(handler: H, retired: Box<dyn Fn() + Send + Sync>) -> Self {
        Engine {
            numbering: handler.numbering(),
            resolver: Resolver::new(handler.root_data()),
            handler,
            files: Handles::new(),
            dirs: Handles::new(),
            retired,
        }
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// The resolver. It knows nothing but the root with [`Numbering::Handler`].
    pub fn resolver(&self) -> &Resolver<H::Data> {
        &self.resolver
    }

    /// To be taken when a request is read, before anything of it is looked at, and dropped after it
    /// was answered: meanwhile no node that the request can name is reclaimed.
    pub fn pin(&self) -> Option<RequestPin> {
        self.own_paths().then(|| self.resolver.pin())
    }

    /// The kernel forgot `count` lookups of this inode.
    pub fn forget(&self, inode: Inode, count: u64) {
        match self.numbering {
            Numbering::Resolver => {
                self.resolver.forget(inode, count);
                (self.retired)();
            }
            Numbering::Handler => {
                let _ = contain(Operation::Forget, || {
                    self.handler.forget(inode, count);
                    Ok(())
                });
            }
        }
    }

    /// The same for many.
    pub fn forget_batch(&self, batch: impl IntoIterator<Item = (Inode, u64)>) {
        match self.numbering {
            Numbering::Resolver => {
                self.resolver.forget_batch(batch);
                (self.retired)();
            }
            Numbering::Handler => {
                batch.into_iter().for_each(|(inode, count)| self.forget(inode, count));
            }
        }
    }

    /// The mount has ended.
    pub(crate) fn destroy(&self) {
        let destroyed = catch_unwind(AssertUnwindSafe(|| self.handler.destroy()));
        if let Err(panic) = destroyed {
            report_panic("destroy", panic);
        }
    }

    /// Is it the resolver that gives node ids and knows paths?
    fn own_paths(&self) -> bool {
        self.numbering == Numbering::Resolver
    }

    /// The node of an inode in a request.
    fn node(&self, inode: Inode) -> Node<'_, H::Data> {
        Node::new(inode, self.own_paths().then_some(&self.resolver))
    }

    /// A node whose path is leased already.
    fn leased<'a>(&'a self, lease: &'a PathLease<'a, H::Data>) -> Node<'a, H::Data> {
        Node::leased(lease, &self.resolver)
    }

    /// Runs an operation that names an inode and nothing else.
    fn on_inode<T>(
        &self,
        operation: Operation,
        inode: Inode,
        work: impl FnOnce(&Node<'_, H::Data>) -> Result<T>,
    ) -> Result<T> {
        contain(operation, || work(&self.node(inode))).map_err(|error| gone_is_stale(inode, error))
    }

    /// Runs an operation on an open file.
    fn on_file<T>(
        &self,
        operation: Operation,
        inode: Inode,
        handle: u64,
        work: impl FnOnce(&Node<'_, H::Data>, &H::File) -> Result<T>,
    ) -> Result<T> {
        let file = self.files.get(handle)?;
        // The closure owns the reference: should it be the last one, the file is dropped inside.
        contain(operation, move || work(&self.node(inode), &file))
    }

    /// Runs an operation on an open directory.
    fn on_dir<T>(
        &self,
        operation: Operation,
        inode: Inode,
        handle: u64,
        work: impl FnOnce(&Node<'_, H::Data>, &H::Dir) -> Result<T>,
    ) -> Result<T> {
        let dir = self.dirs.get(handle)?;
        contain(operation, move || work(&self.node(inode), &dir))
    }
}

impl<H: Handler> fmt::Debug for Engine<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("numbering", &self.numbering).finish_non_exhaustive()
    }
}

/// The kernel retries the whole path when told `ESTALE`, and tells the program otherwise. (The root
/// has no name to look up again.)
fn gone_is_stale(inode: Inode, error: Errno) -> Errno {
    if error == Errno::ENOENT && inode != Inode::ROOT { Errno::ESTALE } else { error }
}

/// Keeps a panic of the handler from going further.
fn contain<T>(operation: Operation, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the handler shares between calls may be left half-changed by a panic; that is between
    // the handler and itself. Ours is released by unwinding or not touched at all.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        report_panic(operation, panic);
        Err(Errno::EIO)
    })
}

/// Logs a panic of the handler in this operation.
fn report_panic(operation: impl fmt::Debug, panic: Box<dyn Any + Send>) {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(message), _) => message,
        (_, Some(message)) => message.as_str(),
        _ => "(no message)",
    };
    tracing::error!(?operation, "the handler panicked: {message}");
    if !panic.is::<&str>() && !panic.is::<String>() {
        // Somebody's own type: its destructor could panic in turn.
        std::mem::forget(panic);
    }
}

/// What is never sent: programs skip an entry with inode number 0, and node id 0 means none.
fn checked_ino(attr: &Attr) -> Result<u64> {
    if attr.ino == 0 {
        tracing::error!("the handler gave inode number 0");
        return Err(Errno::EIO);
    }
    Ok(attr.ino)
}

/// Does this data tell files apart by themselves?
fn has_identity<D: NodeData>(data: &D) -> bool {
    data.identity().is_some()
}
