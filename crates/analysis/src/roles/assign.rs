//! Assigns each thread of a placed program to the node of the data that it was found to work on.
//!
//! A placement has a number of places for threads on each node. Threads whose data is known to be on a node get that
//! node's places, those with the most evidence first; the others keep their places, or take those that are left.

use nodewise_machine::NodeId;
use std::cmp::Reverse;

/// What is known about a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadData {
    /// The node of the data that it works on, with the number of observations, 0 if it was seen there earlier only; none if
    /// unknown.
    pub belongs: Option<(NodeId, u32)>,
    /// The node that it runs on.
    pub now: NodeId,
}

/// The node of each thread, where node n has `places[n]` places. With more threads than places, each node takes its
/// share.
#[must_use]
pub fn assign_threads(threads: &[ThreadData], places: &[u32]) -> Vec<NodeId> {
    let all: u32 = places.iter().sum();
    let wanted = (threads.len() as u32).max(all);
    let mut free: Vec<u32> = places.iter().map(|p| (p * wanted).div_ceil(all.max(1))).collect();
    let mut to: Vec<Option<NodeId>> = vec![None; threads.len()];
    let mut take = |thread: usize, node: NodeId| {
        let room = free.get_mut(node.index()).filter(|room| **room > 0);
        if let (Some(room), None) = (room, to[thread]) {
            *room -= 1;
            to[thread] = Some(node);
        }
    };
    let mut known: Vec<(usize, NodeId, u32)> = (0..)
        .zip(threads)
        .filter_map(|(i, t)| t.belongs.map(|(node, seen)| (i, node, seen)))
        .collect();
    // Who was seen earlier only, such as a main thread that has initialised data and waits, makes room for others. Threads that
    // are on their node already come first, so that none has to move among equals.
    known.sort_by_key(|&(i, node, seen)| (seen == 0, threads[i].now != node, Reverse(seen)));
    known.iter().for_each(|&(i, node, _)| take(i, node));
    (0..).zip(threads).for_each(|(i, thread)| take(i, thread.now));
    for i in 0..threads.len() {
        (0..places.len()).for_each(|node| take(i, NodeId(node as u32)));
    }
    let stays = |(to, thread): (Option<NodeId>, &ThreadData)| to.unwrap_or(thread.now);
    to.into_iter().zip(threads).map(stays).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::votes;
    use proptest::prelude::*;

    fn thread(by_node: &[u32], now: u32) -> ThreadData {
        ThreadData {
            belongs: votes(by_node).majority(),
            now: NodeId(now),
        }
    }

    fn nodes(of: &[u32]) -> Vec<NodeId> {
        of.iter().copied().map(NodeId).collect()
    }

    #[test]
    fn threads_change_places_with_those_whose_data_is_theirs() {
        let threads = [thread(&[0, 40], 0), thread(&[40, 0], 1)];
        assert_eq!(assign_threads(&threads, &[1, 1]), nodes(&[1, 0]));
    }

    #[test]
    fn a_thread_of_which_nothing_is_known_makes_room() {
        let threads = [thread(&[0, 40], 0), thread(&[3, 4], 1)];
        assert_eq!(assign_threads(&threads, &[1, 1]), nodes(&[1, 0]));
    }

    #[test]
    fn a_thread_that_was_seen_earlier_only_makes_room() {
        let mut waits = thread(&[40, 0], 0);
        waits.belongs = waits.belongs.map(|(node, _)| (node, 0));
        let threads = [waits, thread(&[9, 0], 1), thread(&[0, 9], 1)];
        assert_eq!(assign_threads(&threads, &[1, 2]), nodes(&[1, 0, 1]));
        assert_eq!(assign_threads(&threads, &[2, 1]), nodes(&[0, 0, 1]));
    }

    #[test]
    fn where_more_come_than_there_are_places_those_that_are_there_stay() {
        let threads = [thread(&[90, 0], 1), thread(&[10, 0], 0), thread(&[20, 0], 1)];
        assert_eq!(assign_threads(&threads, &[2, 1]), nodes(&[0, 0, 1]));
    }

    proptest! {
        #[test]
        fn places_are_never_exceeded_and_nobody_moves_without_need(
            threads in proptest::collection::vec((proptest::collection::vec(0u32..50, 3), 0u32..3), 1..40),
            places in proptest::collection::vec(0u32..9, 3),
        ) {
            prop_assume!(places.iter().sum::<u32>() > 0);
            let threads: Vec<ThreadData> = threads.iter().map(|(seen, now)| thread(seen, *now)).collect();
            let to = assign_threads(&threads, &places);
            let (all, wanted) = (places.iter().sum::<u32>(), threads.len() as u32);
            for (node, places) in (0..).zip(&places) {
                let there = to.iter().filter(|to| **to == NodeId(node)).count() as u32;
                prop_assert!(there <= (places * wanted.max(all)).div_ceil(all), "node {node}: {there} in {places}");
            }
            // Assigning again from the result, with the same knowledge, moves no thread.
            let again: Vec<ThreadData> = threads.iter().zip(&to).map(|(t, to)| ThreadData { now: *to, ..*t }).collect();
            prop_assert_eq!(assign_threads(&again, &places), to);
        }
    }
}
