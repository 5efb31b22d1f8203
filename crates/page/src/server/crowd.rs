//! Who is connected, and who goes when there is no more room: strangers before the page's own, of strangers those whose
//! host has most, the longest there first.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// A connection as the crowd knows it.
#[derive(Debug)]
pub struct Guest {
    from: IpAddr,
    /// Has shown the token.
    known: AtomicBool,
    /// A request of it has come to its end, since this was last asked.
    heard: AtomicBool,
    /// Is to go.
    sent_away: AtomicBool,
    /// Whoever waits for its bytes.
    waker: Mutex<Option<Waker>>,
}

impl Guest {
    /// A whole request came; `known` says whether from the page.
    pub fn heard(&self, known: bool) {
        self.heard.store(true, Ordering::Relaxed);
        self.known.fetch_or(known, Ordering::Relaxed);
    }

    /// Whether a request came since this was last asked.
    pub fn was_heard(&self) -> bool {
        self.heard.swap(false, Ordering::Relaxed)
    }

    /// Whether it is to end. Whoever asks is woken when it is.
    pub fn must_go(&self, waker: &Waker) -> bool {
        *guarded(&self.waker) = Some(waker.clone());
        self.sent_away.load(Ordering::Acquire)
    }

    fn send_away(&self) {
        self.sent_away.store(true, Ordering::Release);
        if let Some(waker) = guarded(&self.waker).take() {
            waker.wake();
        }
    }
}

/// All guests, by arrival.
#[derive(Clone, Debug)]
pub struct Crowd {
    most: usize,
    guests: Arc<Mutex<Vec<Arc<Guest>>>>,
}

impl Crowd {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            guests: Arc::default(),
        }
    }

    /// Lets one in, if need be in place of another.
    pub fn enter(&self, from: IpAddr) -> Arc<Guest> {
        let mut guests = guarded(&self.guests);
        if guests.len() >= self.most {
            let place = first_to_go(&guests);
            guests.remove(place).send_away();
        }
        let guest = Arc::new(Guest {
            from,
            known: AtomicBool::new(false),
            heard: AtomicBool::new(false),
            sent_away: AtomicBool::new(false),
            waker: Mutex::new(None),
        });
        guests.push(Arc::clone(&guest));
        guest
    }

    /// One has gone.
    pub fn leave(&self, guest: &Arc<Guest>) {
        guarded(&self.guests).retain(|g| !Arc::ptr_eq(g, guest));
    }
}

/// Strangers first; of these the one whose host has most strangers, of these the one that came first.
fn first_to_go(guests: &[Arc<Guest>]) -> usize {
    let stranger = |g: &&Arc<Guest>| !g.known.load(Ordering::Relaxed);
    let crowding = |from: IpAddr| guests.iter().filter(stranger).filter(|g| g.from == from).count();
    let strangers = guests.iter().enumerate().filter(|(_, g)| stranger(g));
    let place = strangers.rev().max_by_key(|(_, g)| crowding(g.from));
    place.map_or(0, |(place, _)| place)
}

/// What is behind these locks is whole at any time.
fn guarded<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    fn gone(guest: &Guest) -> bool {
        guest.must_go(Waker::noop())
    }

    #[test]
    fn the_oldest_stranger_makes_room() {
        let crowd = Crowd::new(3);
        let guests = [(); 3].map(|()| crowd.enter(host(1)));
        guests[0].heard(true);
        let fourth = crowd.enter(host(1));
        assert_eq!(guests.each_ref().map(|g| gone(g)), [false, true, false]);
        crowd.leave(&fourth);
        drop(crowd.enter(host(1)));
        assert!(!gone(&guests[2]), "there was room");
    }

    #[test]
    fn the_host_with_most_strangers_makes_room() {
        let crowd = Crowd::new(3);
        let (alone, many) = (crowd.enter(host(1)), [(); 2].map(|()| crowd.enter(host(2))));
        crowd.enter(host(3));
        assert_eq!(
            [gone(&alone), gone(&many[0]), gone(&many[1])],
            [false, true, false]
        );
    }

    #[test]
    fn where_all_are_known_the_oldest_goes() {
        let crowd = Crowd::new(2);
        let guests = [(); 2].map(|()| crowd.enter(host(1)));
        guests.iter().for_each(|g| g.heard(true));
        crowd.enter(host(1));
        assert!(gone(&guests[0]) && !gone(&guests[1]));
    }
}
