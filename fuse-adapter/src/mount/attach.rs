//! Attaching an open `/dev/fuse` to a directory: by mount(2) where that is permitted, else by
//! `fusermount3`.
//!
//! fuser could do this too. It is done here because fuser 0.18 takes a mount that is gone for one
//! that is there, and at the end unmounts whatever it finds at the path: the filesystem below, if
//! one was mounted over. (It also gives the reasons for failures as text only.)

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::mount::MountFlags;

use super::error::MountError;
use super::fusermount;
use super::options::MountOptions;
use super::place::Place;

/// Mounts, but answers nothing yet: until the session starts, who looks into it waits.
pub(super) fn attach(
    mountpoint: &Path,
    options: &MountOptions,
) -> Result<(OwnedFd, Place), MountError> {
    let of_mountpoint = |error| MountError::of_mountpoint(mountpoint, error);
    let directory = mountpoint.canonicalize().map_err(of_mountpoint)?;
    // Not stat: what a dead filesystem last said of its root may be remembered yet.
    rustix::fs::statfs(&directory).map_err(|error| of_mountpoint(error.into()))?;
    let mode = directory.metadata().map_err(of_mountpoint)?.mode();
    if mode & libc::S_IFMT != libc::S_IFDIR {
        return Err(MountError::NotADirectory(mountpoint.to_owned()));
    }
    if !options.auto_unmount {
        if let Some(device) = mount_directly(&directory, mode, options)? {
            let place = Place::new(directory, None).map_err(of_mountpoint)?;
            return Ok((device, place));
        }
    }
    let (device, helper) = fusermount::mount(&directory, &helper_options(options))?;
    let helper = options.auto_unmount.then_some(helper);
    let place = Place::new(directory, helper).map_err(of_mountpoint)?;
    Ok((device, place))
}

/// By mount(2); `None` where that is not permitted.
fn mount_directly(
    directory: &Path,
    mode: u32,
    options: &MountOptions,
) -> Result<Option<OwnedFd>, MountError> {
    // Who may not open it can't mount by fusermount3 either, which opens it for its caller.
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let device = clear_of_stdio(device.map_err(MountError::of_device)?);
    let device = device.map_err(MountError::Device)?;
    match call_mount(&device, directory, mode, options) {
        Ok(()) => Ok(Some(device)),
        Err(rustix::io::Errno::PERM) => Ok(None),
        Err(error) => Err(MountError::Kernel(directory.to_owned(), error.into())),
    }
}

/// A process that closed its standard descriptors gets their numbers next, and whoever prints would
/// write into the connection.
fn clear_of_stdio(device: File) -> io::Result<OwnedFd> {
    if device.as_raw_fd() > 2 {
        return Ok(device.into());
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&device, 3)?)
}

fn call_mount(
    device: &OwnedFd,
    directory: &Path,
    mode: u32,
    options: &MountOptions,
) -> rustix::io::Result<()> {
    let (flags, more) = kernel_flags(options);
    let mut data = format!(
        "fd={},rootmode={:o},user_id={},group_id={}",
        device.as_raw_fd(),
        mode,
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    for option in permission_options(options).into_iter().chain(more) {
        data.push(',');
        data.push_str(option);
    }
    let data = CString::new(data).map_err(|_| rustix::io::Errno::INVAL)?;
    let fs_type = if options.subtype.is_empty() {
        "fuse".to_owned()
    } else {
        format!("fuse.{}", options.subtype)
    };
    rustix::mount::mount(&options.fs_name, directory, fs_type, flags, Some(data.as_c_str()))
}

fn permission_options(options: &MountOptions) -> Vec<&'static str> {
    let mut list = Vec::new();
    if options.default_permissions {
        list.push("default_permissions");
    }
    if options.allow_other {
        list.push("allow_other");
    }
    list
}

/// What mount(2) takes as flags; what it doesn't know of `more` is the filesystem's.
fn kernel_flags(options: &MountOptions) -> (MountFlags, Vec<&str>) {
    let mut flags = MountFlags::empty();
    flags.set(MountFlags::RDONLY, options.read_only);
    flags.set(MountFlags::NOSUID, !options.suid);
    flags.set(MountFlags::NODEV, !options.dev);
    flags.set(MountFlags::NOEXEC, !options.exec);
    flags.set(MountFlags::NOATIME, options.no_atime);
    let mut rest = Vec::new();
    for option in &options.more {
        match option.as_str() {
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            // The opposite of flags, and so the default.
            "async" | "defaults" | "diratime" | "rw" => {}
            other => rest.push(other),
        }
    }
    (flags, rest)
}

/// The same for `fusermount3 -o`, which sets nosuid and nodev by itself.
fn helper_options(options: &MountOptions) -> OsString {
    let mut list = vec![option_with_value("fsname", &options.fs_name)];
    if !options.subtype.is_empty() {
        list.push(option_with_value("subtype", OsStr::new(&options.subtype)));
    }
    let switches = [
        (options.read_only, "ro"),
        (options.suid, "suid"),
        (options.dev, "dev"),
        (!options.exec, "noexec"),
        (options.no_atime, "noatime"),
        (options.auto_unmount, "auto_unmount"),
    ];
    let switches = switches.into_iter().filter(|(on, _)| *on).map(|(_, name)| name);
    list.extend(switches.chain(permission_options(options)).map(OsString::from));
    list.extend(options.more.iter().map(OsString::from));
    list.join(OsStr::new(","))
}

/// A comma ends an option, unless there is a backslash before it.
fn option_with_value(name: &str, value: &OsStr) -> OsString {
    let mut option = format!("{name}=").into_bytes();
    for &byte in value.as_bytes() {
        if matches!(byte, b',' | b'\\') {
            option.push(b'\\');
        }
        option.push(byte);
    }
    OsString::from_vec(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_options() {
        let options = MountOptions::default();
        let (flags, more) = kernel_flags(&options);
        assert_eq!(flags, MountFlags::NOSUID | MountFlags::NODEV);
        assert!(more.is_empty());
        let options = MountOptions {
            read_only: true,
            suid: true,
            dev: true,
            exec: false,
            more: vec!["dirsync".into(), "max_read=4096".into(), "rw".into()],
            ..MountOptions::default()
        };
        let (flags, more) = kernel_flags(&options);
        assert_eq!(flags, MountFlags::RDONLY | MountFlags::NOEXEC | MountFlags::DIRSYNC);
        assert_eq!(more, ["max_read=4096"]);
    }

    #[test]
    fn commas_in_a_name_do_not_end_it() {
        let options = MountOptions {
            fs_name: "/a b,c\\d".into(),
            allow_other: true,
            ..MountOptions::default()
        };
        assert_eq!(
            helper_options(&options),
            "fsname=/a b\\,c\\\\d,subtype=pinpath,default_permissions,allow_other"
        );
    }
}
