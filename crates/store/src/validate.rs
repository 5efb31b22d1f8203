//! Invariants of a profile, checked when writing and reading: later code indexes tables without checks.

use crate::accounted::Accounted;
use crate::bounds::{self, CellBudget};
use nodewise_profile::{Access, PageNumber, Profile, Slice, TakenPart};

/// The reason why a profile is refused.
pub type Refusal = String;

/// Checks ranges of the small tables and references between them, with `slices` in place of the profile's own.
pub fn tables(p: &Profile, slices: &[Slice]) -> Result<(), Refusal> {
    bounds::tables(p)?;
    for (i, o) in p.objects.iter().enumerate() {
        let unknown_maker = o.thread.index() >= p.threads.len() && o.thread.0 != 0;
        if unknown_maker || (o.site.index() >= p.sites.len() && o.site.0 != 0) {
            return Err(format!("object {i} names a thread or site that does not exist"));
        }
        if o.first_page.0.checked_add(o.pages).is_none() {
            return Err(format!("object {i} ends beyond the address space"));
        }
        if let Some((site, _)) = o.parts.iter().find(|(s, _)| s.index() >= p.sites.len()) {
            return Err(format!(
                "object {i} has a part from site {}, which does not exist",
                site.0
            ));
        }
    }
    let mut earlier = 0;
    for (i, s) in slices.iter().enumerate() {
        if s.start_ns < earlier || s.end_ns < s.start_ns {
            return Err(format!("slice {i} goes back in time"));
        }
        earlier = s.start_ns;
    }
    first_touches(p, slices.len())?;
    migrations(p, slices.len())?;
    tickets(p)?;
    taken(&p.taken)
}

fn first_touches(p: &Profile, slices: usize) -> Result<(), Refusal> {
    let mut next = PageNumber(0);
    for (i, t) in p.first_touches.iter().enumerate() {
        let known = t.object.index() < p.objects.len()
            && t.thread.index() < p.threads.len()
            && t.region.index() < p.regions.len()
            && t.slice.index() < slices
            && (t.site.index() < p.sites.len() || t.site.0 == 0);
        if !known {
            return Err(format!("first touch {i} names something that does not exist"));
        }
        if t.len == 0 || t.page < next {
            return Err(format!("first touch {i} is empty or overlaps the one before"));
        }
        next = end(t.page, t.len).ok_or_else(|| format!("first touch {i} ends beyond the address space"))?;
    }
    Ok(())
}

/// Upper limit of node numbers in Linux.
const NODES: u16 = 1024;

fn migrations(p: &Profile, slices: usize) -> Result<(), Refusal> {
    let mut earlier = 0;
    for (i, m) in p.migrations.iter().enumerate() {
        if m.slice.index() >= slices || m.object.index() >= p.objects.len() {
            return Err(format!(
                "migration {i} names a slice or object that does not exist"
            ));
        }
        if m.time_ns < earlier {
            return Err(format!("migration {i} goes back in time"));
        }
        earlier = m.time_ns;
        if m.len == 0 || end(m.page, m.len).is_none() {
            return Err(format!("migration {i} moves no pages, or too many"));
        }
        if m.from == m.to || m.from.max(m.to) >= NODES {
            return Err(format!(
                "migration {i} goes from node {} to node {}",
                m.from, m.to
            ));
        }
        let counts = [m.to_count, m.home_count.unwrap_or_default(), m.count_threshold];
        if m.by.is_empty() || counts.iter().any(|c| !c.is_finite() || *c < 0.0) {
            return Err(format!("migration {i} has no reason, or an impossible one"));
        }
    }
    Ok(())
}

fn tickets(p: &Profile) -> Result<(), Refusal> {
    for (i, t) in p.tickets.iter().enumerate() {
        if t.site.index() >= p.sites.len() || t.thread.index() >= p.threads.len() {
            return Err(format!("ticket {i} names a site or thread that does not exist"));
        }
        if i > 0 && (t.site, t.thread) <= (p.tickets[i - 1].site, p.tickets[i - 1].thread) {
            return Err(format!("ticket {i} is out of order, or there twice"));
        }
    }
    Ok(())
}

/// Checks the table of the parts that threads took in other runs.
pub fn taken(rows: &[TakenPart]) -> Result<(), Refusal> {
    let mut sum = 0u64;
    for (i, t) in rows.iter().enumerate() {
        let numbers = [t.part.unwrap_or(0), t.by];
        if t.run >= bounds::RUNS || numbers.iter().any(|n| u64::from(*n) >= bounds::THREADS) {
            return Err(format!(
                "row {i} of `taken` names a run or thread beyond any that there could be"
            ));
        }
        let key = |t: &TakenPart| (t.run, t.part, t.by);
        if i > 0 && key(t) <= key(&rows[i - 1]) {
            return Err(format!("row {i} of `taken` is out of order, or there twice"));
        }
        sum = sum
            .checked_add(t.accesses)
            .ok_or("`taken` has counts beyond any that could have been made")?;
    }
    Ok(())
}

/// The page after a run, if the run stays within the address space of its process.
fn end(page: PageNumber, len: u32) -> Option<PageNumber> {
    let end = page.0.checked_add(u64::from(len))?;
    (PageNumber(end - 1).process() == page.process()).then_some(PageNumber(end))
}

/// Checks rows of the access table in their order.
#[derive(Debug)]
pub struct Rows<'p> {
    /// Number of regions, to which rows refer; likewise for the tables below.
    regions: usize,
    objects: usize,
    threads: usize,
    slices: usize,
    last: (u32, u64),
    accesses: u64,
    lines: u64,
    room: CellBudget,
    accounted: Accounted<'p>,
}

impl<'p> Rows<'p> {
    /// Checks the rows of profile `p`, with memory for `room` histogram cells.
    pub fn new(p: &'p Profile, room: u64) -> Self {
        Self {
            regions: p.regions.len(),
            objects: p.objects.len(),
            threads: p.threads.len(),
            slices: p.slices.len(),
            last: (0, 0),
            accesses: 0,
            lines: 0,
            room: CellBudget::new(room),
            accounted: Accounted::new(p),
        }
    }

    /// Checks that everything a row refers to exists, that rows are in order, that no sum overflows, and that the
    /// number of pages is within the limits.
    pub fn check(&mut self, a: &Access) -> Result<(), Refusal> {
        let known = a.slice.index() < self.slices
            && a.region.index() < self.regions
            && a.object.index() < self.objects
            && a.thread.index() < self.threads;
        if !known {
            return Err("a row names a slice, region, object or thread that does not exist".into());
        }
        self.ordered(a)?;
        self.tally(a)
            .ok_or_else(|| "counts beyond any that could have been made".to_owned())?;
        self.accounted.check(a)?;
        self.room.check(a)
    }

    fn ordered(&mut self, a: &Access) -> Result<(), Refusal> {
        let place = (a.slice.0, a.page.0);
        if place < self.last {
            return Err("rows are out of order".into());
        }
        self.last = place;
        let is_valid = a.len > 0 && end(a.page, a.len).is_some();
        is_valid
            .then_some(())
            .ok_or_else(|| "a run of pages is empty or too long".into())
    }

    fn tally(&mut self, a: &Access) -> Option<()> {
        let len = u64::from(a.len);
        let accesses = a.reads.checked_add(a.writes)?.checked_mul(len)?;
        self.accesses = self.accesses.checked_add(accesses)?;
        self.lines = self.lines.checked_add(a.lines.checked_mul(len)?)?;
        Some(())
    }
}
