//! What is mounted where, read from `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// One mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// Where.
    pub(crate) mountpoint: PathBuf,
    /// The type, with its subtype: `fuse.pinpath`.
    pub(crate) fs_type: OsString,
    /// What the first column of df shows.
    pub(crate) source: OsString,
}

impl Mounted {
    /// Served by a FUSE daemon, whichever?
    pub(crate) fn is_fuse(&self) -> bool {
        let fs_type = self.fs_type.as_bytes();
        fs_type == b"fuse" || fs_type.starts_with(b"fuse.")
    }
}

/// The mount that is seen at `mountpoint`: the last one, where several lie on each other.
/// `mountpoint` has no symbolic links in it.
pub(crate) fn seen_at(mountpoint: &Path) -> io::Result<Option<Mounted>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    Ok(parse(&table).filter(|mount| mount.mountpoint == mountpoint).last())
}

/// The lines that can be understood; the format is described in proc(5).
fn parse(table: &[u8]) -> impl Iterator<Item = Mounted> {
    table.split(|&byte| byte == b'\n').filter_map(parse_line)
}

fn parse_line(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mountpoint = unescape(fields.nth(4)?);
    // A number of optional fields, then a dash.
    fields.find(|field| *field == b"-")?;
    let fs_type = unescape(fields.next()?);
    let source = unescape(fields.next()?);
    Some(Mounted { mountpoint: mountpoint.into(), fs_type, source })
}

/// Blanks, newlines and backslashes stand in the table as a backslash and three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = if first == b'\\' { tail.get(..3).and_then(octal) } else { None };
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    OsString::from_vec(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0u8, |value, &digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(digit - b'0'),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_optional_fields_and_escapes_is_read() {
        let line =
            br"36 35 98:0 / /mnt/a\040b rw,noatime shared:1 master:2 - fuse.pinpath /s\134,d rw";
        let mount = parse_line(line).expect("a mount");
        assert_eq!(mount.mountpoint, Path::new("/mnt/a b"));
        assert_eq!(mount.fs_type, "fuse.pinpath");
        assert_eq!(mount.source, r"/s\,d");
        assert!(mount.is_fuse());
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        assert_eq!(parse(b"\nnonsense\n1 2 3 4 5 6 7\n").count(), 0);
    }

    #[test]
    fn what_only_looks_like_an_escape_stays() {
        assert_eq!(unescape(br"a\9\77"), r"a\9\77");
        assert_eq!(unescape(br"\777"), r"\777");
    }
}
