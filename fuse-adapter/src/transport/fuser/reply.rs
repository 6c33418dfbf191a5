//! Answers that fuser's reply types can't give as we want them.
//!
//! fuser takes the inode number in the attributes for the node id as well. Ours differ: programs
//! see the filesystem's own inode numbers, the kernel the resolver's ids. So answers with
//! attributes are encoded here, and sent through the one reply of fuser's that takes bytes.

use std::fmt::{self, Write};

use fuser::{
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, ReplyXattr,
};
use zerocopy::IntoBytes;

use super::convert;
use super::session::Shared;
use crate::attr::Attr;
use crate::dispatch::{EntryReply, LookupReply, OpenReply};
use crate::errno::Errno;
use crate::transport::backing::BackingId;
use crate::transport::wire::{AttrOut, CreateOut, EntryOut, OpenOut};

type Result<T> = std::result::Result<T, Errno>;

/// Each of these is `struct { reply: ReplyRaw }` in fuser 0.18.0, whose `ReplyRaw` is a `u64` and
/// an optional pointer. Such a struct can't be smaller than 16 bytes, so at 16 there is nothing in
/// it but the one field, at offset 0.
const ONLY_A_RAW_REPLY: usize = size_of::<u64>() + size_of::<Option<std::sync::Arc<()>>>();
const _: () = {
    assert!(size_of::<ReplyData>() == ONLY_A_RAW_REPLY);
    assert!(size_of::<ReplyEntry>() == ONLY_A_RAW_REPLY);
    assert!(size_of::<ReplyAttr>() == ONLY_A_RAW_REPLY);
    assert!(size_of::<ReplyCreate>() == ONLY_A_RAW_REPLY);
    assert!(size_of::<ReplyOpen>() == ONLY_A_RAW_REPLY);
};

/// The same request's reply, as one that takes bytes.
trait IntoData {
    fn into_data(self) -> ReplyData;
}

macro_rules! into_data {
    ($($reply:ident)*) => {
        $(impl IntoData for $reply {
            fn into_data(self) -> ReplyData {
                // SAFETY: both types are structs with exactly one field, of one and the same type
                // (`ReplyRaw`; fuser is pinned to the version in which this was read), and the
                // assertions above show that both are exactly as large as that field, which is
                // therefore at offset 0 of both. So the bytes of the one are a valid value of the
                // other. Ownership moves with them: `transmute` forgets its argument.
                unsafe { std::mem::transmute::<$reply, ReplyData>(self) }
            }
        })*
    };
}

into_data!(ReplyEntry ReplyAttr ReplyCreate ReplyOpen);

pub(super) fn data(reply: ReplyData, result: Result<&[u8]>) {
    match result {
        Ok(bytes) => reply.data(bytes),
        Err(error) => reply.error(convert::errno(error)),
    }
}

pub(super) fn empty(reply: ReplyEmpty, result: Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(convert::errno(error)),
    }
}

pub(super) fn written(reply: ReplyWrite, result: Result<usize>) {
    match result {
        // The engine lets nothing through that is longer than the request, which fits.
        Ok(size) => reply.written(size as u32),
        Err(error) => reply.error(convert::errno(error)),
    }
}

/// An attribute, or with an empty buffer its size.
pub(super) fn xattr(reply: ReplyXattr, result: Result<usize>, buf: &[u8]) {
    match result {
        Ok(size) if buf.is_empty() => reply.size(u32::try_from(size).unwrap_or(u32::MAX)),
        Ok(size) => reply.data(&buf[..size]),
        Err(error) => reply.error(convert::errno(error)),
    }
}

pub(super) fn attr(reply: ReplyAttr, result: Result<(Attr, std::time::Duration)>) {
    let out = result.map(|(attr, lifetime)| AttrOut::new(&attr, lifetime));
    data(reply.into_data(), out.as_ref().map(IntoBytes::as_bytes).map_err(|error| *error));
}

pub(super) fn lookup(reply: ReplyEntry, result: Result<LookupReply>) {
    let out = result.map(|found| match found {
        LookupReply::Entry(entry) => entry_out(&entry),
        LookupReply::Nothing(lifetime) => EntryOut::nothing(lifetime),
    });
    data(reply.into_data(), out.as_ref().map(IntoBytes::as_bytes).map_err(|error| *error));
}

pub(super) fn entry(reply: ReplyEntry, result: Result<EntryReply>) {
    lookup(reply, result.map(LookupReply::Entry));
}

pub(super) fn open(reply: ReplyOpen, result: Result<OpenReply>) {
    let out = result.map(|open| open_out(&open));
    data(reply.into_data(), out.as_ref().map(IntoBytes::as_bytes).map_err(|error| *error));
}

pub(super) fn create(reply: ReplyCreate, result: Result<(EntryReply, OpenReply)>) {
    let out =
        result.map(|(entry, open)| CreateOut { entry: entry_out(&entry), open: open_out(&open) });
    data(reply.into_data(), out.as_ref().map(IntoBytes::as_bytes).map_err(|error| *error));
}

fn open_out(open: &OpenReply) -> OpenOut {
    OpenOut {
        handle: open.handle,
        flags: convert::open_flags(open.options).bits(),
        backing: open.options.backing.map_or(0, BackingId::raw),
    }
}

fn entry_out(entry: &EntryReply) -> EntryOut {
    EntryOut::new(entry.node.raw(), &entry.attr, &entry.lifetimes)
}

/// A listing with attributes. fuser's reply has a second field, so the trick above is none here:
/// the answer goes out past it.
pub(super) fn directory_plus(
    reply: ReplyDirectoryPlus,
    unique: u64,
    shared: &Shared,
    result: Result<&[u8]>,
) {
    match result {
        Ok(bytes) => match shared.device.answer(unique, bytes) {
            // Dropped, it would answer once more.
            Ok(()) => shared.leak.forget(reply),
            // The mount has ended, and dropping it says so in fuser's log.
            Err(error) => tracing::debug!(%error, "a listing could not be answered"),
        },
        Err(error) => reply.error(convert::errno(error)),
    }
}

/// The smallest buffer that the kernel gives a listing: one page.
const LEAST_SIZE: usize = 4096;

/// How many bytes the kernel asked for. fuser keeps that to itself, but not from `Debug`; where it
/// can't be found there, the least is assumed, which is always right and slower.
pub(super) fn requested_size(reply: &ReplyDirectoryPlus) -> usize {
    let mut search = FieldSearch { found: None, next_is_it: false };
    // It ends with an error: as soon as the field is found.
    let _ = write!(search, "{reply:?}");
    search.found.unwrap_or(LEAST_SIZE).max(LEAST_SIZE)
}

/// Reads the number after `max_size: ` and stops.
struct FieldSearch {
    found: Option<usize>,
    next_is_it: bool,
}

impl Write for FieldSearch {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.next_is_it {
            let digits = text.trim_matches([':', ' ']);
            if digits.is_empty() {
                return Ok(());
            }
            self.found = digits.parse().ok();
            return Err(fmt::Error);
        }
        self.next_is_it = text == "max_size";
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_found_in_the_shape_that_fuser_prints() {
        #[derive(Debug)]
        #[allow(dead_code)]
        struct EntListBuf {
            max_size: usize,
            buf: Vec<u8>,
        }
        #[derive(Debug)]
        #[allow(dead_code)]
        struct Reply {
            unique: u64,
            list: Option<EntListBuf>,
        }
        let reply = Reply { unique: 4, list: Some(EntListBuf { max_size: 32768, buf: vec![1] }) };
        let mut search = FieldSearch { found: None, next_is_it: false };
        let _ = write!(search, "{reply:?}");
        assert_eq!(search.found, Some(32768));
    }
}
