//! [`OwnedName`]: a checked name that an operation or the oracle can keep.

use pinpath::Name;
use std::fmt;

/// The bytes of a [`Name`], owned.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnedName(Vec<u8>);

impl OwnedName {
    /// Copies `name`.
    pub fn new(name: &Name) -> Self {
        OwnedName(name.as_bytes().to_vec())
    }

    /// The name itself.
    pub fn get(&self) -> &Name {
        Name::new(&self.0).expect("it was a name when it was copied")
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for OwnedName {
    /// For literals in tests.
    ///
    /// # Panics
    /// If `text` is no name.
    fn from(text: &str) -> Self {
        OwnedName::new(Name::new(text).expect("a literal that is a name"))
    }
}

impl fmt::Debug for OwnedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// What [`Name::new`] must accept, written a second time from its rules: 1 to 255 bytes, no `/`,
/// no NUL, not `.` and not `..`.
pub fn is_name(bytes: &[u8]) -> bool {
    let length_fits = !bytes.is_empty() && bytes.len() <= 255;
    let bytes_fit = bytes.iter().all(|&byte| byte != b'/' && byte != 0);
    let dots = bytes == b"." || bytes == b"..";
    length_fits && bytes_fit && !dots
}
