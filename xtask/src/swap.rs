//! Puts our resolver in the place of easy_fuser's.
//!
//! Each place is found by a line of the original that must be there once; another version of
//! easy_fuser fails here, and not with a backend that is half swapped.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::source::{Copies, append};

// A request gets the resolver lent, by its pin, where the original clones an `Arc`: in the driver,
// and in the tests and benchmarks, which do as the driver does.
const CLONED: &str = "RequestResolver::new(resolver.clone())";
const LENT: &str = "RequestResolver::new(&resolver)";
const CLONED_BY_DRIVER: &str = "RequestResolver::new(self.resolver.clone())";
const LENT_BY_DRIVER: &str = "RequestResolver::new(&self.resolver)";

pub(crate) fn swap(copies: &Copies) -> Result<()> {
    let crate_ = &copies.swapped;
    let ours = copies.repository.join("xtask/replacement/resolver.rs");
    let ours = fs::read_to_string(&ours)?;
    // The implementation, but not the tests and benchmarks after it.
    edit(&crate_.join("src/inode_mapping/resolver.rs"), |theirs| {
        let tests = once(theirs, "\n#[cfg(test)]\nmod tests {")?;
        Ok(format!("{ours}{}", &theirs[tests..].replace(CLONED, LENT)))
    })?;
    // The driver's one place where a request gets the resolver.
    edit(&crate_.join("templates/fuse_driver.rs.j2"), |theirs| {
        once(theirs, CLONED_BY_DRIVER)?;
        Ok(theirs.replace(CLONED_BY_DRIVER, LENT_BY_DRIVER))
    })?;
    // `MappedInode` holds the table, so it comes with the resolver.
    edit(&crate_.join("src/types/file_id_type.rs"), |theirs| {
        let before = once(theirs, "\npub struct MappedInode {")?;
        // With the attributes and comments that stand on it.
        let before = theirs[..before].rfind("}\n\n").context("nothing before MappedInode")? + 2;
        let after = once(theirs, "\nimpl FileIdType for MappedInode {")?;
        let ours = "\npub use crate::inode_mapping::MappedInode;\n";
        Ok(format!("{}{ours}{}", &theirs[..before], &theirs[after..]))
    })?;
    edit(&crate_.join("src/inode_mapping.rs"), |theirs| {
        once(theirs, "\nmod resolver;")?;
        Ok(format!("{theirs}pub use resolver::MappedInode;\n"))
    })?;
    let pinpath = copies.repository.join("resolver");
    let dependency = format!("\n[dependencies.pinpath]\npath = {:?}\n", pinpath.display());
    append(&crate_.join("Cargo.toml"), &dependency)
}

fn edit(file: &Path, change: impl FnOnce(&str) -> Result<String>) -> Result<()> {
    let old = fs::read_to_string(file)?;
    let new = change(&old).with_context(|| format!("{} is not as expected", file.display()))?;
    Ok(fs::write(file, new)?)
}

/// Where a text is that is there once.
fn once(text: &str, wanted: &str) -> Result<usize> {
    let mut places = text.match_indices(wanted);
    let (place, _) = places.next().with_context(|| format!("there is no {wanted:?}"))?;
    ensure!(places.next().is_none(), "there is more than one {wanted:?}");
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::once;

    #[test]
    fn a_text_that_is_missing_or_ambiguous_is_an_error() {
        assert_eq!(once("a b c", "b").unwrap(), 2);
        assert!(once("a c", "b").is_err());
        assert!(once("a b b", "b").is_err());
    }
}
