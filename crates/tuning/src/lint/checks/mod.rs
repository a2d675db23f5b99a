//! The code behind the rules.

mod conflict;
mod danger;
mod effect;
mod habit;
mod memory;
mod names;
mod order;
mod syntax;
mod values;

use super::run::Run;

/// All checks. What is copied from list to list comes last: it is only said where nothing else was.
pub(super) fn all(run: &mut Run<'_>) {
    syntax::check(run);
    names::check(run);
    values::check(run);
    effect::duplicates(run);
    effect::later(run);
    memory::check(run);
    danger::check(run);
    conflict::check(run);
    effect::check(run);
    order::check(run);
    habit::check(run);
}

/// Characters that nobody sees.
pub(super) fn is_invisible(c: char) -> bool {
    crate::files::sysctl_d::is_hidden(c)
}
