//! Calls decoders that panic on damaged data: the panic becomes an error, and nothing is printed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static SUPPRESSED: Cell<bool> = const { Cell::new(false) };
}

/// Result of `decode`, or `None` if it panicked. Panics of other threads are printed as usual, including those of
/// threads that `decode` starts.
pub fn catch<T>(decode: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !SUPPRESSED.get() {
                usual(panic);
            }
        }));
    });
    let before = SUPPRESSED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    SUPPRESSED.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing_and_the_thread_goes_on() {
        assert_eq!(catch(|| 3), Some(3));
        assert_eq!(catch(|| -> u32 { panic!("nonsense") }), None);
        assert!(!SUPPRESSED.get());
        assert_eq!(
            catch(|| catch(|| -> u32 { panic!("within") }).is_none() && SUPPRESSED.get()),
            Some(true)
        );
    }
}
