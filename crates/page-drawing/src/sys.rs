//! What the script of the page calls.
#![expect(unsafe_code, reason = "names that the script finds; none of it is unsafe otherwise")]

use std::cell::RefCell;

use crate::State;

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Makes room for a request of this many bytes.
// SAFETY: no other part of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn request(length: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; length];
        state.input.as_mut_ptr()
    })
}

/// Answers the request; the answer is here until the next one.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn answer() -> *const u8 {
    STATE.with_borrow_mut(|state| {
        state.answer();
        state.output.as_ptr()
    })
}

/// The length of the answer.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn answer_length() -> usize {
    STATE.with_borrow(|state| state.output.len())
}
