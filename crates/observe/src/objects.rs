//! Turns claims into objects of the profile when one of their pages is first seen.

use crate::claims::Content;
use crate::image::Image;
use crate::tables::Tables;
use nodewise_profile::{
    BASE_PAGE_SIZE, FirstTouch, Object, ObjectId, ObjectKind, PageNumber, SiteId, ThreadId,
};
use std::collections::HashMap;

/// Smallest size of a variable that becomes an object of its own; smaller ones can hardly own a page.
const MIN_OWN_OBJECT_BYTES: u64 = BASE_PAGE_SIZE / 2;

/// The object that owns the page at `address`.
pub fn owner(image: &mut Image, tables: &mut Tables, address: u64) -> ObjectId {
    loop {
        let Some(claim) = image.claims.owner(address).map(|c| *c) else {
            let pooled = image.pool.contains(image.brk, address);
            return if pooled {
                object(image, tables, Content::Arena, address, address)
            } else {
                ObjectId(0)
            };
        };
        if let Some(known) = claim.object {
            return known;
        }
        if let Content::Segment { module } = claim.what {
            claim_variables(image, tables, module, claim.start, claim.end);
            continue;
        }
        let found = object(image, tables, claim.what, claim.start, claim.end);
        if let Some(claim) = image.claims.owner(address) {
            claim.object = Some(found);
        }
        return found;
    }
}

/// Handles that the object at an address was allocated again there, or has grown.
pub fn again(image: &mut Image, tables: &mut Tables, address: u64, bytes: u64, mapped: u64) {
    *image.again.entry(address).or_default() += 1;
    let known = image.claims.at(address).filter(|c| c.start + mapped > c.end);
    let larger = known.and_then(|c| image.claims.extend(c.start, c.start + mapped, bytes));
    let Some(id) = larger.and_then(|c| c.object) else {
        return;
    };
    let object = &mut tables.profile.objects[id.index()];
    object.bytes = object.bytes.max(bytes);
    object.pages = object.pages.max(mapped.div_ceil(BASE_PAGE_SIZE));
}

/// Gives each large variable of a writable segment its own claim.
fn claim_variables(image: &mut Image, tables: &mut Tables, module: u32, start: u64, end: u64) {
    image.claims.insert(
        start,
        end,
        Content::Static {
            module,
            variable: None,
        },
    );
    let loaded = &image.modules[module as usize];
    for (i, v) in tables.library.variables(loaded.file).iter().enumerate() {
        let at = loaded.bias.wrapping_add(v.address);
        let inside = at >= start && at.checked_add(v.size).is_some_and(|e| e <= end);
        if !v.thread_local && v.size >= MIN_OWN_OBJECT_BYTES && inside {
            let what = Content::Static {
                module,
                variable: Some(i as u32),
            };
            image.claims.insert(at, at + v.size, what);
        }
    }
}

/// Claims a thread's instance of a module's thread-local storage.
pub fn claim_tls(image: &mut Image, tables: &mut Tables, ordinal: u32, address: u64, bytes: u64, bias: u64) {
    let Some(module) = image.modules.iter().rposition(|m| m.bias == bias) else {
        return;
    };
    image.claims.insert(
        address,
        address + bytes,
        Content::Tls {
            ordinal,
            module: module as u32,
            variable: None,
        },
    );
    let file = image.modules[module].file;
    if bytes < MIN_OWN_OBJECT_BYTES {
        return;
    }
    for (i, v) in tables.library.variables(file).iter().enumerate() {
        if v.thread_local && v.size >= MIN_OWN_OBJECT_BYTES && v.address + v.size <= bytes {
            let what = Content::Tls {
                ordinal,
                module: module as u32,
                variable: Some(i as u32),
            };
            image
                .claims
                .insert(address + v.address, address + v.address + v.size, what);
        }
    }
}

/// The object for `what`, created if there is none; parts of one claim share an object.
fn object(image: &mut Image, tables: &mut Tables, what: Content, start: u64, end: u64) -> ObjectId {
    let process = image.ordinal.unwrap_or(0);
    let first = PageNumber::of_address(process, start);
    let last = PageNumber::of_address(process, end.saturating_sub(1).max(start));
    let pages = |o: &Object| o.first_page.0 + o.pages;
    if let Some(&known) = image.objects.get(&what) {
        let object = &mut tables.profile.objects[known.index()];
        let beyond = pages(object).max(last.0 + 1);
        object.first_page = object.first_page.min(first);
        object.pages = beyond - object.first_page.0;
        return known;
    }
    let described = Object {
        first_page: first,
        pages: last.0 + 1 - first.0,
        ..describe(image, tables, what)
    };
    let id = tables.object(described);
    image.objects.insert(what, id);
    id
}

fn describe(image: &mut Image, tables: &mut Tables, what: Content) -> Object {
    let named = |kind, name: String, bytes| Object {
        kind,
        name,
        bytes,
        ..Object::default()
    };
    match what {
        Content::Allocation {
            site,
            ordinal,
            sequence,
            origin,
            bytes,
            mapped,
            ..
        } => {
            let kind = if mapped {
                ObjectKind::Mapping
            } else {
                ObjectKind::Heap
            };
            let name = if mapped && tables.profile.sites[site.index()].frames.is_empty() {
                "mapping".to_owned() // the log does not tell where it was made
            } else {
                tables.library.object_name(origin)
            };
            let thread = image.thread(tables, ordinal);
            Object {
                site,
                thread,
                sequence,
                ..named(kind, name, bytes)
            }
        }
        Content::File { name } => {
            let (called, size) = (image.names[name as usize].clone(), image.mapped_whole(name));
            named(ObjectKind::File, called, size)
        }
        Content::Stack { ordinal } => owned(
            image,
            tables,
            ordinal,
            named(ObjectKind::Stack, "stack".to_owned(), 0),
        ),
        Content::Tls {
            ordinal,
            module,
            variable,
        } => {
            let (name, bytes) = variable_name(image, tables, module, variable, "thread-local data");
            owned(image, tables, ordinal, named(ObjectKind::Tls, name, bytes))
        }
        Content::Static { module, variable } => {
            let (name, bytes) = variable_name(image, tables, module, variable, "static data");
            named(ObjectKind::Static, name, bytes)
        }
        Content::Segment { module } | Content::Image { module } => {
            let file = image.modules[module as usize].file;
            named(ObjectKind::Image, tables.library.name(file).to_owned(), 0)
        }
        Content::Arena => named(ObjectKind::Arena, "small allocations".to_owned(), 0),
    }
}

fn owned(image: &mut Image, tables: &mut Tables, ordinal: u32, object: Object) -> Object {
    let thread: ThreadId = image.thread(tables, ordinal);
    Object { thread, ..object }
}

fn variable_name(
    image: &Image,
    tables: &mut Tables,
    module: u32,
    variable: Option<u32>,
    rest: &str,
) -> (String, u64) {
    let file = image.modules[module as usize].file;
    if let Some(v) = variable.and_then(|i| tables.library.variables(file).get(i as usize)) {
        return (v.name.clone(), v.size);
    }
    (format!("{} ({rest})", tables.library.name(file)), 0)
}

/// The touched address range of an object.
#[derive(Clone, Copy)]
pub struct Extent {
    first: PageNumber,
    beyond: PageNumber,
    pages: u64,
}

/// The touched range of each object with first touches.
pub fn extents(touches: &[FirstTouch]) -> HashMap<ObjectId, Extent> {
    let mut extents = HashMap::new();
    for touch in touches {
        let (first, beyond) = (touch.page, touch.page.offset(u64::from(touch.len)));
        let pages = u64::from(touch.len);
        let grow = |e: &mut Extent| {
            (e.first, e.beyond, e.pages) = (e.first.min(first), e.beyond.max(beyond), e.pages + pages);
        };
        extents
            .entry(touch.object)
            .and_modify(grow)
            .or_insert(Extent { first, beyond, pages });
    }
    extents
}

/// Completes objects at the end of a recording: how much of pools and stacks was used, and by which thread.
pub fn finish(image: &Image, tables: &mut Tables, extents: &HashMap<ObjectId, Extent>) {
    for (what, &id) in &image.objects {
        let Some(extent) = extents.get(&id) else {
            continue;
        };
        let object = &mut tables.profile.objects[id.index()];
        match what {
            Content::Stack { .. } => {
                object.first_page = extent.first;
                object.pages = extent.beyond.0 - extent.first.0;
            }
            Content::Arena => object.pages = extent.pages, // the pages of a pool are not contiguous
            _ => {}
        }
    }
    if let Some(&arena) = image.objects.get(&Content::Arena) {
        name_callers(image, tables, arena);
    }
    count_repeats(image, tables);
}

/// Sets how often objects were allocated repeatedly, from the log and the shared counters.
fn count_repeats(image: &Image, tables: &mut Tables) {
    let counted = image.pool.repeats();
    for (what, &id) in &image.objects {
        if let Content::Allocation { address, .. } = what {
            let logged = image.again.get(address).copied().unwrap_or_default();
            let number = image.repeats.get(address).and_then(|&n| counted.get(n));
            let all = logged + number.copied().unwrap_or_default();
            tables.profile.objects[id.index()].repeats = u32::try_from(all).unwrap_or(u32::MAX);
        }
    }
}

/// Sets the parts and the size of the pool's object from its call sites, largest first.
fn name_callers(image: &Image, tables: &mut Tables, arena: ObjectId) {
    let mut by_site: HashMap<SiteId, u64> = HashMap::new();
    for (caller, bytes) in image.pool.callers() {
        let site = tables.library.site(&image.modules, &[caller]);
        *by_site.entry(tables.site(site)).or_default() += bytes;
    }
    let mut parts: Vec<(SiteId, u64)> = by_site.into_iter().collect();
    parts.sort_unstable_by_key(|p| (std::cmp::Reverse(p.1), p.0));
    let object = &mut tables.profile.objects[arena.index()];
    object.bytes = parts.iter().map(|p| p.1).sum();
    object.parts = parts;
}
