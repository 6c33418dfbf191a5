//! [`Readers`]: who reads requests, who works on one, who is spare.
//!
//! fuser's event loops own the reading, so a spare reader can't wait beside them. It waits inside its
//! last request's callback, which has been answered: returning from it is what makes it read. There
//! are a few more event loops than are wanted to read at once; once each has had a request, those
//! that are too many park. When the supervisor sees that one of the others is stuck in a handler it
//! wakes a spare one in its place; the stuck one parks when it comes back.
//!
//! A handler runs on a reader only while somebody is spare (parked, or not yet asked for anything).
//! The last spare that is woken therefore hands everything over, and comes back to read whatever the
//! handlers do.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::busy::{Busy, Seen};

pub(super) struct Readers {
    cells: Vec<Busy>,
    /// How many should read at once.
    wanted: usize,
    /// Those that are in no handler for certain. Written under `room`, read for every request.
    spare: AtomicUsize,
    room: Mutex<Room>,
    wake: Condvar,
}

struct Room {
    /// Event loops that have had a request.
    seated: usize,
    /// Neither parked nor known to be stuck.
    reading: usize,
    parked: usize,
    /// Parked ones that have been told to go on.
    called: usize,
    /// An event loop has ended: all shall.
    ending: bool,
}

/// How many readers are at what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderStats {
    /// Reading, or busy with a request.
    pub reading: usize,
    /// Spare: they take over when others are stuck.
    pub parked: usize,
    /// Stuck in a handler.
    pub stuck: usize,
}

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// An event loop's place. Ends with its thread.
struct Seat {
    readers: Arc<Readers>,
    index: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.readers.room().ending = true;
        self.readers.wake.notify_all();
    }
}

impl Readers {
    pub(super) fn new(wanted: usize, spares: usize) -> Arc<Self> {
        let all = wanted + spares;
        Arc::new(Readers {
            cells: (0..all).map(|_| Busy::default()).collect(),
            wanted,
            spare: AtomicUsize::new(all),
            room: Mutex::new(Room { seated: 0, reading: all, parked: 0, called: 0, ending: false }),
            wake: Condvar::new(),
        })
    }

    /// How many event loops it takes.
    pub(super) fn count(&self) -> usize {
        self.cells.len()
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_spare(&self, room: &Room) {
        // Relaxed: who is woken reads it after taking the same lock. Another reader that sees an old
        // number may run a handler although nobody is spare by now; but then the last one woken
        // saw the new one, and it is that one which stays free.
        self.spare.store(self.cells.len() - room.seated + room.parked, Ordering::Relaxed);
    }

    /// The cell of the calling event loop; `None` for a thread that is none.
    pub(super) fn here(self: &Arc<Self>) -> Option<&Busy> {
        let index = SEAT.with(|seat| {
            let mut seat = seat.try_borrow_mut().ok()?;
            match &*seat {
                Some(seat) if Arc::ptr_eq(&seat.readers, self) => Some(seat.index),
                _ => {
                    let taken = self.sit()?;
                    *seat = Some(taken);
                    seat.as_ref().map(|seat| seat.index)
                }
            }
        });
        index.map(|index| &self.cells[index])
    }

    fn sit(self: &Arc<Self>) -> Option<Seat> {
        let mut room = self.room();
        if room.seated == self.cells.len() {
            return None;
        }
        let index = room.seated;
        room.seated += 1;
        self.set_spare(&room);
        self.cells[index].adopt();
        Some(Seat { readers: self.clone(), index })
    }

    /// May a reader run a handler, and another one read meanwhile, whatever happens?
    pub(super) fn has_spare(&self) -> bool {
        self.spare.load(Ordering::Relaxed) > 0
    }

    /// To be called by a reader that has answered its request: parks it if there are too many.
    /// `stuck`: it was taken for stuck.
    pub(super) fn rest(&self, stuck: bool) {
        if !stuck && self.spare.load(Ordering::Relaxed) >= self.cells.len() - self.wanted {
            return;
        }
        let mut room = self.room();
        if stuck {
            room.reading += 1;
        }
        // Parked readers learn of the end from those that read, and these must all be able to tell.
        let all_seated = room.seated == self.cells.len();
        if room.reading <= self.wanted || !all_seated || room.ending {
            return;
        }
        room.reading -= 1;
        room.parked += 1;
        self.set_spare(&room);
        while room.called == 0 && !room.ending {
            room = self.wake.wait(room).unwrap_or_else(PoisonError::into_inner);
        }
        if room.called > 0 {
            room.called -= 1; // whoever called has counted us among the reading
        } else {
            room.parked -= 1;
            room.reading += 1;
            self.set_spare(&room);
        }
    }

    /// What the readers are at.
    pub(super) fn look(&self) -> impl Iterator<Item = (&Busy, Seen)> {
        self.cells.iter().filter_map(|cell| Some((cell, cell.look()?)))
    }

    /// This one is stuck: another shall read in its place. Answers how many are stuck in the same
    /// operation by now; 0 if it came back just then.
    pub(super) fn replace(&self, cell: &Busy, seen: &Seen) -> usize {
        // Under the lock, so that it counts itself back in only after it was counted out.
        let mut room = self.room();
        if !cell.mark(seen) {
            return 0;
        }
        room.reading -= 1;
        if room.reading < self.wanted && room.parked > 0 {
            room.parked -= 1;
            room.reading += 1;
            room.called += 1;
            self.set_spare(&room);
            drop(room);
            self.wake.notify_one();
        }
        let alike = |(_, other): &(&Busy, Seen)| other.marked && other.operation == seen.operation;
        self.look().filter(alike).count()
    }

    pub(super) fn stats(&self) -> ReaderStats {
        let room = self.room();
        let stuck = self.cells.len() - room.reading - room.parked;
        ReaderStats { reading: room.reading, parked: room.parked, stuck }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::JoinHandle;
    use std::time::Duration;

    use super::*;
    use crate::operation::Operation;

    /// What an event loop would do: a "read" is a message; to be stuck is to wait for another one.
    struct Loops {
        readers: Arc<Readers>,
        requests: Sender<Request>,
        /// Which event loop has taken one, and whether it was allowed to work on it.
        taken: Receiver<bool>,
        threads: Vec<JoinHandle<()>>,
    }

    enum Request {
        Short,
        Stuck(Receiver<()>),
        Unmounted,
    }

    const SECONDS: Duration = Duration::from_secs(10);

    fn loops(wanted: usize, spares: usize) -> Loops {
        let readers = Readers::new(wanted, spares);
        let (requests, kernel) = channel();
        let (answers, taken) = channel();
        let kernel = Arc::new(Mutex::new(kernel));
        let run = |_| {
            let (readers, kernel) = (readers.clone(), kernel.clone());
            let answers: Sender<bool> = answers.clone();
            std::thread::spawn(move || {
                loop {
                    // One waits in the channel, the others for the lock.
                    let request = kernel.lock().unwrap().recv();
                    let stuck = match request {
                        Err(_) | Ok(Request::Unmounted) => return,
                        Ok(request) => {
                            let cell = readers.here().expect("a seat");
                            let inline = readers.has_spare();
                            cell.begin(Operation::Read, 0);
                            answers.send(inline).unwrap();
                            if let (Request::Stuck(until), true) = (request, inline) {
                                let _ = until.recv();
                            }
                            cell.end()
                        }
                    };
                    readers.rest(stuck);
                }
            })
        };
        let threads = (0..wanted + spares).map(run).collect();
        Loops { readers, requests, taken, threads }
    }

    impl Loops {
        /// One request; answers whether its reader was allowed to work on it.
        fn request(&self, request: Request) -> bool {
            self.requests.send(request).unwrap();
            self.taken.recv_timeout(SECONDS).expect("nobody reads")
        }

        fn until(&self, what: &str, is_so: impl Fn(ReaderStats) -> bool) {
            let start = std::time::Instant::now();
            while !is_so(self.readers.stats()) {
                assert!(start.elapsed() < SECONDS, "{what}: {:?}", self.readers.stats());
                std::thread::sleep(Duration::from_millis(1));
            }
        }

        /// What the supervisor does.
        fn replace_all(&self) {
            for (cell, seen) in self.readers.look() {
                if !seen.marked {
                    self.readers.replace(cell, &seen);
                }
            }
        }

        /// Until every event loop has had a request, and those that are too many are parked.
        fn settle(&self, spares: usize) {
            let start = std::time::Instant::now();
            while self.readers.stats().parked < spares {
                assert!(start.elapsed() < SECONDS, "{:?}", self.readers.stats());
                self.request(Request::Short);
                std::thread::sleep(Duration::from_micros(100));
            }
        }

        fn end(self) {
            // The kernel tells everybody who reads.
            for _ in &self.threads {
                self.requests.send(Request::Unmounted).unwrap();
            }
            self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    }

    #[test]
    fn the_surplus_parks_and_wakes_at_the_end() {
        let loops = loops(2, 2);
        loops.settle(2);
        let stats = loops.readers.stats();
        assert_eq!((stats.reading, stats.parked, stats.stuck), (2, 2, 0));
        for _ in 0..100 {
            assert!(loops.request(Request::Short));
        }
        assert_eq!(loops.readers.stats().parked, 2);
        loops.end();
    }

    #[test]
    fn before_all_had_a_request_nobody_parks() {
        let loops = loops(2, 2);
        assert!(loops.request(Request::Short));
        assert_eq!(loops.readers.stats().parked, 0);
        loops.end();
    }

    #[test]
    fn a_stuck_reader_is_replaced_and_the_last_one_hands_over() {
        let loops = loops(1, 2);
        loops.settle(2);
        let (free, until) = channel();
        let mut inline = 0;
        let mut stuck = Vec::new();
        for _ in 0..2 {
            let (free, until) = channel::<()>();
            inline += usize::from(loops.request(Request::Stuck(until)));
            stuck.push(free);
            loops.replace_all();
        }
        assert_eq!(inline, 2);
        let stats = loops.readers.stats();
        assert_eq!((stats.reading, stats.parked, stats.stuck), (1, 0, 2));
        assert!(!loops.request(Request::Stuck(until)), "the last one must not work itself");
        assert!(!loops.request(Request::Short), "and so it reads on");
        drop(free);
        stuck.pop();
        loops.until("one comes back and parks", |stats| stats.parked == 1 && stats.stuck == 1);
        assert!(loops.request(Request::Short), "with a spare one work is allowed again");
        stuck.clear();
        loops.until("the other one too", |stats| stats.parked == 2 && stats.stuck == 0);
        loops.end();
    }

    #[test]
    fn who_came_back_in_time_is_not_replaced() {
        let readers = Readers::new(1, 1);
        let cell = readers.here().unwrap();
        cell.begin(Operation::Read, 0);
        let seen = cell.look().unwrap();
        assert!(!cell.end());
        assert_eq!(readers.replace(cell, &seen), 0);
        assert_eq!(readers.stats().stuck, 0);
    }
}
