//! Comparing all that a resolver and an oracle can be asked. Only for a resolver at rest.

use crate::OwnedName;
use crate::Resolver;
use crate::op::NAMES;
use crate::oracle::{Oracle, Place};
use pinpath::{Inode, Name};
use std::fmt::Debug;

/// Compares how much there is, and, if `everything`, every node, name and path.
///
/// # Errors
/// The first difference.
pub fn compare(resolver: &Resolver, oracle: &Oracle, everything: bool) -> Result<(), String> {
    let stats = resolver.stats();
    same("nodes", &stats.nodes, &oracle.nodes().count())?;
    same("links", &stats.links, &oracle.links())?;
    if everything {
        for (inode, _) in oracle.nodes() {
            compare_node(resolver, oracle, inode)?;
        }
    }
    Ok(())
}

fn compare_node(resolver: &Resolver, oracle: &Oracle, inode: Inode) -> Result<(), String> {
    let what = |what: &str| format!("{what} of {inode:?}");
    same(&what("lookup count"), &resolver.lookup_count(inode), &oracle.lookup_count(inode))?;
    same(&what("paths"), &resolver.paths(inode), &oracle.paths(inode))?;
    same(&what("parts_paths"), &resolver.parts_paths(inode), &oracle.parts_paths(inode))?;
    let path = oracle.path(inode);
    // Twice: the second is perhaps answered from what the first has kept.
    for _ in 0..2 {
        same(&what("path"), &resolver.path(inode), &path)?;
    }
    same(&what("with_path"), &resolver.with_path(inode, |path| path.to_owned()), &path)?;
    let mut buffer = b"left over".to_vec();
    let into = resolver.path_into(inode, &mut buffer).map(|()| buffer);
    let bytes = path.clone().map(|path| path.into_os_string().into_encoded_bytes());
    same(&what("path_into"), &into, &bytes)?;
    let mapped = resolver.mapped(inode);
    same(&what("mapped path"), &mapped.path(), &path)?;
    same(&what("mapped paths"), &mapped.paths(), &oracle.paths(inode))?;
    let identity = resolver.with_data(inode, |data| data.0);
    same(&what("identity"), &identity, &oracle.node(inode).map(|node| node.identity))?;
    for bytes in NAMES {
        let name = Name::new(bytes).expect("the alphabet is made of names");
        let place = Place { parent: inode, name: OwnedName::new(name) };
        same(&format!("what is at {place:?}"), &resolver.peek(inode, name), &oracle.peek(&place))?;
    }
    Ok(())
}

fn same<T: PartialEq + Debug>(what: &str, resolver: &T, oracle: &T) -> Result<(), String> {
    if resolver == oracle {
        return Ok(());
    }
    Err(format!("{what} is {resolver:?} instead of {oracle:?}"))
}
