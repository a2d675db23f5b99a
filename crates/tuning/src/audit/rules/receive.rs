//! The way in: devices and their rings, soft interrupts, UDP buffers.

use facts::Device;

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, percent, plural, share};

const BACKLOG: &str = "net.core.netdev_max_backlog";
const BUDGET: &str = "net.core.netdev_budget";
const BUDGET_TIME: &str = "net.core.netdev_budget_usecs";
/// One in ten thousand lost costs CUBIC half its rate on most wide-area paths; one in a million is a moment at boot.
const OFTEN: f64 = 1e-4;
const SELDOM: f64 = 1e-6;

pub(super) fn judge(look: &mut Look<'_>) {
    softnet(look);
    one_cpu(look);
    for device in look.facts.host.devices.get().into_iter().flatten() {
        missed(look, device);
        broken(look, device);
        half_duplex(look, device);
        offloads(look, device);
    }
    udp(look);
}

fn softnet(look: &mut Look<'_>) {
    let Some(cpus) = look.facts.host.softnet_cpus.get() else { return };
    let from = look.facts.host.softnet_cpus.from.clone();
    let sum = |of: fn(&facts::SoftnetCpu) -> u64| cpus.iter().map(of).fold(0u64, u64::saturating_add);
    let (processed, dropped, squeezed) = (sum(|cpu| cpu.processed), sum(|cpu| cpu.dropped), sum(|cpu| cpu.squeezed));
    if dropped > 0 {
        let part = share(dropped, processed.saturating_add(dropped));
        let worst = cpus.iter().max_by_key(|cpu| cpu.dropped).copied().unwrap_or_default();
        let there = look.number(BACKLOG);
        let finding = Finding::new(
            "softnet-drops",
            if part >= OFTEN { Severity::Error } else { Severity::Warning },
            820,
            format!(
                "{} dropped because a CPU's receive backlog was full",
                plural(dropped, "packet was", "packets were")
            ),
        )
        .shows(
            format!(
                "{dropped} of {processed} packets ({}), {} of them on CPU {}",
                percent(part),
                worst.dropped,
                worst.cpu
            ),
            look.since_boot(),
            from.clone(),
        )
        .costs("each is a loss that TCP repairs, and that UDP does not");
        let finding = match there {
            Some(there) if there < 16_384 => finding.set(
                &[(BACKLOG, there.saturating_mul(4).clamp(4_000, 16_384).to_string())],
                "it is used by RPS, tunnels, veth and lo, not by a usual card's own queue. Where one CPU takes all packets, spread them first",
            ),
            _ => finding.fix("", "the backlog is long already: one CPU is too slow for what it gets; spread the packets (RSS, RPS)"),
        };
        look.find(finding.source("net/core/dev.c (enqueue_to_backlog); Documentation/networking/scaling.rst"));
    }
    // A round that ends with work left is usual; one for each thousand packets says that the limits are too small.
    if squeezed.saturating_mul(1_000) > processed && processed >= 1_000_000 {
        let (budget, time) = (look.number(BUDGET).unwrap_or(300), look.number(BUDGET_TIME).unwrap_or(8_000));
        let finding = Finding::new(
            "softnet-squeezed",
            Severity::Warning,
            430,
            format!("The receive loop ended {squeezed} times with work left"),
        )
        .shows(
            format!("once for {} packets; {BUDGET} {budget}, {BUDGET_TIME} {time}", processed / squeezed.max(1)),
            look.since_boot(),
            from,
        )
        .costs("packets wait for the next round, behind other work of that CPU");
        let finding = if budget < 600 || time < 16_000 {
            finding.set(
                &[(BUDGET, budget.max(600).to_string()), (BUDGET_TIME, time.max(16_000).to_string())],
                "twice the usual; programs on that CPU wait longer in return",
            )
        } else {
            finding.fix("", "the budget is twice the usual already: spread the packets over more CPUs (RSS, RPS)")
        };
        look.find(finding.source("net/core/dev.c (net_rx_action)"));
    }
}

/// One CPU does nearly all of the receiving.
fn one_cpu(look: &mut Look<'_>) {
    let Some(cpus) = look.facts.host.softnet_cpus.get().filter(|cpus| cpus.len() >= 4) else { return };
    let processed = cpus.iter().map(|cpu| cpu.processed).fold(0u64, u64::saturating_add);
    let Some(worst) = cpus.iter().max_by_key(|cpu| cpu.processed) else { return };
    let part = share(worst.processed, processed);
    let trouble = worst.dropped.saturating_add(worst.squeezed);
    // Four fifths on one of four or more, and that one gets into trouble: else it is fast enough.
    if part < 0.8 || processed < 1_000_000 || trouble.saturating_mul(10_000) < worst.processed {
        return;
    }
    look.find(
        Finding::new("one-cpu-receives", Severity::Warning, 640, format!("CPU {} does {} of all receiving", worst.cpu, percent(part)))
            .shows(
                format!(
                    "{} of {processed} packets on CPU {} of {}, with {} drops and {} rounds cut short",
                    worst.processed,
                    worst.cpu,
                    cpus.len(),
                    worst.dropped,
                    worst.squeezed
                ),
                look.since_boot(),
                look.facts.host.softnet_cpus.from.clone(),
            )
            .costs("the host receives no more than one CPU can")
            .fix("", "more queues where the card has them (`ethtool -L DEVICE combined N`, interrupts spread), else RPS: /sys/class/net/DEVICE/queues/rx-0/rps_cpus")
            .source("Documentation/networking/scaling.rst"),
    );
}

fn missed(look: &mut Look<'_>, device: &Device) {
    if !device.physical {
        return;
    }
    let lost = device.counters.rx_missed.saturating_add(device.counters.rx_fifo_errors);
    let part = share(lost, device.counters.rx_packets.saturating_add(lost));
    if lost == 0 || part < SELDOM {
        return;
    }
    let finding = Finding::new(
        "device-misses",
        if part >= OFTEN { Severity::Error } else { Severity::Warning },
        830,
        format!("{} had no room for {}", device.name, plural(lost, "packet that came", "packets that came")),
    )
    .shows(
        format!(
            "rx_missed {}, rx_fifo_errors {} of {} packets ({})",
            device.counters.rx_missed,
            device.counters.rx_fifo_errors,
            device.counters.rx_packets,
            percent(part)
        ),
        look.since_boot(),
        look.facts.host.devices.from.clone(),
    )
    .costs("each is a loss before the kernel sees the packet");
    let finding = match device.rings.get() {
        Some(rings) if rings.rx < rings.rx_max => {
            let to = rings.rx.saturating_mul(4).clamp(rings.rx, rings.rx_max);
            finding
                .shows(format!("receive ring {} of at most {}", rings.rx, rings.rx_max), "now", device.rings.from.clone())
                .fix(
                    format!("ethtool -G {} rx {to}", device.name),
                    "the link may go down for a moment; it is gone after a reboot unless a unit or the network configuration sets it again",
                )
        }
        Some(rings) => finding
            .shows(format!("receive ring {} of at most {}", rings.rx, rings.rx_max), "now", device.rings.from.clone())
            .fix("", "the ring is at its maximum: more queues, or CPUs that empty them sooner"),
        None => finding
            .fix("", format!("{} does not tell its rings: more queues, or CPUs that empty them sooner", device.name)),
    };
    look.find(
        finding.source("Documentation/networking/statistics.rst; include/uapi/linux/if_link.h (rtnl_link_stats64)"),
    );
}

/// Frames that a cable, a plug or a port breaks.
fn broken(look: &mut Look<'_>, device: &Device) {
    let counters = &device.counters;
    let bad = [counters.rx_frame_errors, counters.tx_carrier_errors]
        .into_iter()
        .fold(counters.rx_crc_errors, u64::saturating_add);
    let part = share(bad, counters.rx_packets.saturating_add(counters.tx_packets));
    if !device.physical || bad == 0 || part < SELDOM {
        return;
    }
    look.find(
        Finding::new(
            "device-errors",
            if part >= OFTEN { Severity::Error } else { Severity::Warning },
            810,
            format!("{} broken on the way through {}", plural(bad, "frame was", "frames were"), device.name),
        )
        .shows(
            format!(
                "rx_crc_errors {}, rx_frame_errors {}, tx_carrier_errors {} ({})",
                counters.rx_crc_errors,
                counters.rx_frame_errors,
                counters.tx_carrier_errors,
                percent(part)
            ),
            look.since_boot(),
            look.facts.host.devices.from.clone(),
        )
        .costs("each is a loss that no setting cures")
        .fix("", "cable, plug, transceiver or the port at the other end")
        .source("include/uapi/linux/if_link.h (rtnl_link_stats64)"),
    );
}

fn half_duplex(look: &mut Look<'_>, device: &Device) {
    if device.duplex.get().is_none_or(|duplex| duplex != "half") || !device.up {
        return;
    }
    look.find(
        Finding::new(
            "half-duplex",
            Severity::Error,
            840,
            format!("{} is half duplex: it can't send and receive at once", device.name),
        )
        .shows("duplex half", "now", device.duplex.from.clone())
        .costs("collisions and late losses under load")
        .fix(
            format!("ethtool -s {} autoneg on", device.name),
            "mostly one end has a fixed speed and the other negotiates: both the same way",
        )
        .source("IEEE 802.3, clause 28"),
    );
}

fn offloads(look: &mut Look<'_>, device: &Device) {
    if !device.physical || !device.up {
        return;
    }
    // A virtual card offers what its host offers, and slow links don't need them.
    let guest = device
        .driver
        .get()
        .is_some_and(|driver| matches!(driver.as_str(), "virtio_net" | "xen-netfront" | "netfront" | "vif"));
    let slow = device.speed_bps.get().is_some_and(|speed| *speed < 1_000_000_000);
    let off: Vec<&str> =
        ["tso", "gso", "gro"].into_iter().filter(|name| device.offloads.get(*name) == Some(&false)).collect();
    if off.is_empty() || slow {
        return;
    }
    let severity = if guest { Severity::Note } else { Severity::Warning };
    let words: Vec<String> = off.iter().map(|name| format!("{name} on")).collect();
    look.find(
        Finding::new("offloads-off", severity, 350, format!("{}: {} off", device.name, off.join(", ")))
            .shows(format!("{} off", off.join(", ")), "now", "ioctl SIOCETHTOOL")
            .costs("every packet of 1500 bytes goes through the whole stack alone: several times the CPU time at high rates")
            .fix(
                format!("ethtool -K {} {}", device.name, words.join(" ")),
                if guest {
                    "a virtual card takes only what its host offers: \"fixed\" in `ethtool -k` means that it doesn't"
                } else {
                    "somebody may have turned them off for a driver's fault, or for a capture: ask first"
                },
            )
            .source("Documentation/networking/segmentation-offloads.rst"),
    );
}

fn udp(look: &mut Look<'_>) {
    let both = |name: &str| look.count(&format!("Udp.{name}")).saturating_add(look.count(&format!("Udp6.{name}")));
    let (full, memory, received) = (both("RcvbufErrors"), both("MemErrors"), both("InDatagrams"));
    let (unsent, sent) = (both("SndbufErrors"), both("OutDatagrams"));
    if full > 0 {
        let part = share(full, received.saturating_add(full));
        let severity = if part >= OFTEN { Severity::Warning } else { Severity::Note };
        let mut finding = Finding::new(
            "udp-receive-drops",
            severity,
            670,
            format!(
                "{} dropped because a program's buffer was full",
                plural(full, "UDP packet was", "UDP packets were")
            ),
        )
        .shows(
            format!("RcvbufErrors {full} of {received} received ({}), MemErrors {memory}", percent(part)),
            look.since_boot(),
            look.counters_from(),
        );
        let mut sockets: Vec<_> = look.facts.host.udp_drops.get().into_iter().flatten().collect();
        sockets.sort_by_key(|socket| core::cmp::Reverse(socket.dropped));
        for socket in sockets.iter().take(2) {
            let owner =
                socket.owners.first().map_or_else(String::new, |owner| format!(", {} ({})", owner.name, owner.pid));
            finding = finding.shows(
                format!("port {}{owner}: {} dropped", socket.port, socket.dropped),
                "since it was opened",
                look.facts.host.udp_drops.from.clone(),
            );
        }
        let most = look.number("net.core.rmem_max").unwrap_or(212_992);
        let finding = finding.costs("QUIC, DNS and media lose packets inside this host").set(
            &[("net.core.rmem_max", most.saturating_mul(4).clamp(1 << 22, 1 << 25).max(most).to_string())],
            "the program has to ask for more with SO_RCVBUF, up to this; one that asks for nothing gets rmem_default. Or it reads too slowly",
        );
        look.find(finding.source("net/ipv4/udp.c (__udp_enqueue_schedule_skb); udp(7)"));
    }
    if unsent > 0 {
        look.find(
            Finding::new(
                "udp-send-drops",
                if share(unsent, sent.saturating_add(unsent)) >= OFTEN { Severity::Warning } else { Severity::Note },
                380,
                format!(
                    "{} sent: the device's queue or the buffer was full",
                    plural(unsent, "UDP packet was not", "UDP packets were not")
                ),
            )
            .shows(format!("SndbufErrors {unsent} of {sent} sent"), look.since_boot(), look.counters_from())
            .costs("the program sends faster than the device, or in bursts longer than its queue")
            .fix("", "pace in the program (SO_MAX_PACING_RATE with fq, or SO_TXTIME); a longer queue only delays it")
            .source("net/ipv4/udp.c (udp_send_skb); net/ipv4/ip_output.c"),
        );
    }
}
