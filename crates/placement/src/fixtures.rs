//! Small machines and profiles for tests.

use crate::Context;
use nodewise_analysis::{Affinity, Histogram, compact_order};
use nodewise_machine::{CpuId, Machine, Node, Route};
use nodewise_profile::{
    Access, FirstTouch, Frame, InMemory, Object, ObjectId, ObjectKind, PageNumber, Profile, Site, SiteId,
    Thread, ThreadId,
};

/// Nodes with equally many CPUs; remote latency is twice the local one, and node n has (n + 1) GB/s.
pub(crate) fn machine(nodes: u32, cpus: u32) -> Machine {
    let node = |n: u32| Node {
        os_index: n,
        cpus: (n * cpus..(n + 1) * cpus).map(CpuId).collect(),
        memory: 1 << 30,
        bandwidth: 1000.0 * f64::from(n + 1),
        kind: None,
        socket: None,
        cache: None,
    };
    let latency = |r, m| if r == m { 100.0 } else { 200.0 };
    Machine {
        name: "test".into(),
        title: String::new(),
        page_size: 4096,
        nodes: (0..nodes).map(node).collect(),
        latency_ns: (0..nodes)
            .map(|r| (0..nodes).map(|m| latency(r, m)).collect())
            .collect(),
        links: Vec::new(),
        routes: vec![vec![Route::default(); nodes as usize]; nodes as usize],
        hop_rules: Vec::new(),
        backplane: None,
        sources: Vec::new(),
    }
}

/// A profile, its histogram and where it runs.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub profile: Profile,
    pub histogram: Histogram,
    pub affinity: Affinity,
    pub machine: Machine,
}

/// Pages of an object, and the accesses of thread t to its page i.
pub(crate) type Pattern<'a> = (u64, &'a dyn Fn(u64, u32) -> u64);

impl Recorded {
    /// Threads are bound to CPUs node by node; each object has a site of its own and is first touched by thread 0.
    pub fn new(machine: Machine, threads: u32, objects: &[Pattern<'_>]) -> Self {
        let mut profile = empty_profile(threads);
        let (mut rows, mut next) = (Vec::new(), 1000);
        for (pages, accesses) in objects {
            let id = profile.objects.len() as u32;
            add_object(&mut profile, next, *pages);
            for index in 0..*pages {
                for thread in 0..threads {
                    let row = Access {
                        object: ObjectId(id),
                        thread: ThreadId(thread),
                        page: PageNumber(next + index),
                        len: 1,
                        reads: accesses(index, thread),
                        ..Access::default()
                    };
                    rows.extend((row.reads > 0).then_some(row));
                }
            }
            next += pages + 13;
        }
        let histogram = Histogram::build(&InMemory::new(rows), threads as usize, 0).unwrap();
        let affinity = Affinity::of_cpus("compact", &profile, &machine, &compact_order(&machine));
        Self {
            profile,
            histogram,
            affinity,
            machine,
        }
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            profile: &self.profile,
            histogram: &self.histogram,
            affinity: &self.affinity,
            machine: &self.machine,
        }
    }
}

fn empty_profile(threads: u32) -> Profile {
    let thread = |n| Thread {
        openmp: Some(n),
        ..Thread::default()
    };
    Profile {
        threads: (0..threads).map(thread).collect(),
        objects: vec![Object::default()],
        sites: vec![Site::default()],
        ..Profile::default()
    }
}

/// A heap object with a site of its own, first touched by thread 0.
fn add_object(profile: &mut Profile, first_page: u64, pages: u64) {
    let id = profile.objects.len() as u32;
    let frame = Frame {
        function: "make".into(),
        file: "a.c".into(),
        line: id,
    };
    profile.sites.push(Site { frames: vec![frame] });
    profile.objects.push(Object {
        kind: ObjectKind::Heap,
        name: format!("array{id}"),
        site: SiteId(id),
        first_page: PageNumber(first_page),
        pages,
        bytes: pages << 12,
        ..Object::default()
    });
    profile.first_touches.push(FirstTouch {
        page: PageNumber(first_page),
        len: pages as u32,
        object: ObjectId(id),
        ..FirstTouch::default()
    });
}
