//! What libbpf would print: kept for the thread that called it, never printed.

use std::cell::RefCell;
use std::sync::Once;

use libbpf_rs::{PrintLevel, set_print};

thread_local! {
    static LINES: RefCell<Option<String>> = const { RefCell::new(None) };
}

static REDIRECT: Once = Once::new();

fn keep(_: PrintLevel, text: String) {
    LINES.with_borrow_mut(|lines| {
        if let Some(lines) = lines {
            lines.push_str(&text);
        }
    });
}

/// Runs `f` and returns what libbpf said meanwhile on this thread.
pub(crate) fn listen<T>(f: impl FnOnce() -> T) -> (T, String) {
    REDIRECT.call_once(|| {
        set_print(Some((PrintLevel::Warn, keep)));
    });
    LINES.with_borrow_mut(|lines| *lines = Some(String::new()));
    let result = f();
    let said = LINES.with_borrow_mut(Option::take).unwrap_or_default();
    (result, said)
}
