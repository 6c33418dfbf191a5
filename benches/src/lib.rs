//! Benchmarks of pinpath, one question a file, in `benches/`. `cargo bench -p pinpath-benches`.
