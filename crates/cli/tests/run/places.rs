//! Tests that `nodewise run --place` puts named memory where it says, by the trace of a pretended machine of four nodes.

use crate::running::{Bench, Object, Trace, preload};
use nodewise_machine::NodeId;
use std::process::Command;

/// Maps shared memory of every kind, 64 pages each; of the memfd its second half alone.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>
enum { BYTES = 64 * 4096 };
static void *map(int file, size_t bytes, long offset) {
    int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, offset);
    if (at == MAP_FAILED)
        exit(1);
    memset(at, 1, bytes);
    return at;
}
int main(int argc, char **argv) {
    int memfd = memfd_create("weights", 0), named = memfd_create("buffers.7", 0);
    if (ftruncate(memfd, BYTES) || ftruncate(named, BYTES))
        return 1;
    map(memfd, BYTES / 2, BYTES / 2);
    map(named, BYTES, 0);
    map(-1, BYTES, 0);
    int segment = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
    char *at = shmat(segment, NULL, 0);
    shmctl(segment, IPC_RMID, NULL);
    memset(at, 1, BYTES);
    char *heap = malloc(BYTES);
    heap[5] = 1;
    return shmdt(at) == 0 ? 7 : 2;
}
"#;

fn of_rule(trace: &Trace, rule: usize) -> Vec<&Object> {
    trace.objects.iter().filter(|o| o.rule == rule).collect()
}

/// The nodes of an object's pages.
fn nodes(trace: &Trace, object: &Object) -> Vec<u32> {
    let pages = object.page..object.page + object.pages;
    pages.map(|page| trace.node(page).map_or(9, |n| n.0)).collect()
}

#[test]
fn memory_is_placed_by_its_name_wherever_it_is_mapped() {
    let bench = Bench::new("places");
    let program = bench.compile("program", PROGRAM, &["-O1"]);
    let rules = [
        "memfd:weights=block",
        "memfd:buf*=node:2",
        "shared=cyclic 3,1",
        "sysv=weighted:1,0,0,1",
        "heap=node:1",
    ];
    let arguments: Vec<&str> = rules.iter().flat_map(|rule| ["--place", rule]).collect();
    // A script starts it: what is named is no one program's.
    let script = bench.script("start.sh", &format!("#!/bin/sh\n{program}\n"));
    let (output, trace) = bench.traced(&arguments, &script);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let one = |rule: usize| match of_rule(&trace, rule)[..] {
        [object] => nodes(&trace, object),
        ref several => panic!("rule {rule}: {several:?}"),
    };
    // The second half of an object of 64 pages, in four equal parts.
    assert_eq!(one(0), [[2; 16], [3; 16]].concat());
    assert_eq!(one(1), [2; 64]);
    assert_eq!(one(2), [3, 1].repeat(32));
    let turns = one(3);
    assert!(
        turns == [0, 3].repeat(32) || turns == [3, 0].repeat(32),
        "{turns:?}"
    );
    let heap = of_rule(&trace, 4);
    let own = heap
        .iter()
        .find(|o| o.pages >= 64)
        .expect("the allocation of 64 pages");
    assert_eq!(trace.node(own.page), Some(NodeId(1)));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("5 of 5 rules placed"), "{text}");
}

/// A server that root starts and that goes on as another user is placed, and says so.
#[test]
fn a_process_that_gives_up_being_root_reports() {
    let bench = Bench::new("drops");
    let program = bench.compile("program", PROGRAM, &["-O1"]);
    bench.open_to_all();
    let as_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let reads = format!("{as_nobody} test -r {} -a -x {program}", preload().display());
    if !Command::new("sh")
        .args(["-c", &reads])
        .status()
        .unwrap()
        .success()
    {
        return println!("skipped: not root, or another user cannot read the library");
    }
    let script = bench.script("start.sh", &format!("#!/bin/sh\nexec {as_nobody} {program}\n"));
    let (output, trace) = bench.traced(&["--place", "shared=node:2"], &script);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{text}");
    assert!(text.contains("1 of 1 rules placed 1 object"), "{text}");
    assert_eq!(nodes(&trace, of_rule(&trace, 0)[0]), [2; 64]);
}

#[test]
fn what_no_rule_names_stays_and_threads_are_not_bound() {
    let bench = Bench::new("unplaced");
    let program = bench.compile("program", PROGRAM, &["-O1"]);
    let (output, trace) = bench.traced(&["--place", "memfd:other=interleave"], &program);
    assert_eq!((output.status.code(), trace.text.as_str()), (Some(7), ""));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("unmatched rule: file `memfd:other`: no such object appeared"),
        "{text}"
    );
    let refused = bench.run(&["--place", "memfd=somewhere"], &program);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(
        (refused.status.code(), text.lines().count()),
        (Some(125), 1),
        "{text}"
    );
    assert!(
        text.contains("--place memfd=somewhere: how: interleave, block"),
        "{text}"
    );
}

#[test]
fn the_first_rule_that_names_it_holds_before_those_of_a_map() {
    let bench = Bench::new("order");
    let program = bench.compile("program", PROGRAM, &["-O1", "-g"]);
    let rule = |name: &str, distribution: &str| {
        format!(
            "[[rule]]\nkind = \"file\"\nname = \"{name}\"\ndistribution = \"{distribution}\"\npages = 64\n"
        )
    };
    let map = bench.map(
        "program",
        &(rule("memfd:*", "node 0") + &rule("sysv", "block by thread")),
    );
    let policy = format!("map:{}", map.path);
    let (output, trace) = bench.traced(
        &["--policy", &policy, "--place", "memfd:weights=node:3"],
        &program,
    );
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let placed: Vec<Vec<u32>> = (0..3)
        .map(|rule| nodes(&trace, of_rule(&trace, rule)[0]))
        .collect();
    assert_eq!(placed[0], [3; 32]);
    assert_eq!(placed[1], [0; 64]);
    assert_eq!(placed[2], [[0; 16], [1; 16], [2; 16], [3; 16]].concat());
}
