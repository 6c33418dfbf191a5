//! What does a resolution cost while the tree changes?
//!
//! A thousand files, ten to a directory, so that everything fits the caches and what is measured is
//! the disturbance; one more thread renames files, renames the directories at the top, or looks new
//! names up and forgets them, without pause. *Undisturbed* has one more thread too, which computes.

mod common;

use criterion::{Criterion, criterion_group, criterion_main};
use pinpath_benches::cases::churn;
use pinpath_benches::peers::{EasyFuser, Ours};

fn benches(criterion: &mut Criterion) {
    common::bench(criterion, "churn", &churn::cases::<Ours>());
    common::bench(criterion, "churn", &churn::cases::<EasyFuser>());
}

criterion_group!(all, benches);
criterion_main!(all);
