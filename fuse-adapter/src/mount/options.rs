//! How to mount: [`MountOptions`] and [`MountThreads`].

use std::ffi::OsString;

use crate::dispatch::Dispatch;
use crate::negotiation::Negotiation;

/// Which threads serve a mount. The defaults need no tuning: see DESIGN.md, section 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountThreads {
    /// Threads that read requests at once; at least 1. As many as there are CPUs is best: more only
    /// take turns in waking up. With [`Dispatch::Adaptive`] there are four more, which sleep until
    /// others are stuck.
    pub readers: usize,
    /// Threads of the pool: with [`Dispatch::Adaptive`] at most, with [`Dispatch::Pool`] exactly so
    /// many. 0: the readers run the handler, whatever the dispatch.
    ///
    /// With all of them blocked, and as many requests waiting as may
    /// ([`MountOptions::queue_length`]), the mount waits too.
    pub handlers: usize,
    /// Give each reader a descriptor of `/dev/fuse` of its own. Gains nothing on the machines that
    /// were measured, and turns `readdirplus` off.
    pub clone_fd: bool,
}

impl Default for MountThreads {
    fn default() -> Self {
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        MountThreads { readers: cpus.max(2), handlers: (4 * cpus).max(64), clone_fd: false }
    }
}

/// How to mount. Begin with `MountOptions::default()` and change what should differ.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MountOptions {
    /// What stands in the first column of `df`.
    pub fs_name: OsString,
    /// The type, as in `fuse.pinpath`; empty for `fuse`.
    pub subtype: String,
    /// Nothing can be changed through the mount.
    pub read_only: bool,
    /// Let other users in than the one who mounts. Who is not root needs `user_allow_other` in
    /// `/etc/fuse.conf`.
    ///
    /// Without it the kernel answers other users with "permission denied", root included. (A
    /// process of another user that was handed an open file can still use it, and close it.)
    pub allow_other: bool,
    /// The kernel checks permissions by mode, owner and group, as for any other filesystem. On by
    /// default. Off, the handler must: with `allow_other`, what it allows is allowed to everybody.
    pub default_permissions: bool,
    /// Setuid and setgid bits of programs count. For root only.
    pub suid: bool,
    /// Device files lead to devices. For root only.
    pub dev: bool,
    /// Programs can be run. On by default.
    pub exec: bool,
    /// The kernel doesn't ask for access times to be updated.
    pub no_atime: bool,
    /// Unmount when this process dies, even by a signal that can't be handled. Needs the program
    /// `fusermount3`, of which older versions can do it for who is not root only with
    /// `allow_other`.
    pub auto_unmount: bool,
    /// More options, each as after `-o` of mount(8): `sync`, `dirsync`, `nodiratime`, `max_read=65536`, ...
    pub more: Vec<String>,
    /// The threads that serve it.
    pub threads: MountThreads,
    /// Which of them runs an operation.
    pub dispatch: Dispatch,
    /// How many requests may wait for a handler thread. When there are so many the readers stop
    /// reading, and the rest waits in the kernel.
    pub queue_length: usize,
    /// What to ask of the kernel. The handler has the last word, in
    /// [`Handler::wishes`](crate::Handler::wishes).
    pub negotiation: Negotiation,
}

impl Default for MountOptions {
    fn default() -> Self {
        MountOptions {
            fs_name: "pinpath".into(),
            subtype: "pinpath".into(),
            read_only: false,
            allow_other: false,
            default_permissions: true,
            suid: false,
            dev: false,
            exec: true,
            no_atime: false,
            auto_unmount: false,
            more: Vec::new(),
            threads: MountThreads::default(),
            dispatch: Dispatch::default(),
            queue_length: 1024,
            negotiation: Negotiation::default(),
        }
    }
}
