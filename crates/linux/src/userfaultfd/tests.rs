use super::*;
use std::process::{Child, Command, Stdio};

#[test]
fn filters_of_system_calls_are_seen() {
    assert!(filtered("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
    assert!(!filtered("Seccomp:\t0\n"));
    assert!(!filtered(""));
}

#[test]
fn pages_with_given_addresses_are_left_out() {
    let mut window = Window {
        page_bytes: SMALL,
        count: 3,
        ..Window::default()
    };
    window.pages[..4].copy_from_slice(&[0x1000, 0x2000, 0x5000, 0x6000]); // the last is outside the window
    let left = window.without(&[0x2fff, 0x3000, 0x6000]);
    assert_eq!((left.count, &left.pages[..2]), (2, &[0x1000, 0x5000][..]));
    assert_eq!(window.without(&[]).count, 3);
}

/// A program that counts up in its memory for ever, and prints the address.
const COUNTS: &str = "
import ctypes, mmap, sys
memory = mmap.mmap(-1, 64 << 12, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(64): memory[page << 12] = 1
print(ctypes.addressof(ctypes.c_char.from_buffer(memory)), flush=True)
while True:
    for page in range(32): assert memory[page << 12] == 1
";

struct Counting(Child, u64);

impl Counting {
    fn new() -> Self {
        let mut child = Command::new("python3")
            .args(["-c", COUNTS])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut text).unwrap();
        Self(child, text.trim().parse().unwrap())
    }

    fn window(&self, from: u64) -> Window {
        let mut window = Window {
            start: self.1,
            bytes: 64 << 12,
            page_bytes: SMALL,
            milliseconds: 200,
            count: 16,
            ..Window::default()
        };
        for (page, at) in window.pages.iter_mut().zip(from..from + 16) {
            *page = self.1 + (at << 12);
        }
        window
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

fn sample(sampler: &mut Sampler, window: &Window) -> Reply {
    sampler.open(window).unwrap();
    loop {
        if let Some(reply) = sampler.reply().unwrap() {
            return reply;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn pages_come_back_as_they_are_used_and_at_the_end() {
    if works().is_err() {
        return; // an older kernel, or missing privileges, which `doctor` reports
    }
    let mut program = Counting::new();
    let host = Host::default();
    let areas = || host.maps(program.0.id()).unwrap().len();
    let before = areas();
    let mut sampler = Sampler::attach(&host, program.0.id()).unwrap();
    let used = sample(&mut sampler, &program.window(0));
    assert_eq!(
        (used.error, used.set_aside, used.untouched),
        (0, 16, 0),
        "{used:?}"
    );
    let unused = sample(&mut sampler, &program.window(40));
    assert_eq!(
        (unused.error, unused.set_aside, unused.untouched),
        (0, 16, 16),
        "{unused:?}"
    );
    drop(sampler);
    assert_eq!(areas(), before, "nothing of ours is left");
    assert_eq!(program.0.try_wait().unwrap(), None, "it goes on");
}

#[test]
fn who_has_ended_is_an_error() {
    let mut program = Counting::new();
    let host = Host::default();
    let Ok(mut sampler) = Sampler::attach(&host, program.0.id()) else {
        return;
    };
    program.0.kill().unwrap();
    program.0.wait().unwrap();
    let reply = sample(&mut sampler, &program.window(0));
    assert!(reply.gone(), "{reply:?}");
    assert!(matches!(
        Sampler::attach(&host, program.0.id()),
        Err(Refusal::Gone)
    ));
}
