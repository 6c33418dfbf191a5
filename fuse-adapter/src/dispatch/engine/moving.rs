//! Operations that take a name away: each is a transaction around the handler's work, so that
//! nobody uses a path meanwhile that is about to become another file's or nobody's.

use pinpath::{Inode, Name, RenameMode};

use super::{Engine, Result, contain};
use crate::errno::Errno;
use crate::handler::{Handler, RenameFlags, Request};
use crate::node::Node;
use crate::operation::Operation;

impl<H: Handler> Engine<H> {
    /// UNLINK.
    pub fn unlink(&self, req: &Request, parent: Inode, name: &Name) -> Result<()> {
        self.remove(Operation::Unlink, parent, name, |node| self.handler.unlink(req, node, name))
    }

    /// RMDIR.
    pub fn rmdir(&self, req: &Request, parent: Inode, name: &Name) -> Result<()> {
        self.remove(Operation::RmDir, parent, name, |node| self.handler.rmdir(req, node, name))
    }

    fn remove(
        &self,
        operation: Operation,
        parent: Inode,
        name: &Name,
        work: impl FnOnce(&Node<'_, H::Data>) -> Result<()>,
    ) -> Result<()> {
        contain(operation, || {
            if !self.own_paths() {
                return work(&self.node(parent));
            }
            let transaction = self.resolver.begin_unlink(parent, name)?;
            work(&self.leased(transaction.parent()))?;
            transaction.commit()?;
            (self.retired)();
            Ok(())
        })
    }

    /// RENAME and RENAME2, `flags` being those of `renameat2(2)`.
    pub fn rename(
        &self,
        req: &Request,
        parent: Inode,
        name: &Name,
        newparent: Inode,
        newname: &Name,
        flags: u32,
    ) -> Result<()> {
        let flags = rename_flags(flags)?;
        contain(Operation::Rename, || {
            if !self.own_paths() {
                return self.handler.rename(
                    req,
                    &self.node(parent),
                    name,
                    &self.node(newparent),
                    newname,
                    flags,
                );
            }
            let mode = if flags.exchange { RenameMode::Exchange } else { RenameMode::Replace };
            let transaction = self.resolver.begin_rename(parent, name, newparent, newname, mode)?;
            let from = self.leased(transaction.parent());
            let to = self.leased(transaction.new_parent());
            self.handler.rename(req, &from, name, &to, newname, flags)?;
            // A whiteout stands under the old name now. Nobody has looked it up yet.
            transaction.commit()?;
            (self.retired)();
            Ok(())
        })
    }
}

/// Flags that are not known are refused rather than ignored: to ignore one can destroy a file.
fn rename_flags(raw: u32) -> Result<RenameFlags> {
    let known = libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE | libc::RENAME_WHITEOUT;
    let flags = RenameFlags {
        no_replace: raw & libc::RENAME_NOREPLACE != 0,
        exchange: raw & libc::RENAME_EXCHANGE != 0,
        whiteout: raw & libc::RENAME_WHITEOUT != 0,
    };
    if raw & !known != 0 || flags.exchange && (flags.no_replace || flags.whiteout) {
        return Err(Errno::EINVAL);
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_contradict_or_are_unknown_are_refused() {
        let (no_replace, exchange, whiteout) =
            (libc::RENAME_NOREPLACE, libc::RENAME_EXCHANGE, libc::RENAME_WHITEOUT);
        assert!(rename_flags(0).is_ok());
        assert!(rename_flags(exchange).unwrap().exchange);
        assert!(rename_flags(no_replace | whiteout).is_ok());
        for bad in [no_replace | exchange, whiteout | exchange, 8, 1 << 31] {
            assert_eq!(rename_flags(bad).unwrap_err(), Errno::EINVAL, "{bad:#x}");
        }
    }
}
