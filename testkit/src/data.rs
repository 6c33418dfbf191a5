//! [`Data`]: what the tests keep beside each inode, an optional identity.

use pinpath::NodeData;

/// The identity of a file, from a tiny alphabet so that identities meet often.
pub type Identity = u8;

/// Node data that is nothing but an optional identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Data(pub Option<Identity>);

impl NodeData for Data {
    type Identity = Identity;

    fn identity(&self) -> Option<&Identity> {
        self.0.as_ref()
    }
}

/// The resolver that the tests run against.
pub type Resolver = pinpath::Resolver<Data>;
