//! Threads that do at random what a mount does, for `PINPATH_STRESS_SECONDS` (3 by default).
//! `PINPATH_STRESS_SEED` chooses what they do.
//!
//! What is checked while they run is what no other thread can excuse: an id that this thread has
//! counted, or holds a pin for, is not stale; a path under a lease stays as it is. At the end
//! everything is forgotten, `validate` must be content, and only the root may be left.

use pinpath::{Inode, Kind, Name, NodeData, PathError, RenameMode, RequestPin, Resolver};
use pinpath_testkit::Data;
use pinpath_testkit::history::settle;
use pinpath_testkit::watchdog::watch;
use proptest::prelude::RngCore;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

const THREADS: usize = 4;

/// The first half is used for directories, the second for leaves, so that a name never changes
/// what it is.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "w", "x", "y", "z"];

/// Work between two looks at the clock and the mailbox.
const ROUND: usize = 200;

/// More ids than this a thread gives back.
const MOST_COUNTED: usize = 40;

fn time() -> Duration {
    let seconds = match std::env::var("PINPATH_STRESS_SECONDS") {
        Ok(seconds) => seconds.parse().expect("PINPATH_STRESS_SECONDS is a number"),
        Err(_) => 3.0,
    };
    Duration::from_secs_f64(seconds)
}

/// What one thread's random choices come from.
fn random(thread: usize) -> TestRng {
    let seed: u64 = match std::env::var("PINPATH_STRESS_SEED") {
        Ok(seed) => seed.parse().expect("PINPATH_STRESS_SEED is a number"),
        Err(_) => 1,
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..].copy_from_slice(&(thread as u64 + 1).to_le_bytes());
    TestRng::from_seed(RngAlgorithm::XorShift, &bytes)
}

/// A pin, and an id that was reachable when it was begun.
type Parcel = (RequestPin, Inode);

/// Which changes of the namespace does a test make?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changes {
    /// The plain verbs, as if the backend had been changed by somebody else.
    Plain,
    /// Transactions only, so that leases promise something.
    Transactions,
}

/// Locks of directories, as the kernel takes them: nobody looks a name up, or changes it, while
/// another change of a name in that directory is under way. Transactions rely on it.
#[derive(Default)]
struct DirectoryLocks([RwLock<()>; 16]);

impl DirectoryLocks {
    fn index(&self, directory: Inode) -> usize {
        directory.raw() as usize % self.0.len()
    }

    fn lookup(&self, directory: Inode) -> RwLockReadGuard<'_, ()> {
        self.0[self.index(directory)].read().expect("no panic")
    }

    fn change(&self, a: Inode, b: Inode) -> Vec<RwLockWriteGuard<'_, ()>> {
        let indices = BTreeSet::from([self.index(a), self.index(b)]);
        indices.into_iter().map(|index| self.0[index].write().expect("no panic")).collect()
    }
}

struct Worker<'r> {
    resolver: &'r Resolver,
    directories: &'r DirectoryLocks,
    random: TestRng,
    /// Ids with the lookups that this thread counted, and may forget.
    counted: BTreeMap<Inode, (Kind, u64)>,
    /// Ids that this thread has met, and that may have been kept by something else since.
    met: BTreeSet<Inode>,
    next_worker: Sender<Parcel>,
    mail: Receiver<Parcel>,
    changes: Changes,
    done: u64,
}

/// A place: a directory and the index of a name.
type Place = (Inode, usize);

fn name(index: usize) -> &'static Name {
    Name::new(NAMES[index]).expect("these are names")
}

fn kind(index: usize) -> Kind {
    if index < NAMES.len() / 2 { Kind::Directory } else { Kind::Leaf }
}

impl Worker<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.random.next_u32() as usize % end
    }

    fn counted(&mut self) -> Inode {
        let index = self.below(self.counted.len() + 1);
        self.counted.keys().nth(index).copied().unwrap_or(Inode::ROOT)
    }

    fn place(&mut self) -> Place {
        let directories = self.counted.iter().filter(|(_, (kind, _))| *kind == Kind::Directory);
        let directories: Vec<Inode> = directories.map(|(inode, _)| *inode).collect();
        let index = self.below(directories.len() + 2);
        let directory = directories.get(index).copied().unwrap_or(Inode::ROOT);
        (directory, self.below(NAMES.len()))
    }

    /// Another place for what is at `place`: a name of the same half.
    fn place_like(&mut self, (_, index): Place) -> Place {
        let (directory, other) = self.place();
        let half = NAMES.len() / 2;
        (directory, other % half + index / half * half)
    }

    fn run(&mut self, end: Instant) {
        while Instant::now() < end {
            let _watched = watch("a round of the stress test".to_owned());
            for _ in 0..ROUND {
                self.step();
                self.done += 1;
            }
            while let Ok((pin, inode)) = self.mail.try_recv() {
                self.not_stale(inode, "a pin is held");
                drop(pin);
            }
            self.met.retain(|inode| self.resolver.lookup_count(*inode).is_some());
        }
        self.forget_all();
    }

    fn step(&mut self) {
        if self.counted.len() > MOST_COUNTED {
            self.forget_some();
        }
        match self.below(100) {
            0..30 => self.lookup(),
            30..45 => self.forget_some(),
            45..65 => self.change(),
            65..80 => self.read(),
            80..90 => self.lease(),
            90..95 => self.link(),
            95..98 => self.send_pin(),
            _ => _ = self.resolver.reclaim(),
        }
    }

    fn lookup(&mut self) {
        let (parent, index) = self.place();
        let inode = self.look_up(parent, index);
        self.counted.entry(inode).or_insert((kind(index), 0)).1 += 1;
        self.met.insert(inode);
    }

    fn look_up(&self, parent: Inode, index: usize) -> Inode {
        let _locked = self.directories.lookup(parent);
        let inode = self.resolver.lookup(parent, name(index), kind(index), ());
        inode.expect("its parent is a directory that this thread has counted, or the root")
    }

    fn forget_some(&mut self) {
        let inode = self.counted();
        let Some((_, count)) = self.counted.get_mut(&inode) else { return };
        let some = 1 + u64::from(self.random.next_u32()) % *count;
        *count -= some;
        if *count == 0 {
            self.counted.remove(&inode);
        }
        self.resolver.forget(inode, some);
    }

    fn read(&mut self) {
        let inode = self.counted();
        self.not_stale(inode, "it is counted");
        for path in self.resolver.paths(inode) {
            let depth = path.iter().count();
            assert!(depth > 0 || inode == Inode::ROOT, "only the root has an empty path");
        }
    }

    fn not_stale(&self, inode: Inode, why: &str) {
        let path = self.resolver.path(inode);
        assert_ne!(path, Err(PathError::Stale(inode)), "but {why}");
    }

    fn link(&mut self) {
        let inode = self.counted();
        let (parent, index) = self.place();
        let leaf = matches!(self.counted.get(&inode), Some((Kind::Leaf, _)));
        // Under leases a name is not taken from another node: the kernel doesn't do that.
        let taken = self.changes == Changes::Transactions;
        if leaf && kind(index) == Kind::Leaf && !taken {
            self.resolver.link(inode, parent, name(index)).expect("both are counted");
            self.counted.entry(inode).and_modify(|(_, count)| *count += 1);
        }
    }

    fn change(&mut self) {
        let from = self.place();
        let to = self.place_like(from);
        match self.changes {
            Changes::Plain => self.change_plainly(from, to),
            Changes::Transactions => self.transact(from, to),
        }
    }

    fn change_plainly(&mut self, from: Place, to: Place) {
        // A cycle is the only thing that can be wrong with it.
        let (from_name, to_name) = (name(from.1), name(to.1));
        match self.below(4) {
            0 => drop(self.resolver.unlink(from.0, from_name).expect("the parent is counted")),
            1 => drop(self.resolver.exchange(from.0, from_name, to.0, to_name)),
            _ => drop(self.resolver.rename(from.0, from_name, to.0, to_name)),
        }
    }

    fn transact(&mut self, from: Place, to: Place) {
        let (from_name, to_name) = (name(from.1), name(to.1));
        let directories = self.directories;
        let _locked = directories.change(from.0, to.0);
        let transaction = match self.below(4) {
            0 => self.resolver.begin_unlink(from.0, from_name),
            n => {
                let mode = if n == 1 { RenameMode::Exchange } else { RenameMode::Replace };
                self.resolver.begin_rename(from.0, from_name, to.0, to_name, mode)
            }
        };
        let Ok(transaction) = transaction else { return };
        let parent = transaction.parent().path();
        let source = transaction.source().map(|source| (source, self.resolver.path(source)));
        if self.random.next_u32() % 2 == 0 {
            std::thread::yield_now();
        }
        assert_eq!(transaction.parent().path(), parent, "the parent is leased");
        if let Some((source, path)) = source {
            assert_eq!(self.resolver.path(source), path, "nobody else moves what is marked");
        }
        if self.random.next_u32() % 4 > 0 {
            transaction.commit().expect("what could be begun can be committed");
        }
    }

    fn lease(&mut self) {
        let inode = self.counted();
        let Ok(lease) = self.resolver.lease(inode) else { return };
        // It may be that there is none: a directory above was removed before.
        let path = lease.path();
        if self.changes == Changes::Plain {
            return;
        }
        for _ in 0..self.random.next_u32() % 4 {
            std::thread::yield_now();
            assert_eq!(lease.path(), path, "the path under a lease stays");
        }
        assert_eq!(self.resolver.path(inode), path, "and so it is without asking the lease");
    }

    /// Begins a pin, reaches a node under it, gives up every count of it, and leaves the pin to
    /// another thread.
    fn send_pin(&mut self) {
        let pin = self.resolver.pin();
        let (parent, index) = self.place();
        let inode = self.look_up(parent, index);
        self.resolver.forget(inode, 1);
        self.met.insert(inode);
        // The other end hangs up only when all is over.
        let _ = self.next_worker.send((pin, inode));
    }

    fn forget_all(&mut self) {
        let counted = std::mem::take(&mut self.counted);
        self.resolver.forget_batch(counted.into_iter().map(|(inode, (_, count))| (inode, count)));
    }
}

fn stress(changes: Changes) {
    let resolver: Resolver = Resolver::new(());
    let directories = DirectoryLocks::default();
    let end = Instant::now() + time();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    let (done, met) = std::thread::scope(|scope| {
        let worker = |(number, mail): (usize, Receiver<Parcel>)| {
            let next_worker = senders[(number + 1) % THREADS].clone();
            let (resolver, directories) = (&resolver, &directories);
            scope.spawn(move || {
                let random = random(number);
                let (counted, met) = (BTreeMap::new(), BTreeSet::new());
                let mut worker = Worker {
                    resolver,
                    directories,
                    random,
                    counted,
                    met,
                    next_worker,
                    mail,
                    changes,
                    done: 0,
                };
                worker.run(end);
                (worker.done, worker.met, worker.mail)
            })
        };
        let threads: Vec<_> = receivers.into_iter().enumerate().map(worker).collect();
        let results: Vec<_> = threads.into_iter().map(|t| t.join().expect("its panic")).collect();
        let done: u64 = results.iter().map(|(done, ..)| done).sum();
        // Pins still in the mail are dropped here, on yet another thread.
        let met: BTreeSet<Inode> = results.into_iter().flat_map(|(_, met, _mail)| met).collect();
        (done, met)
    });
    println!("{changes:?}: {done} operations");
    assert!(done > 0);
    wind_down(&resolver, &met);
}

/// Takes away the last things that keep a node, known hard links, and looks that nothing is left.
/// They may be in directories that were themselves removed, so `met` tells where to look.
fn wind_down<D: NodeData>(resolver: &Resolver<D>, met: &BTreeSet<Inode>) {
    resolver.validate().expect("the table is sound");
    for directory in [Inode::ROOT].iter().chain(met) {
        for index in 0..NAMES.len() {
            // Stale, no directory, or no such name: then there is nothing to take away.
            let _ = resolver.unlink(*directory, name(index));
        }
    }
    settle(resolver);
    resolver.validate().expect("the table is sound");
    let stats = resolver.stats();
    assert_eq!((stats.nodes, stats.links, stats.retired, stats.leases), (1, 0, 0, 0), "{stats:?}");
}

#[test]
fn plain_changes_and_pins_that_end_elsewhere() {
    stress(Changes::Plain);
}

#[test]
fn leases_and_transactions() {
    stress(Changes::Transactions);
}

/// A node that is being reclaimed still has a name for a moment, and just then the name is changed.
#[test]
fn names_of_forgotten_nodes_against_reclamation() {
    let resolver: Resolver = Resolver::new(());
    let end = Instant::now() + time() / 2;
    let until_end = |act: &(dyn Fn(usize) + Sync)| {
        for round in 0.. {
            act(round);
            if round % 256 == 0 && Instant::now() >= end {
                break;
            }
        }
    };
    let _watched = watch("names of forgotten nodes".to_owned());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until_end(&|round| {
                let index = round % NAMES.len();
                let inode = resolver.lookup(Inode::ROOT, name(index), kind(index), ()).unwrap();
                resolver.forget(inode, 1);
            });
        });
        scope.spawn(|| {
            until_end(&|round| {
                let (a, b) = (round % NAMES.len(), round * 3 % NAMES.len());
                match round % 3 {
                    0 => drop(resolver.unlink(Inode::ROOT, name(a)).unwrap()),
                    1 => resolver.rename(Inode::ROOT, name(a), Inode::ROOT, name(b)).unwrap(),
                    _ => resolver.exchange(Inode::ROOT, name(a), Inode::ROOT, name(b)).unwrap(),
                }
            });
        });
        scope.spawn(|| until_end(&|_| _ = resolver.reclaim()));
    });
    wind_down(&resolver, &BTreeSet::new());
}

/// One thread of the test below, and the ids that it has counted once for each time they stand here.
struct Meeting<'r> {
    resolver: &'r Resolver<Data>,
    random: TestRng,
    counted: Vec<Inode>,
    met: BTreeSet<Inode>,
}

impl Meeting<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.random.next_u32() as usize % end
    }

    fn some(&mut self) -> Inode {
        let index = self.below(self.counted.len() + 2);
        self.counted.get(index).copied().unwrap_or(Inode::ROOT)
    }

    fn place(&mut self) -> (Inode, &'static Name) {
        (self.some(), name(self.below(NAMES.len())))
    }

    /// What is found under a name: any file of a few, whose kind goes with its identity or isn't
    /// known.
    fn meet(&mut self) {
        let (parent, name) = self.place();
        let identity = self.below(8);
        let kind = [kind(identity), Kind::Unknown][self.below(4) / 3];
        let identity = Some(identity as u8).filter(|_| self.below(8) > 0);
        // Errors: no directory, or a directory known elsewhere, or one that would be below itself.
        if let Ok(inode) = self.resolver.lookup(parent, name, kind, Data(identity)) {
            self.counted.push(inode);
            self.met.insert(inode);
        }
    }

    fn forget(&mut self) {
        if self.counted.is_empty() {
            return;
        }
        let index = self.below(self.counted.len());
        self.resolver.forget(self.counted.swap_remove(index), 1);
    }

    fn change(&mut self) {
        let ((a, x), (b, y)) = (self.place(), self.place());
        // Errors: no directory, or a cycle.
        match self.below(4) {
            0 => drop(self.resolver.unlink(a, x)),
            1 => drop(self.resolver.exchange(a, x, b, y)),
            _ => drop(self.resolver.rename(a, x, b, y)),
        }
    }

    fn link(&mut self) {
        let inode = self.some();
        let (parent, name) = self.place();
        if self.resolver.link(inode, parent, name).is_ok() {
            self.counted.push(inode);
        }
    }

    fn step(&mut self) {
        match self.below(100) {
            0..35 => self.meet(),
            35..65 => self.forget(),
            65..80 => self.change(),
            80..85 => self.link(),
            85..98 => {
                let inode = self.some();
                let path = self.resolver.path(inode);
                assert_ne!(path, Err(PathError::Stale(inode)), "but it is counted");
                drop(self.resolver.paths(inode));
            }
            98 => _ = self.resolver.prune(),
            _ => _ = self.resolver.reclaim(),
        }
        if self.counted.len() > MOST_COUNTED {
            self.forget();
        }
    }
}

/// The same few files are met under many names, while those are changed and their nodes go.
#[test]
fn identities_met_under_changing_names() {
    let resolver: Resolver<Data> = Resolver::new(Data(None));
    let end = Instant::now() + time();
    let run = |number| {
        let (counted, met) = (Vec::new(), BTreeSet::new());
        let mut meeting = Meeting { resolver: &resolver, random: random(number), counted, met };
        let mut done = 0;
        while Instant::now() < end {
            let _watched = watch("a round of meetings".to_owned());
            (0..ROUND).for_each(|_| meeting.step());
            done += ROUND;
            meeting.met.retain(|inode| resolver.lookup_count(*inode).is_some());
        }
        resolver.forget_batch(meeting.counted.into_iter().map(|inode| (inode, 1)));
        (done, meeting.met)
    };
    let results: Vec<(usize, BTreeSet<Inode>)> = std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || run(n))).collect();
        threads.into_iter().map(|thread| thread.join().expect("its panic")).collect()
    });
    println!("identities: {} operations", results.iter().map(|(done, _)| done).sum::<usize>());
    wind_down(&resolver, &results.into_iter().flat_map(|(_, met)| met).collect());
}
