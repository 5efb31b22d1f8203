//! Makes system calls in a thread of another process, by `ptrace`. Nothing here allocates, as it runs in a forked
//! child.

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
/// `PTRACE_O_SUSPEND_SECCOMP`: seccomp filters do not apply to the injected calls; needs `CAP_SYS_ADMIN`.
const SUSPEND_FILTERS: usize = 1 << 21;
/// The kernel-internal results of an interrupted call (`-ERESTARTSYS` and others) before the kernel decides on its
/// restart.
const RESTARTS: [i64; 3] = [-512, -513, -514];
const RESTARTS_WITH_BLOCK: i64 = -516;
/// The stop signal that reports entry to or exit from a system call (`PTRACE_O_TRACESYSGOOD`).
const CALL: i32 = libc::SIGTRAP | 0x80;
/// The interval at which to check whether a thread has stopped, and the largest number of checks.
const LOOK_NS: i64 = 50_000;
const LOOKS: u32 = 10_000;
/// The code segment selector of 64-bit programs.
const LONG_MODE: u64 = 0x33;
/// `clone` flags for a thread that shares memory, files and signal handlers with its process and sends no signal when
/// it ends.
const THREAD: u64 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM) as u64;

/// How many times a thread is interrupted again when it was inside a restartable sequence.
const RSEQ_TRIES: u32 = 100;

/// The memory of a process through an open `/proc/PID/mem`, which still means the same memory after the process
/// executes another program.
#[derive(Clone, Copy)]
pub struct Memory(pub i32);

impl Memory {
    /// Fills `bytes`; the error number if that many cannot be read.
    pub fn read(self, from: u64, bytes: &mut [u8]) -> Result<(), i32> {
        // SAFETY: writes at most `bytes.len()` bytes.
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

    /// Writes all of `bytes`; else the error number.
    pub fn write(self, to: u64, bytes: &[u8]) -> Result<(), i32> {
        // SAFETY: reads from a borrowed slice.
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

/// Whether a thread is in a restartable sequence (`rseq`). If it ran our system call and was set back into the
/// sequence, the kernel would not restart the sequence when it should.
fn in_restartable_sequence(tid: i32, at: u64, memory: Memory) -> bool {
    // struct ptrace_rseq_configuration: address of the thread's struct rseq, its size, its signature, and flags.
    let mut configuration = [0_u64; 3];
    let size = size_of_val(&configuration);
    if trace(GET_RSEQ, tid, size, configuration.as_mut_ptr() as usize).is_err() || configuration[0] == 0 {
        return false;
    }
    // struct rseq has at byte 8 the address of a struct rseq_cs, which has the start and length at bytes 8 and 16.
    let sequence = memory.word(configuration[0] + 8).filter(|address| *address != 0);
    let bounds = sequence.and_then(|address| Some((memory.word(address + 8)?, memory.word(address + 16)?)));
    bounds.is_some_and(|(start, length)| at.wrapping_sub(start) < length)
}

/// A thread of another process that we have stopped.
pub struct Stopped {
    tid: i32,
    /// Address of an instruction `syscall` in its memory.
    instruction: u64,
    /// The registers and, in `mask`, the blocked signals at the interruption, to be restored.
    registers: libc::user_regs_struct,
    mask: u64,
}

impl Stopped {
    /// Interrupts a thread of the program; the error number if that fails. All signals are blocked in it until
    /// [`Stopped::resume`], so that other threads take the signals of the process. `filtered`: a seccomp filter
    /// restricts its system calls. `memory`: the process's memory.
    pub fn interrupt(tid: u32, instruction: u64, filtered: bool, memory: Memory) -> Result<Self, i32> {
        let tid = tid as i32;
        // Suspended in any case, as a filter may be added later.
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
                // Set only after the stop: a thread that is started before it belongs to the program and must not be
                // traced.
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

    /// Makes a system call in the thread. Returns its result, or the error number.
    pub fn call(&self, number: i64, arguments: [u64; 6]) -> Result<u64, i32> {
        self.set(&self.calling(number, arguments))?;
        self.next_stop(Stop::Call)?; // entry
        self.next_stop(Stop::Call)?; // exit
        let result = self.result();
        // If we are killed, the thread continues; it must not run into the code behind the instruction.
        self.set(&self.calling(libc::SYS_pause, [0; 6]))?;
        result
    }

    /// Continues to the next stop of a kind; other stops, as when the whole process is stopped, are passed over.
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
            orig_rax: u64::MAX, // not in a system call: the kernel restarts nothing
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

    /// Starts a thread in the process, also stopped. All its signals are blocked, so that it takes none of the
    /// process's.
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
            rsp: 0, // no stack of its own: the program's thread continues on that one
            rbp: 0,
            ..registers(new as i32)?
        };
        Ok(Self {
            tid: new as i32,
            registers,
            ..*self
        })
    }

    /// Lets the thread continue where it was interrupted, as after SIGSTOP and SIGCONT.
    pub fn resume(self) {
        // At the exit from our system call the kernel does not check whether an earlier call must be restarted; we do
        // it here.
        let mut registers = self.registers;
        if registers.orig_rax as i64 >= 0 {
            let again = match registers.rax as i64 {
                result if RESTARTS.contains(&result) => Some(registers.orig_rax),
                RESTARTS_WITH_BLOCK => Some(libc::SYS_restart_syscall as u64),
                _ => None,
            };
            if let Some(number) = again {
                registers.rax = number;
                registers.rip -= 2; // the length of the instruction `syscall`
            }
            registers.orig_rax = u64::MAX;
        }
        let _ = self.set(&registers);
        let mask = self.mask;
        let _ = trace(SET_MASK, self.tid, 8, (&raw const mask) as usize);
        let _ = trace(libc::PTRACE_DETACH, self.tid, 0, 0);
    }

    /// Lets our thread sleep until [`Stopped::wake`]. Stops and the end of its process do not wait for us meanwhile; if
    /// we end, it keeps sleeping.
    pub fn sleep(&self) -> Result<(), i32> {
        self.set(&self.calling(libc::SYS_pause, [0; 6]))?;
        trace(libc::PTRACE_CONT, self.tid, 0, 0)
    }

    pub fn wake(&self) -> Result<(), i32> {
        trace(INTERRUPT, self.tid, 0, 0)?;
        wait(self.tid, libc::PTRACE_CONT).map(|_| ())
    }

    /// Handles a stop of our sleeping thread, so that it continues to sleep; whether it still exists. A process that
    /// ends or executes another program waits until we have reaped the thread.
    pub fn keep_asleep(&self) -> bool {
        let mut status = 0;
        // SAFETY: the kernel writes one number to a local variable.
        match unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL | libc::WNOHANG) } {
            0 => true,
            -1 => false,
            _ if !libc::WIFSTOPPED(status) => false,
            // A signal that stops the whole process is delivered.
            _ if status >> 16 == 0 => {
                trace(libc::PTRACE_CONT, self.tid, 0, libc::WSTOPSIG(status) as usize).is_ok()
            }
            _ => self.sleep().is_ok(),
        }
    }

    /// Gives our thread the normal scheduling policy and the highest priority in it, as threads of the program wait for
    /// its work. It would inherit the policy of the thread that started it otherwise; below a real-time thread that
    /// never sleeps it would not run. It may use all CPUs.
    pub fn schedule(&self) {
        let parameters = libc::sched_param { sched_priority: 0 };
        let all = [u64::MAX; 128];
        // SAFETY: both calls read local variables.
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

    /// Ends our thread and waits until it has ended.
    pub fn exit(self) {
        let _ = self.set(&self.calling(libc::SYS_exit, [0; 6]));
        let _ = trace(libc::PTRACE_CONT, self.tid, 0, 0);
        let _ = wait(self.tid, libc::PTRACE_CONT); // its end
    }
}

/// Why a thread stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Entry to or exit from a system call.
    Call,
    /// The thread started another one.
    Clone,
    /// We interrupted it, or its whole process was stopped.
    Other,
}

fn registers(tid: i32) -> Result<libc::user_regs_struct, i32> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
    trace(libc::PTRACE_GETREGS, tid, 0, registers.as_mut_ptr() as usize)?;
    // SAFETY: the kernel has filled the whole structure.
    Ok(unsafe { registers.assume_init() })
}

fn trace(request: libc::c_uint, tid: i32, address: usize, data: usize) -> Result<(), i32> {
    // SAFETY: every caller passes what its request needs: numbers, or addresses of memory that is large enough.
    match unsafe { libc::ptrace(request, tid, address, data) } {
        -1 => Err(errno()),
        _ => Ok(()),
    }
}

/// Waits until an interrupted thread has stopped, for a limited time.
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
    // SAFETY: reads a local variable.
    unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
}

/// Waits without limit until a thread has stopped. A call that waits for the lock on the process's mappings may take
/// long, but a thread cannot be left inside a system call. A signal on its way to the thread is delivered, and the
/// thread continues by `request`.
fn wait(tid: i32, request: libc::c_uint) -> Result<Stop, i32> {
    loop {
        if let Some(stop) = stop(tid, 0, request)? {
            return Ok(stop);
        }
    }
}

fn stop(tid: i32, options: i32, request: libc::c_uint) -> Result<Option<Stop>, i32> {
    let mut status = 0;
    // SAFETY: the kernel writes one number to a local variable.
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
