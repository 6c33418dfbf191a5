//! What is in files.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::*;

fn rw(path: impl AsRef<Path>) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Truncating by open, with and without writing, with others open (B40).
#[test]
fn truncation() {
    everywhere(|at| {
        let f = at.join("f");
        write(&f, "0123456789");
        let (one, two) = (rw(&f), rw(&f));
        write(&f, "ab");
        assert_eq!((one.metadata().unwrap().len(), two.metadata().unwrap().len()), (2, 2));
        let mut buf = [0; 9];
        assert_eq!(one.read_at(&mut buf, 0).unwrap(), 2);
        drop(rustix::fs::openat(CWD, &f, OFlags::RDONLY | OFlags::TRUNC, Mode::empty()).unwrap());
        assert_eq!(
            (std::fs::metadata(&f).unwrap().len(), one.read_at(&mut buf, 0).unwrap()),
            (0, 0)
        );
    });
}

/// SEEK_DATA and SEEK_HOLE (B60).
#[test]
fn holes() {
    everywhere(|at| {
        let file = rw(at.join("sparse"));
        file.write_all_at(&[1; 4096], 2 << 20).unwrap();
        file.set_len(4 << 20).unwrap();
        let seek = |to| rustix::fs::seek(&file, to);
        assert_eq!(seek(SeekFrom::Data(0)), Ok(2 << 20));
        assert_eq!(seek(SeekFrom::Hole(2 << 20)), Ok((2 << 20) + 4096));
        assert_eq!(seek(SeekFrom::Data((2 << 20) + 4096)), Err(Errno::NXIO));
        assert_eq!(seek(SeekFrom::Hole(4 << 20)), Err(Errno::NXIO));
        assert!(file.metadata().unwrap().blocks() <= 16, "a sparse file stays sparse");
        assert_eq!((&file).seek(std::io::SeekFrom::End(-1)).unwrap(), (4 << 20) - 1);
    });
}

/// fallocate, with each mode (B61).
#[test]
fn allocation() {
    everywhere(|at| {
        let file = rw(at.join("f"));
        file.write_all_at(&[1; 16_384], 0).unwrap();
        let allocate = |mode, offset, length| rustix::fs::fallocate(&file, mode, offset, length);
        let size = || file.metadata().unwrap().len();
        let byte = |offset| {
            let mut buf = [9];
            file.read_exact_at(&mut buf, offset).unwrap();
            buf[0]
        };
        let keep = FallocateFlags::KEEP_SIZE;
        allocate(FallocateFlags::PUNCH_HOLE | keep, 4096, 4096).unwrap();
        assert_eq!((size(), byte(4095), byte(4096), byte(8191), byte(8192)), (16_384, 1, 0, 0, 1));
        allocate(keep, 16_384, 1 << 20).unwrap();
        assert_eq!(size(), 16_384);
        assert!(file.metadata().unwrap().blocks() >= 2048);
        allocate(FallocateFlags::ZERO_RANGE, 8192, 100).unwrap();
        assert_eq!((byte(8192), byte(8291), byte(8292)), (0, 0, 1));
        allocate(FallocateFlags::empty(), 0, 50_000).unwrap();
        assert_eq!((size(), std::fs::metadata(at.join("f")).unwrap().len()), (50_000, 50_000));
        let reading = File::open(at.join("f")).unwrap();
        assert_eq!(
            rustix::fs::fallocate(&reading, FallocateFlags::empty(), 0, 9),
            Err(Errno::BADF)
        );
        assert_eq!(allocate(FallocateFlags::empty(), 0, 0), Err(Errno::INVAL));
    });
}

/// What the kernel has no way to ask for is refused, and the rest goes on working (B61).
#[test]
fn unknown_allocation_is_not_supported() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    let file = rw(mirrored.at("f"));
    let mode = FallocateFlags::COLLAPSE_RANGE;
    assert_eq!(rustix::fs::fallocate(&file, mode, 0, 4096), Err(Errno::OPNOTSUPP));
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 4096).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 4096);
}

/// A full source says so to who writes (B61, B72).
#[test]
fn a_full_source() {
    let source = open_directory();
    let Some(_full) = super::mounts::Tmpfs::on(source.path(), "size=256k") else { return };
    let Some(mountpoint) = mountpoint() else { return };
    let mirror = Mirror::open(source.path(), MirrorOptions::default()).unwrap();
    let mirrored = Mirrored::of(mirror, mountpoint, source).unwrap();
    let file = rw(mirrored.at("f"));
    let written = file.write_all_at(&vec![1; 1 << 20], 0);
    assert_eq!(errno(written), libc::ENOSPC);
    let allocated = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 20);
    assert_eq!(allocated, Err(Errno::NOSPC));
    file.set_len(0).unwrap();
    file.write_all_at(&[1; 1000], 0).unwrap();
    assert_eq!(std::fs::read(mirrored.behind("f")).unwrap().len(), 1000);
    drop(file);
}

#[test]
fn copies_stay_in_the_source() {
    everywhere(|at| {
        let (from, to) = (rw(at.join("from")), rw(at.join("to")));
        from.write_all_at(b"0123456789", 0).unwrap();
        let (mut at_from, mut at_to) = (2, 1);
        let copied =
            rustix::fs::copy_file_range(&from, Some(&mut at_from), &to, Some(&mut at_to), 5);
        assert_eq!((copied, at_from, at_to), (Ok(5), 7, 6));
        assert_eq!(std::fs::read(at.join("to")).unwrap(), b"\x0023456");
        let copied = rustix::fs::copy_file_range(&from, Some(&mut 10), &to, Some(&mut 0), 5);
        assert_eq!(copied, Ok(0), "nothing behind the end");
    });
}

#[test]
fn appending() {
    everywhere(|at| {
        let log = at.join("log");
        let writers: Vec<_> = (0..4)
            .map(|_| OpenOptions::new().append(true).create(true).open(&log).unwrap())
            .collect();
        std::thread::scope(|scope| {
            for (number, writer) in writers.iter().enumerate() {
                scope.spawn(move || {
                    for _ in 0..200 {
                        (&*writer).write_all(format!("{number}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let content = read(&log);
        assert_eq!(content.len(), 4 * 200 * 2);
        assert!((0..4).all(|number| {
            content.lines().filter(|line| *line == number.to_string()).count() == 200
        }));
    });
}

/// `O_APPEND` is what it is at the time of a write: `fcntl` sets it and takes it away. (Where the
/// kernel passes a file through, it keeps the flag that the file was opened with.)
#[test]
fn appending_begins_and_ends_under_an_open_file() {
    in_each_cache_mode(|at| {
        let path = at.join("f");
        let appends = |file: &File, on: bool| {
            let flags = rustix::fs::fcntl_getfl(file).unwrap() - OFlags::APPEND;
            let flags = if on { flags | OFlags::APPEND } else { flags };
            rustix::fs::fcntl_setfl(file, flags).unwrap();
        };
        write(&path, "0123456789");
        let file = OpenOptions::new().read(true).append(true).open(&path).unwrap();
        (&file).write_all(b"ab").unwrap();
        appends(&file, false);
        file.write_at(b"XX", 2).unwrap();
        assert_eq!(read(&path), "01XX456789ab");
        appends(&file, true);
        file.write_at(b"YY", 0).unwrap();
        assert_eq!(read(&path), "01XX456789abYY");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        appends(&file, true);
        (&file).write_all(b"ZZ").unwrap();
        assert_eq!(read(&path), "01XX456789abYYZZ");
    });
}

/// A log that is also written behind the mirror loses nothing.
#[test]
fn appending_from_both_sides() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    let append = |path| OpenOptions::new().append(true).create(true).open(path).unwrap();
    let (here, behind) = (append(mirrored.at("log")), append(mirrored.behind("log")));
    for n in 0..100 {
        (&here).write_all(format!("{n:03}\n").as_bytes()).unwrap();
        (&behind).write_all(format!("{n:03}\n").as_bytes()).unwrap();
    }
    let expected: String = (0..100).map(|n| format!("{n:03}\n{n:03}\n")).collect();
    assert_eq!(read(mirrored.behind("log")), expected);
}

/// The same, gathered by the kernel first (B22).
#[test]
fn the_writeback_cache() {
    let mut options = MirrorOptions::default();
    options.writeback_cache = true;
    let Some(mirrored) = Mirrored::with(options) else { return };
    let t = mirrored.at("t");
    write(&t, "foo\n");
    (&OpenOptions::new().append(true).open(&t).unwrap()).write_all(b"bar\n").unwrap();
    assert_eq!(read(&t), "foo\nbar\n");
    let file = OpenOptions::new().write(true).open(&t).unwrap();
    file.write_all_at(b"X", 5).unwrap();
    assert_eq!(read(&t), "foo\nbXr\n");
    let narrow =
        OpenOptions::new().write(true).create_new(true).mode(0o200).open(mirrored.at("w")).unwrap();
    for n in 0..10 {
        narrow.write_all_at(b"y", 100 * n).unwrap();
    }
    narrow.sync_all().unwrap();
    file.sync_all().unwrap();
    assert_eq!(read(mirrored.behind("t")), "foo\nbXr\n");
    assert_eq!(std::fs::metadata(mirrored.behind("w")).unwrap().len(), 901);
}

/// Data over 4 GiB, directly, and in odd pieces.
#[test]
fn large_offsets_and_direct_io() {
    everywhere(|at| {
        let file = rw(at.join("large"));
        let far = (5 << 30) + 123;
        file.write_all_at(b"far", far).unwrap();
        assert_eq!(file.metadata().unwrap().len(), far + 3);
        let mut buf = [0; 3];
        file.read_exact_at(&mut buf, far).unwrap();
        assert_eq!(&buf, b"far");

        let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CREATE;
        let direct =
            rustix::fs::openat(CWD, at.join("direct"), flags, Mode::from_raw_mode(0o644)).unwrap();
        // Aligned memory, as the plain directory wants it.
        let memory = vec![7; 3 * 4096];
        let start = memory.as_ptr().align_offset(4096);
        assert_eq!(rustix::io::pwrite(&direct, &memory[start..start + 8192], 4096), Ok(8192));
        assert_eq!(rustix::fs::fstat(&direct).unwrap().st_size, 12_288);
    });
}

/// O_TMPFILE is something that this transport can't carry; who asks must be told so (B65).
#[test]
fn files_without_a_name() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    let flags = OFlags::TMPFILE | OFlags::RDWR;
    let made = rustix::fs::openat(CWD, mirrored.at(""), flags, Mode::from_raw_mode(0o600));
    assert_eq!(made.map(drop), Err(Errno::OPNOTSUPP));
    // A library that falls back to a name it removes.
    let mut file = tempfile::tempfile_in(mirrored.at("")).unwrap();
    file.write_all(b"x").unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
}

/// fsync of files and directories, and closing without it (B72).
#[test]
fn syncing() {
    everywhere(|at| {
        let file = rw(at.join("f"));
        file.write_all_at(b"x", 0).unwrap();
        file.sync_data().unwrap();
        file.sync_all().unwrap();
        std::fs::create_dir(at.join("d")).unwrap();
        let dir = File::open(at.join("d")).unwrap();
        dir.sync_all().unwrap();
        rustix::fs::fdatasync(dir.as_fd()).unwrap();
    });
    // Fifty files that were synced when closed would take many disk writes each.
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    let start = std::time::Instant::now();
    for n in 0..1000 {
        write(mirrored.at(&format!("f{n}")), "x");
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// Replacing a file by rename, with readers that must always find one, and whole (B11).
#[test]
fn atomic_replacement() {
    for behind in [false, true] {
        let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
        let (t, tmp) = match behind {
            true => (mirrored.behind("t"), mirrored.behind("t.tmp")),
            false => (mirrored.at("t"), mirrored.at("t.tmp")),
        };
        let content = |n: usize| format!("{n}\n").repeat(1000);
        write(&t, content(0));
        let stop = std::time::Instant::now() + Duration::from_secs(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0.. {
                    if std::time::Instant::now() > stop {
                        break;
                    }
                    write(&tmp, content(n));
                    std::fs::rename(&tmp, &t).unwrap();
                }
            });
            for _ in 0..4 {
                scope.spawn(|| {
                    while std::time::Instant::now() < stop {
                        let mut content = String::new();
                        File::open(mirrored.at("t")).unwrap().read_to_string(&mut content).unwrap();
                        let first = content.lines().next().unwrap();
                        assert_eq!(
                            (content.lines().count(), content.lines().all(|line| line == first)),
                            (1000, true)
                        );
                    }
                });
            }
        });
    }
}
