//! A fence around decoders that panic on nonsense: the panic is an error, and says nothing by itself.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `decode` gives, or `None` where it panicked. Of other threads' panics, those that `decode` starts included, the
/// usual is printed.
pub fn quietly<T>(decode: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    QUIET.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing_and_the_thread_goes_on() {
        assert_eq!(quietly(|| 3), Some(3));
        assert_eq!(quietly(|| -> u32 { panic!("nonsense") }), None);
        assert!(!QUIET.get());
        assert_eq!(
            quietly(|| quietly(|| -> u32 { panic!("within") }).is_none() && QUIET.get()),
            Some(true)
        );
    }
}
