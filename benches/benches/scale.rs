//! Does a resolution cost the same among a thousand inodes and among ten million?
//!
//! 10^3 to 10^7 files, three or thirty components deep, asked for uniformly and by Zipf's law. A
//! thousand files fit the nearest cache of a CPU and ten million fit none.
//!
//! Ten million take 1 GiB here and 6 GiB in easy_fuser, so this stops at 10^6 unless
//! `PINPATH_BENCH_FILES` says otherwise.

mod common;

use criterion::{Criterion, criterion_group, criterion_main};
use pinpath_benches::cases::scale::Grown;
use pinpath_benches::peers::{EasyFuser, Ours};
use pinpath_benches::tree::Popularity;

fn benches(criterion: &mut Criterion) {
    let most = std::env::var("PINPATH_BENCH_FILES").ok().and_then(|most| most.parse().ok());
    // `cargo test` runs each once: a small tree does.
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let most = most.unwrap_or(if measuring { 1_000_000 } else { 1000 });
    for depth in [3, 30] {
        let sizes = (3..=7).map(|power| 10_usize.pow(power)).take_while(|size| *size <= most);
        for files in sizes {
            let (ours, easy_fuser) =
                (Grown::<Ours>::new(files, depth), Grown::<EasyFuser>::new(files, depth));
            for popularity in [Popularity::Uniform, Popularity::Zipf] {
                let cases = [ours.case(popularity), easy_fuser.case(popularity)];
                let group = format!("scale/{files} files, depth {depth}, {popularity:?}");
                common::bench(criterion, &group, &cases);
            }
        }
    }
}

criterion_group!(all, benches);
criterion_main!(all);
