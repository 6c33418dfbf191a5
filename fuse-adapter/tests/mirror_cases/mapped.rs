//! Files mapped into memory.
//!
//! Each case runs in a process of its own. Who touches a mapping may hold a lock of its address
//! space while it waits for the mirror; a mirror in the same process may need that lock to answer.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::Command;

use super::*;

/// Where the process of a case finds its directory.
const DIRECTORY: &str = "PINPATH_CASE_DIRECTORY";

/// [`everywhere`], with the case in another process: this program, told to run the test `name`.
fn elsewhere(name: &str, case: impl Fn(&Path)) {
    if let Some(at) = std::env::var_os(DIRECTORY) {
        return case(Path::new(&at));
    }
    everywhere(|at| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // The watchdog cuts the connection if it hangs, and then it fails.
        let output = command.args(["--exact", name]).env(DIRECTORY, at).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    });
}

fn rw(path: impl AsRef<Path>) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// A file mapped shared.
struct Map {
    start: *mut libc::c_void,
    length: usize,
}

impl Map {
    fn of(file: &File, length: usize, writable: bool) -> Self {
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that is there.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Map { start, length }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives; the tests let nobody else write meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }

    fn store(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.length);
        // SAFETY: within the mapping, which is writable where this is called.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.start.cast::<u8>().add(at),
                bytes.len(),
            )
        };
    }

    fn sync(&self) {
        // SAFETY: the mapping's own address and length.
        assert_eq!(unsafe { libc::msync(self.start, self.length, libc::MS_SYNC) }, 0);
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping's own address and length, and nobody uses it any more.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// Stores are read, writes are seen in the map, the descriptor may be closed first (B63).
#[test]
fn shared_mappings() {
    elsewhere("mapped::shared_mappings", |at| {
        let path = at.join("f");
        write(&path, [b'.'; 8192]);
        let file = rw(&path);
        let map = Map::of(&file, 8192, true);
        let other = Map::of(&rw(&path), 8192, false);
        map.store(10, b"mmap");
        map.sync();
        let mut buf = [0; 4];
        file.read_exact_at(&mut buf, 10).unwrap();
        assert_eq!(&buf, b"mmap");
        file.write_all_at(b"WRIT", 5000).unwrap();
        assert_eq!(
            (&map.bytes()[5000..5004], &other.bytes()[10..14]),
            (&b"WRIT"[..], &b"mmap"[..])
        );
        drop(file);
        map.store(0, b"late");
        map.store(8188, b"last");
        drop(map);
        let content = std::fs::read(&path).unwrap();
        assert_eq!((&content[..4], &content[8188..]), (&b"late"[..], &b"last"[..]));
    });
}

/// Pages of a mapping are written through any open descriptor, also one that appends.
#[test]
fn a_mapping_is_not_appended() {
    elsewhere("mapped::a_mapping_is_not_appended", |at| {
        let path = at.join("f");
        write(&path, [b'.'; 4096]);
        let appending = OpenOptions::new().append(true).read(true).open(&path).unwrap();
        let map = Map::of(&rw(&path), 4096, true);
        map.store(0, b"page");
        map.sync();
        (&appending).write_all(b"end").unwrap();
        map.store(4, b"PAGE");
        drop(map);
        drop(appending);
        let content = std::fs::read(&path).unwrap();
        assert_eq!(
            (content.len(), &content[..8], &content[4096..]),
            (4099, &b"pagePAGE"[..], &b"end"[..])
        );
    });
}

#[test]
fn truncation_cuts_a_mapping() {
    elsewhere("mapped::truncation_cuts_a_mapping", |at| {
        write(at.join("f"), [7; 10_000]);
        let file = rw(at.join("f"));
        let map = Map::of(&file, 10_000, false);
        assert_eq!(map.bytes()[9000], 7);
        file.set_len(5000).unwrap();
        file.set_len(10_000).unwrap();
        assert_eq!((map.bytes()[4999], map.bytes()[5000], map.bytes()[9000]), (7, 0, 0));
    });
}

/// A size in a listing is taken for the truth and cuts a mapping short (B19).
#[test]
fn a_listing_does_not_cut_a_mapping() {
    elsewhere("mapped::a_listing_does_not_cut_a_mapping", |at| {
        write(at.join("f"), [7; 10_000]);
        let map = Map::of(&rw(at.join("f")), 10_000, false);
        for entry in std::fs::read_dir(at).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().len(), 10_000);
        }
        assert_eq!(map.bytes()[9_999], 7);
    });
}

/// Two programs see each other's changes, one by its mapping, the other by its descriptor.
#[test]
fn a_mapping_and_a_descriptor_of_another_process() {
    elsewhere("mapped::a_mapping_and_a_descriptor_of_another_process", |at| {
        let path = at.join("f");
        write(&path, [b'.'; 4096]);
        let map = Map::of(&rw(&path), 4096, true);
        map.store(0, b"from the map");
        let shell = |script: &str| {
            let output = Command::new("sh").args(["-c", script]).current_dir(at).output().unwrap();
            assert!(output.status.success());
            output.stdout
        };
        assert_eq!(shell("head -c 12 f"), b"from the map");
        shell("printf 'from outside' | dd of=f conv=notrunc status=none");
        assert_eq!(&map.bytes()[..12], b"from outside");
    });
}
