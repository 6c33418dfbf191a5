//! The command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::logging::Level;
use crate::mirror::Plan;
use crate::mount_helper;
use crate::options::Options;
use crate::say;

/// More threads than this help nobody.
pub(crate) const MAX_THREADS: usize = 1024;

const EXAMPLES: &str = "\
Examples:
  pinpath mirror ~/project /mnt/project
      shows ~/project at /mnt/project until Ctrl-C
  pinpath mirror --background --read-only /srv/data /mnt/data
      returns once /mnt/data answers; `umount /mnt/data` ends it
  pinpath mirror --allow-other -o suid,dev /srv/root /mnt/root
      for every user of the machine, setuid programs and devices included (as root)

In /etc/fstab, with this program linked as /sbin/mount.fuse.pinpath:
  /srv/data  /mnt/data  fuse.pinpath  ro,allow_other,nofail  0  0";

#[derive(Debug, Parser)]
#[command(name = "pinpath", version, about = "Mounts filesystems built on pinpath", after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show a directory at another place, read and write
    #[command(after_help = EXAMPLES)]
    Mirror(MirrorArguments),
}

#[derive(Debug, clap::Args)]
struct MirrorArguments {
    /// The directory to show
    source: PathBuf,

    /// Where to show it; made if it does not exist, and then removed again at the end
    mountpoint: PathBuf,

    /// Refuse every change
    #[arg(long)]
    read_only: bool,

    /// Let every user in, as far as the files' permissions allow (also needs user_allow_other in
    /// /etc/fuse.conf, unless you are root)
    #[arg(long)]
    allow_other: bool,

    /// Mount options, separated by commas: ro, rw, suid, nosuid, dev, nodev, exec, noexec, atime,
    /// noatime, nodiratime, strictatime, lazytime, sync, async, dirsync, allow_other, default_permissions, auto_unmount, fsname=NAME,
    /// subtype=NAME, cache=MODE, locks=WHERE, passthrough, readers=N, handlers=N, dispatch=MODE, clone_fd, clear_stale. What only mount(8)
    /// and fstab care for (defaults, nofail, x-...) is ignored
    #[arg(short = 'o', value_name = "OPTION,...")]
    options: Vec<OsString>,

    /// Threads that read requests from the kernel [default: one per CPU, at least two]
    #[arg(long, value_name = "N", value_parser = threads)]
    readers: Option<usize>,

    /// Threads that work on requests which take long, at most [default: four per CPU, at least 64]
    #[arg(long, value_name = "N", value_parser = threads)]
    handlers: Option<usize>,

    /// Which thread works on a request: the one that read it unless it takes long, always that one,
    /// or always another
    #[arg(long, value_name = "MODE", value_enum)]
    dispatch: Option<Dispatch>,

    /// Report on standard error every SECONDS what was asked for and how long it took (SIGUSR1 does
    /// so at once)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    stats: Option<Duration>,

    /// Give each reader a channel of its own to the kernel (gains little, and turns listings with
    /// attributes off)
    #[arg(long)]
    clone_fd: bool,

    /// What the kernel may remember: nothing, for a moment, or until it is changed through the
    /// mount (only if nobody changes SOURCE otherwise)
    #[arg(long, value_name = "MODE", value_enum)]
    cache: Option<Cache>,

    /// Who keeps the fcntl locks of programs: the kernel, among the users of this mount, or SOURCE,
    /// where others see them too
    #[arg(long, value_name = "WHERE", value_enum)]
    locks: Option<Locks>,

    /// Let the kernel read and write open files itself, without asking (as root, on Linux 6.9 or
    /// later, and where SOURCE lies on no other filesystem)
    #[arg(long)]
    passthrough: bool,

    /// How much to report on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Level::Warn)]
    log: Level,

    /// Return once the mount answers and serve it in the background
    #[arg(long)]
    background: bool,

    /// If a killed daemon left a dead mount at MOUNTPOINT, clear it away first
    #[arg(long)]
    clear_stale: bool,
}

/// Which thread works on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dispatch {
    /// The one that read it, unless it takes long
    Adaptive,
    /// The one that read it
    Inline,
    /// Another
    Pool,
}

/// How much the kernel may remember of the mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cache {
    /// Nothing: every change in SOURCE is seen at once
    None,
    /// Names and attributes for a moment, contents until the file changes
    Auto,
    /// As long as it likes: only this mount changes SOURCE
    Always,
}

/// Where locks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Locks {
    /// In the kernel: right among the programs that use this mount, unknown to SOURCE
    Kernel,
    /// In SOURCE: right among all that use it, here or there (flock stays in the kernel)
    Forward,
}

/// Reads the command line, however the command was called. What is printed for the user (help, or
/// what is wrong) is printed here, and the exit status returned.
pub(crate) fn read(words: Vec<OsString>) -> Result<Plan, ExitCode> {
    if let Some(words) = mount_helper::recognise(&words) {
        return mount_helper::read(words);
    }
    let arguments = parse::<Arguments>(words)?;
    let Command::Mirror(mirror) = arguments.command;
    plan(mirror).map_err(|failure| {
        say::error(failure);
        ExitCode::FAILURE
    })
}

/// As `Parser::parse_from`, but every error is exit status 1 (clap's own would be 2).
pub(crate) fn parse<P: Parser>(words: Vec<OsString>) -> Result<P, ExitCode> {
    P::try_parse_from(words).map_err(|error| {
        let _ = error.print();
        if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    })
}

fn plan(arguments: MirrorArguments) -> Result<Plan, crate::failure::Failure> {
    let mut options = Options::default();
    for list in &arguments.options {
        options.add(list)?;
    }
    options.refuse_unknown()?;
    // A flag says the same as its option, and louder.
    if arguments.read_only {
        options.read_only = Some(true);
    }
    options.allow_other |= arguments.allow_other;
    options.clone_fd |= arguments.clone_fd;
    options.clear_stale |= arguments.clear_stale;
    options.readers = arguments.readers.or(options.readers);
    options.handlers = arguments.handlers.or(options.handlers);
    options.cache = arguments.cache.or(options.cache);
    options.locks = arguments.locks.or(options.locks);
    options.passthrough |= arguments.passthrough;
    options.dispatch = arguments.dispatch.or(options.dispatch);
    Ok(Plan {
        source: arguments.source,
        mountpoint: arguments.mountpoint,
        options,
        log: arguments.log,
        background: arguments.background,
        stats: arguments.stats,
        quiet: false,
        dry_run: false,
    })
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=MAX_THREADS).contains(&number) => Ok(number),
        _ => Err(format!("it is a number from 1 to {MAX_THREADS}")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse().map(Duration::try_from_secs_f64) {
        Ok(Ok(duration)) if duration >= Duration::from_millis(1) => Ok(duration),
        _ => Err("it is a number of seconds, as 10 or 0.5".into()),
    }
}

/// The last part of the name that the command was called by.
pub(crate) fn called_as(words: &[OsString]) -> &OsStr {
    words.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default()
}

/// Is this word a subcommand, a flag, or a request for help? (Then it is no path given by
/// mount(8).)
pub(crate) fn is_own_word(word: &OsStr) -> bool {
    word == "mirror" || word == "help" || word.as_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn clap_finds_no_contradiction() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_own_words_are_all_subcommands() {
        for subcommand in Arguments::command().get_subcommands() {
            assert!(is_own_word(OsStr::new(subcommand.get_name())));
        }
    }

    #[test]
    fn flags_and_options_say_the_same() {
        let flags = "pinpath mirror a b --read-only --allow-other --readers 3 --handlers 9 --clone-fd \
                     --cache always --clear-stale --dispatch pool \
                     --locks forward --passthrough";
        let flags = read(words(flags)).expect("a plan").options;
        let options = "pinpath mirror a b -o ro,allow_other,readers=3 -o handlers=9,clone_fd,cache=always,clear_stale,dispatch=pool,locks=forward,passthrough";
        let options = read(words(options)).expect("a plan").options;
        assert_eq!(flags, options);
    }
}
