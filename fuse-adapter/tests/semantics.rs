//! What programs see through a mount: the filesystem's own inode numbers, exact times, whole
//! listings, the right file under each name.

mod support;

/// The example that the README shows.
#[allow(dead_code, unreachable_pub)]
#[path = "../examples/hello.rs"]
mod hello;

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use pinpath_fuse::{
    Attr, DirSink, Entry, Errno, FileType, Fit, Found, Handler, Inode, Lifetimes, Mount,
    MountOptions, Name, Negotiation, Node, Numbering, Opened, ReadDirPlus, Request, mount,
};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};
use support::memory::{FIRST_INO, Memory};
use support::{Mountpoint, Watchdog, mountpoint, shared_process};

fn mounted(memory: Memory, at: &Mountpoint) -> Mount<Memory> {
    mount(memory, at.path(), &MountOptions::default()).unwrap()
}

#[test]
fn hello_world() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mount(hello::Hello, at.path(), &MountOptions::default()).unwrap();
    let _watchdog = Watchdog::on(&mount);
    assert_eq!(fs::read_to_string(at.join("hello.txt")).unwrap(), "Hello, world!\n");
    let mut names: Vec<_> =
        fs::read_dir(at.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["bye.txt", "hello.txt"]);
    assert_eq!(fs::metadata(at.join("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(fs::metadata(at.join("bye.txt")).unwrap().len(), 9);
}

/// By stat, and by listings with and without attributes, all fresh.
#[test]
fn inode_numbers_are_the_filesystems_own_everywhere() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    for plus in [ReadDirPlus::Off, ReadDirPlus::Auto, ReadDirPlus::Always] {
        let wishes: fn(&mut Negotiation) = match plus {
            ReadDirPlus::Off => |wishes| wishes.readdirplus = ReadDirPlus::Off,
            ReadDirPlus::Auto => |wishes| wishes.readdirplus = ReadDirPlus::Auto,
            ReadDirPlus::Always => |wishes| wishes.readdirplus = ReadDirPlus::Always,
        };
        let memory = Memory { wishes, ..Memory::default() };
        let inos: Vec<u64> =
            (0..300).map(|i| memory.put(format!("file{i}"), FileType::Regular, b"")).collect();
        let mount = mounted(memory, &at);
        let _watchdog = Watchdog::on(&mount);
        assert_eq!(mount.agreed().readdirplus, plus);
        let mut seen = 0;
        for entry in fs::read_dir(at.path()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let ino = inos[name["file".len()..].parse::<usize>().unwrap()];
            assert_eq!(
                std::os::unix::fs::DirEntryExt::ino(&entry),
                ino,
                "d_ino of {name}, {plus:?}"
            );
            assert_eq!(entry.metadata().unwrap().ino(), ino, "st_ino of {name}, {plus:?}");
            seen += 1;
        }
        assert_eq!(seen, 300);
        assert_eq!(fs::File::open(at.join("file7")).unwrap().metadata().unwrap().ino(), inos[7]);
        assert_eq!(fs::metadata(at.path()).unwrap().ino(), FIRST_INO, "the root's too");
        let made = fs::File::create(at.join("made")).unwrap().metadata().unwrap().ino();
        assert_eq!(made, FIRST_INO + 301);
    }
}

#[test]
fn listings_are_whole_whatever_the_buffer() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = Memory::default();
    for i in 0..3000 {
        memory.put(format!("a-file-with-a-name-of-some-length-{i}"), FileType::Regular, b"");
    }
    let mount = mounted(memory, &at);
    let _watchdog = Watchdog::on(&mount);
    let names = || {
        let entries = fs::read_dir(at.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<HashSet<_>>()
    };
    assert_eq!(names().len(), 3000);
    // Two at once, in turns.
    let (mut one, mut two) = (fs::read_dir(at.path()).unwrap(), fs::read_dir(at.path()).unwrap());
    let mut counts = (0, 0);
    loop {
        let next = (one.next(), two.next());
        counts.0 += usize::from(next.0.is_some());
        counts.1 += usize::from(next.1.is_some());
        if next.0.is_none() && next.1.is_none() {
            break;
        }
    }
    assert_eq!(counts, (3000, 3000));
    // From the start again, with what is new.
    let dir = fs::File::open(at.path()).unwrap();
    let mut list = rustix::fs::Dir::read_from(&dir).unwrap();
    let count = |list: &mut rustix::fs::Dir| {
        list.rewind();
        list.by_ref()
            .map(Result::unwrap)
            .filter(|entry| !entry.file_name().to_bytes().starts_with(b"."))
            .count()
    };
    assert_eq!(count(&mut list), 3000);
    fs::write(at.join("one-more"), "").unwrap();
    assert_eq!(count(&mut list), 3001);
    // Smaller buffers than any listing, down to one entry a call.
    for size in [600, 4096, 1 << 20] {
        let dir = fs::File::open(at.path()).unwrap();
        let mut buf = Vec::with_capacity(size);
        let mut list = rustix::fs::RawDir::new(&dir, buf.spare_capacity_mut());
        let mut found = 0;
        while let Some(entry) = list.next() {
            found += usize::from(!entry.unwrap().file_name().to_bytes().starts_with(b"."));
        }
        assert_eq!(found, 3001, "with {size} bytes");
    }
}

#[test]
fn times_go_through_exactly() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = Memory::default();
    memory.put("file", FileType::Regular, b"");
    let mount = mounted(memory, &at);
    let _watchdog = Watchdog::on(&mount);
    for (secs, nanos) in [
        (0, 0),
        (1, 1),
        (-1, 0),
        (-1, 999_999_999),
        (-2, 499_999_999),
        (-86_401, 123),
        (i64::from(i32::MIN), 5),
        (7_258_118_400, 999_999_999),
    ] {
        let time = Timespec { tv_sec: secs, tv_nsec: nanos };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, at.join("file"), &times, AtFlags::empty()).unwrap();
        let seen = fs::metadata(at.join("file")).unwrap();
        assert_eq!((seen.mtime(), seen.mtime_nsec()), (secs, nanos));
        assert_eq!((seen.atime(), seen.atime_nsec()), (secs, nanos));
        let kept = mount.handler().tree()[Path::new("file")].attr.mtime;
        assert_eq!((kept.secs, i64::from(kept.nanos)), (secs, nanos));
    }
}

#[test]
fn renames_and_links_lead_to_the_right_file() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = Memory { lifetimes: Lifetimes::ZERO, ..Memory::default() };
    let mount = mounted(memory, &at);
    let _watchdog = Watchdog::on(&mount);
    fs::create_dir(at.join("a")).unwrap();
    fs::create_dir(at.join("a/b")).unwrap();
    fs::write(at.join("a/b/f"), "one").unwrap();
    let inside = fs::File::open(at.join("a/b")).unwrap();
    fs::rename(at.join("a"), at.join("z")).unwrap();
    fs::create_dir(at.join("a")).unwrap();
    fs::create_dir(at.join("a/b")).unwrap();
    fs::write(at.join("a/b/f"), "two").unwrap();
    assert_eq!(fs::read_to_string(at.join("z/b/f")).unwrap(), "one");
    let through_fd = format!("/proc/self/fd/{}/f", std::os::fd::AsRawFd::as_raw_fd(&inside));
    assert_eq!(fs::read_to_string(through_fd).unwrap(), "one");

    fs::hard_link(at.join("z/b/f"), at.join("hard")).unwrap();
    let (one, other) =
        (fs::metadata(at.join("z/b/f")).unwrap(), fs::metadata(at.join("hard")).unwrap());
    assert_eq!((one.ino(), one.nlink()), (other.ino(), 2));
    fs::remove_file(at.join("z/b/f")).unwrap();
    fs::write(at.join("z/b/f"), "fresh").unwrap();
    assert_eq!(fs::read_to_string(at.join("hard")).unwrap(), "one");

    rustix::fs::renameat_with(
        CWD,
        at.join("hard"),
        CWD,
        at.join("a"),
        rustix::fs::RenameFlags::EXCHANGE,
    )
    .unwrap();
    assert_eq!(fs::read_to_string(at.join("a")).unwrap(), "one");
    assert_eq!(fs::read_to_string(at.join("hard/b/f")).unwrap(), "two");

    std::os::unix::fs::symlink("a target\nof any kind", at.join("link")).unwrap();
    assert_eq!(
        fs::read_link(at.join("link")).unwrap().as_os_str().as_bytes(),
        b"a target\nof any kind"
    );
    fs::remove_file(at.join("link")).unwrap();
    fs::remove_dir_all(at.join("hard")).unwrap();
    assert_eq!(fs::metadata(at.join("hard")).unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// Without leases the path of a request is outdated now and then by the time it is used.
#[test]
fn a_directory_renamed_to_and_fro_fails_nobody_below_it() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    for identities in [false, true] {
        let memory = Memory { lifetimes: Lifetimes::ZERO, identities, ..Memory::default() };
        memory.put("a", FileType::Directory, b"");
        memory.put("a/sub", FileType::Directory, b"");
        memory.put("a/sub/file", FileType::Regular, b"content");
        // Makes the time between a path and its use long.
        memory.set_hook(|_, _| {
            std::thread::yield_now();
            Ok(())
        });
        let mount = mounted(memory, &at);
        let _watchdog = Watchdog::on(&mount);
        let sub = fs::File::open(at.join("a/sub")).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let (renames, reads) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        while !stop.load(SeqCst) {
                            let flags = rustix::fs::OFlags::RDONLY;
                            let file = rustix::fs::openat(&sub, "file", flags, 0.into()).unwrap();
                            let mut text = String::new();
                            fs::File::from(file).read_to_string(&mut text).unwrap();
                            assert_eq!(text, "content");
                            let flags = AtFlags::STATX_FORCE_SYNC | AtFlags::EMPTY_PATH;
                            rustix::fs::statx(&sub, "", flags, rustix::fs::StatxFlags::BASIC_STATS)
                                .unwrap();
                            reads.fetch_add(1, SeqCst);
                        }
                    })
                })
                .collect();
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_secs(1) {
                fs::rename(at.join("a"), at.join("b")).unwrap();
                fs::rename(at.join("b"), at.join("a")).unwrap();
                renames.fetch_add(2, SeqCst);
            }
            stop.store(true, SeqCst);
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
        assert!(renames.load(SeqCst) > 100 && reads.load(SeqCst) > 100, "{renames:?} {reads:?}");
    }
}

#[test]
fn large_files_arrive_whole() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(Memory::default(), &at);
    let _watchdog = Watchdog::on(&mount);
    let data: Vec<u8> =
        (0..5_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(at.join("large"), &data).unwrap();
    assert_eq!(fs::metadata(at.join("large")).unwrap().len(), data.len() as u64);
    assert!(fs::read(at.join("large")).unwrap() == data);
    let mut file = fs::File::options().read(true).write(true).open(at.join("large")).unwrap();
    file.seek(io::SeekFrom::Start(1_234_567)).unwrap();
    file.write_all(b"here").unwrap();
    file.set_len(2_000_000).unwrap();
    file.seek(io::SeekFrom::Start(1_234_560)).unwrap();
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 2_000_000 - 1_234_560);
    assert_eq!(&rest[7..11], b"here");
}

#[test]
fn the_kernel_forgets_when_told() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let for_ever = Duration::from_secs(3600);
    let memory =
        Memory { lifetimes: Lifetimes { entry: for_ever, attr: for_ever }, ..Memory::default() };
    memory.put("file", FileType::Regular, b"old");
    memory.put("name", FileType::Regular, b"");
    let mount = mounted(memory, &at);
    let _watchdog = Watchdog::on(&mount);
    let notifier = mount.notifier();
    assert_eq!(fs::metadata(at.join("file")).unwrap().len(), 3);
    *mount.handler().tree()[Path::new("file")].content.lock().unwrap() = b"longer".to_vec();
    assert_eq!(fs::metadata(at.join("file")).unwrap().len(), 3, "from memory");
    let node = mount.resolver().peek(Inode::ROOT, Name::new("file").unwrap()).unwrap().unwrap();
    notifier.inval_inode(node, 0, 0).unwrap();
    assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "longer");

    assert!(at.join("name").exists());
    mount.handler().tree().remove(Path::new("name"));
    assert!(at.join("name").exists(), "from memory");
    notifier.inval_entry(Inode::ROOT, Name::new("name").unwrap()).unwrap();
    assert!(!at.join("name").exists());

    // What the kernel doesn't know it need not forget.
    notifier.inval_entry(Inode::ROOT, Name::new("never seen").unwrap()).unwrap();
    mount.unmount().unwrap();
    assert_eq!(notifier.inval_inode(node, 0, 0).unwrap_err().kind(), io::ErrorKind::NotConnected);
}

/// A filesystem that numbers its inodes itself and has no paths: a directory of ten numbers.
struct Numbers {
    forgotten: Mutex<HashSet<u64>>,
    lookups: AtomicU64,
}

impl Numbers {
    fn attr(ino: u64) -> Attr {
        match ino {
            1 => Attr::new(1, FileType::Directory, 0o755),
            _ => Attr::new(ino, FileType::Regular, 0o644).with_size(ino.to_string().len() as u64),
        }
    }
}

impl Handler for Numbers {
    type Data = ();
    type File = ();
    type Dir = ();

    fn numbering(&self) -> Numbering {
        Numbering::Handler
    }

    fn root_data(&self) {}

    fn lookup(&self, _: &Request, parent: &Node<'_, ()>, name: &Name) -> Result<Found<()>, Errno> {
        assert!(parent.is_root());
        assert_eq!(parent.path().unwrap_err(), Errno::ENOSYS, "there are no paths");
        let number = std::str::from_utf8(name.as_bytes()).ok().and_then(|name| name.parse().ok());
        let ino = number.filter(|number| (100..110).contains(number)).ok_or(Errno::ENOENT)?;
        self.lookups.fetch_add(1, SeqCst);
        Ok(Found::Entry(Entry { lifetimes: Lifetimes::ZERO, ..Entry::new(Numbers::attr(ino), ()) }))
    }

    fn forget(&self, inode: Inode, count: u64) {
        assert!(count > 0);
        self.forgotten.lock().unwrap().insert(inode.raw());
    }

    fn getattr(
        &self,
        _: &Request,
        node: &Node<'_, ()>,
        _: Option<&()>,
    ) -> Result<(Attr, Duration), Errno> {
        Ok((Numbers::attr(node.inode().raw()), Duration::ZERO))
    }

    fn open(&self, _: &Request, _: &Node<'_, ()>, _: i32) -> Result<Opened<()>, Errno> {
        Ok(Opened::new(()))
    }

    fn read(
        &self,
        _: &Request,
        node: &Node<'_, ()>,
        _: &(),
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize, Errno> {
        let content = node.inode().raw().to_string();
        let rest = content.as_bytes().get(offset as usize..).unwrap_or_default();
        buf[..rest.len()].copy_from_slice(rest);
        Ok(rest.len())
    }

    fn opendir(&self, _: &Request, _: &Node<'_, ()>, _: i32) -> Result<Opened<()>, Errno> {
        Ok(Opened::new(()))
    }

    fn readdir(
        &self,
        _: &Request,
        _: &Node<'_, ()>,
        _: &(),
        offset: u64,
        sink: &mut DirSink<'_>,
    ) -> Result<(), Errno> {
        for ino in 100 + offset..110 {
            if sink.add(ino, FileType::Regular, ino.to_string().as_bytes(), ino - 99) == Fit::Full {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn a_filesystem_may_number_its_inodes_itself() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let numbers = Numbers { forgotten: Mutex::default(), lookups: AtomicU64::new(0) };
    let mount = mount(numbers, at.path(), &MountOptions::default()).unwrap();
    let _watchdog = Watchdog::on(&mount);
    assert_eq!(fs::metadata(at.path()).unwrap().ino(), 1);
    for entry in fs::read_dir(at.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        assert_eq!(entry.metadata().unwrap().ino().to_string(), name);
        assert_eq!(fs::read_to_string(entry.path()).unwrap(), name);
    }
    assert!(mount.handler().lookups.load(SeqCst) >= 10);
    assert!(!at.join("99").exists());
    assert_eq!(mount.resolver().stats().nodes, 1, "the resolver is not concerned");
    assert_eq!(fs::write(at.join("new"), "").unwrap_err().raw_os_error(), Some(libc::ENOSYS));
    if fs::write("/proc/sys/vm/drop_caches", "2").is_ok() {
        support::eventually("all ten are forgotten", Duration::from_secs(10), || {
            mount.handler().forgotten.lock().unwrap().len() == 10
        });
    }
}
