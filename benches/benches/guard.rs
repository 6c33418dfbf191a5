//! What does it cost to keep a mapping alive and turn an inode into a path?
//!
//! The pin alone; then components, an owned `PathBuf`, a borrowed path, `paths()`, `parts_paths()` and
//! the making of a `MappedInode`, each guarded and unguarded, beside easy_fuser and plain maps, on 1, 2,
//! 4, 8 threads and as many as there are CPUs. The file is `alpha/beta/file`: easy_fuser's
//! `benchmark_id_resolution_costs` has the same, so its published figures can be compared.

mod common;

use criterion::{Criterion, criterion_group, criterion_main};
use pinpath_benches::cases::guard;

fn benches(criterion: &mut Criterion) {
    common::bench(criterion, "guard/alone", &guard::alone());
    common::bench(criterion, "guard/components", &guard::components());
    common::bench(criterion, "guard/PathBuf", &guard::owned());
    common::bench(criterion, "guard/borrowed path", &guard::borrowed());
    common::bench(criterion, "guard/paths", &guard::paths());
    common::bench(criterion, "guard/MappedInode", &guard::mapped());
}

criterion_group!(all, benches);
criterion_main!(all);
