//! Tests the texts about waiting in a program's own barrier, which counts as accesses.

use super::*;
use nodewise_profile::AccessSource;

/// The blocks of others, initialised by the master thread, and a page of `barrier` with two lines that all threads read
/// `reads` times each.
fn with_barrier(reads: u64) -> (Profile, InMemory) {
    let (mut profile, blocks) = program(|_| 0, owner, 64_000, 512_000);
    let page = PageNumber((1 << 20) + u64::from(PAGES) + 7);
    profile.objects.push(Object {
        kind: ObjectKind::Heap,
        name: "barrier".into(),
        site: SiteId(1),
        first_page: page,
        pages: 1,
        bytes: 4096,
        ..Object::default()
    });
    let mut rows = Vec::new();
    blocks
        .visit(&mut |some| rows.extend_from_slice(some))
        .expect("in memory");
    rows.extend((0..THREADS).map(|thread| Access {
        region: RegionId(1),
        object: ObjectId(2),
        thread: ThreadId(thread),
        page,
        len: 1,
        reads,
        lines: 2,
        ..Access::default()
    }));
    (profile, InMemory::new(rows))
}

#[test]
fn waiting_is_named_and_nothing_is_to_be_placed_for_it() {
    let advice = advice("opteron-6386", &with_barrier(4_000_000));
    let object = |name: &str| {
        advice
            .objects
            .iter()
            .find(|o| o.blame.name == name)
            .expect("blamed")
    };
    let (rhs, barrier) = (object("rhs"), object("barrier"));
    assert!(
        barrier
            .sentence
            .contains("of all accesses are to a few lines of 1 of its pages"),
        "{}",
        barrier.sentence
    );
    assert!(
        barrier.advice.starts_with("no placement follows from this"),
        "{}",
        barrier.advice
    );
    assert_eq!((&barrier.snippet, barrier.blame.distribution), (&None, None));
    assert!(!rhs.sentence.contains("few lines"), "{}", rhs.sentence);
    assert!(!rhs.advice.contains("no placement follows"), "{}", rhs.advice);
    assert_eq!(advice.contended_pages.len(), 1);
}

#[test]
fn a_page_that_all_use_now_and_then_is_none() {
    assert!(
        advice("opteron-6386", &with_barrier(1000))
            .contended_pages
            .is_empty()
    );
}
