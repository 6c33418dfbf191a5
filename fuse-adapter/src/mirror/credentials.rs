//! Making files as the caller: [`ActingAs`].
//!
//! A new file belongs to whom asked for it. Given away only after it was made, it would for a
//! moment be the mirror's, and giving it away would clear its setuid bits; so the thread takes the
//! caller's filesystem user and group for the one system call that makes it, and the source then
//! decides as for any program: about the group in a setgid directory, and about the umask, which
//! doesn't count where the directory has a default ACL.
//!
//! What the caller may do, the kernel has checked before it sent the request (the mount option
//! `default_permissions`), with all the caller's groups, which the request doesn't name. So the
//! thread keeps its capabilities: they must not be checked again, with less knowledge.
//!
//! All of this is the thread's alone. User, group and capabilities are put back when the guard is
//! dropped, also by a panic. The umask isn't: each call sets it anew, and it is private to the
//! thread from the first call on (`unshare(CLONE_FS)`, which makes the working directory private
//! as well).

use std::cell::Cell;

use rustix::fs::Mode;
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

use crate::handler::Request;

/// What a thread is when it acts for nobody.
#[derive(Clone, Copy)]
struct Own {
    uid: u32,
    gid: u32,
    capabilities: CapabilitySets,
    /// It may take other ids. A user's mirror may not; the files it makes are the user's.
    may_change: bool,
    /// Its umask is nobody else's.
    own_umask: bool,
}

thread_local! {
    static OWN: Cell<Option<Own>> = const { Cell::new(None) };
}

/// While this lives, the thread makes files as the caller of the request. Not `Send`.
pub(super) struct ActingAs {
    /// Where it took the caller's ids: what it was.
    changed_from: Option<Own>,
    /// What the source does not mask by itself.
    masked: u32,
    _this_thread: std::marker::PhantomData<*const ()>,
}

impl ActingAs {
    pub(super) fn caller(req: &Request, umask: u32) -> Self {
        let own = own();
        let masked = if own.own_umask {
            rustix::process::umask(Mode::from_raw_mode(umask & 0o777));
            0
        } else {
            umask & 0o777
        };
        let needed = own.may_change && (own.uid, own.gid) != (req.uid, req.gid);
        if needed {
            take(req.uid, req.gid, own.capabilities);
        }
        ActingAs {
            changed_from: needed.then_some(own),
            masked,
            _this_thread: std::marker::PhantomData,
        }
    }

    /// The permission bits to ask the source for.
    pub(super) fn mode(&self, mode: u32) -> Mode {
        Mode::from_raw_mode(mode & 0o7777 & !self.masked)
    }
}

impl Drop for ActingAs {
    fn drop(&mut self) {
        if let Some(own) = self.changed_from {
            take(own.uid, own.gid, own.capabilities);
        }
    }
}

/// Taking another user's id loses capabilities for files, taking root's gives them all back; they
/// are set to what they were. None of this can fail for a thread that [`may_change`](Own).
fn take(uid: u32, gid: u32, capabilities: CapabilitySets) {
    // SAFETY: these change the ids of this thread only, and touch no memory.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
    let result = rustix::thread::set_capabilities(None, capabilities);
    debug_assert!(result.is_ok());
}

fn own() -> Own {
    OWN.with(|own| {
        own.get().unwrap_or_else(|| {
            let found = look_at_thread();
            own.set(Some(found));
            found
        })
    })
}

fn look_at_thread() -> Own {
    const NO_ID: u32 = u32::MAX;
    // SAFETY: no such id exists, so these calls change nothing and tell what the ids are.
    let (uid, gid) = unsafe { (libc::setfsuid(NO_ID) as u32, libc::setfsgid(NO_ID) as u32) };
    let nothing = CapabilitySet::empty();
    let capabilities = rustix::thread::capabilities(None).unwrap_or(CapabilitySets {
        effective: nothing,
        permitted: nothing,
        inheritable: nothing,
    });
    // SAFETY: the descriptor table, whose unsharing would be dangerous, stays shared.
    let own_umask = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }.is_ok();
    let may_change = capabilities.effective.contains(CapabilitySet::SETUID | CapabilitySet::SETGID);
    Own { uid, gid, capabilities, may_change, own_umask }
}

/// Is the caller in the group? Asks `/proc` for its supplementary groups, so not for every request.
pub(super) fn is_in_group(req: &Request, gid: u32) -> bool {
    if req.gid == gid {
        return true;
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", req.pid)).unwrap_or_default();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    groups.split_whitespace().any(|group| group.parse() == Ok(gid))
}
