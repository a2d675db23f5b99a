//! The facts of an audit, for people.

use std::fmt::Write;

use facts::observed::Group;
use facts::{Device, Fact, Spread};
use tuning::audit::Facts;
use tuning::audit::persistence::Fate;
use units::{Bytes, Duration, Rate};

use crate::wrap;

/// What was read, in at most `width` columns.
pub fn render(facts: &Facts, width: usize) -> String {
    let width = width.min(110);
    let mut out = Lines { out: String::new(), width };
    let host = &facts.host;
    out.heading("Host");
    let system = &host.system;
    for (name, fact) in [
        ("distribution", &system.distribution),
        ("virtualisation", &system.virtualisation),
        ("container", &system.container),
        ("process 1", &system.init),
    ] {
        out.fact(name, fact, |text| if text.is_empty() { "none".to_owned() } else { text.clone() });
    }
    out.fact("CPUs", &system.cpus, u64::to_string);
    for forbidden in &system.forbidden {
        out.line("not possible", &format!("{}: {}", forbidden.what, forbidden.why));
    }
    out.heading("Congestion controls");
    out.fact("registered", &host.controls, |all| {
        let one = |control: &facts::Control| {
            let version = control.bbr_version.map(|version| format!(" (BBRv{version})")).unwrap_or_default();
            let bpf = if control.kind == "bpf" { " (BPF)" } else { "" };
            format!("{}{version}{bpf}{}", control.name, if control.default { ", default" } else { "" })
        };
        all.iter().map(one).collect::<Vec<_>>().join("; ")
    });
    out.heading("Devices");
    match &host.devices.value {
        Some(devices) => devices.iter().for_each(|device| out.device(device)),
        None => out.fact("devices", &host.devices, |_| String::new()),
    }
    sockets(facts, &mut out);
    persistence(facts, &mut out);
    observed(facts, &mut out);
    out.out
}

struct Lines {
    out: String,
    width: usize,
}

impl Lines {
    fn heading(&mut self, text: &str) {
        let _ = write!(self.out, "\n{text}\n");
    }

    fn line(&mut self, name: &str, text: &str) {
        self.out += &wrap::hanging(&format!("  {name:14} "), text, self.width);
    }

    fn fact<T>(&mut self, name: &str, fact: &Fact<T>, show: impl Fn(&T) -> String) {
        match (&fact.value, &fact.missing) {
            (Some(value), _) => self.line(name, &show(value)),
            (None, Some(why)) => self.line(name, &format!("not known: {why} ({})", fact.from)),
            (None, None) => {}
        }
    }

    fn device(&mut self, device: &Device) {
        let mut parts = vec![if device.up { "up" } else { "down" }.to_owned()];
        if !device.kind.is_empty() {
            parts.push(device.kind.clone());
        }
        parts.extend(device.driver.get().map(|driver| format!("driver {driver}")));
        parts.extend(device.speed_bps.get().map(|speed| Rate::from_bps(*speed).to_string()));
        parts.push(format!("MTU {}", device.mtu_bytes));
        parts.push(format!("queues {} out, {} in", device.tx_queues, device.rx_queues));
        parts.extend(
            device.rings.get().map(|rings| {
                format!("rings {} of {} in, {} of {} out", rings.rx, rings.rx_max, rings.tx, rings.tx_max)
            }),
        );
        let off: Vec<&str> = device.offloads.iter().filter(|(_, on)| !**on).map(|(name, _)| name.as_str()).collect();
        if !off.is_empty() {
            parts.push(format!("off: {}", off.join(", ")));
        }
        self.line(&device.name, &parts.join(", "));
        if let Some(root) = device.root() {
            let leaves: Vec<&str> = device.leaves().map(|leaf| leaf.kind.as_str()).collect();
            let below = if leaves.is_empty() { String::new() } else { format!(" with {}", leaves.join(" ")) };
            self.line(
                "",
                &format!(
                    "sends through {}{below}; dropped {}, waiting {}",
                    root.kind,
                    root.dropped,
                    Bytes::new(root.backlog_bytes)
                ),
            );
        }
    }
}

fn sockets(facts: &Facts, out: &mut Lines) {
    let host = &facts.host;
    out.heading("Sockets");
    out.fact("TCP", &host.sockstat, |all| {
        format!(
            "{} in use, {} in TIME_WAIT, {} orphans, {} of memory on the whole host",
            all.tcp_in_use,
            all.tcp_time_wait,
            all.tcp_orphans,
            Bytes::new(all.tcp_memory_pages * facts.plan.page_bytes)
        )
    });
    out.fact("connections", &host.connections, |all| {
        let list = |map: &std::collections::BTreeMap<String, u64>| {
            let parts: Vec<String> = map.iter().map(|(name, count)| format!("{name} {count}")).collect();
            if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
        };
        format!(
            "{}; controls: {}; of {} to elsewhere: timestamps {}, SACK {}, window scaling {}, ECN {}",
            list(&all.states),
            list(&all.controls),
            all.remote_established,
            all.timestamps,
            all.sack,
            all.window_scaling,
            all.ecn
        )
    });
    out.fact("conntrack", &host.conntrack, |table| {
        let buckets = table.buckets.map_or_else(|| "not known".to_owned(), |buckets| buckets.to_string());
        format!("{} of {}, buckets {buckets}", table.count, table.max)
    });
    match &host.listeners.value {
        Some(all) => {
            for listener in all {
                let owner = listener
                    .owners
                    .first()
                    .map_or_else(|| "program not found".to_owned(), |owner| format!("{} ({})", owner.name, owner.pid));
                let backlog = listener.backlog.map_or_else(|| "?".to_owned(), |backlog| backlog.to_string());
                let line =
                    listener.configured.as_ref().map(|line| format!("; {}:{}: {}", line.file, line.line, line.text));
                out.line(
                    "listener",
                    &format!(
                        "{} port {}: {} of {backlog} wait, {owner}{}",
                        listener.address,
                        listener.port,
                        listener.queued,
                        line.unwrap_or_default()
                    ),
                );
            }
        }
        None => out.fact("listeners", &host.listeners, |_| String::new()),
    }
}

fn persistence(facts: &Facts, out: &mut Lines) {
    if facts.persistence.is_empty() {
        return;
    }
    out.heading("At the next boot");
    for one in &facts.persistence {
        let fate = match one.fate {
            Fate::Kept => "stays",
            Fate::NotPersistent => "is lost",
            Fate::NotLive => "changes",
            Fate::TooLate => "is set too early: its module is not there yet",
            Fate::NotRead => "is not read",
            // Other files' keys of other parts of the kernel.
            Fate::NoKey => continue,
        };
        let line = one
            .at_boot
            .as_ref()
            .map_or_else(String::new, |line| format!("; {} = {} by {}:{}", one.key, line.value, line.file, line.line));
        out.line(
            fate.split(':').next().unwrap_or(fate),
            &format!("{} = {}{line}", one.key, one.live.as_deref().unwrap_or("?")),
        );
    }
}

fn observed(facts: &Facts, out: &mut Lines) {
    let Some(seen) = &facts.observed else { return };
    out.heading("Observed");
    for group in core::iter::once(&seen.total).chain(&seen.ports).chain(&seen.networks) {
        out.line(&group.name, &describe(group));
    }
    if seen.networks_left_out > 0 {
        out.line("", &format!("and {} networks more", seen.networks_left_out));
    }
}

fn describe(group: &Group) -> String {
    let held = group.held;
    let percent = |part: u64| (held.share(part) * 100.0).round();
    let times = |spread: Spread| {
        format!("{} median, {} p99", Duration::from_micros(spread.p50), Duration::from_micros(spread.p99))
    };
    let mut parts = vec![format!(
        "{} connections, sent {}, received {}",
        group.connections,
        Bytes::new(group.sent_bytes),
        Bytes::new(group.received_bytes)
    )];
    if held.busy_us > 0 {
        parts.push(format!(
            "busy {}: send buffer {} %, peer's window {} %, congestion window {} %",
            Duration::from_micros(held.busy_us),
            percent(held.sndbuf_limited_us),
            percent(held.rwnd_limited_us),
            percent(held.cwnd_limited_us)
        ));
    }
    parts.extend(group.rtt_us.map(|spread| format!("RTT {}", times(spread))));
    parts.extend(group.delivery_rate_bps.map(|spread| {
        format!("delivery rate {} median, {} most", Rate::from_bps(spread.p50), Rate::from_bps(spread.max))
    }));
    parts.extend(group.send_bdp_bytes.map(|bytes| format!("send BDP {}", Bytes::new(bytes))));
    parts.extend(group.receive_bdp_bytes.map(|bytes| format!("receive BDP {}", Bytes::new(bytes))));
    if group.retransmitted_segments > 0 {
        parts.push(format!("{} of {} segments sent again", group.retransmitted_segments, group.data_segments));
    }
    parts.join("; ")
}
