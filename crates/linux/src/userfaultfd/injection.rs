//! System calls made by a thread of another process, by `ptrace`. Nothing here allocates: it runs in a forked child.

use super::abi::errno;
use std::mem::MaybeUninit;
use std::ptr;

const SEIZE: libc::c_uint = 0x4206;
const INTERRUPT: libc::c_uint = 0x4207;
const GET_MASK: libc::c_uint = 0x420a;
const SET_MASK: libc::c_uint = 0x420b;
const GET_RSEQ: libc::c_uint = 0x420f;
const TRACE_SYSTEM_CALLS: usize = 1;
const TRACE_CLONES: usize = 1 << 3;
/// `PTRACE_O_SUSPEND_SECCOMP`: filters do not apply to the calls that are made; needs `CAP_SYS_ADMIN`.
const SUSPEND_FILTERS: usize = 1 << 21;
/// What a call returns that a stop ended early, before the kernel has seen to its going on.
const RESTARTS: [i64; 3] = [-512, -513, -514];
const RESTARTS_WITH_BLOCK: i64 = -516;
/// The signal by which a system call's beginning and end are told.
const CALL: i32 = libc::SIGTRAP | 0x80;
/// How often it is looked whether a thread has stopped, and how many times.
const LOOK_NS: i64 = 50_000;
const LOOKS: u32 = 10_000;
/// The code segment of 64-bit programs.
const LONG_MODE: u64 = 0x33;
/// A thread of the same process with memory, files and signals in common, whose end is not signalled.
const THREAD: u64 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM) as u64;

/// How often a thread is interrupted again that is in a restartable sequence.
const RSEQ_TRIES: u32 = 100;

/// The memory of a process by its `/proc/PID/mem`, which stays that memory's when the process executes another program.
#[derive(Clone, Copy)]
pub struct Memory(pub i32);

impl Memory {
    /// Reads as many bytes as fit; the error's number if there are fewer.
    pub fn read(self, from: u64, bytes: &mut [u8]) -> Result<(), i32> {
        // SAFETY: writes at most as many bytes as there are.
        let got = unsafe {
            libc::pread(
                self.0,
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                from as libc::off_t,
            )
        };
        whole(got, bytes.len())
    }

    /// Writes all of them, or the error's number.
    pub fn write(self, to: u64, bytes: &[u8]) -> Result<(), i32> {
        // SAFETY: reads bytes of ours.
        let got = unsafe { libc::pwrite(self.0, bytes.as_ptr().cast(), bytes.len(), to as libc::off_t) };
        whole(got, bytes.len())
    }

    fn word(self, from: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(from, &mut bytes).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }
}

fn whole(got: isize, wanted: usize) -> Result<(), i32> {
    match got {
        -1 => Err(errno()),
        0 => Err(libc::ESRCH), // the process has ended
        got if got as usize == wanted => Ok(()),
        _ => Err(libc::EFAULT),
    }
}

/// Whether a thread is in a restartable sequence (`rseq`): made to run elsewhere and set back into it, it would not be restarted when it
/// should be.
fn in_restartable_sequence(tid: i32, at: u64, memory: Memory) -> bool {
    // struct ptrace_rseq_configuration: where its structure is, its size and signature, and flags.
    let mut configuration = [0_u64; 3];
    let size = size_of_val(&configuration);
    if trace(GET_RSEQ, tid, size, configuration.as_mut_ptr() as usize).is_err() || configuration[0] == 0 {
        return false;
    }
    // struct rseq: at byte 8 the address of struct rseq_cs; there, at bytes 8 and 16, its start and length.
    let sequence = memory.word(configuration[0] + 8).filter(|address| *address != 0);
    let bounds = sequence.and_then(|address| Some((memory.word(address + 8)?, memory.word(address + 16)?)));
    bounds.is_some_and(|(start, length)| at.wrapping_sub(start) < length)
}

/// A thread of another process that is stopped by us.
pub struct Stopped {
    tid: i32,
    /// Where the instruction `syscall` stands in its memory.
    instruction: u64,
    /// As they were when it was interrupted.
    registers: libc::user_regs_struct,
    mask: u64,
}

impl Stopped {
    /// Interrupts a thread of the program; the error's number if that fails. It keeps no signal from its process: all are
    /// blocked until it is let go on. `filtered`: its system calls are filtered. `memory`: the process's.
    pub fn interrupt(tid: u32, instruction: u64, filtered: bool, memory: Memory) -> Result<Self, i32> {
        let tid = tid as i32;
        // Filters may come later, too.
        let mut options = TRACE_SYSTEM_CALLS | SUSPEND_FILTERS;
        if trace(SEIZE, tid, 0, options).is_err() {
            if filtered {
                return Err(libc::EPERM);
            }
            options = TRACE_SYSTEM_CALLS;
            trace(SEIZE, tid, 0, options)?;
        }
        for _ in 0..RSEQ_TRIES {
            trace(INTERRUPT, tid, 0, 0)?;
            wait_interrupted(tid)?;
            let registers = registers(tid)?;
            if registers.cs != LONG_MODE {
                return Err(libc::ENOEXEC);
            }
            if !in_restartable_sequence(tid, registers.rip, memory) {
                // Not before it has stopped: a thread that it starts until then is the program's.
                trace(libc::PTRACE_SETOPTIONS, tid, 0, options | TRACE_CLONES)?;
                return Self::with_signals_blocked(tid, instruction, registers);
            }
            trace(libc::PTRACE_CONT, tid, 0, 0)?;
            sleep_a_moment();
        }
        Err(libc::ETIMEDOUT)
    }

    fn with_signals_blocked(
        tid: i32,
        instruction: u64,
        registers: libc::user_regs_struct,
    ) -> Result<Self, i32> {
        let (mut mask, all) = (0_u64, u64::MAX);
        trace(GET_MASK, tid, 8, (&raw mut mask) as usize)?;
        trace(SET_MASK, tid, 8, (&raw const all) as usize)?;
        Ok(Self {
            tid,
            instruction,
            registers,
            mask,
        })
    }

    /// Makes a system call; its result, or the error's number.
    pub fn call(&self, number: i64, arguments: [u64; 6]) -> Result<u64, i32> {
        self.set(&self.calling(number, arguments))?;
        self.next_stop(Stop::Call)?; // its beginning
        self.next_stop(Stop::Call)?; // its end
        let result = self.result();
        // If we are killed it goes on, and is not to run into what code comes next.
        self.set(&self.calling(libc::SYS_pause, [0; 6]))?;
        result
    }

    /// Goes on to the next stop of a kind: all threads of its process may be stopped meanwhile.
    fn next_stop(&self, wanted: Stop) -> Result<(), i32> {
        loop {
            trace(libc::PTRACE_SYSCALL, self.tid, 0, 0)?;
            if wait(self.tid, libc::PTRACE_SYSCALL)? == wanted {
                return Ok(());
            }
        }
    }

    fn calling(&self, number: i64, arguments: [u64; 6]) -> libc::user_regs_struct {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        libc::user_regs_struct {
            rip: self.instruction,
            rax: number as u64,
            orig_rax: u64::MAX, // in no system call: nothing to go on with
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.registers
        }
    }

    fn result(&self) -> Result<u64, i32> {
        match registers(self.tid)?.rax as i64 {
            error @ -4095..=-1 => Err(-error as i32),
            result => Ok(result as u64),
        }
    }

    fn set(&self, registers: &libc::user_regs_struct) -> Result<(), i32> {
        trace(
            libc::PTRACE_SETREGS,
            self.tid,
            0,
            ptr::from_ref(registers) as usize,
        )
    }

    /// Starts a thread in the process, stopped as well. It has all signals blocked, so that none of its process's goes to it.
    pub fn start_thread(&self) -> Result<Self, i32> {
        self.set(&self.calling(libc::SYS_clone, [THREAD, 0, 0, 0, 0, 0]))?;
        let mut new = 0_u64;
        self.next_stop(Stop::Call)?;
        loop {
            trace(libc::PTRACE_SYSCALL, self.tid, 0, 0)?;
            match wait(self.tid, libc::PTRACE_SYSCALL)? {
                Stop::Clone => trace(libc::PTRACE_GETEVENTMSG, self.tid, 0, (&raw mut new) as usize)?,
                Stop::Call => break,
                Stop::Other => {}
            }
        }
        self.result()?;
        wait(new as i32, libc::PTRACE_CONT)?;
        let registers = libc::user_regs_struct {
            rsp: 0, // it has no stack: the program's thread goes on with that
            rbp: 0,
            ..registers(new as i32)?
        };
        Ok(Self {
            tid: new as i32,
            registers,
            ..*self
        })
    }

    /// The thread goes on where it was interrupted, as after a stop and a continuation by signals.
    pub fn go_on(self) {
        // At the end of a system call the kernel does not look whether an earlier one has to be made again.
        let mut registers = self.registers;
        if registers.orig_rax as i64 >= 0 {
            let again = match registers.rax as i64 {
                result if RESTARTS.contains(&result) => Some(registers.orig_rax),
                RESTARTS_WITH_BLOCK => Some(libc::SYS_restart_syscall as u64),
                _ => None,
            };
            if let Some(number) = again {
                registers.rax = number;
                registers.rip -= 2; // the length of the instruction
            }
            registers.orig_rax = u64::MAX;
        }
        let _ = self.set(&registers);
        let mask = self.mask;
        let _ = trace(SET_MASK, self.tid, 8, (&raw const mask) as usize);
        let _ = trace(libc::PTRACE_DETACH, self.tid, 0, 0);
    }

    /// A thread of ours sleeps until [`Stopped::wake`]: stops and ends of its process do not wait for us, and if we end it sleeps on.
    pub fn sleep(&self) -> Result<(), i32> {
        self.set(&self.calling(libc::SYS_pause, [0; 6]))?;
        trace(libc::PTRACE_CONT, self.tid, 0, 0)
    }

    pub fn wake(&self) -> Result<(), i32> {
        trace(INTERRUPT, self.tid, 0, 0)?;
        wait(self.tid, libc::PTRACE_CONT).map(|_| ())
    }

    /// Sees to a sleeping thread of ours: lets it go on sleeping after a stop of its process. Whether it is still there; a process
    /// that ends or executes another program waits until we have seen that.
    pub fn keep_asleep(&self) -> bool {
        let mut status = 0;
        // SAFETY: writes one number of ours.
        match unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL | libc::WNOHANG) } {
            0 => true,
            -1 => false,
            _ if !libc::WIFSTOPPED(status) => false,
            // A signal that stops all of its process is the process's to take.
            _ if status >> 16 == 0 => {
                trace(libc::PTRACE_CONT, self.tid, 0, libc::WSTOPSIG(status) as usize).is_ok()
            }
            _ => self.sleep().is_ok(),
        }
    }

    /// A thread of ours is scheduled as any, whatever the thread was that started it (one of a real-time policy that never sleeps
    /// would keep it from running), and first among those: threads of the program wait for what it does.
    pub fn schedule(&self) {
        let parameters = libc::sched_param { sched_priority: 0 };
        let all = [u64::MAX; 128];
        // SAFETY: both read memory of ours.
        unsafe {
            libc::sched_setscheduler(self.tid, libc::SCHED_OTHER, &raw const parameters);
            libc::syscall(
                libc::SYS_sched_setaffinity,
                self.tid,
                size_of_val(&all),
                all.as_ptr(),
            );
            libc::setpriority(libc::PRIO_PROCESS, self.tid as libc::id_t, -20);
        }
    }

    /// A thread of ours ends.
    pub fn exit(self) {
        let _ = self.set(&self.calling(libc::SYS_exit, [0; 6]));
        let _ = trace(libc::PTRACE_CONT, self.tid, 0, 0);
        let _ = wait(self.tid, libc::PTRACE_CONT); // its end
    }
}

/// Why a thread stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// A system call begins or ends.
    Call,
    /// A thread was started.
    Clone,
    /// We interrupted it, or its process was stopped.
    Other,
}

fn registers(tid: i32) -> Result<libc::user_regs_struct, i32> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
    trace(libc::PTRACE_GETREGS, tid, 0, registers.as_mut_ptr() as usize)?;
    // SAFETY: the kernel filled all of it.
    Ok(unsafe { registers.assume_init() })
}

fn trace(request: libc::c_uint, tid: i32, address: usize, data: usize) -> Result<(), i32> {
    // SAFETY: every caller passes what its request reads or writes: numbers, or addresses of memory that is large enough.
    match unsafe { libc::ptrace(request, tid, address, data) } {
        -1 => Err(errno()),
        _ => Ok(()),
    }
}

/// Until a thread that was interrupted has stopped.
fn wait_interrupted(tid: i32) -> Result<(), i32> {
    for _ in 0..LOOKS {
        if stop(tid, libc::WNOHANG, libc::PTRACE_CONT)?.is_some() {
            return Ok(());
        }
        sleep_a_moment();
    }
    Err(libc::ETIMEDOUT)
}

pub fn sleep_a_moment() {
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: LOOK_NS,
    };
    // SAFETY: reads a time of ours.
    unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
}

/// Until a thread has stopped: in a call that has to wait for its turn to change the memory's map, that may take long, but a
/// thread is not left in the middle of one. A signal that it is about to take is passed on; it goes on by `request` then.
fn wait(tid: i32, request: libc::c_uint) -> Result<Stop, i32> {
    loop {
        if let Some(stop) = stop(tid, 0, request)? {
            return Ok(stop);
        }
    }
}

fn stop(tid: i32, options: i32, request: libc::c_uint) -> Result<Option<Stop>, i32> {
    let mut status = 0;
    // SAFETY: writes one number of ours.
    match unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | options) } {
        -1 => return Err(errno()),
        0 => return Ok(None),
        _ if !libc::WIFSTOPPED(status) => return Err(libc::ESRCH),
        _ => {}
    }
    Ok(match (libc::WSTOPSIG(status), status >> 16) {
        (CALL, _) => Some(Stop::Call),
        (_, libc::PTRACE_EVENT_CLONE) => Some(Stop::Clone),
        (signal, 0) => {
            trace(request, tid, 0, signal as usize)?;
            None
        }
        _ => Some(Stop::Other),
    })
}
