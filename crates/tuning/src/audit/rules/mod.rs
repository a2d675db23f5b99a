//! What an audit looks for, one file for each matter. Thresholds stand beside their reasons; `docs/audit.md` repeats them.

mod accept;
mod buffers;
mod control;
mod host;
mod loss;
mod memory;
mod persist;
mod queue;
mod receive;
mod tables;

use super::look::Look;

/// All of them. Among findings of the same severity and weight, the rule that comes first here comes first in the report.
pub fn all(look: &mut Look<'_>) {
    buffers::judge(look);
    accept::judge(look);
    tables::judge(look);
    memory::judge(look);
    receive::judge(look);
    loss::judge(look);
    control::judge(look);
    queue::judge(look);
    persist::judge(look);
    host::judge(look);
}
