//! Settings that don't go together.

use crate::files::Means;
use crate::lint::rules::conflict::*;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    run.each_in_force(|run, index, item| match item.key.as_str() {
        "net.ipv4.tcp_tw_reuse" if item.number() == Some(1) => {
            let Some((document, span)) = other(run, item.group, "net.ipv4.tcp_timestamps", |n| n == 0) else { return };
            run.say(&REUSE_NEEDS_TIMESTAMPS, index, item, "tcp_tw_reuse reuses nothing without timestamps")
                .related(document, span, "switched off here")
                .help("keep timestamps on");
        }
        "net.core.rmem_max" | "net.core.wmem_max" => {
            let (sibling, what) = if item.key.ends_with("rmem_max") {
                ("net.core.wmem_max", "receive")
            } else {
                ("net.core.rmem_max", "send")
            };
            // A program's documentation may ask for one of them; a list that tunes TCP means both.
            let tunes = run.sets(item.group, "net.ipv4.tcp_rmem") || run.sets(item.group, "net.ipv4.tcp_wmem");
            let is_first = run.with_key(item.group, &item.key).first() == Some(&index);
            let at_boot = !matches!(item.setting.means, Means::Container);
            if tunes && is_first && at_boot && !run.sets(item.group, sibling) {
                let message = format!("raises the {what} buffers that programs may ask for, and not the other direction");
                let help = match item.number() {
                    Some(number) => format!("add {sibling} = {number}"),
                    None => format!("set {sibling} too"),
                };
                run.say_about(&ONE_SIDED, index, item, item.setting.span, message).help(help);
            }
        }
        "net.netfilter.nf_conntrack_max" | "net.nf_conntrack_max" => {
            let Some(most) = item.number().filter(|most| *most > 262_144) else { return };
            let is_set = run.sets(item.group, "net.netfilter.nf_conntrack_buckets") || run.text(item.document).contains("hashsize");
            if !is_set {
                let message = format!("{most} connections in the buckets of the default, at most 262144: every packet searches a list of {}", most / 262_144);
                run.say(&CONNTRACK_BUCKETS, index, item, message)
                    .help(format!("add net.netfilter.nf_conntrack_buckets = {most}; each connection takes about 320 bytes, {} together", crate::lint::amount::bytes(most * 320)));
            }
        }
        _ => {}
    });
}

/// The last setting of `key` in the group, where its number is as asked for.
fn other(run: &Run<'_>, group: usize, key: &str, wanted: impl Fn(i128) -> bool) -> Option<(usize, crate::files::Span)> {
    let (document, setting) = run.place(*run.with_key(group, key).last()?)?;
    setting.value.parse().ok().filter(|n| wanted(*n)).map(|_| (document, setting.span))
}
