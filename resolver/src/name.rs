//! [`Name`]: one component of a path, checked once and trusted afterwards.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// The longest name in bytes (`NAME_MAX`).
pub const NAME_MAX: usize = 255;

/// One component of a path: 1 to 255 bytes, no `/`, no NUL, not `.` and not `..`.
///
/// Names are bytes. Nothing is assumed about their encoding, and two names are equal only if
/// their bytes are.
///
/// ```
/// use pinpath::{Name, NameError};
/// assert_eq!(Name::new("report.txt").unwrap().as_bytes(), b"report.txt");
/// assert_eq!(Name::new(b"\xff\xfe").unwrap().as_bytes(), b"\xff\xfe");
/// assert_eq!(Name::new("..").unwrap_err(), NameError::Dot);
/// ```
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Name([u8]);

/// Why some bytes are not a [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No bytes at all.
    #[error("a name can't be empty")]
    Empty,
    /// More than [`NAME_MAX`] bytes.
    #[error("a name can't be longer than {NAME_MAX} bytes")]
    TooLong,
    /// A `/` somewhere in it.
    #[error("a name can't contain '/'")]
    Slash,
    /// A NUL byte somewhere in it.
    #[error("a name can't contain a NUL byte")]
    Nul,
    /// `.` or `..`, which name no entry of a directory but the directory itself and its parent.
    #[error("'.' and '..' are not names")]
    Dot,
}

impl Name {
    /// Checks `bytes` and returns them as a name.
    ///
    /// # Errors
    /// The rule that they break. Where several are broken the first of: empty, too long, `/`,
    /// NUL, dots.
    pub fn new<B: AsRef<[u8]> + ?Sized>(bytes: &B) -> Result<&Name, NameError> {
        let bytes = bytes.as_ref();
        match bytes {
            [] => Err(NameError::Empty),
            _ if bytes.len() > NAME_MAX => Err(NameError::TooLong),
            _ if bytes.contains(&b'/') => Err(NameError::Slash),
            _ if bytes.contains(&0) => Err(NameError::Nul),
            b"." | b".." => Err(NameError::Dot),
            _ => Ok(Name::trusted(bytes)),
        }
    }

    /// As [`Name::new`], for what the standard library calls a file name.
    ///
    /// # Errors
    /// As [`Name::new`].
    pub fn from_os_str(name: &OsStr) -> Result<&Name, NameError> {
        Name::new(name.as_bytes())
    }

    /// For bytes that were a name before: those stored in the table.
    pub(crate) fn trusted(bytes: &[u8]) -> &Name {
        // SAFETY: `Name` is a transparent wrapper of `[u8]`, so the two references have the same
        // layout and metadata; the lifetime is that of `bytes`.
        unsafe { &*(std::ptr::from_ref(bytes) as *const Name) }
    }

    /// The bytes, without a terminating NUL.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same bytes as the standard library wants them.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl AsRef<[u8]> for Name {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<OsStr> for Name {
    fn as_ref(&self) -> &OsStr {
        self.as_os_str()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_os_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_error() {
        assert_eq!(Name::new("").unwrap_err(), NameError::Empty);
        assert_eq!(Name::new(&[b'x'; 256]).unwrap_err(), NameError::TooLong);
        assert_eq!(Name::new("a/b").unwrap_err(), NameError::Slash);
        assert_eq!(Name::new("a\0b").unwrap_err(), NameError::Nul);
        assert_eq!(Name::new(".").unwrap_err(), NameError::Dot);
        assert_eq!(Name::new("..").unwrap_err(), NameError::Dot);
    }

    #[test]
    fn bytes_of_every_kind_pass() {
        for ok in [&b"..."[..], b".a", b" ", b"-x", b"a\nb", b"\xff", &[b'n'; 255]] {
            assert_eq!(Name::new(ok).unwrap().as_bytes(), ok);
        }
    }
}
