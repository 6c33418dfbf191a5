//! What the command prints. A terminal that has gone away is no reason to fail: `println!` would
//! panic there.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

/// A line about what happens, on standard output.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(std::io::stdout(), "pinpath: {text}");
}

/// A line about what is wrong, on standard error.
pub(crate) fn error(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "pinpath: {text}");
}

/// A path as a shell takes it, for messages that tell what to type.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:,@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted(Path::new("/mnt/a-b")), "/mnt/a-b");
        assert_eq!(quoted(Path::new("/mnt/a b")), "'/mnt/a b'");
        assert_eq!(quoted(Path::new("it's")), r"'it'\''s'");
    }
}
