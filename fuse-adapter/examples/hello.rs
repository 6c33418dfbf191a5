//! A filesystem in memory, by paths: `cargo run --example hello -- MOUNTPOINT`, then
//! `cat MOUNTPOINT/hello.txt`. Ends with `umount MOUNTPOINT`.

use std::path::Path;
use std::time::Duration;

use pinpath_fuse::{
    Attr, DirSink, Entry, Errno, FileType, Fit, Found, Handler, MountOptions, Name, Node, Opened,
    Request,
};

pub(crate) struct Hello;

const FILES: [(&str, &str); 2] = [("hello.txt", "Hello, world!\n"), ("bye.txt", "Goodbye.\n")];
const TTL: Duration = Duration::from_secs(1);

/// The attributes of what is at this path; the root's path is empty.
fn attr(path: &Path) -> Result<Attr, Errno> {
    if path.as_os_str().is_empty() {
        return Ok(Attr::new(1, FileType::Directory, 0o755));
    }
    let index = FILES.iter().position(|(name, _)| path == Path::new(name)).ok_or(Errno::ENOENT)?;
    let size = FILES[index].1.len() as u64;
    Ok(Attr::new(2 + index as u64, FileType::Regular, 0o644).with_size(size))
}

impl Handler for Hello {
    type Data = ();
    type File = &'static str; // an open file is its content
    type Dir = ();

    fn root_data(&self) {}

    fn lookup(&self, _: &Request, parent: &Node<'_, ()>, name: &Name) -> Result<Found<()>, Errno> {
        let attr = attr(&parent.path()?.join(name.as_os_str()))?;
        Ok(Found::Entry(Entry::new(attr, ())))
    }

    fn getattr(&self, _: &Request, node: &Node<'_, ()>, _: Option<&&str>) -> Result<(Attr, Duration), Errno> {
        Ok((attr(&node.path()?)?, TTL))
    }

    fn open(&self, _: &Request, node: &Node<'_, ()>, _: i32) -> Result<Opened<&'static str>, Errno> {
        let path = node.path()?;
        let file = FILES.iter().find(|(name, _)| *path == *Path::new(name));
        Ok(Opened::new(file.ok_or(Errno::ENOENT)?.1))
    }

    fn read(&self, _: &Request, _: &Node<'_, ()>, file: &&str, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let rest = file.as_bytes().get(offset as usize..).unwrap_or_default();
        let size = rest.len().min(buf.len());
        buf[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    fn opendir(&self, _: &Request, _: &Node<'_, ()>, _: i32) -> Result<Opened<()>, Errno> {
        Ok(Opened::new(()))
    }

    fn readdir(&self, _: &Request, _: &Node<'_, ()>, _: &(), offset: u64, sink: &mut DirSink<'_>) -> Result<(), Errno> {
        for (index, (name, _)) in FILES.iter().enumerate().skip(offset as usize) {
            let next = index as u64 + 1;
            if sink.add(1 + next, FileType::Regular, name.as_bytes(), next) == Fit::Full {
                break;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mountpoint = std::env::args_os().nth(1).ok_or("usage: hello MOUNTPOINT")?;
    let mount = pinpath_fuse::mount(Hello, mountpoint, &MountOptions::default())?;
    Ok(mount.wait()?)
}
