//! [`Errno`]: the one error type of a handler.

use std::fmt;
use std::io;

use pinpath::{Error, NameError, PathError, TransactionError};

/// An error number as the kernel's callers see it in `errno`. Always positive.
///
/// Converts from [`io::Error`] (one without a number becomes `EIO`), from `rustix`'s error and from
/// what the resolver refuses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

macro_rules! errnos {
    ($($name:ident $doc:literal,)*) => {
        impl Errno {
            $(#[doc = $doc] pub const $name: Errno = Errno(libc::$name);)*
        }
        const NAMES: &[(i32, &str)] = &[$((libc::$name, stringify!($name)),)*];
    };
}

errnos! {
    E2BIG "Argument list too long.",
    EACCES "Permission denied.",
    EAGAIN "Try again; also: the lock is held.",
    EBADF "Not an open descriptor, or not open for this.",
    EBUSY "In use.",
    EDEADLK "Waiting for the lock would be a deadlock.",
    EDQUOT "Quota exceeded.",
    EEXIST "Exists already.",
    EFBIG "File too large.",
    EINTR "Interrupted.",
    EINVAL "Invalid argument.",
    EIO "Input/output error.",
    EISDIR "Is a directory.",
    ELOOP "Too many symbolic links.",
    EMFILE "The process has too many open files.",
    EMLINK "Too many links.",
    ENAMETOOLONG "Name too long.",
    ENFILE "The system has too many open files.",
    ENODATA "No such extended attribute.",
    ENODEV "No such device.",
    ENOENT "No such file or directory.",
    ENOLCK "No locks available.",
    ENOMEM "Out of memory.",
    ENOSPC "No space left.",
    ENOSYS "Not implemented: the kernel falls back, and for most operations never asks again.",
    ENOTCONN "Not connected.",
    ENOTDIR "Not a directory.",
    ENOTEMPTY "Directory not empty.",
    ENOTTY "Not a terminal: no such ioctl.",
    ENXIO "No such device or address; also: no data past this offset.",
    EOPNOTSUPP "Not supported.",
    EOVERFLOW "Value too large.",
    EPERM "Not permitted.",
    ERANGE "Result doesn't fit into the given buffer.",
    EROFS "Read-only filesystem.",
    ESTALE "The file is not the one that was meant any more: the kernel looks its name up again.",
    ETIMEDOUT "Timed out.",
    ETXTBSY "Text file busy.",
    EXDEV "Crosses from one filesystem to another.",
}

impl Errno {
    /// The error with this number. Zero and negative numbers, which are no errors, become `EIO`.
    pub const fn from_raw(raw: i32) -> Self {
        if raw > 0 { Errno(raw) } else { Errno::EIO }
    }

    /// The number, for example 2 for `ENOENT`.
    pub const fn raw(self) -> i32 {
        self.0
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(raw, _)| *raw == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "Errno({})", self.0),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&io::Error::from_raw_os_error(self.0), f)
    }
}

impl std::error::Error for Errno {}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(error: rustix::io::Errno) -> Self {
        Errno::from_raw(error.raw_os_error())
    }
}

impl From<NameError> for Errno {
    fn from(error: NameError) -> Self {
        match error {
            NameError::Empty => Errno::ENOENT,
            NameError::TooLong => Errno::ENAMETOOLONG,
            NameError::Slash | NameError::Nul | NameError::Dot => Errno::EINVAL,
        }
    }
}

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        match error {
            Error::Stale(_) => Errno::ESTALE,
            Error::NotADirectory(_) => Errno::ENOTDIR,
            Error::DirectoryLink(_) | Error::Root => Errno::EPERM,
            Error::Cycle(_) => Errno::EINVAL,
            Error::KnownElsewhere(_) => Errno::ELOOP,
            Error::Full => Errno::ENOMEM,
            _ => Errno::EIO,
        }
    }
}

impl From<PathError> for Errno {
    /// `ENOENT` for a node whose last name is gone; for an operation on an inode the dispatcher
    /// turns it into `ESTALE`, so that the kernel looks the name up again.
    fn from(error: PathError) -> Self {
        match error {
            PathError::Unlinked(_) => Errno::ENOENT,
            PathError::Stale(_) => Errno::ESTALE,
        }
    }
}

impl From<TransactionError> for Errno {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Table(error) => error.into(),
            TransactionError::Path(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_keep_their_number() {
        assert_eq!(Errno::from(io::Error::from_raw_os_error(28)), Errno::ENOSPC);
        assert_eq!(Errno::from(io::Error::other("no number")), Errno::EIO);
    }

    #[test]
    fn no_success_is_an_error() {
        assert_eq!(Errno::from_raw(0), Errno::EIO);
        assert_eq!(format!("{:?}", Errno::ESTALE), "ESTALE");
    }
}
