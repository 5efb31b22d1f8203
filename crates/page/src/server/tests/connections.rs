//! Tests many simultaneous clients that send nothing, little, or too much.

use super::super::listener::MAX_CONNECTIONS;
use super::{Answer, Served};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Time limit for a client with the token while other clients crowd the server; long, because other tests may keep the
/// host busy.
const ANSWERED: Duration = Duration::from_secs(1);

/// More connections than the server keeps, and fewer than a process may have descriptors.
const TOO_MANY: usize = 3 * MAX_CONNECTIONS;

/// Opens `count` connections, each of which sends `request`.
fn open_many(served: &Served, count: usize, request: &[u8]) -> Vec<TcpStream> {
    let one = |_: usize| {
        let mut stream = served.connect();
        // A connection that was evicted already cannot send.
        let _ = stream.write_all(request);
        stream
    };
    let mut all = Vec::new();
    for number in 0..count {
        all.push(one(number));
        if all.len() > TOO_MANY {
            all.remove(0); // sent away long ago; its descriptor may be needed
        }
    }
    all
}

fn answered_at_once(served: &Served) {
    for _ in 0..5 {
        let began = Instant::now();
        served.works();
        assert!(began.elapsed() < ANSWERED, "{:?}", began.elapsed());
    }
}

#[test]
fn silence_of_many_keeps_nobody_waiting() {
    let served = Served::start();
    for count in [MAX_CONNECTIONS + 50, 200, 1_000] {
        let silent = open_many(&served, count, b"");
        answered_at_once(&served);
        drop(silent);
    }
}

#[test]
fn many_who_speak_word_by_word_keep_nobody_waiting() {
    let served = Served::start();
    let _slow = open_many(&served, 300, b"GET / HTTP/1.1\r\nHost: a");
    answered_at_once(&served);
}

#[test]
fn many_without_the_token_who_do_not_read_keep_nobody_waiting() {
    let served = Served::start();
    let _deaf = open_many(&served, 300, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    answered_at_once(&served);
}

#[test]
fn the_page_outlives_those_who_come_after_it() {
    let served = Served::start();
    let mut page = served.connect();
    let ask = |page: &mut TcpStream| {
        page.write_all(served.request("GET", "session.json", "").as_bytes())
            .unwrap();
        Answer::read(page).status
    };
    let mut silent = Vec::new();
    // The page sends requests meanwhile, because the idle timeout is short in tests.
    for _ in 0..10 {
        assert_eq!(ask(&mut page), 200);
        silent.extend(open_many(&served, MAX_CONNECTIONS / 5, b""));
    }
    assert_eq!(ask(&mut page), 200);
    // The first of the silent connections was evicted, the last one is still open.
    let (mut first, last) = (&silent[0], silent.last().unwrap());
    assert_eq!(first.read(&mut [0; 8]).unwrap_or(0), 0);
    last.set_nonblocking(true).unwrap();
    assert!(
        { last }.read(&mut [0; 8]).is_err(),
        "nothing to read yet, and no end"
    );
}

#[test]
fn whoever_has_said_all_is_answered_or_hung_up_on() {
    let served = Served::start();
    for request in [
        served.request("GET", "session.json", ""),
        "GET / HT".into(),
        String::new(),
    ] {
        let mut half = served.connect();
        half.write_all(request.as_bytes()).unwrap();
        half.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        let _ = half.read_to_end(&mut all);
        assert!(all.is_empty() || all.starts_with(b"HTTP/1.1 "));
    }
    served.works();
}
