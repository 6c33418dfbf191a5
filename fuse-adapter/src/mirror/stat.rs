//! [`Stat`]: what `statx` says of a file, and what the mirror makes of it.

use rustix::fs::{Statx, StatxFlags, StatxTimestamp};

use crate::attr::{FileType, Timestamp};
use crate::errno::Errno;

/// What is asked for in one call: all that [`Attr`](crate::Attr) needs, and the time of birth.
pub(super) const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// What `statx` says of a file, as far as it is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat {
    /// In the kernel's own 32 bits (12 major, 20 minor).
    pub(super) device: u32,
    pub(super) ino: u64,
    /// Nanoseconds since 1970, 0 where not known.
    pub(super) birth: i64,
    /// The type bits and the permission bits.
    pub(super) mode: u32,
    pub(super) nlink: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// In the encoding of [`Attr::rdev`](crate::Attr::rdev).
    pub(super) rdev: u32,
    pub(super) size: u64,
    pub(super) blocks: u64,
    pub(super) blksize: u32,
    pub(super) atime: Timestamp,
    pub(super) mtime: Timestamp,
    pub(super) ctime: Timestamp,
}

impl Stat {
    pub(super) fn new(statx: &Statx) -> Self {
        Stat {
            device: device_number(statx.stx_dev_major, statx.stx_dev_minor),
            ino: statx.stx_ino,
            birth: birth(statx),
            mode: statx.stx_mode.into(),
            nlink: statx.stx_nlink,
            uid: statx.stx_uid,
            gid: statx.stx_gid,
            rdev: join_rdev(statx.stx_rdev_major, statx.stx_rdev_minor),
            size: statx.stx_size,
            blocks: statx.stx_blocks,
            blksize: statx.stx_blksize,
            atime: timestamp(statx.stx_atime),
            mtime: timestamp(statx.stx_mtime),
            ctime: timestamp(statx.stx_ctime),
        }
    }

    /// # Errors
    /// `EIO` for a type that doesn't exist.
    pub(super) fn file_type(&self) -> Result<FileType, Errno> {
        FileType::from_mode(self.mode).ok_or(Errno::EIO)
    }
}

fn birth(statx: &Statx) -> i64 {
    if statx.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return 0;
    }
    let birth = statx.stx_btime;
    birth.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(i64::from(birth.tv_nsec))
}

/// In the kernel's own 32 bits.
pub(super) fn device_number(major: u32, minor: u32) -> u32 {
    major << 20 | (minor & 0xf_ffff)
}

fn join_rdev(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12
}

/// Major and minor of a device number in the encoding of [`Attr::rdev`](crate::Attr::rdev).
pub(super) fn split_rdev(rdev: u32) -> (u32, u32) {
    ((rdev & 0xf_ff00) >> 8, (rdev & 0xff) | (rdev >> 12 & 0xf_ff00))
}

fn timestamp(time: StatxTimestamp) -> Timestamp {
    Timestamp { secs: time.tv_sec, nanos: time.tv_nsec }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive_both_ways() {
        for (major, minor) in [(0, 0), (1, 3), (8, 17), (259, 65_537), (0xfff, 0xf_ffff)] {
            assert_eq!(split_rdev(join_rdev(major, minor)), (major, minor));
        }
        assert_eq!(join_rdev(1, 3), 0x103);
        assert_eq!(join_rdev(8, 0x101), 0x10_0801);
    }
}
