//! Text that is put together for one request and copied at once: in one place for each thread, which is not allocated anew.

use std::cell::Cell;
use std::fmt::{self, Write as _};

/// How much room is kept for the next text.
const ROOM_MAX: usize = 4 << 10;

thread_local! {
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

/// What `read` makes of a text.
pub(crate) fn with_text<T>(text: fmt::Arguments<'_>, read: impl FnOnce(&mut String) -> T) -> T {
    let mut scratch = SCRATCH.take();
    scratch.clear();
    // Writing into memory does not fail.
    let _ = scratch.write_fmt(text);
    let made = read(&mut scratch);
    if scratch.capacity() <= ROOM_MAX {
        SCRATCH.set(scratch);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_holds_nothing_of_the_one_before_it_and_may_be_made_while_another_is_read() {
        let long = "x".repeat(ROOM_MAX + 1);
        assert_eq!(with_text(format_args!("{long}"), |text| text.len()), ROOM_MAX + 1);
        let both = with_text(format_args!("a{}", 1), |outer| {
            with_text(format_args!("b"), |inner| format!("{outer}{inner}"))
        });
        assert_eq!(both, "a1b");
    }
}
