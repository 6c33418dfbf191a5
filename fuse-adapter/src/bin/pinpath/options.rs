//! What stands after `-o`, as mount(8) and fstab write it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::ValueEnum;

use crate::arguments::{Cache, Dispatch, Locks};
use crate::failure::Failure;

/// The options that were named; `None` where nothing was said. Of two that contradict each other
/// the later one holds, as for mount(8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) read_only: Option<bool>,
    pub(crate) suid: Option<bool>,
    pub(crate) dev: Option<bool>,
    pub(crate) exec: Option<bool>,
    pub(crate) atime: Option<bool>,
    pub(crate) sync: Option<bool>,
    pub(crate) dirsync: bool,
    /// What else is said of access times: nodiratime, strictatime, lazytime.
    pub(crate) times: Vec<String>,
    pub(crate) allow_other: bool,
    pub(crate) default_permissions: bool,
    pub(crate) auto_unmount: bool,
    pub(crate) fs_name: Option<OsString>,
    pub(crate) subtype: Option<OsString>,
    pub(crate) remount: bool,
    pub(crate) clear_stale: bool,
    pub(crate) clone_fd: bool,
    pub(crate) cache: Option<Cache>,
    pub(crate) locks: Option<Locks>,
    pub(crate) passthrough: bool,
    pub(crate) dispatch: Option<Dispatch>,
    pub(crate) readers: Option<usize>,
    pub(crate) handlers: Option<usize>,
    /// Those that nobody here knows. Refused, unless mount(8) was told to be sloppy (`-s`).
    pub(crate) unknown: Vec<OsString>,
}

impl Options {
    /// Reads one list of options, separated by commas. A backslash takes a comma's (or a
    /// backslash's) meaning away.
    pub(crate) fn add(&mut self, list: &OsStr) -> Result<(), Failure> {
        split(list.as_bytes()).iter().try_for_each(|option| self.add_one(option))
    }

    /// Refuses what was not understood, naming all of it.
    pub(crate) fn refuse_unknown(&self) -> Result<(), Failure> {
        if self.unknown.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = self.unknown.iter().map(|name| name.to_string_lossy()).collect();
        Err(Failure::UnknownOption(names.join(", ")))
    }

    fn add_one(&mut self, option: &[u8]) -> Result<(), Failure> {
        match option {
            b"ro" => self.read_only = Some(true),
            b"rw" => self.read_only = Some(false),
            b"suid" => self.suid = Some(true),
            b"nosuid" => self.suid = Some(false),
            b"dev" => self.dev = Some(true),
            b"nodev" => self.dev = Some(false),
            b"exec" => self.exec = Some(true),
            b"noexec" => self.exec = Some(false),
            b"atime" => self.atime = Some(true),
            b"noatime" => self.atime = Some(false),
            b"sync" => self.sync = Some(true),
            b"async" => self.sync = Some(false),
            b"dirsync" => self.dirsync = true,
            b"nodiratime" | b"strictatime" | b"lazytime" => {
                self.times.push(String::from_utf8_lossy(option).into_owned());
            }
            b"allow_other" => self.allow_other = true,
            b"default_permissions" => self.default_permissions = true,
            b"auto_unmount" => self.auto_unmount = true,
            b"remount" => self.remount = true,
            b"clear_stale" => self.clear_stale = true,
            b"clone_fd" => self.clone_fd = true,
            b"passthrough" => self.passthrough = true,
            _ if is_for_mount(option) => {}
            _ => self.add_with_value(option)?,
        }
        Ok(())
    }

    fn add_with_value(&mut self, option: &[u8]) -> Result<(), Failure> {
        let (name, value) = match option.iter().position(|&byte| byte == b'=') {
            Some(equals) => (&option[..equals], OsStr::from_bytes(&option[equals + 1..])),
            None => (option, OsStr::new("")),
        };
        match name {
            b"fsname" => self.fs_name = Some(value.to_owned()),
            b"subtype" => self.subtype = Some(value.to_owned()),
            b"cache" => self.cache = Some(mode("cache", value)?),
            b"locks" => self.locks = Some(mode("locks", value)?),
            b"dispatch" => self.dispatch = Some(mode("dispatch", value)?),
            b"readers" => self.readers = Some(number("readers", value)?),
            b"handlers" => self.handlers = Some(number("handlers", value)?),
            _ => self.unknown.push(OsStr::from_bytes(option).to_owned()),
        }
        Ok(())
    }
}

/// What mount(8), fstab(5) and systemd keep for themselves, and what the kernel does anyway.
fn is_for_mount(option: &[u8]) -> bool {
    const WORDS: [&[u8]; 18] = [
        b"",
        b"defaults",
        b"auto",
        b"noauto",
        b"nofail",
        b"_netdev",
        b"user",
        b"nouser",
        b"users",
        b"nousers",
        b"owner",
        b"noowner",
        b"group",
        b"nogroup",
        b"relatime",
        b"nomand",
        b"loud",
        b"diratime",
    ];
    const BEGINNINGS: [&[u8]; 4] = [b"x-", b"X-", b"comment=", b"user="];
    WORDS.contains(&option) || BEGINNINGS.iter().any(|start| option.starts_with(start))
}

fn mode<M: ValueEnum>(name: &str, value: &OsStr) -> Result<M, Failure> {
    M::from_str(&value.to_string_lossy(), false).map_err(|_| {
        let modes = M::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let modes: Vec<String> = modes.map(|mode| mode.get_name().to_owned()).collect();
        Failure::OptionValue {
            option: format!("{name}={}", value.to_string_lossy()),
            reason: format!("it is one of {}", modes.join(", ")),
        }
    })
}

fn number(name: &str, value: &OsStr) -> Result<usize, Failure> {
    let text = value.to_string_lossy();
    match text.parse() {
        Ok(number) if (1..=crate::arguments::MAX_THREADS).contains(&number) => Ok(number),
        _ => Err(Failure::OptionValue {
            option: format!("{name}={text}"),
            reason: format!("it is a number from 1 to {}", crate::arguments::MAX_THREADS),
        }),
    }
}

fn split(list: &[u8]) -> Vec<Vec<u8>> {
    let mut options = vec![Vec::new()];
    let mut bytes = list.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = byte == b'\\' && matches!(bytes.peek(), Some(b',' | b'\\'));
        match (byte, options.last_mut()) {
            (b',', _) => options.push(Vec::new()),
            (_, Some(option)) if escaped => option.extend(bytes.next()),
            (_, Some(option)) => option.push(byte),
            (_, None) => {}
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn read(list: &str) -> Result<Options, Failure> {
        let mut options = Options::default();
        options.add(OsStr::new(list))?;
        options.refuse_unknown()?;
        Ok(options)
    }

    #[test]
    fn what_mount_and_fstab_add_says_nothing() {
        let list =
            "defaults,_netdev,nofail,noauto,user,user=anna,x-systemd.automount,comment=hello,";
        assert_eq!(read(list).expect("ignored"), Options::default());
    }

    #[test]
    fn the_later_of_two_holds() {
        let options = read("ro,suid,nodev,rw,nosuid,dev").expect("options");
        assert_eq!(
            (options.read_only, options.suid, options.dev),
            (Some(false), Some(false), Some(true))
        );
    }

    #[test]
    fn unknown_options_are_refused_by_name() {
        let error = read("rw,shiny,nosuid,speed=9").expect_err("two unknown").to_string();
        assert!(error.contains("shiny, speed=9"), "{error}");
    }

    #[test]
    fn a_backslash_keeps_a_comma_in_a_value() {
        let options = read(r"fsname=/a\,b\\c d,ro").expect("options");
        assert_eq!(options.fs_name.as_deref(), Some(OsStr::new(r"/a,b\c d")));
        assert_eq!(options.read_only, Some(true));
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for list in
            ["cache=some", "dispatch=best", "locks=maybe", "readers=0", "handlers=many", "cache"]
        {
            assert!(read(list).is_err(), "{list}");
        }
        assert_eq!(read("cache=always").expect("options").cache, Some(Cache::Always));
    }

    #[test]
    fn bytes_that_are_not_utf8_come_through() {
        let mut options = Options::default();
        options.add(&OsString::from_vec(b"fsname=/\xff".to_vec())).expect("an option");
        assert_eq!(options.fs_name, Some(OsString::from_vec(b"/\xff".to_vec())));
    }
}
