//! [`Stat`]: what `statx` says of a file, and what the mirror makes of it.

use rustix::fs::{Statx, StatxFlags, StatxTimestamp};

use crate::attr::{FileType, Timestamp};
use crate::errno::Errno;

/// What is asked for in one call: all that [`Attr`](crate::Attr) needs, and the time of birth.
pub(super) const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// What `statx` says of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat(pub(super) Statx);

impl Stat {
    /// The device in the kernel's own 32 bits (12 major, 20 minor).
    pub(super) fn device(&self) -> u32 {
        device(self.0.stx_dev_major, self.0.stx_dev_minor)
    }

    pub(super) fn ino(&self) -> u64 {
        self.0.stx_ino
    }

    /// Nanoseconds since 1970, 0 where not known.
    pub(super) fn birth(&self) -> i64 {
        if self.0.stx_mask & StatxFlags::BTIME.bits() == 0 {
            return 0;
        }
        let birth = self.0.stx_btime;
        birth.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(i64::from(birth.tv_nsec))
    }

    /// The type bits and the permission bits.
    pub(super) fn mode(&self) -> u32 {
        u32::from(self.0.stx_mode)
    }

    /// # Errors
    /// `EIO` for a type that doesn't exist.
    pub(super) fn file_type(&self) -> Result<FileType, Errno> {
        FileType::from_mode(self.mode()).ok_or(Errno::EIO)
    }

    /// In the encoding of [`Attr::rdev`](crate::Attr::rdev).
    pub(super) fn rdev(&self) -> u32 {
        let (major, minor) = (self.0.stx_rdev_major, self.0.stx_rdev_minor);
        (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12
    }
}

pub(super) fn device(major: u32, minor: u32) -> u32 {
    major << 20 | (minor & 0xf_ffff)
}

/// Major and minor of a device number in the encoding of [`Attr::rdev`](crate::Attr::rdev).
pub(super) fn split_rdev(rdev: u32) -> (u32, u32) {
    ((rdev & 0xf_ff00) >> 8, (rdev & 0xff) | (rdev >> 12 & 0xf_ff00))
}

pub(super) fn timestamp(time: StatxTimestamp) -> Timestamp {
    Timestamp { secs: time.tv_sec, nanos: time.tv_nsec }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive_both_ways() {
        for (major, minor) in [(0, 0), (1, 3), (8, 17), (259, 65_537), (0xfff, 0xf_ffff)] {
            let rdev = (minor & 0xff) | major << 8 | (minor & !0xff) << 12;
            assert_eq!(split_rdev(rdev), (major, minor));
        }
    }
}
