//! Prints the bytes an inode of each table, for the report: it needs a program of its own, because the
//! allocator that counts would slow down what the report times.

use pinpath_benches::memory::{Counting, per_inode, per_inode_with_path};
use pinpath_benches::peers::{Dash, EasyFuser, HashMaps, Ours};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FILES: usize = 1_000_000;

fn main() {
    println!("pinpath\t{:.1}", per_inode::<Ours>(FILES));
    println!("pinpath, path kept\t{:.1}", per_inode_with_path(FILES));
    println!("easy_fuser\t{:.1}", per_inode::<EasyFuser>(FILES));
    println!("RwLock<HashMap>\t{:.1}", per_inode::<HashMaps>(FILES));
    println!("dashmap\t{:.1}", per_inode::<Dash>(FILES));
}
