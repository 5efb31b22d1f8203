//! The owner of each address range in a process image.

// Why: docs/decisions/recording.md

use nodewise_profile::{BASE_PAGE_SIZE, ObjectId, SiteId};
use std::collections::BTreeMap;

/// What an address range contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// A large allocation on the heap, or, with `mapped`, a mapping made by the program.
    Allocation {
        site: SiteId,
        ordinal: u32,
        sequence: u32,
        /// Number of the place that its name comes from; see `Library::object_name`.
        origin: u32,
        bytes: u64,
        mapped: bool,
        /// The address where it was first allocated, which distinguishes an object that moved when it grew.
        address: u64,
    },
    /// A mapped file; `name` indexes the image's list of names.
    File { name: u32 },
    /// The stack of thread `ordinal`.
    Stack { ordinal: u32 },
    /// A thread-local variable, or, without `variable`, the rest of a module's thread-local storage.
    Tls {
        ordinal: u32,
        module: u32,
        variable: Option<u32>,
    },
    /// A module's writable segment whose variables have not been looked up yet.
    Segment { module: u32 },
    /// A static variable of at least half a page, or, without `variable`, the rest of a module's static data.
    Static { module: u32, variable: Option<u32> },
    /// A module's code and constants.
    Image { module: u32 },
    /// The heap's pool of small allocations.
    Arena,
}

impl Content {
    /// The same allocation at the address `to` with another size; `None` if this is no allocation.
    pub fn moved(self, to: u64, size: u64) -> Option<Self> {
        match self {
            Self::Allocation {
                site,
                ordinal,
                sequence,
                origin,
                mapped,
                ..
            } => Some(Self::Allocation {
                site,
                ordinal,
                sequence,
                origin,
                bytes: size,
                mapped,
                address: to,
            }),
            _ => None,
        }
    }
}

/// An address range with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub start: u64,
    pub end: u64,
    pub what: Content,
    /// The profile's object; set once a page of the range has been accessed.
    pub object: Option<ObjectId>,
}

/// Disjoint claims by address. A claim whose pages were accessed is never removed, so that a page keeps its first
/// owner; later claims fill the ranges around it.
#[derive(Clone, Debug, Default)]
pub struct Claims(BTreeMap<u64, Claim>);

impl Claims {
    /// Claims a range of addresses, replacing claims that were not accessed.
    pub fn insert(&mut self, start: u64, end: u64, what: Content) {
        self.clear(start, end);
        let mut at = start;
        let kept: Vec<Claim> = self.overlapping(start, end).copied().collect();
        for (next, resume) in kept.iter().map(|c| (c.start, c.end)).chain([(end, end)]) {
            if at < next {
                self.0.insert(
                    at,
                    Claim {
                        start: at,
                        end: next,
                        what,
                        object: None,
                    },
                );
            }
            at = resume;
        }
    }

    /// Removes claims on this range that were not accessed.
    pub fn clear(&mut self, start: u64, end: u64) {
        let hit: Vec<Claim> = self
            .overlapping(start, end)
            .filter(|c| c.object.is_none())
            .copied()
            .collect();
        for claim in hit {
            self.0.remove(&claim.start);
            if claim.start < start {
                self.0.insert(claim.start, Claim { end: start, ..claim });
            }
            if claim.end > end {
                self.0.insert(end, Claim { start: end, ..claim });
            }
        }
    }

    /// The claim that covers most of the page at `address`.
    pub fn owner(&mut self, address: u64) -> Option<&mut Claim> {
        let start = self.covering(address)?.start;
        self.0.get_mut(&start)
    }

    /// As [`Claims::owner`], but read-only.
    pub fn covering(&self, address: u64) -> Option<&Claim> {
        let (page, end) = (address, address.saturating_add(BASE_PAGE_SIZE));
        let covers = |c: &Claim| c.end.min(end) - c.start.max(page);
        self.overlapping(page, end).max_by_key(|c| covers(c))
    }

    /// The claim that begins at an address.
    pub fn at(&self, start: u64) -> Option<Claim> {
        self.0.get(&start).copied()
    }

    /// Resizes the allocation that begins at `start` to `bytes`; it then owns the addresses up to `end`.
    pub fn extend(&mut self, start: u64, end: u64, bytes: u64) -> Option<Claim> {
        let before = *self.0.get(&start)?;
        let mut claim = before;
        if claim.object.is_none() {
            claim.what = claim.what.moved(start, bytes)?;
        }
        self.insert(start, end, claim.what);
        for piece in self.0.range_mut(start..end).map(|(_, c)| c) {
            if piece.what == before.what || piece.what == claim.what {
                (piece.what, piece.object) = (claim.what, claim.object);
            }
        }
        Some(claim)
    }

    /// The same claims without objects, for a forked child, whose accesses are counted anew.
    pub fn without_objects(mut self) -> Self {
        self.0.values_mut().for_each(|c| c.object = None);
        self
    }

    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = &Claim> {
        let from = self.0.range(..=start).next_back().map_or(start, |(&s, _)| s);
        self.0
            .range(from..end.max(from))
            .map(|(_, c)| c)
            .filter(move |c| c.end > start && c.start < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stack(ordinal: u32) -> Content {
        Content::Stack { ordinal }
    }

    #[test]
    fn an_accessed_claim_keeps_its_addresses() {
        let mut claims = Claims::default();
        claims.insert(0, 0x3000, stack(0));
        claims.owner(0x1000).unwrap().object = Some(ObjectId(1));
        claims.insert(0x2000, 0x5000, stack(1));
        assert_eq!(claims.owner(0x2000).unwrap().what, stack(0));
        assert_eq!(claims.owner(0x3000).unwrap().what, stack(1));
    }

    #[test]
    fn an_allocation_that_comes_back_larger_owns_the_room_behind_it() {
        let what = |bytes| Content::Allocation {
            site: SiteId(1),
            ordinal: 0,
            sequence: 0,
            origin: 0,
            bytes,
            mapped: false,
            address: 0x1000,
        };
        let mut claims = Claims::default();
        claims.insert(0x1000, 0x2000, what(100));
        claims.extend(0x1000, 0x3000, 200);
        assert_eq!(claims.owner(0x2000).unwrap().what, what(200));
        claims.owner(0x1000).unwrap().object = Some(ObjectId(7));
        claims.extend(0x1000, 0x5000, 300);
        assert_eq!(claims.owner(0x4000).unwrap().object, Some(ObjectId(7)));
        assert_eq!(claims.extend(0x2000, 0x6000, 300), None, "nothing begins there");
    }

    #[test]
    fn a_page_belongs_to_whoever_covers_most_of_it() {
        let mut claims = Claims::default();
        claims.insert(0, 0x1000, stack(0));
        claims.insert(0x100, 0xf00, stack(1));
        assert_eq!(claims.owner(0).unwrap().what, stack(1));
        assert!(claims.owner(0x1000).is_none());
    }

    proptest! {
        #[test]
        fn untouched_claims_are_what_a_map_of_addresses_would_say(
            steps in prop::collection::vec((0u64..40, 1u64..12, 0u32..5, any::<bool>()), 1..40)
        ) {
            let (mut claims, mut model) = (Claims::default(), [None; 60]);
            for (at, len, who, insert) in steps {
                if insert { claims.insert(at, at + len, stack(who)) } else { claims.clear(at, at + len) }
                model[at as usize..(at + len) as usize].fill(insert.then(|| stack(who)));
            }
            for (at, expected) in model.iter().enumerate() {
                let at = at as u64;
                let found = claims.overlapping(at, at + 1).next().map(|c| c.what);
                prop_assert_eq!(found, *expected);
            }
        }
    }
}
