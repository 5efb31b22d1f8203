use super::*;
use std::path::PathBuf;

/// A process as `/proc` reports it: threads, CPU time in ticks of 10 ms, resident pages.
struct Told(PathBuf);

impl Told {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("nodewise-roles-{test}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("proc/7")).unwrap();
        Self(root)
    }

    fn host(&self, threads: u64, ticks: u64, resident: u64) -> Host {
        let mut fields = ["0"; 50].map(str::to_owned);
        fields[14 - 3] = ticks.to_string();
        fields[20 - 3] = threads.to_string();
        fields[24 - 3] = resident.to_string();
        std::fs::write(
            self.0.join("proc/7/stat"),
            format!("7 (a) b) {}", fields.join(" ")),
        )
        .unwrap();
        Host::at(&self.0)
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn milliseconds(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn the_first_look_comes_when_several_threads_have_had_time_to_begin() {
    let (told, start) = (Told::new("first"), Instant::now());
    let mut process = Process::new(start);
    assert!(
        !process.begin_look_if_due(&told.host(1, 9, 100), 7, start),
        "one thread"
    );
    let second_thread_at = start + milliseconds(100);
    assert!(!process.begin_look_if_due(&told.host(4, 9, 100), 7, second_thread_at));
    assert!(!process.begin_look_if_due(&told.host(9, 9, 100), 7, second_thread_at + milliseconds(20)));
    assert!(
        process.begin_look_if_due(&told.host(9, 9, 100), 7, second_thread_at + FIRST),
        "more threads do not put it off"
    );
    assert_eq!(process.age(second_thread_at + FIRST), FIRST);
    // Threads that appear during the interval between looks end the interval, which is long where looks cost much.
    process.cost = milliseconds(10_000);
    (0..9).for_each(|_| process.looked(second_thread_at + FIRST));
    let later = second_thread_at + milliseconds(5000);
    assert!(
        !process.begin_look_if_due(&told.host(9, 9, 100), 7, later),
        "for a minute"
    );
    assert!(!process.begin_look_if_due(&told.host(10, 9, 100), 7, later));
    assert!(process.begin_look_if_due(&told.host(10, 9, 100), 7, later + FIRST));
}

#[test]
fn looks_cost_no_more_than_their_share_and_no_long_stop() {
    let (told, start) = (Told::new("share"), Instant::now());
    let mut process = Process::new(start);
    let later = |n: u64| start + milliseconds(1000 * n);
    assert!(!process.begin_look_if_due(&told.host(3, 0, MOST_WATCHED_PAGES + 1), 7, start));
    assert!(!process.begin_look_if_due(&told.host(3, 0, MOST_WATCHED_PAGES + 1), 7, later(1)));
    assert!(process.why().unwrap().contains("resident"));
    // Two further threads add credit of 20 ms each: enough for 40,000 pages of 1 us.
    assert!(!process.begin_look_if_due(&told.host(3, 0, 40_001), 7, later(2)));
    assert!(process.why().unwrap().contains("2 %"));
    assert!(process.begin_look_if_due(&told.host(3, 0, 40_000), 7, later(3)));
    assert_eq!(process.begins(Duration::ZERO, later(3)), milliseconds(40));
    process.looked(later(3));
    // The next look must be paid for by CPU time: 2 % of 2 s.
    assert!(!process.begin_look_if_due(&told.host(3, 199, 40_000), 7, later(5)));
    assert!(process.begin_look_if_due(&told.host(3, 201, 40_000), 7, later(6)));
}

#[test]
fn a_huge_page_counts_as_one() {
    let (told, start) = (Told::new("huge"), Instant::now());
    let mut process = Process::new(start);
    let huge = |megabytes: u64| {
        let rollup = format!(
            "1000-ffff ---p 0 00:00 0 [rollup]\nAnonHugePages: {} kB\n",
            megabytes << 10
        );
        std::fs::write(told.0.join("proc/7/smaps_rollup"), rollup).unwrap();
    };
    let later = |n: u64| start + milliseconds(1000 * n);
    huge(0);
    // 8 GiB in small pages are too much.
    assert!(!process.begin_look_if_due(&told.host(9, 9999, 2 << 20), 7, start));
    assert!(!process.begin_look_if_due(&told.host(9, 9999, 2 << 20), 7, later(1)));
    assert!(process.why().unwrap().contains("huge page"));
    // All but 64 MiB of it became huge pages: 16,384 entries, and one for each of 4,064 huge pages.
    huge((8 << 10) - 64);
    assert!(process.begin_look_if_due(&told.host(9, 9999, 2 << 20), 7, later(2)));
    assert_eq!(process.begins(Duration::ZERO, later(2)), FAULT * (16_384 + 4_064));
}

#[test]
fn a_thread_keeps_its_role_until_another_is_seen_and_loses_it_when_it_ends() {
    let mut process = Process::new(Instant::now());
    let saw = |process: &mut Process, node, times| (0..times).for_each(|_| process.saw(8, NodeId(node), 1.0));
    let role = |process: &Process| process.seen.get(&8).and_then(Seen::belongs).map(|(node, _)| node);
    saw(&mut process, 1, 3);
    assert_eq!(role(&process), None, "three say nothing");
    saw(&mut process, 1, 1);
    assert_eq!((role(&process), process.is_fresh(8)), (Some(NodeId(1)), true));
    process.begins(Duration::ZERO, Instant::now());
    assert_eq!((role(&process), process.is_fresh(8)), (Some(NodeId(1)), false));
    saw(&mut process, 0, 4);
    assert_eq!(role(&process), Some(NodeId(0)));
    process.keep(&[]);
    assert_eq!(role(&process), None);
}

#[test]
fn looks_become_rare_while_nothing_changes() {
    let start = Instant::now();
    let mut process = Process::new(start);
    process.multithreaded_since = Some(start);
    let mut pauses = Vec::new();
    for _ in 0..3 {
        process.looked(start);
        pauses.push(process.rest(start));
    }
    assert_eq!(pauses, [400, 800, 1600].map(milliseconds));
    (0..9).for_each(|_| process.looked(start));
    assert_eq!(process.rest(start), LONGEST_INTERVAL);
    // In 100 s it has used 200 s of CPU time, of which 4 ms are 0.2 % in a second, and 40 ms in ten.
    let now = start + milliseconds(100_000);
    for (cost, rest) in [(4, 1000), (40, 10_000), (400, 60_000)] {
        (process.cpu, process.cost) = (milliseconds(200_000), milliseconds(cost));
        (0..9).for_each(|_| process.looked(now));
        assert_eq!(process.rest(now), milliseconds(rest));
    }
    process.moved(8, start);
    process.looked(start);
    assert_eq!(process.rest(start), MOVE_COOLDOWN);
    assert!(!process.may_move(8, start + milliseconds(900)) && process.may_move(8, start + MOVE_COOLDOWN));
}
