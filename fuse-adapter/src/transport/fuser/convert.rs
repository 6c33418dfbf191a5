//! Between fuser's types and ours.

use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use fuser::{FopenFlags, TimeOrNow};
use pinpath::Name;

use crate::attr::{FileType, Timestamp};
use crate::errno::Errno;
use crate::handler::{OpenOptions, Request, SetTime};

pub(super) fn request(req: &fuser::Request) -> Request {
    Request { unique: req.unique().0, uid: req.uid(), gid: req.gid(), pid: req.pid() }
}

pub(super) fn errno(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.raw())
}

pub(super) fn name(name: &OsStr) -> Result<&Name, Errno> {
    Ok(Name::from_os_str(name)?)
}

pub(super) fn file_type(file_type: FileType) -> fuser::FileType {
    match file_type {
        FileType::Regular => fuser::FileType::RegularFile,
        FileType::Directory => fuser::FileType::Directory,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::Socket => fuser::FileType::Socket,
        FileType::CharDevice => fuser::FileType::CharDevice,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
    }
}

pub(super) fn open_flags(options: OpenOptions) -> FopenFlags {
    [
        (options.direct_io, FopenFlags::FOPEN_DIRECT_IO),
        (options.keep_cache, FopenFlags::FOPEN_KEEP_CACHE),
        (options.nonseekable, FopenFlags::FOPEN_NONSEEKABLE),
        (options.cache_dir, FopenFlags::FOPEN_CACHE_DIR),
        (options.stream, FopenFlags::FOPEN_STREAM),
        (options.no_flush, FopenFlags::FOPEN_NOFLUSH),
        (options.parallel_direct_writes, FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES),
        (options.backing.is_some(), FopenFlags::FOPEN_PASSTHROUGH),
    ]
    .into_iter()
    .filter(|(on, _)| *on)
    .map(|(_, flag)| flag)
    .collect()
}

pub(super) fn set_time(time: TimeOrNow) -> SetTime {
    match time {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(time) => SetTime::At(timestamp(time)),
    }
}

/// The time that the kernel sent, out of what fuser made of it.
///
/// The kernel sends (seconds, nanoseconds), the latter always counting forward. fuser makes of a
/// negative number of seconds the instant that lies |seconds| *and* the nanoseconds before 1970,
/// where it should have subtracted one and added the other. Nothing is lost by that, so it can be
/// undone: the distance to 1970 is again the two numbers that were sent, without their sign.
pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Timestamp { secs: seconds(since), nanos: since.subsec_nanos() },
        Err(before) => {
            let before = before.duration();
            let secs = 0i64.saturating_sub_unsigned(before.as_secs());
            Timestamp { secs, nanos: before.subsec_nanos() }
        }
    }
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fuser 0.18 makes of the kernel's numbers.
    fn as_fuser_decodes(secs: i64, nanos: u32) -> SystemTime {
        if secs >= 0 {
            SystemTime::UNIX_EPOCH + Duration::new(secs as u64, nanos)
        } else {
            SystemTime::UNIX_EPOCH - Duration::new(secs.unsigned_abs(), nanos)
        }
    }

    #[test]
    fn every_time_arrives_as_it_was_sent() {
        let far = 7_258_118_400; // the year 2200
        for secs in [0, 1, -1, -2, -86400, i64::from(i32::MIN), far, -far, i64::MAX, i64::MIN + 1] {
            for nanos in [0, 1, 499_999_999, 500_000_000, 999_999_999] {
                let Some(time) = checked(secs, nanos) else { continue };
                assert_eq!(timestamp(time), Timestamp { secs, nanos });
            }
        }
    }

    /// `None` for what no `SystemTime` can hold; the kernel sends no fraction with the extremes.
    fn checked(secs: i64, nanos: u32) -> Option<SystemTime> {
        (secs.abs() < i64::MAX - 1 || nanos == 0).then(|| as_fuser_decodes(secs, nanos))
    }

    #[test]
    fn each_option_of_an_open_is_its_flag() {
        assert_eq!(open_flags(OpenOptions::default()), FopenFlags::empty());
        let options = OpenOptions { direct_io: true, stream: true, ..OpenOptions::default() };
        assert_eq!(open_flags(options).bits(), 1 | 1 << 4);
    }
}
