//! The ways that requests take: an inode is resolved, and a fresh name is looked up and forgotten.
//!
//! easy_fuser's `benchmark_request_paths`. One name in the root, so that the resolution is as short as
//! there is; fresh names in one directory, 50,000 a thread at a time, so that it grows to what a large
//! directory holds and no name is met twice.

mod common;

use criterion::{Criterion, criterion_group, criterion_main};
use pinpath_benches::cases::request_paths;

fn benches(criterion: &mut Criterion) {
    common::bench(criterion, "request_paths/resolve", &request_paths::resolve());
    common::bench(criterion, "request_paths/listing", &request_paths::listing());
    let fresh = request_paths::lookup_and_forget();
    common::bench_in_goes(criterion, "request_paths/forget", &fresh, request_paths::MOST);
}

criterion_group!(all, benches);
criterion_main!(all);
