//! Who owns which addresses of a process image.

use nodewise_profile::{BASE_PAGE_SIZE, ObjectId, SiteId};
use std::collections::BTreeMap;

/// What lies at some addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A large allocation, or with `mapped` a mapping of the program's own.
    Allocation {
        site: SiteId,
        ordinal: u32,
        sequence: u32,
        /// Of the line that allocates it, 0 where it is unknown.
        column: u32,
        bytes: u64,
        mapped: bool,
        /// Where it began at first: an object that moved to grow is one more.
        address: u64,
    },
    /// A mapped file, by the image's list of names.
    File { name: u32 },
    /// A thread's stack.
    Stack { ordinal: u32 },
    /// A thread-local variable, or what is left of a module's thread-local storage.
    Tls {
        ordinal: u32,
        module: u32,
        variable: Option<u32>,
    },
    /// A module's writable segment, its variables not yet looked at.
    Segment { module: u32 },
    /// A static variable of at least half a page, or what is left of a module's static data.
    Static { module: u32, variable: Option<u32> },
    /// A module's code and constants.
    Image { module: u32 },
    /// The heap's pool.
    Arena,
}

impl What {
    /// The same allocation at other addresses, where it is `bytes` large.
    pub fn moved(self, to: u64, size: u64) -> Option<Self> {
        match self {
            Self::Allocation {
                site,
                ordinal,
                sequence,
                column,
                mapped,
                ..
            } => Some(Self::Allocation {
                site,
                ordinal,
                sequence,
                column,
                bytes: size,
                mapped,
                address: to,
            }),
            _ => None,
        }
    }
}

/// A stretch of addresses with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub start: u64,
    pub end: u64,
    pub what: What,
    /// Set when a page of it has been accessed.
    pub object: Option<ObjectId>,
}

/// Disjoint claims by address. An accessed claim stays for good, so that a page keeps the owner it
/// was first seen with; what comes later fills the room around it.
#[derive(Clone, Debug, Default)]
pub struct Claims(BTreeMap<u64, Claim>);

impl Claims {
    /// Claims addresses for `what`, in place of claims nobody has accessed.
    pub fn insert(&mut self, start: u64, end: u64, what: What) {
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

    /// Forgets claims on these addresses that nobody has accessed.
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
        let (page, end) = (address, address.saturating_add(BASE_PAGE_SIZE));
        let covers = |c: &Claim| c.end.min(end) - c.start.max(page);
        let start = self.overlapping(page, end).max_by_key(|c| covers(c))?.start;
        self.0.get_mut(&start)
    }

    /// What begins at an address.
    pub fn at(&self, start: u64) -> Option<Claim> {
        self.0.get(&start).copied()
    }

    /// The allocation that begins at `start` is `bytes` large from now on, and owns the addresses to `end`.
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

    /// Forgets which claims were accessed: those of a child begin anew.
    pub fn renewed(mut self) -> Self {
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

    fn stack(ordinal: u32) -> What {
        What::Stack { ordinal }
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
        let what = |bytes| What::Allocation {
            site: SiteId(1),
            ordinal: 0,
            sequence: 0,
            column: 0,
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
