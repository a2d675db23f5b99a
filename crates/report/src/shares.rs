//! How shares of the goodput are put into words.

use crate::groups::Group;
use crate::model::{Share, SummaryLine};
use crate::text;

/// Its label, with the congestion control where the label does not name it, and the number of flows.
pub(crate) fn name(share: &Share) -> String {
    let mut name = share.label.clone();
    if !name.contains(&share.congestion_control) {
        name = format!("{name} ({})", share.congestion_control);
    }
    if share.flows > 1 {
        name = format!("{} x {name}", share.flows);
    }
    name
}

/// One line's shares: `bbr, queue 1 BDP: cubic 38%, bbr 62%; Jain's index 0.95.`
pub(crate) fn sentence(group: &Group, line: &SummaryLine) -> String {
    let cell = group.cell_words(line);
    let shares: Vec<String> =
        line.shares.iter().map(|share| format!("{} {}", name(share), text::share(share.share.median))).collect();
    format!(
        "{}{}{cell}: {}{}.",
        group.profile_words(line),
        if cell.is_empty() { "" } else { ", " },
        shares.join(", "),
        line.jain_index.map_or(String::new(), |jain| format!("; Jain's index {:.2}", jain.median))
    )
}
