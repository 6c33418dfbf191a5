//! Filesystems on pinpath: one whose attributes cost what is asked for, and the mirror.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use pinpath_fuse::mirror::{Mirror, MirrorOptions};
use pinpath_fuse::{
    Attr, Dispatch, Entry, Errno, FileType, Found, Handler, Lifetimes, MountOptions, Name, Node,
    Opened, Request, mount,
};

use super::{Ids, LIFETIME, Served, Server, Spend, Threads, number_of};

struct Files {
    spend: Spend,
    ids: Ids,
}

fn attr(number: Option<u64>) -> Attr {
    match number {
        None => Attr::new(1, FileType::Directory, 0o755),
        Some(number) => Attr::new(number + 2, FileType::Regular, 0o644),
    }
}

/// The file's number out of its path.
fn by_path(path: &Path) -> Option<u64> {
    path.file_name().map(OsStr::as_encoded_bytes).and_then(number_of)
}

impl Handler for Files {
    type Data = ();
    type File = ();
    type Dir = ();

    fn root_data(&self) {}

    fn lookup(
        &self,
        _req: &Request,
        _parent: &Node<'_, ()>,
        name: &Name,
    ) -> pinpath_fuse::Result<Found<()>> {
        let number = number_of(name.as_bytes()).ok_or(Errno::ENOENT)?;
        let lifetimes = Lifetimes { entry: LIFETIME, attr: LIFETIME };
        Ok(Found::Entry(Entry { attr: attr(Some(number)), data: (), lifetimes }))
    }

    fn open(
        &self,
        _req: &Request,
        _node: &Node<'_, ()>,
        _flags: i32,
    ) -> pinpath_fuse::Result<Opened<()>> {
        Ok(Opened::new(()))
    }

    fn opendir(
        &self,
        _req: &Request,
        _node: &Node<'_, ()>,
        _flags: i32,
    ) -> pinpath_fuse::Result<Opened<()>> {
        Ok(Opened::new(()))
    }

    fn getattr(
        &self,
        _req: &Request,
        node: &Node<'_, ()>,
        _file: Option<&()>,
    ) -> pinpath_fuse::Result<(Attr, Duration)> {
        self.spend.spend();
        let number = match self.ids {
            // The root is 1, and the kernel looks the files up in their order.
            Ids::Inode => (node.inode() != pinpath_fuse::Inode::ROOT).then_some(node.inode().raw()),
            Ids::Path => by_path(&node.path()?),
            Ids::Paths => node.paths()?.first().and_then(|path| by_path(path)),
        };
        Ok((attr(number), LIFETIME))
    }
}

fn options(served: &Served) -> MountOptions {
    let mut options = MountOptions::default();
    options.threads.readers = served.readers.unwrap_or(options.threads.readers);
    options.threads.handlers = served.handlers.unwrap_or(options.threads.handlers);
    options.threads.clone_fd = served.clone_fd;
    options.dispatch = match served.threads {
        Threads::Default => options.dispatch,
        Threads::Inline => Dispatch::Inline,
        Threads::Pool => Dispatch::Pool,
    };
    options
}

pub(super) fn serve(served: &Served, at: &Path) -> anyhow::Result<()> {
    let options = options(served);
    if served.server == Server::OurMirror {
        let source = served.source.as_deref().context("a mirror needs a source")?;
        mount(Mirror::open(source, MirrorOptions::default())?, at, &options)?.wait()?;
    } else {
        let files = Files { spend: Spend::new(served.cost), ids: served.ids };
        mount(files, at, &options)?.wait()?;
    }
    Ok(())
}
