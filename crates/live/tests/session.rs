//! A live loop around a running process, without a command line or a terminal.

use nodewise_linux::Host;
use nodewise_live::{Event, Options, Session, Subscriber, Target, Topology};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happened, a word each; samples are not counted.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn receive(&mut self, at: Duration, event: &Event<'_>) -> Result<(), String> {
        let word = match event {
            Event::Notice(line) => (*line).to_owned(),
            Event::Paused(paused) => format!("paused {paused}"),
            Event::Sampled(_) | Event::Found(_) => return Ok(()),
            Event::Complete(status) => format!("complete {}", status.intervals),
            Event::ThreadsMoved(moved) => format!("threads of {}", moved.pid),
            Event::Decided(decided) => format!("decided by {}", decided.policy),
            Event::Updated(status) => format!("updated {} by {at:?}", status.intervals),
            Event::Ended(status) => format!("ended {:?}", status.status),
        };
        self.0.lock().unwrap().push(word);
        Ok(())
    }
}

/// Set in the process that is balanced.
const TARGET: &str = "NODEWISE_TEST_TARGET";
/// Set where hint faults have to be observable: the test may not be skipped.
const MUST: &str = "NODEWISE_TEST_HINT_FAULTS";

struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This test's program again, with a second thread: the kernel samples no process of one.
fn sleeper() -> Sleeper {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "target", "--nocapture"]).env(TARGET, "");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("ready")));
    Sleeper(child)
}

#[test]
fn target() {
    if std::env::var_os(TARGET).is_some() {
        std::thread::spawn(|| println!("ready")).join().unwrap();
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
        std::thread::sleep(Duration::from_secs(600));
    }
}

fn options() -> Options {
    Options {
        interval: Duration::from_millis(50),
        ..Options::default()
    }
}

#[test]
fn each_interval_is_complete_decided_and_told_until_the_end() {
    let sleeper = sleeper();
    let target = Target::Processes(vec![sleeper.0.id()]);
    let topology = Topology::this(&Host::default(), None, Some(2)).unwrap();
    let mut session = match Session::new(&options(), &target, topology, None) {
        Ok(session) => session,
        Err(error) => {
            assert!(std::env::var_os(MUST).is_none(), "{error}");
            println!("SKIPPED: hint faults cannot be observed here: {error}");
            return;
        }
    };
    let log = Log::default();
    session.subscribe(log.clone());
    session.begin();
    let intervals = || {
        let told = log.0.lock().unwrap();
        told.iter().filter(|w| w.starts_with("updated")).count()
    };
    while intervals() < 2 {
        session.turn();
    }
    session.pause();
    session.resume();
    assert_eq!(session.processes(), [sleeper.0.id()]);
    drop(sleeper);
    while !session.processes().is_empty() {
        session.turn();
    }
    session.finish(None).unwrap();

    let told = log.0.lock().unwrap();
    let at = |word: &str| told.iter().position(|w| w.starts_with(word)).unwrap();
    assert!(at("complete 0") < at("decided by dominant"), "{told:?}");
    assert!(at("decided by dominant") < at("updated 1"), "{told:?}");
    assert!(at("updated 1") < at("complete 1"), "{told:?}");
    assert!(at("paused true") < at("paused false"), "{told:?}");
    assert_eq!(told.last().unwrap(), "ended None");
}

#[test]
fn what_cannot_be_balanced_is_an_error_in_one_line() {
    let topology = || Topology::this(&Host::default(), None, Some(2)).unwrap();
    let ended = {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let sleeper = sleeper();
    let no_policy = Options {
        policy: "nearest".into(),
        ..options()
    };
    let refused = [
        (options(), ended, ended.to_string()),
        (no_policy, sleeper.0.id(), "nearest".to_owned()),
    ];
    for (options, pid, named) in refused {
        let target = Target::Processes(vec![pid]);
        let error = Session::new(&options, &target, topology(), None)
            .err()
            .expect("a refusal")
            .to_string();
        assert!(error.contains(&named) && !error.contains('\n'), "{error}");
    }
}
