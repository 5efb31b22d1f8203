//! Tests the page as a single file: it uses no network, stays small, and names cannot break out of their context.

mod sample;

use nodewise_page::{SessionDocuments, file};
use nodewise_profile::*;
use sample::{Sample, machine};
use std::sync::Arc;

const ALL: &str = "first-touch,random,interleave,round-robin,locality,balanced,mixed,frequency,weighted";
const MOST: usize = 5_000_000;

fn page(samples: &[Sample], policies: &str) -> String {
    let views = samples.iter().map(|s| Arc::new(s.made(policies).view));
    file::write(&SessionDocuments::new(views.collect(), false, 0, None))
}

/// The page without its script, its style and its data.
fn markup(page: &str) -> String {
    let mut rest = page;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("<s") {
        plain.push_str(before);
        let end = if after.starts_with("tyle") {
            "</style>"
        } else {
            "</script>"
        };
        rest = after.split_once(end).unwrap().1;
    }
    plain + rest
}

fn row(page: u64, len: u32, thread: u32, reads: u64) -> Access {
    Access {
        page: PageNumber(page),
        len,
        thread: ThreadId(thread),
        reads,
        lines: reads,
        ..Access::default()
    }
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    let page = markup(&page(
        &[Sample::new(machine(4), vec![row(0, 300, 0, 3)])],
        "first-touch,locality",
    ));
    for trace in ["http:", "https:", " src=", "@import", "url(", "//"] {
        assert!(!page.contains(trace), "{trace}");
    }
    assert_eq!(
        page.matches(" href=").count(),
        page.matches(" href=\"data:,\"").count()
    );
}

#[test]
fn hostile_names_stay_text() {
    let evil = "</script></noscript></title><script>document.title='owned'</script><img src=x onerror=alert()>{{script}}";
    let plain = || Sample::new(machine(4), vec![row(0, 300, 0, 3), row(100, 50, 1, 9)]);
    let mut hostile = plain();
    hostile.profile.meta.command = vec![evil.into()];
    hostile.profile.objects[0].name = evil.into();
    hostile.machine.title = evil.into();
    let (plain, hostile) = (
        page(&[plain()], "first-touch,locality"),
        page(&[hostile], "first-touch,locality"),
    );
    for tag in ["<script", "</script", "<img", "</noscript", "</title"] {
        assert_eq!(hostile.matches(tag).count(), plain.matches(tag).count(), "{tag}");
    }
}

/// Pseudo-random numbers, the same in each run.
fn noise(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}

#[test]
fn a_hundred_thousand_pages_that_all_threads_use_at_random_fit() {
    let mut state = 88_172_645_463_325_252;
    let mut rows = Vec::new();
    for page in 0..100_000 {
        for thread in 0..64 {
            rows.push(row(page, 1, thread, noise(&mut state) % 100_000));
        }
    }
    let size = page(&[Sample::new(machine(8), rows)], ALL).len();
    assert!(size <= MOST, "{size}");
}

#[test]
fn two_profiles_share_what_one_may_take() {
    let mut state = 88_172_645_463_325_252;
    let mut rows = Vec::new();
    for page in 0..50_000 {
        for i in 0..4 {
            let thread = (page as u32 * 7 + i * 5) % 64;
            rows.push(row(page, 1, thread, noise(&mut state) % 9999));
        }
    }
    let size = page(
        &[
            Sample::new(machine(8), rows.clone()),
            Sample::new(machine(8), rows),
        ],
        ALL,
    )
    .len();
    assert!(size <= MOST, "{size}");
}

#[test]
fn thousands_of_objects_with_long_names_and_slices_fit() {
    let mut state = 88_172_645_463_325_252;
    let object = |o: u64| Access {
        object: ObjectId(o as u32),
        slice: SliceId(o as u32),
        ..row(3 * o, 2, o as u32 % 64, 1 + o)
    };
    let mut sample = Sample::new(machine(4), (0..20_000).map(object).collect());
    for object in &mut sample.profile.objects {
        let name: Vec<String> = (0..20).map(|_| format!("{:x}", noise(&mut state))).collect();
        object.name = name.join("::");
    }
    let size = page(&[sample], "first-touch,locality").len();
    assert!(size <= MOST, "{size}");
}
