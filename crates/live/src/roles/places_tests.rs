use super::*;

fn places(node: &[(u32, u32)]) -> Places {
    let mut by_node = vec![0; 2];
    let node = node.iter().map(|&(cpu, node)| {
        by_node[node as usize] += 1;
        (cpu, NodeId(node))
    });
    Places {
        node: node.collect(),
        by_node,
    }
}

fn bound(tid: u32, cpu: u32, belongs: Option<u32>, places: &Places) -> BoundThread {
    BoundThread {
        tid,
        cpu,
        known: ThreadData {
            belongs: belongs.map(|node| (NodeId(node), 9)),
            now: places.node(cpu).unwrap(),
        },
    }
}

#[test]
fn threads_change_places_and_get_cpus_of_their_own() {
    let places = places(&[(0, 0), (1, 0), (4, 1), (5, 1)]);
    let of = |tid, cpu, belongs| bound(tid, cpu, belongs, &places);
    let threads = [
        of(10, 0, Some(1)),
        of(11, 1, Some(0)),
        of(12, 4, Some(0)),
        of(13, 5, None),
    ];
    assert_eq!(places.moves(&threads), [(10, 4), (12, 0)]);
    let threads = [
        of(10, 0, Some(0)),
        of(11, 1, Some(0)),
        of(12, 4, Some(1)),
        of(13, 5, Some(1)),
    ];
    assert_eq!(places.moves(&threads), []);
}

#[test]
fn who_is_not_known_yet_keeps_its_place_for_a_while() {
    let places = places(&[(0, 0), (4, 1)]);
    let mut threads = [bound(10, 0, Some(1), &places), bound(11, 4, None, &places)];
    assert_eq!(places.moves(&threads), [(10, 4), (11, 0)]);
    threads.iter_mut().for_each(BoundThread::stay_if_unknown);
    assert_eq!(places.moves(&threads), []);
}
