//! The way mount(8) calls.
//!
//! For `mount -t fuse.pinpath SOURCE MOUNTPOINT -o ...` and the same in fstab, mount(8) runs
//! `/sbin/mount.fuse.pinpath SOURCE MOUNTPOINT -sfnv -o ...`, if that is there (a link to this
//! program); otherwise libfuse's `/sbin/mount.fuse`, which runs `pinpath SOURCE MOUNTPOINT -o ...`
//! as found in PATH. Both mean `pinpath mirror --background`, and not a word unless asked: a line
//! more would be noise at every boot.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments;
use crate::failure::{Failure, is_root};
use crate::logging::Level;
use crate::mirror::Plan;
use crate::options::Options;
use crate::say;

/// Mounts a mirror as mount(8) asks for it
#[derive(Debug, Parser)]
#[command(name = "mount.fuse.pinpath", version)]
struct HelperArguments {
    /// The directory to show
    source: PathBuf,
    /// Where to show it
    mountpoint: PathBuf,
    /// Mount options
    #[arg(short = 'o', value_name = "OPTION,...")]
    options: Vec<OsString>,
    /// Pass over options that are not known
    #[arg(short = 's')]
    sloppy: bool,
    /// Check the options and do nothing
    #[arg(short = 'f')]
    fake: bool,
    /// Leave /etc/mtab alone (nobody writes it)
    #[arg(short = 'n')]
    _no_mtab: bool,
    /// Say what is mounted
    #[arg(short = 'v')]
    verbose: bool,
    /// The type of the filesystem
    #[arg(short = 't', value_name = "TYPE")]
    _fs_type: Option<OsString>,
}

/// The words of a call by mount(8), if these are one.
pub(crate) fn recognise(words: &[OsString]) -> Option<Vec<OsString>> {
    let by_name = arguments::called_as(words).as_bytes().starts_with(b"mount.");
    // mount.fuse always gives options; a mistyped subcommand has none in this place.
    let by_shape = match words {
        [_, source, mountpoint, option, _] => {
            !arguments::is_own_word(source) && !arguments::is_own_word(mountpoint) && option == "-o"
        }
        _ => false,
    };
    (by_name || by_shape).then(|| words.to_vec())
}

/// Reads such a call.
pub(crate) fn read(words: Vec<OsString>) -> Result<Plan, ExitCode> {
    let arguments = arguments::parse::<HelperArguments>(words)?;
    plan(arguments).map_err(|failure| {
        say::error(failure);
        ExitCode::FAILURE
    })
}

fn plan(arguments: HelperArguments) -> Result<Plan, Failure> {
    let mut options = Options::default();
    for list in &arguments.options {
        options.add(list)?;
    }
    // For a remount mount(8) repeats what the kernel shows of the mount, ids and all.
    if !arguments.sloppy && !options.remount {
        options.refuse_unknown()?;
    }
    // mount(8) doesn't pass on what is the default of a mount by root; FUSE's default is the other.
    if is_root() {
        options.suid.get_or_insert(true);
        options.dev.get_or_insert(true);
    }
    Ok(Plan {
        source: arguments.source,
        mountpoint: arguments.mountpoint,
        options,
        log: Level::Warn,
        background: true,
        stats: None,
        quiet: !arguments.verbose,
        dry_run: arguments.fake,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn calls_by_mount_are_told_from_calls_by_a_user() {
        for line in [
            "/sbin/mount.fuse.pinpath /s /m -o rw",
            "mount.pinpath /s /m",
            "/sbin/mount.fuse.pinpath /s /m -n -s -v",
            "pinpath /s /m -o rw,nosuid",
        ] {
            assert!(recognise(&words(line)).is_some(), "{line}");
        }
        for line in [
            "pinpath mirror /m -o rw",
            "pinpath miror /s /m",
            "pinpath",
            "pinpath --help",
            "pinpath help mirror -o x",
        ] {
            assert!(recognise(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn a_call_by_mount_goes_quietly_to_the_background() {
        let plan = read(words("/sbin/mount.fuse.pinpath /s /m -n -o ro,_netdev,allow_other"))
            .expect("a plan");
        assert!(plan.background && plan.quiet && !plan.dry_run);
        assert_eq!(plan.options.read_only, Some(true));
        assert!(plan.options.allow_other);
        let plan = read(words("/sbin/mount.fuse.pinpath /s /m -svf -o shiny")).expect("a plan");
        assert!(plan.dry_run && !plan.quiet);
    }
}
