//! The thread beside the loop of a host: it reads the news of the radios and carries out changes of their attributes, since both
//! ask the kernel, wait for it and allocate.
//!
//! ```text
//! loop   -- orders: changes of attributes -->  clerk  <> nl80211, rtnetlink
//!        <- done: views, answers, counts ----
//! ```
//!
//! The loop never waits for the clerk. Between them are two mailboxes. The loop tries to lock one, and if the clerk holds it
//! just then, comes again a little later; with the lock it moves a change or swaps two values, and nothing is allocated or
//! freed. The clerk may wait for the loop, which holds a mailbox for no longer than that. Each wakes the other by an eventfd.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

use radio::{AdapterId, Attribute, SetAnswer, SetError, Token};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};

use super::keeper::{Keeper, View};
use crate::clock::timespec;
use crate::sys;

/// Changes that the clerk has at once; the rest waits in the host.
const CHANGES: usize = radio::checked::MAX_ACTIONS;
/// Octets of its stack. It calls nothing deep; with all memory locked each octet is one of RAM.
const STACK_OCTETS: usize = 512 << 10;
/// While the loop waits before its start: between two looks whether the clerk is still there, ns.
const GLANCE_NS: u64 = 100_000_000;

/// A change of an attribute that was asked for.
pub(super) type Change = (Token, AdapterId, Attribute);

/// What the loop asks for.
#[derive(Debug)]
struct Orders {
    changes: VecDeque<Change>,
    /// Number of the last look that was asked for.
    look: u64,
    stop: bool,
}

impl Orders {
    fn new() -> Orders {
        Orders {
            changes: VecDeque::with_capacity(CHANGES),
            look: 0,
            stop: false,
        }
    }
}

/// What the clerk has done since the loop took it last.
#[derive(Debug)]
pub(super) struct Done {
    /// Of each adapter, if there is a new one.
    pub views: Vec<Option<View>>,
    /// In the order of the changes.
    pub answers: VecDeque<SetAnswer>,
    /// Times that a radio was read again.
    pub news: u64,
    /// Sockets that had no room for all news.
    pub overflows: u64,
    looked: u64,
}

impl Done {
    fn new(adapters: usize) -> Done {
        Done {
            views: vec![None; adapters],
            answers: VecDeque::with_capacity(CHANGES),
            news: 0,
            overflows: 0,
            looked: 0,
        }
    }
}

#[derive(Debug)]
struct Shared {
    orders: Mutex<Orders>,
    done: Mutex<Done>,
    to_clerk: OwnedFd,
    to_loop: OwnedFd,
}

/// The loop's end of it. When it is dropped the clerk ends, and with it the interfaces that it keeps.
#[derive(Debug)]
pub(super) struct Clerk {
    shared: Arc<Shared>,
    /// What was taken last; empty but for the moment in which it is told.
    taken: Done,
    thread: Option<JoinHandle<()>>,
    /// Changes that are not answered.
    open: usize,
}

impl Clerk {
    /// A clerk for these radios, in the order of their numbers.
    ///
    /// # Errors
    /// If there can be no more threads or descriptors.
    pub fn start(keepers: Vec<Keeper>) -> io::Result<Clerk> {
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let adapters = keepers.len();
        let shared = Arc::new(Shared {
            orders: Mutex::new(Orders::new()),
            done: Mutex::new(Done::new(adapters)),
            to_clerk: bell()?,
            to_loop: bell()?,
        });
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("sdmac-clerk".into())
            .stack_size(STACK_OCTETS)
            .spawn(move || serve(&its, keepers))?;
        Ok(Clerk {
            shared,
            taken: Done::new(adapters),
            thread: Some(thread),
            open: 0,
        })
    }

    /// Changes that are not answered yet.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Hands a change over; false if that is not possible just now. Does not wait.
    pub fn order(&mut self, change: Change) -> bool {
        if self.open == CHANGES {
            return false;
        }
        let Some(mut orders) = try_lock(&self.shared.orders) else {
            return false;
        };
        orders.changes.push_back(change);
        drop(orders);
        self.open += 1;
        ring(&self.shared.to_clerk);
        true
    }

    /// What is done, for `tell`. False if it cannot be had just now, and is to be asked for again. Does not wait.
    pub fn take(&mut self, tell: impl FnOnce(&mut Done)) -> bool {
        silence(&self.shared.to_loop);
        let Some(mut done) = try_lock(&self.shared.done) else {
            return false;
        };
        std::mem::swap(&mut *done, &mut self.taken);
        done.looked = self.taken.looked;
        drop(done);
        self.open -= self.taken.answers.len();
        tell(&mut self.taken);
        self.taken.views.fill(None);
        self.taken.answers.clear();
        (self.taken.news, self.taken.overflows) = (0, 0);
        true
    }

    /// Has all news read that there was before this call, and waits for it: not for a loop that is at work. What is done
    /// then waits in the mailbox.
    ///
    /// # Panics
    /// If the clerk has.
    pub fn look(&mut self) {
        let mut orders = lock(&self.shared.orders);
        orders.look += 1;
        let look = orders.look;
        drop(orders);
        ring(&self.shared.to_clerk);
        while lock(&self.shared.done).looked < look {
            self.check();
            let mut bell = [PollFd::new(&self.shared.to_loop, PollFlags::IN)];
            let _ = poll(&mut bell, Some(&timespec(GLANCE_NS)));
            silence(&self.shared.to_loop);
        }
        // What was silenced above is there to be taken.
        ring(&self.shared.to_loop);
    }

    /// # Panics
    /// If the clerk has: then nothing that it owes comes.
    pub fn check(&self) {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        assert!(!ended, "the thread that keeps the radios has panicked");
    }
}

impl AsFd for Clerk {
    /// Readable when something is done.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.to_loop.as_fd()
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        lock(&self.shared.orders).stop = true;
        ring(&self.shared.to_clerk);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // Its panic was told on stderr.
        }
    }
}

/// The clerk's life.
fn serve(shared: &Shared, mut keepers: Vec<Keeper>) {
    // Whatever the thread was that made the host, this one is an ordinary one; without the right to be, it is not another.
    let _ = sys::set_scheduler(None);
    let mut orders = Orders::new();
    let mut looked = 0;
    loop {
        // News first: by what has changed already a change is judged.
        let news: Vec<_> = keepers.iter_mut().map(Keeper::news).collect();
        if orders.look > looked || news.iter().any(|n| n.any) {
            // The number of the orders that were there before the news were read.
            looked = orders.look;
            tell(shared, |done| {
                for (index, news) in news.iter().enumerate().filter(|(_, news)| news.any) {
                    done.views[index] = Some(keepers[index].view());
                    done.news += 1;
                    done.overflows += news.overflows;
                }
                done.looked = looked;
            });
        }
        while let Some((token, adapter, attribute)) = orders.changes.pop_front() {
            let index = usize::from(adapter.0);
            let result = match keepers.get_mut(index) {
                Some(keeper) => keeper.set(attribute),
                None => Err(SetError::NotFound),
            };
            tell(shared, |done| {
                if let Some(keeper) = keepers.get(index) {
                    done.views[index] = Some(keeper.view());
                }
                done.answers.push_back(SetAnswer { token, result });
            });
        }
        if orders.stop {
            return;
        }
        wait(shared, &keepers);
        silence(&shared.to_clerk);
        let mut asked = lock(&shared.orders);
        std::mem::swap(&mut asked.changes, &mut orders.changes);
        (orders.look, orders.stop) = (asked.look, asked.stop);
    }
}

/// Puts something into the loop's mailbox, and says so.
fn tell(shared: &Shared, what: impl FnOnce(&mut Done)) {
    what(&mut lock(&shared.done));
    ring(&shared.to_loop);
}

/// Waits for orders or news.
fn wait(shared: &Shared, keepers: &[Keeper]) {
    let watches = keepers.iter().flat_map(Keeper::watches);
    let mut all: Vec<PollFd<'_>> = watches
        .chain([shared.to_clerk.as_fd()])
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    match poll(&mut all, None) {
        Ok(_) | Err(Errno::INTR) => {}
        // Without memory for it: once more, and not at once.
        Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
    }
}

/// `None` if somebody else has it. Who panics with it has left it whole: a value is moved in one step.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes an eventfd readable. It cannot be full: each side empties its own.
fn ring(bell: &OwnedFd) {
    let _ = write(bell, &1_u64.to_ne_bytes());
}

/// Makes it not readable.
fn silence(bell: &OwnedFd) {
    let _ = read(bell, &mut [0; 8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(n: u64) -> Change {
        (Token(n), AdapterId(7), Attribute::Promiscuous(true))
    }

    /// Takes what is done until so many are answered.
    fn answers(clerk: &mut Clerk, count: usize) -> Vec<SetAnswer> {
        let mut all = Vec::new();
        while all.len() < count {
            clerk.check();
            clerk.take(|done| all.extend(done.answers.iter().copied()));
            std::thread::yield_now();
        }
        all
    }

    #[test]
    fn each_change_is_answered_once_and_in_its_order() {
        let mut clerk = Clerk::start(Vec::new()).unwrap();
        clerk.look();
        let mut all = Vec::new();
        for n in 0..1_000 {
            // All that it has room for, and then as many as it has done.
            while !clerk.order(change(n)) {
                clerk.take(|done| all.extend(done.answers.iter().copied()));
            }
            assert!(clerk.open() <= CHANGES);
        }
        let open = clerk.open();
        all.extend(answers(&mut clerk, open));
        let result = Err(SetError::NotFound);
        let expect = (0..1_000).map(|n| SetAnswer {
            token: Token(n),
            result,
        });
        assert!(all.into_iter().eq(expect));
        assert_eq!(clerk.open(), 0);
    }

    /// Somebody holds the mailboxes and does not let go: the loop is told so at once, and loses nothing.
    #[test]
    fn the_loop_does_not_wait() {
        let mut clerk = Clerk::start(Vec::new()).unwrap();
        let shared = Arc::clone(&clerk.shared);
        let orders = lock(&shared.orders);
        assert!(!clerk.order(change(1)));
        assert_eq!(clerk.open(), 0);
        drop(orders);
        while !clerk.order(change(2)) {}
        let done = lock(&shared.done);
        assert!(!clerk.take(|_| panic!("nothing can be had")));
        drop(done);
        assert_eq!(answers(&mut clerk, 1)[0].token, Token(2));
    }
}
