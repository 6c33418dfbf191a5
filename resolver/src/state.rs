//! [`State`]: the word that says how a node lives.
//!
//! | bits | what | who changes it |
//! | --- | --- | --- |
//! | 0..48 | lookup count: what the kernel knows of the node | `lookup` adds, `forget` subtracts |
//! | 48, 49 | kind: directory, leaf, unknown | set when the node is made; an unknown one becomes a directory with its first child and a leaf with its second name |
//! | 50 `QUEUED` | in the queue of nodes that may be reclaimed | who finds the count zero; the reclaimer clears it |
//! | 51 `AGAIN` | found zero once more while queued, found by its name, or left by a child: waits for one more grace period | as above, and who finds it or takes the child |
//! | 52 `MOVING` | a transaction has it | that transaction |
//! | 53 `CLOSING` | the reclaimer is looking whether it has children | the reclaimer |
//! | 54 `DEAD` | reclaimed; final | the reclaimer, from count zero |
//! | 55 `LIVE` | the slot holds a node | set when the node is made |
//! | 56 `NAMING` | gets a name and a count for it, which are to be seen together | who gives it, under the node's lock |
//!
//! Zero is a slot that never held a node. Transitions are compare-exchange loops on the whole word,
//! so what they looked at is what they changed. All are AcqRel: who takes the count from zero sees
//! what who brought it there did, and the other way round.

use crate::sync::{AtomicU64, Ordering, spin_loop};

const COUNT: u64 = (1 << 48) - 1;
const DIRECTORY: u64 = 1 << 48;
const LEAF: u64 = 1 << 49;
const QUEUED: u64 = 1 << 50;
const AGAIN: u64 = 1 << 51;
const MOVING: u64 = 1 << 52;
const CLOSING: u64 = 1 << 53;
const DEAD: u64 = 1 << 54;
const LIVE: u64 = 1 << 55;
const NAMING: u64 = 1 << 56;

/// May a node have children?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A directory: it may have children, and has at most one name.
    Directory,
    /// Anything else: it has no children, and may have several names (hard links).
    Leaf,
    /// Not known: treated with the caution that a directory needs, until it has a child (then it is
    /// a directory) or a second name (then it is none).
    Unknown,
}

/// A state as it was at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(u64);

impl Snapshot {
    pub(crate) fn count(self) -> u64 {
        self.0 & COUNT
    }

    pub(crate) fn kind(self) -> Kind {
        match self.0 & (DIRECTORY | LEAF) {
            DIRECTORY => Kind::Directory,
            LEAF => Kind::Leaf,
            _ => Kind::Unknown,
        }
    }

    /// A node, and not a reclaimed one.
    pub(crate) fn alive(self) -> bool {
        self.0 & (LIVE | DEAD) == LIVE
    }

    pub(crate) fn moving(self) -> bool {
        self.0 & MOVING != 0
    }

    pub(crate) fn queued(self) -> bool {
        self.0 & QUEUED != 0
    }

    pub(crate) fn closing(self) -> bool {
        self.0 & CLOSING != 0
    }

    pub(crate) fn may_have_children(self) -> bool {
        self.kind() != Kind::Leaf
    }
}

/// What became of a node that was found unreferenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Queueing {
    /// It is in the queue now: the caller puts it there.
    Enter,
    /// It was in the queue and will stay there for one more grace period; or it isn't unreferenced.
    Nothing,
}

/// What the reclaimer may do with a node whose grace period has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Verdict {
    /// Nobody can need it: it is closing now and waits for `kill` or `reopen`.
    Close,
    /// It is to wait for another grace period (found zero again, or in a transaction).
    Again,
    /// It is referenced, and out of the queue.
    Keep,
}

#[derive(Debug, Default)]
pub(crate) struct State(AtomicU64);

impl State {
    #[inline]
    pub(crate) fn load(&self) -> Snapshot {
        Snapshot(self.0.load(Ordering::Acquire))
    }

    fn update(&self, mut f: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, &mut f)
    }

    /// A new node in a free slot. Only the slot's owner calls this.
    pub(crate) fn init(&self, kind: Kind, count: u64) {
        let kind = match kind {
            Kind::Directory => DIRECTORY,
            Kind::Leaf => LEAF,
            Kind::Unknown => 0,
        };
        self.0.store(LIVE | kind | count.min(COUNT), Ordering::Release);
    }

    /// It has turned out to be of this kind. Answers the kind that it is of now: another one, if that
    /// was known already.
    pub(crate) fn settle(&self, kind: Kind) -> Kind {
        let bit = if kind == Kind::Directory { DIRECTORY } else { LEAF };
        let known = |word| (word & (DIRECTORY | LEAF) == 0).then_some(word | bit);
        match self.update(known) {
            Ok(_) => kind,
            Err(word) => Snapshot(word).kind(),
        }
    }

    /// Counts `by` more lookups; false if the node is dead.
    #[must_use]
    pub(crate) fn count_up(&self, by: u64) -> bool {
        self.update(|word| {
            // A count that would overflow stays at its end: it is never forgotten then, which is
            // safe; 2^48 lookups of one inode take years.
            let count = ((word & COUNT) + by).min(COUNT);
            Snapshot(word).alive().then_some((word & !COUNT) | count)
        })
        .is_ok()
    }

    /// Takes back `by` lookups, or as many as there are.
    ///
    /// Who takes the last while the node gets one more name waits for the moment that this takes: a
    /// count whose name nobody can have seen yet is not to be taken back.
    pub(crate) fn count_down(&self, by: u64) -> Queueing {
        loop {
            let before = self.update(|word| {
                let count = (word & COUNT).saturating_sub(by);
                if !Snapshot(word).alive() || (count == 0 && word & NAMING != 0) {
                    return None;
                }
                let word = (word & !COUNT) | count;
                Some(if count == 0 { queue(word) } else { word })
            });
            match before {
                Ok(word) if (word & COUNT) <= by && word & QUEUED == 0 => return Queueing::Enter,
                Err(word) if Snapshot(word).alive() => spin_loop(),
                _ => return Queueing::Nothing,
            }
        }
    }

    /// The lookup count, with that of a name which is just given if the name can be seen.
    pub(crate) fn settled_count(&self) -> u64 {
        loop {
            let word = self.load();
            if word.0 & NAMING == 0 {
                return word.count();
            }
            spin_loop();
        }
    }

    /// The node is about to get a name that counts so many lookups. Under the node's lock, where it
    /// was found alive, and until `end_naming` there.
    pub(crate) fn begin_naming(&self, count: u64) {
        let _ = self.update(|word| {
            let count = ((word & COUNT) + count).min(COUNT);
            Some((word & !COUNT) | count | NAMING)
        });
    }

    /// It has the name. If that counted none it waits for those who see it now.
    pub(crate) fn end_naming(&self) -> Queueing {
        let before = self.update(|word| {
            let word = word & !NAMING;
            Some(if word & COUNT == 0 { queue(word) } else { word })
        });
        match before {
            Ok(word) if word & (COUNT | QUEUED) == 0 => Queueing::Enter,
            _ => Queueing::Nothing,
        }
    }

    /// Somebody found it by its name and counts nothing: if it is on its way to be reclaimed, it
    /// waits for those who are there now, too. False if it is too late for that.
    #[must_use]
    pub(crate) fn touch(&self) -> bool {
        let word = self.load();
        if !word.alive() || word.closing() {
            return false;
        }
        if word.count() > 0 {
            // It will be queued when it is forgotten, and then waits for those who are there then.
            return true;
        }
        // Also one that isn't queued, a forgotten directory with children: when the last of them
        // goes, `judge_unqueued` must know.
        self.update(|word| {
            let late = !Snapshot(word).alive() || word & CLOSING != 0;
            (!late).then_some(word | AGAIN)
        })
        .is_ok()
    }

    /// A child goes elsewhere, right after this. The child may have been known, and the node needed
    /// for it, until now: whatever keeps the node otherwise, other children for example, it waits for
    /// those who are there now. Also if it is closing, for `kill` to see; its last child's
    /// `reconsider` queues it then.
    pub(crate) fn lose_child(&self) {
        if self.load().count() == 0 {
            let _ = self.update(|word| Snapshot(word).alive().then_some(word | AGAIN));
        }
    }

    /// The node lost a name or a child: if its count is zero it is a candidate now.
    pub(crate) fn reconsider(&self) -> Queueing {
        let before = self.update(|word| {
            let candidate = Snapshot(word).alive() && word & COUNT == 0;
            candidate.then(|| queue(word))
        });
        match before {
            Ok(word) if word & QUEUED == 0 => Queueing::Enter,
            _ => Queueing::Nothing,
        }
    }

    /// Its grace period has ended.
    pub(crate) fn judge(&self) -> Verdict {
        let before = self.update(|word| {
            if !Snapshot(word).alive() || word & CLOSING != 0 {
                None
            } else if word & COUNT != 0 {
                Some(word & !(QUEUED | AGAIN))
            } else if word & (AGAIN | MOVING) != 0 {
                Some(word & !AGAIN)
            } else {
                Some((word | CLOSING) & !QUEUED)
            }
        });
        match before {
            Ok(word) if word & COUNT != 0 => Verdict::Keep,
            Ok(word) if word & (AGAIN | MOVING) != 0 => Verdict::Again,
            Ok(_) => Verdict::Close,
            Err(_) => Verdict::Keep,
        }
    }

    /// For the parent of a node that was reclaimed: as `judge`, but only if it isn't queued. Its
    /// count has been zero for a whole grace period then (see `reclaim.rs`). If somebody has found it
    /// since, it is queued now (`Again`): the caller puts it there.
    pub(crate) fn judge_unqueued(&self) -> Verdict {
        let before = self.update(|word| {
            let candidate =
                Snapshot(word).alive() && word & (COUNT | QUEUED | MOVING | CLOSING) == 0;
            candidate.then_some(if word & AGAIN != 0 {
                (word | QUEUED) & !AGAIN
            } else {
                word | CLOSING
            })
        });
        match before {
            Ok(word) if word & AGAIN != 0 => Verdict::Again,
            Ok(_) => Verdict::Close,
            Err(_) => Verdict::Keep,
        }
    }

    /// From closing to dead, unless it was looked up, queued again or marked meanwhile.
    #[must_use]
    pub(crate) fn kill(&self) -> bool {
        let killed = self.update(|word| {
            (word & (COUNT | QUEUED | MOVING | AGAIN) == 0).then_some((word | DEAD) & !CLOSING)
        });
        if killed.is_err() {
            self.reopen();
        }
        killed.is_ok()
    }

    pub(crate) fn reopen(&self) {
        self.0.fetch_and(!CLOSING, Ordering::AcqRel);
    }

    /// Marks it for a transaction; false if it is dead or another transaction has it.
    #[must_use]
    pub(crate) fn begin_moving(&self) -> bool {
        self.update(|word| {
            let free = Snapshot(word).alive() && word & (MOVING | CLOSING) == 0;
            free.then_some(word | MOVING)
        })
        .is_ok()
    }

    pub(crate) fn end_moving(&self) {
        self.0.fetch_and(!MOVING, Ordering::AcqRel);
    }
}

/// The word of a node that was found unreferenced: queued, or queued again. (Who enters the queue
/// waits for all who are there now, and so for those who marked it before.)
fn queue(word: u64) -> u64 {
    if word & QUEUED == 0 { (word | QUEUED) & !AGAIN } else { word | AGAIN }
}
