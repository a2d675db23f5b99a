//! What the kernel has counted, and how full its tables are: from `/proc/net` of the calling thread's namespace.

use std::collections::BTreeMap;

use facts::{Conntrack, Counters, Fact, Sockstat, SoftnetCpu};

use super::tree::Tree;

/// Groups that are kept: the rest of these files nobody asks for.
const GROUPS: [&str; 8] = ["Ip", "Tcp", "Udp", "UdpLite", "TcpExt", "IpExt", "MPTcpExt", "Icmp"];

/// `/proc/net/snmp`, `netstat` and the UDP part of `snmp6`.
pub fn read(tree: &Tree) -> Fact<Counters> {
    let from = "/proc/net/snmp, /proc/net/netstat, /proc/net/snmp6";
    let mut all = Counters::default();
    let mut why = None;
    for file in ["snmp", "netstat"] {
        match tree.read(&format!("{}/{file}", net(tree))) {
            Ok(text) => pairs_of_lines(&text, &mut all.0),
            Err(error) => why = Some(super::tree::sentence(&error)),
        }
    }
    // A kernel without IPv6 has none.
    if let Ok(text) = tree.read(&format!("{}/snmp6", net(tree))) {
        lines_with_two(&text, &mut all.0);
    }
    match why {
        Some(why) if all.0.is_empty() => Fact::missing(from, why),
        _ => Fact::known(from, all),
    }
}

/// The folder of the calling thread's namespace; `/proc/net` is that of the process.
pub(super) fn net(tree: &Tree) -> &'static str {
    if tree.is_this_host() { "/proc/thread-self/net" } else { "/proc/net" }
}

/// Lines in pairs: `TcpExt: A B C`, `TcpExt: 1 2 3`.
fn pairs_of_lines(text: &str, all: &mut BTreeMap<String, u64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((same, values))) = (pair[0].split_once(':'), pair[1].split_once(':')) else {
            continue;
        };
        if group != same || !GROUPS.contains(&group) {
            continue;
        }
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            // Tcp.MaxConn is -1.
            if let Ok(value) = value.parse() {
                all.insert(format!("{group}.{name}"), value);
            }
        }
    }
}

/// Lines of two words: `Udp6RcvbufErrors 0`.
fn lines_with_two(text: &str, all: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse))
            && let Some(name) = name.strip_prefix("Udp6")
        {
            all.insert(format!("Udp6.{name}"), value);
        }
    }
}

/// Each CPU's receive soft interrupt (net/core/net-procfs.c).
pub fn softnet(tree: &Tree) -> Fact<Vec<SoftnetCpu>> {
    tree.fact(&format!("{}/softnet_stat", net(tree)), parse_softnet)
}

fn parse_softnet(text: &str) -> Option<Vec<SoftnetCpu>> {
    let cpus = text.lines().enumerate().map(|(number, line)| {
        let fields: Vec<u64> =
            line.split_whitespace().map(|field| u64::from_str_radix(field, 16)).collect::<Result<_, _>>().ok()?;
        Some(SoftnetCpu {
            // Since 5.10 the line names its CPU: those that are offline have none.
            cpu: fields.get(12).copied().unwrap_or(number as u64).try_into().ok()?,
            processed: *fields.first()?,
            dropped: *fields.get(1)?,
            squeezed: *fields.get(2)?,
            flow_limited: fields.get(10).copied().unwrap_or(0),
        })
    });
    cpus.collect()
}

/// Sockets and their memory.
pub fn sockstat(tree: &Tree) -> Fact<Sockstat> {
    tree.fact(&format!("{}/sockstat", net(tree)), parse_sockstat)
}

fn parse_sockstat(text: &str) -> Option<Sockstat> {
    let value = |group: &str, name: &str| {
        let words = text.lines().find_map(|line| line.strip_prefix(group)?.strip_prefix(':'))?;
        let mut words = words.split_whitespace();
        words.find(|word| *word == name)?;
        words.next()?.parse().ok()
    };
    Some(Sockstat {
        tcp_in_use: value("TCP", "inuse")?,
        tcp_orphans: value("TCP", "orphan")?,
        tcp_time_wait: value("TCP", "tw")?,
        tcp_allocated: value("TCP", "alloc")?,
        tcp_memory_pages: value("TCP", "mem")?,
        udp_memory_pages: value("UDP", "mem").unwrap_or(0),
    })
}

/// Tracked connections. Nothing is asked by netlink: that would load the module.
pub fn conntrack(tree: &Tree) -> Fact<Conntrack> {
    let folder = "/proc/sys/net/netfilter";
    let number = |name: &str| tree.read(&format!("{folder}/{name}")).ok()?.trim().parse().ok();
    let (Some(count), Some(max)) = (number("nf_conntrack_count"), number("nf_conntrack_max")) else {
        return Fact::missing(
            format!("{folder}/nf_conntrack_count"),
            "connections are not tracked here (nf_conntrack is not loaded)",
        );
    };
    let table = format!("{}/stat/nf_conntrack", net(tree));
    let sums = tree.read(&table).ok().and_then(|text| hex_columns(&text)).unwrap_or_default();
    let sum = |name: &str| sums.get(name).copied();
    Fact::known(
        format!("{folder}, {table}"),
        Conntrack {
            count,
            max,
            buckets: number("nf_conntrack_buckets"),
            dropped: sum("drop"),
            early_dropped: sum("early_drop"),
            insert_failed: sum("insert_failed"),
        },
    )
}

/// A table with names above and one line of hexadecimal numbers for each CPU, summed.
fn hex_columns(text: &str) -> Option<BTreeMap<String, u64>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split_whitespace().collect();
    let mut sums = BTreeMap::new();
    for line in lines {
        for (name, field) in names.iter().zip(line.split_whitespace()) {
            let value = u64::from_str_radix(field, 16).ok()?;
            let sum = sums.entry((*name).to_owned()).or_insert(0u64);
            *sum = sum.saturating_add(value);
        }
    }
    Some(sums)
}

/// UDP sockets that have dropped something: port, inode and drops.
pub(super) fn udp_sockets(table: &str) -> Vec<(u16, u32, u64)> {
    let one = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let drops: u64 = fields.last()?.parse().ok()?;
        let port = u16::from_str_radix(fields.get(1)?.rsplit(':').next()?, 16).ok()?;
        let inode = fields.get(9)?.parse().ok()?;
        (drops > 0).then_some((port, inode, drops))
    };
    table.lines().skip(1).filter_map(one).collect()
}

/// Any text in place of each of these files: for tests.
#[doc(hidden)]
pub fn exercise(text: &str) {
    let mut all = BTreeMap::new();
    pairs_of_lines(text, &mut all);
    lines_with_two(text, &mut all);
    drop((parse_softnet(text), parse_sockstat(text), hex_columns(text), udp_sockets(text)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_group_and_name() {
        let mut all = BTreeMap::new();
        pairs_of_lines("TcpExt: A B\nTcpExt: 1 2\nTcp: MaxConn RetransSegs\nTcp: -1 7\nOdd: X\nOdd: 1\n", &mut all);
        lines_with_two("Udp6RcvbufErrors \t3\nIp6InReceives 4\n", &mut all);
        let expected = [("Tcp.RetransSegs", 7), ("TcpExt.A", 1), ("TcpExt.B", 2), ("Udp6.RcvbufErrors", 3)];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn a_line_names_its_cpu_where_the_kernel_says_it() {
        let new = "0000000a 00000001 00000002 0 0 0 0 0 0 0 00000005 00000000 00000003 0 0\n";
        let cpu = SoftnetCpu { cpu: 3, processed: 10, dropped: 1, squeezed: 2, flow_limited: 5 };
        assert_eq!(parse_softnet(new), Some(vec![cpu]));
        assert_eq!(parse_softnet("1 2 3\n4 5 6\n").unwrap()[1].cpu, 1);
        assert_eq!(parse_softnet("banana\n"), None);
    }

    #[test]
    fn conntrack_columns_are_summed_by_name() {
        let sums = hex_columns("entries drop early_drop\n0000000a 1 2\n0000000a f 1\n").unwrap();
        assert_eq!((sums["drop"], sums["early_drop"]), (16, 3));
        assert_eq!(hex_columns("a\nx y\n"), None);
    }

    #[test]
    fn only_udp_sockets_with_drops_are_listed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
                     12: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 99 2 0 17\n \
                     13: 00000000:0036 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 98 2 0 0\n";
        assert_eq!(udp_sockets(table), [(53, 99, 17)]);
    }

    #[test]
    fn sockstat_needs_the_line_of_tcp() {
        let text = "sockets: used 22\nTCP: inuse 5 orphan 1 tw 2 alloc 6 mem 139\nUDP: inuse 0 mem 3\n";
        let read = parse_sockstat(text).unwrap();
        assert_eq!(
            (read.tcp_orphans, read.tcp_time_wait, read.tcp_memory_pages, read.udp_memory_pages),
            (1, 2, 139, 3)
        );
        assert_eq!(parse_sockstat("UDP: inuse 0 mem 3\n"), None);
    }
}
