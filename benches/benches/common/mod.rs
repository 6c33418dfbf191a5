//! The cases of `pinpath_benches::cases`, as criterion wants them.

use criterion::{BenchmarkId, Criterion, Throughput};
use pinpath_benches::alternate::Case;
use pinpath_benches::threads;

/// Measures each case at each number of threads, all threads taken together: an element is one
/// operation, and an iteration is one on every thread.
pub(crate) fn bench(criterion: &mut Criterion, group: &str, cases: &[Case]) {
    bench_in_goes(criterion, group, cases, u64::MAX);
}

/// The same for cases that prepare something for each iteration.
#[allow(dead_code)] // by some of the files only
pub(crate) fn bench_in_goes(criterion: &mut Criterion, group: &str, cases: &[Case], most: u64) {
    let mut group = criterion.benchmark_group(group);
    for threads in threads::counts() {
        group.throughput(Throughput::Elements(threads as u64));
        for case in cases {
            group.bench_function(BenchmarkId::new(&case.name, threads), |bencher| {
                bencher.iter_custom(|iterations| case.run_in_goes(threads, iterations, most));
            });
        }
    }
    group.finish();
}
