//! Attaches to running threads. A thread created between listing and attaching is neither listed nor inherits the
//! event, so the list is read until it has no new threads.

use std::collections::HashSet;

/// Largest number of listings: each misses only threads created by threads that the previous one missed.
const MAX_LISTINGS: usize = 100;

/// The threads of some processes, and how to watch them and the threads that they create.
pub trait Threads {
    /// Why threads cannot be listed or watched.
    type Error;

    /// Identifiers of the running threads.
    fn list(&mut self) -> Result<Vec<u32>, Self::Error>;

    /// Threads whose creation by watched threads was reported since the last call.
    fn begun(&mut self) -> Vec<u32>;

    /// Watches these threads from now on.
    fn watch(&mut self, tids: &[u32]) -> Result<(), Self::Error>;
}

/// Watches each thread once, until no new ones appear.
pub fn attach<T: Threads>(threads: &mut T) -> Result<(), T::Error> {
    let mut watched = HashSet::new();
    for _ in 0..MAX_LISTINGS {
        let mut fresh = threads.list()?;
        watched.extend(threads.begun());
        fresh.retain(|tid| watched.insert(*tid));
        if fresh.is_empty() {
            break;
        }
        threads.watch(&fresh)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// What happens between one call and the next.
    #[derive(Default)]
    struct Program {
        listings: Vec<Vec<u32>>,
        begun: Vec<Vec<u32>>,
        watched: Vec<u32>,
    }

    impl Threads for Program {
        type Error = Infallible;

        fn list(&mut self) -> Result<Vec<u32>, Infallible> {
            Ok(self.listings.remove(0))
        }

        fn begun(&mut self) -> Vec<u32> {
            self.begun.remove(0)
        }

        fn watch(&mut self, tids: &[u32]) -> Result<(), Infallible> {
            self.watched.extend(tids);
            Ok(())
        }
    }

    #[test]
    fn a_thread_born_while_we_attach_is_watched_and_none_twice() {
        let mut program = Program {
            // 3 was born before its parent was watched, 4 after; 5 by 3 before 3 was.
            listings: vec![
                vec![1, 2],
                vec![1, 2, 3, 4],
                vec![1, 3, 4, 5],
                vec![1, 3, 4, 5, 6],
            ],
            begun: vec![vec![], vec![4], vec![], vec![6]],
            ..Program::default()
        };
        attach(&mut program).unwrap();
        assert_eq!(program.watched, [1, 2, 3, 5]);
        assert!(program.listings.is_empty());
    }

    #[test]
    fn who_never_ceases_to_start_threads_is_attached_to() {
        let mut program = Program {
            listings: (0..MAX_LISTINGS as u32).map(|i| vec![i]).collect(),
            begun: vec![vec![]; MAX_LISTINGS],
            ..Program::default()
        };
        attach(&mut program).unwrap();
        assert_eq!(program.watched.len(), MAX_LISTINGS);
    }
}
