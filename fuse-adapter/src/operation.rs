//! The operations by name, and which of them may take long by their nature.

macro_rules! operations {
    ($($name:ident,)*) => {
        /// Every operation that a handler can be asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs)] // each is the handler's method of the same name
        pub enum Operation {
            $($name,)*
        }

        impl Operation {
            /// All of them, in the order of their declaration.
            pub const ALL: &[Operation] = &[$(Operation::$name,)*];
        }
    };
}

operations! {
    Lookup, Forget, GetAttr, SetAttr, ReadLink, MkNod, MkDir, Unlink, RmDir, SymLink, Rename, Link,
    Open, Create, Read, Write, Flush, Release, FSync, OpenDir, ReadDir, ReadDirPlus, ReleaseDir,
    FSyncDir, StatFs, SetXAttr, GetXAttr, ListXAttr, RemoveXAttr, Access, GetLk, SetLk, SetLkWait,
    BMap, IoCtl, Poll, FAllocate, LSeek, CopyFileRange,
}

/// Who should run an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It is short: running it where it was read costs less than handing it over.
    Short,
    /// It may block (a lock, a sync, a slow backend): it must not keep a reader from reading.
    MayBlock,
}

impl Operation {
    /// What is true of most filesystems.
    pub const fn class(self) -> Class {
        match self {
            Operation::SetLkWait
            | Operation::FSync
            | Operation::FSyncDir
            | Operation::CopyFileRange
            | Operation::FAllocate
            | Operation::IoCtl => Class::MayBlock,
            _ => Class::Short,
        }
    }

    /// Does it end something (an open file, a lock that is held) for which others may be waiting?
    pub(crate) const fn ends_something(self) -> bool {
        matches!(self, Operation::Flush | Operation::Release | Operation::ReleaseDir)
    }
}
