//! Foreign decoders on foreign bytes: on damaged data they give an error or, seldom, panic. Both are an error here, and neither is printed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the decoder; none when it panicked. The message that Rust would print about the panic is left out: it is about the decoder's own code and means
/// nothing to whoever gave the file.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                before(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_is_no_answer_and_the_thread_goes_on() {
        assert_eq!(guarded(|| 3), Some(3));
        assert_eq!(guarded(|| -> u32 { panic!("damaged") }), None);
        assert!(!GUARDED.get());
    }
}
