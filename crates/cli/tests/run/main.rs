//! Tests that `nodewise run` places pages on the right nodes, by the trace of a pretended machine, and that it does not
//! change the program's behaviour.

mod levels;
mod places;
mod running;

use nodewise_machine::NodeId;
use nodewise_placement::{ObjectPage, Placement};
use running::{Bench, Trace};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::process::Command;

/// Every distribution, runs, sequences, allocating threads, statics, and a placement in this many
/// pieces that it must be populated.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double field[40000];
static char *allocate(size_t pages) { return malloc(pages * 4096 - 100); }
static void *worker(void *unused) {
    (void)unused;
    return malloc(32 * 4096);
}
int main(void) {
    char *blocks = allocate(999);
    char *shares = allocate(100);
    char *turns[3];
    for (int i = 0; i < 3; i++)
        turns[i] = malloc(64 * 4096);
    char *many = calloc(3000, 4096);
    pthread_t threads[3];
    void *own[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], &own[i]);
    memset(blocks, 1, 5000);
    memset(shares, 1, 5000);
    field[3] = 4;
    printf("%d\n", blocks[4] + shares[4] + turns[2][0] + many[0] + (own[2] != NULL) + (int)field[3]);
    for (int i = 0; i < 3; i++)
        free(turns[i]), free(own[i]);
    free(blocks), free(shares), free(many);
    return 7;
}
"#;

const RULES: &str = r#"
[[rule]]
kind = "heap"
site = "allocate program.c:6 < main program.c:12"
distribution = "block by thread repeat 3"
pages = 999
runs = "5-9:3 998:2"
[[rule]]
kind = "heap"
site = "allocate program.c:6 < main program.c:13"
distribution = "block 2:0.5 0:0.25 1:0.25"
pages = 1
runs = "0:3"
[[rule]]
kind = "heap"
site = "main program.c:16"
sequence = 1
distribution = "node 3"
pages = 64
[[rule]]
kind = "heap"
site = "main program.c:16"
distribution = "interleave 0,1,2,3"
pages = 64
[[rule]]
kind = "heap"
site = "main program.c:17"
distribution = "interleave 3,0,2"
pages = 3000
[[rule]]
kind = "heap"
site = "worker program.c:9"
distribution = "allocator"
pages = 32
[[rule]]
kind = "static"
name = "field"
distribution = "block by thread"
pages = 79
"#;

/// The node of a page by the definition of the placement.
fn expected(map: &Placement, threads: &[NodeId], object: &running::Object, page: u64) -> Option<NodeId> {
    let at = ObjectPage {
        index: page - object.page,
        pages: object.pages,
        number: page,
        turn: page - object.page,
        thread: object.thread,
    };
    map.rules[object.rule].node(at, threads)
}

#[test]
fn every_page_goes_where_the_rules_say() {
    let bench = Bench::new("pages");
    let program = bench.compile("program", PROGRAM, &["-O1", "-g", "-pthread"]);
    let map = bench.map("program", RULES);
    let (output, trace) = bench.traced(&["--policy", &format!("map:{}", map.path)], &program);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(output.stdout, b"7\n");
    let objects: Vec<_> = trace.objects.iter().filter(|o| o.rule < 7).collect();
    let mut rules: Vec<_> = objects.iter().map(|o| o.rule).collect();
    rules.sort_unstable();
    assert_eq!(rules, [0, 1, 2, 3, 3, 4, 5, 5, 5, 6]);
    let threads = trace.thread_nodes(&map.placement, 4);
    for object in objects {
        for page in object.page..object.page + object.pages {
            let wanted = expected(&map.placement, &threads, object, page);
            assert_eq!(
                trace.node(page),
                wanted,
                "{object:?}, page {}",
                page - object.page
            );
        }
    }
    assert!(
        trace.text.contains("populate"),
        "3000 pages dealt out of order take no mappings"
    );
}

#[test]
fn without_debug_information_functions_and_their_order_tell_sites_apart() {
    let bench = Bench::new("names");
    let program = bench.compile("program", PROGRAM, &["-O0", "-pthread"]);
    let map = bench.map("program", RULES);
    let (output, trace) = bench.traced(&["--policy", &format!("map:{}", map.path)], &program);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("by function names"),
        "{output:?}"
    );
    let rule = |pages| trace.objects.iter().find(|o| o.pages == pages).map(|o| o.rule);
    assert_eq!(
        [rule(999), rule(100), rule(64), rule(3000)],
        [Some(0), Some(1), Some(3), Some(4)]
    );
}

#[test]
fn another_object_size_keeps_the_distribution_and_drops_the_runs() {
    let bench = Bench::new("size");
    let larger = PROGRAM.replace("allocate(999)", "allocate(3996)");
    let program = bench.compile("program", &larger, &["-O1", "-g", "-pthread"]);
    let map = bench.map("program", RULES);
    let (_, trace) = bench.traced(&["--policy", &format!("map:{}", map.path)], &program);
    let object = trace.objects.iter().find(|o| o.rule == 0).unwrap();
    let threads = trace.thread_nodes(&map.placement, 4);
    assert_eq!(object.pages, 3996);
    assert_eq!(
        trace.node(object.page + 6),
        Some(threads[0]),
        "a run of the recorded size is not applied"
    );
    assert_eq!(trace.node(object.page + object.pages - 1), Some(threads[3]));
}

#[test]
fn interleave_goes_by_page_number_and_needs_no_map() {
    let bench = Bench::new("interleave");
    let program = bench.compile("program", PROGRAM, &["-O1", "-pthread"]);
    let (output, trace) = bench.traced(&["--policy", "interleave"], &program);
    assert_eq!(output.status.code(), Some(7));
    let object = trace.objects.iter().find(|o| o.pages == 999).unwrap();
    for page in object.page..object.page + object.pages {
        assert_eq!(trace.node(page), Some(NodeId((page % 4) as u32)));
    }
}

#[test]
fn threads_are_bound_in_the_order_of_their_creation() {
    let bench = Bench::new("threads");
    let program = bench.compile("program", PROGRAM, &["-O1", "-pthread"]);
    let (_, trace) = bench.traced(&["--bind", "scatter", "--threads", "4"], &program);
    assert_eq!(trace.bound, [(0, 0), (1, 4), (2, 8), (3, 12)]);
    let (_, trace) = bench.traced(&["--bind", "none"], &program);
    assert_eq!(trace, Trace::default());
}

#[test]
fn a_number_of_threads_is_passed_on_and_checked() {
    let bench = Bench::new("count");
    let program = bench.compile("program", PROGRAM, &["-O1", "-g", "-pthread"]);
    let planned = |threads| {
        let (output, _) = bench.traced(&["--threads", threads], &program);
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(!planned("4").contains("planned for"), "{}", planned("4"));
    assert!(
        planned("7").contains("planned for 7 threads, 4 came"),
        "{}",
        planned("7")
    );
    let asks = bench.script("asks.sh", "#!/bin/sh\necho $OMP_NUM_THREADS\n");
    assert_eq!(bench.run(&["--threads", "3"], &asks).stdout, b"3\n");
}

#[test]
fn a_large_machines_map_fills_every_node_of_a_small_one() {
    let bench = Bench::new("smaller");
    let program = bench.compile("program", PROGRAM, &["-O1", "-g", "-pthread"]);
    let map = bench.map("program", RULES);
    let large = std::fs::read_to_string(&map.path)
        .unwrap()
        .replace("nodes = 4\n", "nodes = 16\n")
        .replace("[0, 1, 2, 3]", "[3, 7, 11, 15]")
        .replace("\"scatter\"", "\"sharing-aware\"");
    std::fs::write(&map.path, large).unwrap();
    let (_, trace) = bench.traced(&["--policy", &format!("map:{}", map.path)], &program);
    assert_eq!(trace.bound, [(0, 0), (1, 4), (2, 8), (3, 12)]);
}

#[test]
fn a_map_of_another_program_is_applied_as_far_as_it_goes() {
    let bench = Bench::new("other");
    let source = PROGRAM.replace("allocate", "obtain");
    let program = bench.compile("different", &source, &["-O1", "-g", "-pthread"]);
    let map = bench.map("program", RULES);
    let (output, _) = bench.traced(&["--policy", &format!("map:{}", map.path)], &program);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        errors.contains("the map is of `program`, this is `different`: 5 of 7 rules match"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(7));
}

/// Cases in which preload libraries often fail: fork, vfork and exec, starting other programs, dlopen, early
/// allocation.
const DIFFICULT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *large(void) { char *p = malloc(1 << 20); memset(p, 1, 1 << 20); return p; }
static void *leave(void *p) { free(p); pthread_exit(large()); }
int main(int argc, char **argv) {
    int status, sum = 0;
    if (argc > 1) return large()[9] + 10;
    char *kept = large();
    if (fork() == 0) { free(kept); _exit(large()[5] + 1); }
    wait(&status), sum += WEXITSTATUS(status);
    if (vfork() == 0) { execl(argv[0], argv[0], "again", (char *)0); _exit(99); }
    wait(&status), sum += WEXITSTATUS(status);
    if (vfork() == 0) _exit(1);
    wait(&status), sum += WEXITSTATUS(status);
    char *words[] = {"sh", "-c", "exit 5", 0};
    pid_t child;
    posix_spawnp(&child, "sh", 0, 0, words, environ);
    waitpid(child, &status, 0), sum += WEXITSTATUS(status);
    void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL), *end;
    sum += ((double (*)(double))dlsym(library, "sqrt"))(16.0) == 4.0;
    dlclose(library);
    pthread_t thread;
    pthread_create(&thread, NULL, leave, kept);
    pthread_join(thread, &end);
    end = realloc(end, 3 << 20);
    sum += ((char *)end)[(1 << 20) - 1];
    end = realloc(end, 100);
    sum += ((char *)end)[99];
    free(end);
    printf("%d\n", sum);
    fflush(stdout);
    _exit(sum);
}
"#;

#[test]
fn fork_exec_dlopen_and_thread_exit_are_survived() {
    let bench = Bench::new("difficult");
    let program = bench.compile("program", DIFFICULT, &["-O1", "-g", "-pthread"]);
    let plain = bench.plain(&program);
    assert_eq!(plain.stdout, b"22\n", "the program itself: {plain:?}");
    let rules = r#"
[[rule]]
kind = "heap"
site = "large program.c:11 < main program.c:16"
distribution = "interleave 0,1,2,3"
pages = 256
"#;
    let map = bench.map("program", rules);
    for policy in [format!("map:{}", map.path), "interleave".into()] {
        let (output, trace) = bench.traced(&["--policy", &policy], &program);
        assert_eq!(output.stdout, plain.stdout, "{output:?}");
        assert_eq!(output.status.code(), plain.status.code());
        assert!(
            trace.objects.len() > 4,
            "children of the same program are placed too"
        );
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("switched off"),
            "{output:?}"
        );
    }
}

#[test]
fn a_damaged_table_switches_placement_off_and_nothing_else() {
    let bench = Bench::new("damaged");
    let program = bench.compile("program", PROGRAM, &["-O1", "-pthread"]);
    let folder = bench.folder.join("placement");
    std::fs::create_dir_all(&folder).unwrap();
    let mut table = bench.table(&program);
    for (at, byte) in [(0, 1), (17, 200), (60, 255), (72, 255)] {
        let before = std::mem::replace(&mut table[at], byte);
        std::fs::write(folder.join("table"), &table).unwrap();
        table[at] = before;
        let output = bench.preloaded(&program, &folder);
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(7), &b"7\n"[..])
        );
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            errors.starts_with("nodewise: placement switched off: ") && errors.lines().count() == 1,
            "{errors}"
        );
    }
}

#[test]
fn own_failures_are_one_line_and_125_to_127() {
    let bench = Bench::new("failures");
    let still = bench.compile("still", PROGRAM, &["-O1", "-static", "-pthread"]);
    let plain = bench.compile("program", PROGRAM, &["-O1", "-pthread"]);
    let map = format!("map:{}", bench.map("program", RULES).path);
    let script = bench.script("start.sh", "#!/bin/sh\nexit 0\n");
    for (policy, program, status, says) in [
        ("first-touch", "/nonexistent/program", 127, "no such program"),
        ("magic", plain.as_str(), 125, "unknown policy `magic`"),
        ("locality", plain.as_str(), 125, "needs a profile"),
        ("map:/nonexistent.map", plain.as_str(), 125, "cannot read the map"),
        (map.as_str(), still.as_str(), 125, "statically linked"),
        (map.as_str(), script.as_str(), 125, "start program itself"),
    ] {
        let output = bench.run(&["--policy", policy], program);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert!(errors.contains(says) && errors.lines().count() == 1, "{errors}");
    }
}

#[test]
fn a_dry_run_shows_the_plan_and_starts_nothing() {
    let bench = Bench::new("dry");
    let program = bench.compile("program", PROGRAM, &["-O1", "-g", "-pthread"]);
    let map = bench.map("program", RULES);
    let output = bench.run(
        &["--policy", &format!("map:{}", map.path), "--dry-run", "--json"],
        &program,
    );
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(plan["rules_found"], 7);
    // A file's name need not be UTF-8.
    let odd = bench.folder.join(OsStr::from_bytes(b"map\xff.map"));
    std::fs::copy(&map.path, &odd).unwrap();
    let policy = [OsStr::new("map:"), odd.as_os_str()].join(OsStr::new(""));
    let mut command = Command::new(running::NODEWISE);
    command
        .args(["run", "--dry-run", "--json", "--policy"])
        .arg(policy);
    let again = command.args(["--", &program]).output().unwrap();
    assert_eq!(again.stdout, output.stdout, "{again:?}");
    assert!(
        plan["rules"][6]["places"][0]
            .as_str()
            .unwrap()
            .ends_with("320000 bytes"),
        "{plan}"
    );
}

#[test]
fn a_report_is_written_and_never_overwritten() {
    let bench = Bench::new("report");
    let program = bench.compile("program", PROGRAM, &["-O1", "-g", "-pthread"]);
    let map = format!("map:{}", bench.map("program", RULES).path);
    let report = bench.folder.join("report.json").display().to_string();
    let arguments = ["--policy", &map, "--summary", &report];
    let (output, _) = bench.traced(&arguments, &program);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(value["achieved"]["rules"][3]["objects"], 2);
    assert_eq!(
        value["achieved"]["rules"][3]["wanted"],
        serde_json::json!([32, 32, 32, 32])
    );
    assert_eq!(
        bench.run(&arguments, &program).status.code(),
        Some(125),
        "--force is missing"
    );
}

#[test]
fn signals_go_on_to_the_program_and_its_death_comes_back() {
    let bench = Bench::new("signals");
    let waiting = bench.script(
        "wait.sh",
        "#!/bin/sh\ntrap 'exit 42' TERM\necho ready\nwhile :; do sleep 0.05; done\n",
    );
    assert_eq!(bench.signalled(&waiting, "TERM"), Some(42));
    let dying = bench.script("die.sh", "#!/bin/sh\nkill -9 $$\n");
    assert_eq!(bench.run(&[], &dying).status.code(), Some(137));
}

/// A program that prints the addresses of its objects, closes every descriptor that it has not opened, and writes a
/// file.
const SEEN: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int field[100000];
static void say(const char *name, void *at, int thread) {
    printf("%s %d %lx %d\n", name, (int)getpid(), (unsigned long)at >> 12, thread);
    fflush(stdout);
}
static void *worker(void *ordinal) {
    say("thread", malloc(100000), (int)(long)ordinal);
    return NULL;
}
int main(int count, char **arguments) {
    pthread_t thread;
    for (int file = 3; file < 100; file++)
        close(file);
    char path[4096];
    snprintf(path, sizeof path, "%s.own", arguments[count - 1]);
    int own = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    field[5000] = 1;
    say("data", &field[5000], 0);
    say("main", malloc(1 << 20), 0);
    for (int i = 0; i < 2000; i++)
        free(malloc(70000));
    say("later", malloc(70000), 0);
    pthread_create(&thread, NULL, worker, (void *)1);
    pthread_join(thread, NULL);
    fflush(stdout);
    if (fork() == 0)
        say("child", calloc(40, 4096), 0), _exit(0);
    wait(NULL);
    return lseek(own, 0, SEEK_END) == 0 ? 5 : 6;
}
"#;

/// Whether the kernel shows this process the frame numbers of its pages, which needs privileges.
fn frames_are_shown() -> bool {
    let mine = 7u64;
    let mut entry = [0; 8];
    let at = (&raw const mine as u64) / 4096 * 8;
    let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
    pagemap.read_exact_at(&mut entry, at).unwrap();
    u64::from_le_bytes(entry) & ((1 << 55) - 1) != 0
}

/// `<process> = <page> <frame> <pages>`, as `--objects` has them of processes that ended and may see frames.
fn frames(file: &str) -> Vec<(u32, u64, u64)> {
    let text = std::fs::read_to_string(file).unwrap();
    let line = |line: &str| {
        let (process, rest) = line.split_once(" = ")?;
        let words: Vec<_> = rest.split(' ').collect();
        assert!(words.len() == 3 && words[1] != "0", "{line}");
        let page = u64::from_str_radix(words[0], 16).unwrap();
        Some((process.parse().unwrap(), page, words[2].parse().unwrap()))
    };
    text.lines().filter_map(line).collect()
}

/// `<process> <rule> <page> <pages> <thread>`, as `--objects` writes it.
fn seen(file: &str) -> Vec<(u32, Option<u32>, u64, u64, u32)> {
    let text = std::fs::read_to_string(file).unwrap();
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(words.len(), 5, "{line}");
        (
            words[0].parse().unwrap(),
            (words[1] != "-").then(|| words[1].parse().unwrap()),
            u64::from_str_radix(words[2], 16).unwrap(),
            words[3].parse().unwrap(),
            words[4].parse().unwrap(),
        )
    };
    text.lines().filter(|l| !l.contains(" = ")).map(line).collect()
}

#[test]
fn objects_are_told_by_every_process_and_thread_and_nothing_is_placed() {
    let bench = Bench::new("seen");
    let program = bench.compile("program", SEEN, &["-O1", "-pthread"]);
    let file = bench.folder.join("objects").display().to_string();
    let (output, trace) = bench.traced(&["--bind", "none", "--objects", &file], &program);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(trace, Trace::default(), "seeing asks nothing of the kernel");
    let objects = seen(&file);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout.lines().count(), 5);
    for line in stdout.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let page = u64::from_str_radix(words[2], 16).unwrap();
        let found = objects.iter().any(|(process, rule, first, pages, thread)| {
            words[1] == process.to_string()
                && words[3] == thread.to_string()
                && rule.is_none()
                && (*first..first + pages).contains(&page)
        });
        assert!(found, "{line}: {objects:?}");
    }
    let frames = frames(&file);
    for (process, page, pages) in &frames {
        let whole = |(of, _, first, all, _): &(u32, Option<u32>, u64, u64, u32)| {
            of == process && first <= page && page + pages <= first + all
        };
        assert!(
            objects.iter().any(whole),
            "{process} = {page:x} {pages}: {objects:?}"
        );
    }
    assert_eq!(!frames.is_empty(), frames_are_shown());
    let again = bench.run(&["--objects", &file], &program);
    assert_eq!(again.status.code(), Some(125), "--force is missing");
}

#[test]
fn seeing_objects_changes_nothing_of_a_map() {
    let bench = Bench::new("seen-map");
    let program = bench.compile("program", PROGRAM, &["-O1", "-g", "-pthread"]);
    let map = format!("map:{}", bench.map("program", RULES).path);
    let file = bench.folder.join("objects").display().to_string();
    let (_, without) = bench.traced(&["--policy", &map], &program);
    let (output, with) = bench.traced(&["--policy", &map, "--objects", &file], &program);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let shapes = |t: &Trace| t.objects.iter().map(|o| (o.rule, o.pages)).collect::<Vec<_>>();
    assert_eq!(shapes(&with), shapes(&without));
    let ruled = seen(&file).iter().filter(|o| o.1.is_some()).count();
    assert_eq!(
        ruled,
        with.objects.len(),
        "every object of this program falls under a rule"
    );
}

#[test]
fn arguments_need_not_be_text() {
    let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .args(["run", "--", "printf", "%s"])
        .arg(OsStr::from_bytes(b"a\xff"))
        .output()
        .unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"a\xff"[..]));
}
