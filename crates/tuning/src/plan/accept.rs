//! Taking and making many connections: queues of listeners, and ports of clients.

use super::Role;
use super::draft::{Draft, Reasons};

const LISTEN: &str = "net.core.somaxconn";
const HALF_OPEN: &str = "net.ipv4.tcp_max_syn_backlog";
const PORTS: &str = "net.ipv4.ip_local_port_range";
const RESERVED: &str = "net.ipv4.ip_local_reserved_ports";

/// The kernel's default since 5.4; less was lowered, or is an old kernel.
pub(crate) const USUAL_LISTEN: u64 = 4_096;
/// A listener's queue is 16 bits in what `ss` shows and in older kernels.
const MOST_LISTEN: u64 = 65_535;
/// First port of the wider range: below are those that services like to have.
pub(crate) const FIRST_PORT: u64 = 10_240;
pub(crate) const LAST_PORT: u64 = 65_535;

pub(super) fn plan(draft: &mut Draft<'_>) {
    let role = draft.target.role;
    if role.serves() || role == Role::Database {
        listen(draft);
    }
    if matches!(role, Role::Proxy) {
        ports(draft);
    }
}

fn listen(draft: &mut Draft<'_>) {
    let connections = draft.target.connections.unwrap_or(0);
    // All clients come back within ten seconds, and the program is busy for 100 ms.
    let burst = connections / 100;
    let need =
        if burst <= USUAL_LISTEN { USUAL_LISTEN } else { burst.min(MOST_LISTEN).next_power_of_two().min(MOST_LISTEN) };
    let enough = match draft.target.connections {
        Some(_) => "enough for the clients that were named",
        None => "the kernel's own size or more; --connections tells how many clients there are",
    };
    let why = if burst > USUAL_LISTEN {
        format!(
            "{connections} clients that come back within ten seconds, and a program that is busy for 100 ms, make a queue of {burst}"
        )
    } else {
        format!("{USUAL_LISTEN} is the kernel's own size since 5.4")
    };
    let reasons = Reasons {
        why: why.clone(),
        effect: "bursts of new connections wait instead of being dropped, once the programs ask for it",
        risk: "the programs have to ask for a larger backlog (nginx: listen … backlog=) and to listen anew; a longer queue hides that \
               they are too slow"
            .to_owned(),
    };
    draft.raise(LISTEN, &[need], reasons, enough);
    if burst > USUAL_LISTEN {
        let reasons = Reasons {
            why,
            effect: "half-open connections get a full handshake instead of a SYN cookie during bursts",
            risk: "about 300 bytes for each half-open connection".to_owned(),
        };
        draft.raise(HALF_OPEN, &[need], reasons, enough);
    } else {
        draft.keep(HALF_OPEN, "a full queue is answered with SYN cookies");
    }
}

fn ports(draft: &mut Draft<'_>) {
    let Some(there) = draft.facts.numbers(PORTS).filter(|there| there.len() == 2 && there[0] <= there[1]) else {
        return;
    };
    let have = there[1] - there[0] + 1;
    let Some(connections) = draft.target.connections else {
        draft
            .keep(PORTS, format!("{have} connections to one address and port; say --connections where there are more"));
        return;
    };
    if connections <= have {
        draft.keep(
            PORTS,
            format!("{have} connections to one address and port are possible, {connections} are asked for"),
        );
        return;
    }
    let (first, last) = (there[0].min(FIRST_PORT), there[1].max(LAST_PORT));
    let size = last - first + 1;
    if connections > size {
        draft.note(format!(
            "{connections} connections to one address and port need {} source addresses (or as many addresses at the other end): one has \
             {size} ports at most",
            connections.div_ceil(size)
        ));
    }
    if (first, last) == (there[0], there[1]) {
        draft.keep(PORTS, "as wide as it should be");
        return;
    }
    let Some(listening) = &draft.facts.listening_ports else {
        draft.keep(PORTS, "it isn't known on which ports services listen: a wider range could take them");
        return;
    };
    // Reserved before the range is widened: in between an outgoing connection could take one.
    let inside = |port: &&u16| (first..=last).contains(&u64::from(**port));
    let mut ports: Vec<u16> = listening.iter().filter(inside).copied().collect();
    let already = draft.facts.sysctl(RESERVED).unwrap_or("").to_owned();
    ports.extend(port_list(&already));
    ports.sort_unstable();
    ports.dedup();
    let reserved = port_text(&ports);
    let why = format!(
        "services listen on ports in {first} to {last}, which outgoing connections may take from now on: they are never taken by themselves"
    );
    let effect = "services can start again after a stop";
    draft.set(
        RESERVED,
        &reserved,
        Reasons { why, effect, risk: "none known: programs can still bind to them".to_owned() },
    );
    let why = format!(
        "{connections} connections to one address and port, and {there} ports: {size} afterwards",
        there = have
    );
    let risk = "an outgoing connection may take a port that a service wants later and that nothing listens on now: reserve it too";
    let effect = "connections to one address and port no longer fail for want of a port (EADDRNOTAVAIL)";
    draft.set(PORTS, &format!("{first} {last}"), Reasons { why, effect, risk: risk.to_owned() });
}

/// The ports of `8080,9000-9002`. What can't be read is left out.
pub(crate) fn port_list(text: &str) -> Vec<u16> {
    let one = |part: &str| -> Option<std::ops::RangeInclusive<u16>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(one).flatten().collect()
}

/// Sorted ports as the kernel prints them: neighbours as a range.
pub(crate) fn port_text(ports: &[u16]) -> String {
    let mut parts: Vec<(u16, u16)> = Vec::new();
    for &port in ports {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == port => *last = port,
            _ => parts.push((port, port)),
        }
    }
    let text = |(first, last): &(u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_and_written_as_the_kernel_does() {
        assert_eq!(port_list("8080,9000-9002"), [8080, 9000, 9001, 9002]);
        assert_eq!(port_list(""), Vec::<u16>::new());
        assert_eq!(port_text(&[8080, 9000, 9001, 9002, 65535]), "8080,9000-9002,65535");
        assert_eq!(port_text(&[]), "");
    }
}
