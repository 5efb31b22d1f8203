//! Hostile and unusual requests, sent through raw sockets to a real server with short timeouts.

use super::{DocumentStore, MAX_EVENT_STREAMS, Server};
use crate::Documents;
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

mod connections;

struct Table(BTreeMap<&'static str, String>);

impl Documents for Table {
    fn document(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.0.get(name).map(|text| Cow::Borrowed(text.as_bytes()))
    }
}

fn documents(generation: u64) -> Arc<Table> {
    let session = format!("{{\"generation\":{generation}}}");
    let report = "x".repeat(300_000);
    Arc::new(Table(
        [("session.json", session), ("p/0/report.json", report)].into(),
    ))
}

/// A server that runs until the test ends.
struct Served {
    address: SocketAddr,
    token: String,
    store: DocumentStore,
}

impl Served {
    fn start() -> Self {
        let store = DocumentStore::new(documents(1));
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), store.clone()).unwrap();
        let (address, url) = (server.address, server.url());
        std::thread::spawn(move || server.run());
        let token = url.trim_end_matches('/').rsplit('/').next().unwrap().to_owned();
        Self {
            address,
            token,
            store,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// A request as a browser on this page makes it, with further headers.
    fn request(&self, method: &str, name: &str, more: &str) -> String {
        let Self { address, token, .. } = self;
        format!("{method} /{token}/{name} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n")
    }

    /// Sends these bytes, and reads the first response: status, and everything up to the end of the body or of the
    /// connection.
    fn answer(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The server may close the connection before it has read everything; the error is ignored.
        let _ = stream.write_all(bytes);
        Answer::read(&mut stream)
    }

    fn get(&self, name: &str) -> Answer {
        self.answer(self.request("GET", name, "").as_bytes())
    }

    fn works(&self) {
        assert_eq!(self.get("session.json").status, 200);
    }
}

struct Answer {
    /// 0 if the connection ended without a response.
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn read(stream: &mut TcpStream) -> Self {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).map_or(0, |s| s.parse().unwrap());
        let length = head.split("content-length: ").nth(1);
        let length = length.map_or(0, |l| l.split("\r\n").next().unwrap().parse().unwrap());
        let mut body = Vec::new();
        let _ = stream.take(length).read_to_end(&mut body);
        Self { status, head, body }
    }
}

#[test]
fn the_page_and_its_documents_are_served_with_strict_headers() {
    let served = Served::start();
    for (name, kind) in [
        ("", "text/html"),
        ("page.js", "text/javascript"),
        ("page.css", "text/css"),
        ("session.json", "application/json"),
        ("session.json?generation=7", "application/json"),
    ] {
        let answer = served.get(name);
        assert_eq!(answer.status, 200, "{name}");
        assert!(
            answer.head.contains(&format!("content-type: {kind}")),
            "{name}: {}",
            answer.head
        );
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "x-content-type-options: nosniff\r",
            "referrer-policy: no-referrer\r",
            "cache-control: no-store\r",
            "cross-origin-resource-policy: same-origin\r",
            "cross-origin-opener-policy: same-origin\r",
        ] {
            assert!(answer.head.contains(header), "{name}: {header}\n{}", answer.head);
        }
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
    assert_eq!(served.get("p/0/report.json").body.len(), 300_000);
    assert_eq!(served.get("p/1/report.json").status, 404);
}

#[test]
fn without_the_token_there_is_nothing() {
    let served = Served::start();
    let Served { address, token, .. } = &served;
    let shifted = format!("{}{}", &token[1..], &token[..1]);
    let flipped = token.replace(|c| c == token.chars().next().unwrap(), "g");
    for path in [
        "/".to_owned(),
        "/session.json".into(),
        "/favicon.ico".into(),
        "//".into(),
        format!("/{token}"),
        format!("//{token}/session.json"),
        format!("/{shifted}/session.json"),
        format!("/{flipped}/session.json"),
        format!("/{token}0/session.json"),
        format!("/{}/session.json", &token[..31]),
        format!("/{}/session.json", token.to_uppercase()),
        format!("/?{token}/session.json"),
        format!("/%{:02x}{}/session.json", token.as_bytes()[0], &token[1..]),
    ] {
        if path == format!("/{}/session.json", token) {
            continue; // shifted or raised, a token may be what it was
        }
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let answer = served.answer(request.as_bytes());
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{path}");
        assert!(answer.head.contains("connection: close"), "{path}");
    }
    served.works();
}

#[test]
fn other_pages_are_refused_though_they_know_the_token() {
    let served = Served::start();
    let (port, token) = (served.address.port(), &served.token);
    let path = format!("/{token}/session.json");
    for (what, request) in [
        (
            "rebound name",
            format!("GET {path} HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"),
        ),
        (
            "bare name",
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ),
        (
            "another port",
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"),
        ),
        ("no host", format!("GET {path} HTTP/1.0\r\n\r\n")),
        (
            "two hosts",
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n"),
        ),
        (
            "another authority",
            format!("GET http://evil.example{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
        ),
        (
            "foreign origin",
            served.request("GET", "session.json", "Origin: http://evil.example\r\n"),
        ),
        (
            "file's origin",
            served.request("GET", "session.json", "Origin: null\r\n"),
        ),
        (
            "cross-site",
            served.request("GET", "session.json", "Sec-Fetch-Site: cross-site\r\n"),
        ),
        (
            "same-site",
            served.request("GET", "", "Sec-Fetch-Site: same-site\r\n"),
        ),
    ] {
        let answer = served.answer(request.as_bytes());
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{what}");
    }
    let own = format!(
        "Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n",
        served.address
    );
    assert_eq!(
        served
            .answer(served.request("GET", "session.json", &own).as_bytes())
            .status,
        200
    );
    served.works();
}

#[test]
fn nothing_can_be_changed_or_sent() {
    let served = Served::start();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECTED"] {
        let answer = served.answer(served.request(method, "session.json", "").as_bytes());
        assert_eq!(answer.status, 405, "{method}");
        assert!(
            answer.head.contains("allow: get, head") && answer.head.contains("close"),
            "{method}"
        );
    }
    for body in [
        "Content-Length: 5\r\n",
        "Content-Length: 99999999999\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let request = served.request("GET", "session.json", body) + "hello";
        assert_eq!(served.answer(request.as_bytes()).status, 400, "{body}");
    }
    let head = served.answer(served.request("HEAD", "session.json", "").as_bytes());
    assert_eq!((head.status, head.body.len()), (200, 0));
    served.works();
}

#[test]
fn no_path_leads_out_of_the_documents() {
    let served = Served::start();
    let long = "a/".repeat(20_000);
    for name in [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "p/0/../../../etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "p\\..\\..",
        "p/0/report.json%00",
        "p/0/report.json/",
        "p/0/tile/-1/0",
        "p/0/tile/99999999999999999999/0",
        "p/18446744073709551616/report.json",
        "PAGE.JS",
        "page.js/",
        ".",
        "file:/etc/passwd",
        "%",
        "%zz",
        &long,
    ] {
        let answer = served.get(name);
        assert!(
            matches!(answer.status, 404 | 400),
            "{}: {}",
            &name[..name.len().min(40)],
            answer.status
        );
        assert!(answer.body.is_empty());
    }
    let nul = [
        served
            .request("GET", "p/0", "")
            .replace("p/0", "p\0/0")
            .as_bytes(),
        b"",
    ]
    .concat();
    assert_ne!(served.answer(&nul).status, 200);
    served.works();
}

#[test]
fn what_is_too_long_or_no_http_ends_the_connection() {
    let served = Served::start();
    let huge = format!("X-Long: {}\r\n", "a".repeat(1 << 20));
    let many: String = (0..5_000).map(|i| format!("X-{i}: a\r\n")).collect();
    for (what, request) in [
        ("a huge header", served.request("GET", "session.json", &huge)),
        ("many headers", served.request("GET", "session.json", &many)),
        ("a huge target", served.request("GET", &"a".repeat(1 << 20), "")),
        ("not http", "\x16\x03\x01\x02\0 hello\r\n\r\n".into()),
        (
            "another version",
            served
                .request("GET", "session.json", "")
                .replace("HTTP/1.1", "HTTP/9.9"),
        ),
        ("http 2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into()),
    ] {
        let status = served.answer(request.as_bytes()).status;
        assert!(status == 0 || (400..500).contains(&status), "{what}: {status}");
    }
    served.works();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let served = Served::start();
    let mut stream = served.connect();
    let requests = ["session.json", "p/0/report.json", "page.css"].map(|n| served.request("GET", n, ""));
    stream.write_all(requests.concat().as_bytes()).unwrap();
    let answers = [(); 3].map(|()| Answer::read(&mut stream));
    assert_eq!(answers.each_ref().map(|a| a.status), [200; 3]);
    assert_eq!(answers[1].body.len(), 300_000);
    assert!(answers[2].head.contains("text/css"));
}

#[test]
fn who_speaks_word_by_word_or_not_at_all_is_hung_up_on() {
    let served = Served::start();
    let mut silent = served.connect();
    let mut slow = served.connect();
    let hung_up = |stream: &mut TcpStream| stream.read(&mut [0; 64]).is_ok_and(|n| n == 0);
    slow.set_nonblocking(true).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let ended = (0..2_000).any(|i| {
        std::thread::sleep(Duration::from_millis(10));
        slow.write_all(format!("X-{i}: a\r\n").as_bytes()).is_err() || slow.read(&mut [0; 64]).is_ok()
    });
    assert!(ended, "a request that never ends keeps its connection");
    assert!(hung_up(&mut silent));
    let mut idle = served.connect();
    idle.write_all(served.request("GET", "session.json", "").as_bytes())
        .unwrap();
    assert_eq!(Answer::read(&mut idle).status, 200);
    assert!(hung_up(&mut idle));
}

/// Reads until this text was received.
fn await_text(stream: &mut TcpStream, text: &str) -> String {
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    while !seen.contains(text) {
        let n = stream.read(&mut bytes).unwrap();
        assert!(n > 0, "ended before {text:?}: {seen}");
        seen += std::str::from_utf8(&bytes[..n]).unwrap();
    }
    seen
}

#[test]
fn events_tell_of_each_change_and_keep_the_connection_alive() {
    let served = Served::start();
    let mut stream = served.connect();
    stream
        .write_all(served.request("GET", "events", "").as_bytes())
        .unwrap();
    let first = await_text(&mut stream, "id: 1\n");
    assert!(
        first.contains("text/event-stream") && first.contains("nosniff"),
        "{first}"
    );
    assert!(
        first.contains("event: session\ndata: {\"generation\":1}"),
        "{first}"
    );
    // Longer than the timeout of an idle connection.
    (0..12).for_each(|_| drop(await_text(&mut stream, ":")));
    served.store.replace(documents(2));
    let second = await_text(&mut stream, "id: 2\n");
    assert!(second.contains("data: {\"generation\":2}"), "{second}");
    served.store.interval("{\"pages_moved\":3}");
    await_text(&mut stream, "event: interval\ndata: {\"pages_moved\":3}\n\n");
}

#[test]
fn so_many_may_listen_and_one_that_leaves_makes_room() {
    let served = Served::start();
    let listen = || {
        let mut stream = served.connect();
        stream
            .write_all(served.request("GET", "events", "").as_bytes())
            .unwrap();
        let status = Answer::read(&mut stream).status;
        (status, stream)
    };
    let mut pages: Vec<_> = (0..MAX_EVENT_STREAMS).map(|_| listen()).collect();
    assert!(pages.iter().all(|(status, _)| *status == 200));
    assert_eq!(listen().0, 503);
    served.works();
    pages.pop();
    let freed = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        listen().0 == 200
    });
    assert!(freed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_bytes_get_nothing_and_harm_nobody(bytes in proptest::collection::vec(any::<u8>(), 0..300), after_token: bool) {
        let served = Served::start();
        let bytes = match after_token {
            true => [format!("GET /{}/", served.token).as_bytes(), &bytes, b"\r\n\r\n"].concat(),
            false => [&bytes[..], b"\r\n\r\n"].concat(),
        };
        let mut stream = served.connect();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answer = Answer::read(&mut stream);
        prop_assert!(after_token || answer.status != 200);
        served.works();
    }
}
