//! Trees of any size, the same in every table.

use std::ffi::OsString;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

use crate::peers::Table;

/// A name of 16 bytes.
pub fn name(number: usize) -> OsString {
    format!("name-{number:011}").into()
}

/// Makes `files` files, each so many components deep (three or more), and answers them. Directories
/// have as many entries as there are directories beside each other: the cube root of `files`. Deeper
/// trees have one chain of directories above that.
pub fn build<T: Table>(table: &T, files: usize, depth: usize) -> Vec<u64> {
    let width = (1..).find(|width| width * width * width >= files).expect("small enough");
    let top = (3..depth).fold(1, |above, level| table.lookup(above, &name(level), true));
    let mut all = Vec::with_capacity(files);
    'full: for upper in 0..width {
        let upper = table.lookup(top, &name(upper), true);
        for lower in 0..width {
            let lower = table.lookup(upper, &name(lower), true);
            for file in 0..width {
                if all.len() == files {
                    break 'full;
                }
                all.push(table.lookup(lower, &name(file), false));
            }
        }
    }
    all
}

/// Which files are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popularity {
    /// All alike: the caches of the CPU help least.
    Uniform,
    /// Few of them most of the time, as in real trees (exponent 1).
    Zipf,
}

/// A long sequence of files as they are asked for, the same for every table.
pub fn requests(files: &[u64], popularity: Popularity, length: usize) -> Vec<u64> {
    let mut random = SmallRng::seed_from_u64(7);
    let count = files.len();
    let zipf = Zipf::new(count as f64, 1.0).expect("a positive number of files");
    let mut next = || match popularity {
        Popularity::Uniform => random.random_range(0..count),
        Popularity::Zipf => {
            let rank = zipf.sample(&mut random) as usize - 1;
            // Popular files are everywhere in the tree: a multiplication by a prime that does not
            // divide the number of files is a permutation.
            rank * 7_368_787 % count
        }
    };
    (0..length).map(|_| files[next()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::{Dash, EasyFuser, HashMaps, Ours};

    fn paths<T: Table>() -> Vec<std::path::PathBuf> {
        let table = T::new();
        let files = build(&table, 30, 5);
        files.iter().map(|file| table.path(*file)).collect()
    }

    #[test]
    fn all_tables_hold_the_same_tree() {
        let ours = paths::<Ours>();
        assert_eq!(ours.len(), 30);
        assert!(ours.iter().all(|path| path.components().count() == 5));
        assert_eq!(ours, paths::<EasyFuser>());
        assert_eq!(ours, paths::<HashMaps>());
        assert_eq!(ours, paths::<Dash>());
    }

    #[test]
    fn zipf_asks_for_few_most_of_the_time() {
        let files: Vec<u64> = (0..1000).collect();
        let most = |popularity| {
            let mut counts = vec![0; 1000];
            requests(&files, popularity, 10_000)
                .iter()
                .for_each(|file| counts[*file as usize] += 1);
            *counts.iter().max().expect("a thousand")
        };
        assert!(most(Popularity::Zipf) > 10 * most(Popularity::Uniform));
    }
}
