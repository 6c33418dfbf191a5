//! What is asked of the kernel. Only what fuser can decode: asked for anything else, the kernel
//! sends requests in a format that fuser misreads or that makes it panic.

use fuser::{InitFlags, KernelConfig};

use crate::negotiation::{Negotiation, ReadDirPlus};

/// Every capability that this transport may ever ask for.
const DECODABLE: InitFlags = InitFlags::FUSE_ASYNC_READ
    .union(InitFlags::FUSE_POSIX_LOCKS)
    .union(InitFlags::FUSE_ATOMIC_O_TRUNC)
    .union(InitFlags::FUSE_BIG_WRITES)
    .union(InitFlags::FUSE_DONT_MASK)
    .union(InitFlags::FUSE_FLOCK_LOCKS)
    .union(InitFlags::FUSE_AUTO_INVAL_DATA)
    .union(InitFlags::FUSE_DO_READDIRPLUS)
    .union(InitFlags::FUSE_READDIRPLUS_AUTO)
    .union(InitFlags::FUSE_ASYNC_DIO)
    .union(InitFlags::FUSE_WRITEBACK_CACHE)
    .union(InitFlags::FUSE_PARALLEL_DIROPS)
    .union(InitFlags::FUSE_POSIX_ACL)
    .union(InitFlags::FUSE_MAX_PAGES)
    .union(InitFlags::FUSE_CACHE_SYMLINKS)
    .union(InitFlags::FUSE_EXPLICIT_INVAL_DATA)
    .union(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP)
    .union(InitFlags::FUSE_PASSTHROUGH);

/// The smallest `max_write` that the kernel takes.
const MIN_WRITE: u32 = 4096;
/// The largest that fits into fuser's buffer.
const MAX_WRITE: u32 = 16 << 20;

/// Asks the kernel for what is wished, and returns what of it is had.
pub(super) fn negotiate(wishes: &Negotiation, config: &mut KernelConfig) -> Negotiation {
    let flags = wanted(wishes) & DECODABLE & config.capabilities();
    if let Err(refused) = config.add_capabilities(flags) {
        // Can't be: only what is offered was asked for.
        tracing::warn!(?refused, "the kernel refuses what it offers");
    }
    let mut agreed = granted(wishes, flags);

    agreed.max_write = wishes.max_write.clamp(MIN_WRITE, MAX_WRITE);
    let _ = config.set_max_write(agreed.max_write);
    if wishes.max_readahead > 0 {
        if let Err(most) = config.set_max_readahead(wishes.max_readahead) {
            agreed.max_readahead = most;
            let _ = config.set_max_readahead(most);
        }
    }
    if agreed.passthrough {
        // Without a depth the kernel takes no backing files. One: they are on no stacked filesystem.
        let _ = config.set_max_stack_depth(1);
    }
    agreed.max_background = wishes.max_background.max(1);
    let _ = config.set_max_background(agreed.max_background);
    agreed
}

/// Each wish that is one flag, in one place for asking and for reading the answer.
fn switches(of: &mut Negotiation) -> [(&mut bool, InitFlags); 13] {
    [
        (&mut of.parallel_dirops, InitFlags::FUSE_PARALLEL_DIROPS),
        (&mut of.atomic_o_trunc, InitFlags::FUSE_ATOMIC_O_TRUNC),
        (&mut of.dont_mask, InitFlags::FUSE_DONT_MASK),
        (&mut of.posix_acl, InitFlags::FUSE_POSIX_ACL),
        (&mut of.writeback_cache, InitFlags::FUSE_WRITEBACK_CACHE),
        (&mut of.auto_inval_data, InitFlags::FUSE_AUTO_INVAL_DATA),
        (&mut of.explicit_inval_data, InitFlags::FUSE_EXPLICIT_INVAL_DATA),
        (&mut of.cache_symlinks, InitFlags::FUSE_CACHE_SYMLINKS),
        (&mut of.async_direct_io, InitFlags::FUSE_ASYNC_DIO),
        (&mut of.direct_io_mmap, InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP),
        (&mut of.passthrough, InitFlags::FUSE_PASSTHROUGH),
        (&mut of.posix_locks, InitFlags::FUSE_POSIX_LOCKS),
        (&mut of.flock_locks, InitFlags::FUSE_FLOCK_LOCKS),
    ]
}

fn wanted(wishes: &Negotiation) -> InitFlags {
    let mut copy = *wishes;
    let switched = switches(&mut copy);
    let mut flags: InitFlags =
        switched.iter().filter(|(on, _)| **on).map(|(_, flag)| *flag).collect();
    match wishes.readdirplus {
        ReadDirPlus::Off => {}
        ReadDirPlus::Auto => {
            flags |= InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_READDIRPLUS_AUTO
        }
        ReadDirPlus::Always => flags |= InitFlags::FUSE_DO_READDIRPLUS,
    }
    flags
}

fn granted(wishes: &Negotiation, flags: InitFlags) -> Negotiation {
    let mut agreed = *wishes;
    for (on, flag) in switches(&mut agreed) {
        *on = flags.contains(flag);
    }
    agreed.readdirplus = match (
        flags.contains(InitFlags::FUSE_DO_READDIRPLUS),
        flags.contains(InitFlags::FUSE_READDIRPLUS_AUTO),
    ) {
        (false, _) => ReadDirPlus::Off,
        (true, true) => ReadDirPlus::Auto,
        (true, false) => ReadDirPlus::Always,
    };
    agreed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that can be wished for.
    fn everything() -> Negotiation {
        let mut all = Negotiation::default();
        switches(&mut all).into_iter().for_each(|(on, _)| *on = true);
        all
    }

    /// To add a capability here, first read what it changes in the requests, and whether this
    /// version of fuser decodes that.
    #[test]
    fn the_list_is_pinned() {
        let names: Vec<&str> = DECODABLE.iter_names().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "FUSE_ASYNC_READ",
                "FUSE_POSIX_LOCKS",
                "FUSE_ATOMIC_O_TRUNC",
                "FUSE_BIG_WRITES",
                "FUSE_DONT_MASK",
                "FUSE_FLOCK_LOCKS",
                "FUSE_AUTO_INVAL_DATA",
                "FUSE_DO_READDIRPLUS",
                "FUSE_READDIRPLUS_AUTO",
                "FUSE_ASYNC_DIO",
                "FUSE_WRITEBACK_CACHE",
                "FUSE_PARALLEL_DIROPS",
                "FUSE_POSIX_ACL",
                "FUSE_MAX_PAGES",
                "FUSE_CACHE_SYMLINKS",
                "FUSE_EXPLICIT_INVAL_DATA",
                "FUSE_DIRECT_IO_ALLOW_MMAP",
                "FUSE_PASSTHROUGH",
            ]
        );
    }

    #[test]
    fn no_wish_goes_beyond_the_list() {
        assert_eq!(wanted(&everything()) - DECODABLE, InitFlags::empty());
    }

    #[test]
    fn a_wish_is_granted_exactly_where_its_flag_is() {
        let all = everything();
        assert_eq!(granted(&all, wanted(&all)), all);
        let mut none = granted(&all, InitFlags::empty());
        assert!(switches(&mut none).iter().all(|(on, _)| !**on));
        assert_eq!(none.readdirplus, ReadDirPlus::Off);
        let always = Negotiation { readdirplus: ReadDirPlus::Always, ..all };
        assert_eq!(granted(&always, wanted(&always)).readdirplus, ReadDirPlus::Always);
    }

    #[test]
    fn locks_are_the_kernels_unless_asked_for() {
        let flags = wanted(&Negotiation::default());
        assert!(!flags.intersects(InitFlags::FUSE_POSIX_LOCKS | InitFlags::FUSE_FLOCK_LOCKS));
    }
}
