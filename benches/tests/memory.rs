//! What a known inode costs in memory, by the count of the allocator, as of malloc's chunks.
//!
//! The bars are those that the project set itself: libfuse takes 150 to 175 bytes, mergerfs 137,
//! easy_fuser 412 to 547. The count does not depend on the machine, so it is asserted here.

use pinpath_benches::memory::{Counting, per_inode, per_inode_with_path};
use pinpath_benches::peers::Ours;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FILES: usize = 1_000_000;

// One test: two at a time would count each other's memory.
#[test]
fn bytes_per_inode() {
    let alone = per_inode::<Ours>(FILES);
    assert!(alone <= 128.0, "{alone:.1} bytes an inode");
    let with_path = per_inode_with_path(FILES);
    assert!(with_path <= 224.0, "{with_path:.1} bytes an inode with its path kept");
    assert!(with_path > alone + 50.0, "paths were kept: {with_path:.1} after {alone:.1}");
    println!("{alone:.1} bytes an inode, {with_path:.1} with its path kept");
}
