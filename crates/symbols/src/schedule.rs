//! Determines the schedule of an OpenMP construct from the runtime functions that its body calls.

use crate::called::{BODY, CallTargets, MAX_FUNCTION_BYTES, code_at};
use crate::module::Module;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use nodewise_profile::Schedule;
use object::{Object, ObjectSymbol, SymbolKind};

impl Module {
    /// The schedule of the outlined function at an address; `None` if it is unknown or the code is not x86-64. If the
    /// function contains several schedules, the one that depends least on thread numbers is returned.
    ///
    /// GCC's static loops call the runtime only for the thread number and the team size. Any other use of both also
    /// makes the division of work depend on the thread number, and counts as static.
    #[must_use]
    pub fn schedule(&self, address: u64) -> Option<Schedule> {
        self.schedule_of(address, true)
    }

    /// If `follows` is set and the function is clang's wrapper for the debugger, the wrapped body is examined.
    fn schedule_of(&self, address: u64, follows: bool) -> Option<Schedule> {
        let elf = self.elf();
        let covers = |s: &object::Symbol<'_, '_>| {
            s.kind() == SymbolKind::Text
                && (s.address()..s.address().saturating_add(s.size())).contains(&address)
        };
        let body = elf.symbols().find(covers).filter(|_| self.is_x86_64())?;
        let bytes = code_at(&elf, body.address(), body.size().min(MAX_FUNCTION_BYTES))?;
        let called = self.called.get_or_init(|| CallTargets::of(&elf));
        let name = body.name().unwrap_or_default();
        if name.contains(".omp_task_entry") || called.tasks.contains(&body.address()) {
            return Some(Schedule::Tasks);
        }
        let inside = body.address()..body.address() + bytes.len() as u64;
        let mut decoder = Decoder::with_ip(64, bytes, body.address(), DecoderOptions::NONE);
        let (mut instruction, mut third, mut most) = (Instruction::default(), None, None);
        let (mut number, mut size) = (false, false);
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_register() == Register::EDX
                && instruction.op1_kind() == OpKind::Immediate32
            {
                third = Some(instruction.immediate32());
            }
            let target = instruction.near_branch_target();
            if !matches!(instruction.mnemonic(), Mnemonic::Call | Mnemonic::Jmp) || inside.contains(&target) {
                continue;
            }
            let found = match called.name(&elf, &instruction) {
                Some(wrapped) if follows && wrapped.contains(BODY) => self.schedule_of(target, false),
                Some(function) => {
                    number |= function == "omp_get_thread_num";
                    size |= function == "omp_get_num_threads";
                    requested_schedule(function, third)
                }
                None => None,
            };
            if rank(found) > rank(most) {
                most = found;
            }
        }
        most.or((number && size).then_some(Schedule::Static))
    }
}

/// Rank of a schedule if a construct contains several; the same order as in the compiler's `region.cpp`.
fn rank(schedule: Option<Schedule>) -> usize {
    const RANKS: [Schedule; 7] = [
        Schedule::Static,
        Schedule::Auto,
        Schedule::Runtime,
        Schedule::Guided,
        Schedule::Dynamic,
        Schedule::Ordered,
        Schedule::Tasks,
    ];
    schedule.map_or(0, |s| 1 + RANKS.iter().position(|r| *r == s).unwrap_or(0))
}

/// The schedule that a call of the runtime function `name` requests; `third` is its third argument if that is a
/// constant.
fn requested_schedule(name: &str, third: Option<u32>) -> Option<Schedule> {
    let has = |part: &str| name.contains(part);
    if let Some(name) = name.strip_prefix("GOMP_") {
        return match name {
            "task" | "taskloop" | "taskloop_ull" => Some(Schedule::Tasks),
            _ if name.starts_with("sections") => Some(Schedule::Tasks),
            _ if (has("_ordered_") || has("_doacross_")) && (has("_dynamic") || has("_guided")) => {
                Some(Schedule::Ordered)
            }
            _ if has("_dynamic") => Some(Schedule::Dynamic),
            _ if has("_guided") => Some(Schedule::Guided),
            _ if has("_runtime") => Some(Schedule::Runtime),
            _ if has("_static") => Some(Schedule::Static),
            _ => None,
        };
    }
    if has("_for_static_init") {
        return Some(Schedule::Static);
    }
    if name == "__kmpc_doacross_init" {
        return Some(Schedule::Ordered);
    }
    if name.starts_with("__kmpc_dispatch_init") {
        return Some(third.map_or(Schedule::Runtime, of_kmp));
    }
    let tasks = ["__kmpc_omp_task", "__kmpc_taskloop"]
        .iter()
        .any(|p| name.starts_with(p));
    (tasks && !has("taskwait") && !has("taskyield")).then_some(Schedule::Tasks)
}

/// Converts a value of `enum sched_type` of LLVM's kmp.h; modifiers and the offset of nomerge loops are removed first, and
/// that of loops with `ordered`.
fn of_kmp(kind: u32) -> Schedule {
    let mut kind = kind & ((1 << 29) - 1);
    if kind >= 160 {
        kind -= 128;
    }
    let is_ordered = (64..80).contains(&kind);
    if is_ordered {
        kind -= 32;
    }
    match kind {
        33 | 34 => Schedule::Static,
        _ if is_ordered => Schedule::Ordered,
        36 | 46 => Schedule::Guided,
        37 | 47 => Schedule::Runtime,
        38 => Schedule::Auto,
        _ => Schedule::Dynamic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_both_runtimes_are_told_apart() {
        for (name, third, expected) in [
            (
                "GOMP_loop_nonmonotonic_dynamic_next",
                None,
                Some(Schedule::Dynamic),
            ),
            (
                "GOMP_loop_ull_nonmonotonic_guided_start",
                None,
                Some(Schedule::Guided),
            ),
            (
                "GOMP_loop_maybe_nonmonotonic_runtime_start",
                None,
                Some(Schedule::Runtime),
            ),
            ("GOMP_loop_ordered_static_start", None, Some(Schedule::Static)),
            ("GOMP_loop_ordered_dynamic_next", None, Some(Schedule::Ordered)),
            ("GOMP_loop_doacross_guided_start", None, Some(Schedule::Ordered)),
            ("GOMP_sections_next", None, Some(Schedule::Tasks)),
            ("GOMP_loop_end_nowait", None, None),
            ("GOMP_task", None, Some(Schedule::Tasks)),
            ("GOMP_taskwait", None, None),
            ("GOMP_barrier", None, None),
            ("omp_get_thread_num", None, None),
            ("__kmpc_for_static_init_8u", None, Some(Schedule::Static)),
            (
                "__kmpc_dispatch_init_4",
                Some(1 << 30 | 35),
                Some(Schedule::Dynamic),
            ),
            ("__kmpc_dispatch_init_4", Some(36), Some(Schedule::Guided)),
            ("__kmpc_dispatch_init_4", Some(67), Some(Schedule::Ordered)),
            ("__kmpc_dispatch_init_4", Some(66), Some(Schedule::Static)),
            ("__kmpc_doacross_init", None, Some(Schedule::Ordered)),
            ("__kmpc_dispatch_init_4", None, Some(Schedule::Runtime)),
            ("__kmpc_dispatch_next_4", Some(35), None),
            ("__kmpc_omp_task_alloc", None, Some(Schedule::Tasks)),
            ("__kmpc_omp_taskwait", None, None),
            ("memcpy", None, None),
        ] {
            assert_eq!(requested_schedule(name, third), expected, "{name}");
        }
    }
}
