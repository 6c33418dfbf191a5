//! `fusermount3`: the setuid program that mounts and unmounts for those who may not.

use std::ffi::OsStr;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::error::MountError;

/// As it is called today, and as it was.
const NAMES: [&str; 2] = ["fusermount3", "fusermount"];

/// Mounts on `directory`. With `auto_unmount` among the options, the socket that is returned keeps
/// the mount: it is undone when the last copy is closed.
pub(super) fn mount(
    directory: &Path,
    options: &OsStr,
) -> Result<(OwnedFd, UnixStream), MountError> {
    let (ours, theirs) = UnixStream::pair().map_err(MountError::Connection)?;
    let mut child = start(|command| {
        // The socket is the program's standard input: a descriptor that it inherits without our
        // having to let it through to every other child of this process.
        command.arg("-o").arg(options).arg("--").arg(directory);
        command.env("_FUSE_COMMFD", "0").stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(())
    })?;
    drop(theirs);

    match receive_descriptor(&ours) {
        Ok(device) => {
            reap(child);
            Ok((device, ours))
        }
        Err(_) => {
            drop(ours);
            let mut text = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                let _ = stderr.read_to_string(&mut text);
            }
            let _ = child.wait();
            Err(refusal(text.trim()))
        }
    }
}

/// Unmounts; lazily if so asked.
pub(super) fn unmount(directory: &Path, lazy: bool) -> io::Result<()> {
    let child = start(|command| {
        command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(())
    })?;
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let kind =
        if text.contains("busy") { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, text.trim().to_owned()))
}

fn start(prepare: impl Fn(&mut Command) -> io::Result<()>) -> Result<Child, MountError> {
    for name in NAMES {
        let mut command = Command::new(name);
        prepare(&mut command).map_err(MountError::Connection)?;
        match command.spawn().map_err(|error| (error.kind(), error)) {
            // "Permission denied" also says that a directory of PATH can't be searched.
            Err((io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied, _)) => {}
            Err((_, error)) => return Err(MountError::Connection(error)),
            Ok(child) => return Ok(child),
        }
    }
    Err(MountError::NoFusermount)
}

fn refusal(text: &str) -> MountError {
    if text.contains("user_allow_other") {
        MountError::AllowOther
    } else {
        MountError::Fusermount(text.to_owned())
    }
}

/// The open `/dev/fuse` that the program sends.
fn receive_descriptor(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)
    })?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            if let Some(device) = descriptors.next() {
                return Ok(device);
            }
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Waits for the program's end in the background: with `auto_unmount` it lives as long as the mount.
fn reap(mut child: Child) {
    let reaper = std::thread::Builder::new().name("pinpath-reap".into());
    // Without the thread a zombie is left until this process ends, which hurts nobody.
    let _ = reaper.spawn(move || child.wait());
}
