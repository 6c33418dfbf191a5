//! A filesystem in memory, by paths: `cargo run --example hello -- MOUNTPOINT`, then
//! `cat MOUNTPOINT/hello.txt`. Ends with `umount MOUNTPOINT`.

use std::{path::Path, time::Duration};

use pinpath_fuse::{
    Attr, DirSink, Entry, Errno, FileType, Fit, Found, Handler, MountOptions, Name, Node, Opened,
    Request, Result,
};

pub(crate) struct Hello;

const FILES: [(&str, &str); 2] = [("hello.txt", "Hello, world!\n"), ("bye.txt", "Goodbye.\n")];

/// The number of the file at this path.
fn find(path: &Path) -> Result<usize> {
    FILES.iter().position(|(name, _)| path == Path::new(name)).ok_or(Errno::ENOENT)
}

fn attr(path: &Path) -> Result<Attr> {
    if path.as_os_str().is_empty() {
        return Ok(Attr::new(1, FileType::Directory, 0o755)); // the root
    }
    let file = find(path)?;
    let attr = Attr::new(2 + file as u64, FileType::Regular, 0o644);
    Ok(attr.with_size(FILES[file].1.len() as u64))
}

impl Handler for Hello {
    type Data = ();
    type File = usize; // an open file: its number
    type Dir = ();

    fn root_data(&self) {}

    fn lookup(&self, _: &Request, parent: &Node<'_>, name: &Name) -> Result<Found<()>> {
        let path = parent.path()?.join(name.as_os_str());
        Ok(Found::Entry(Entry::new(attr(&path)?, ())))
    }

    fn getattr(&self, _: &Request, node: &Node<'_>, _: Option<&usize>) -> Result<(Attr, Duration)> {
        Ok((attr(&node.path()?)?, Duration::from_secs(1)))
    }

    fn open(&self, _: &Request, node: &Node<'_>, _flags: i32) -> Result<Opened<usize>> {
        Ok(Opened::new(find(&node.path()?)?))
    }

    #[rustfmt::skip]
    fn read(&self, _: &Request, _: &Node<'_>, file: &usize, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let rest = FILES[*file].1.as_bytes().get(offset as usize..).unwrap_or_default();
        let size = rest.len().min(buf.len());
        buf[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    fn opendir(&self, _: &Request, _: &Node<'_>, _flags: i32) -> Result<Opened<()>> {
        Ok(Opened::new(()))
    }

    #[rustfmt::skip]
    fn readdir(&self, _: &Request, _: &Node<'_>, _: &(), offset: u64, sink: &mut DirSink<'_>) -> Result<()> {
        for (file, (name, _)) in FILES.iter().enumerate().skip(offset as usize) {
            let next = file as u64 + 1; // where a listing goes on after this entry
            if sink.add(2 + file as u64, FileType::Regular, name.as_bytes(), next) == Fit::Full {
                break;
            }
        }
        Ok(())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mountpoint = std::env::args_os().nth(1).ok_or("usage: hello MOUNTPOINT")?;
    let mount = pinpath_fuse::mount(Hello, mountpoint, &MountOptions::default())?;
    Ok(mount.wait()?)
}
