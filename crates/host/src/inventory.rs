//! What this machine is and has counted, read from `/proc` and `/sys`. Nothing here changes anything.

use std::fs;
use std::path::Path;

use crate::netlink::{u16_at, u32_at};
use crate::tcp;

/// A kernel feature that may be a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Built in or loaded.
    Present,
    /// There is a module for this kernel.
    Loadable,
    /// Neither.
    Absent,
}

/// All memory in bytes (`MemTotal`); `None` where `/proc/meminfo` does not say.
pub fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The size of a page in bytes.
pub fn page_bytes() -> u64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|n| u64::try_from(n).ok())
        .unwrap_or(4096)
}

/// A fingerprint of `/etc/machine-id`, which itself is not to be shown around (machine-id(5)); empty where there is none.
pub fn fingerprint() -> String {
    let Ok(id) = fs::read_to_string("/etc/machine-id") else { return String::new() };
    let id = id.trim();
    if id.is_empty() {
        return String::new();
    }
    // FNV-1a: enough to tell one host from another.
    let hash = format!("linerate {id}")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

/// Whether this kernel has each of some features: a module (`sch_fq`) built in, loaded or to be loaded, or, where the machine has no
/// list of modules, a function (`fq_enqueue`) among the kernel's. `None`: not known.
pub fn presence<const N: usize>(features: [(&str, &str); N]) -> [Option<Presence>; N] {
    let release = nix::sys::utsname::uname().ok().and_then(|name| Some(name.release().to_str()?.to_owned()));
    let folder = release.map(|release| Path::new("/lib/modules").join(release));
    let list = |file: &str| fs::read_to_string(folder.as_ref()?.join(file)).ok();
    let (built_in, loadable) = (list("modules.builtin"), list("modules.dep"));
    let names = |list: &Option<String>, module: &str| {
        list.as_ref().map(|text| text.lines().any(|line| module_of(line) == module))
    };
    let mut found = features.map(|(module, _)| {
        if Path::new("/sys/module").join(module).exists() {
            return Some(Presence::Present);
        }
        match (names(&built_in, module), names(&loadable, module)) {
            (Some(true), _) => Some(Presence::Present),
            (_, Some(true)) => Some(Presence::Loadable),
            (Some(false), Some(false)) => Some(Presence::Absent),
            _ => None,
        }
    });
    if found.iter().any(Option::is_none)
        && let Some(there) = functions(features.map(|(_, function)| function))
    {
        for (presence, there) in found.iter_mut().zip(there).filter(|(presence, _)| presence.is_none()) {
            *presence = Some(if there { Presence::Present } else { Presence::Absent });
        }
    }
    found
}

/// Which functions the kernel has.
fn functions<const N: usize>(names: [&str; N]) -> Option<[bool; N]> {
    fs::read("/sys/kernel/btf/vmlinux")
        .ok()
        .and_then(|types| functions_in_types(&types, names))
        .or_else(|| functions_in_symbols(names))
}

/// A function that every kernel with a network has built in, static and called by a pointer as those are that are asked about: where
/// the type information knows it, it knows the others too.
const WITNESS: &str = "pfifo_fast_enqueue";

/// By the kernel's type information (BTF, Documentation/bpf/btf.rst), whose strings hold the functions' names: to read it is a copy of
/// memory, thirty times cheaper than the table of symbols. `None` where it isn't as expected.
fn functions_in_types<const N: usize>(types: &[u8], names: [&str; N]) -> Option<[bool; N]> {
    const MAGIC: u16 = 0xeb9f;
    let word = |at: usize| u32_at(types, at).map(|word| word as usize);
    if u16_at(types, 0)? != MAGIC {
        return None;
    }
    // struct btf_header: the header's own length, then offsets and lengths of types and strings, from the header's end.
    let start = word(4)?.checked_add(word(16)?)?;
    let strings = types.get(start..start.checked_add(word(20)?)?)?;
    let (mut there, mut witnessed) = ([false; N], false);
    for text in strings.split(|byte| *byte == 0) {
        witnessed |= text == WITNESS.as_bytes();
        if let Some(at) = names.iter().position(|name| name.as_bytes() == text) {
            there[at] = true;
        }
    }
    witnessed.then_some(there)
}

/// By its table of symbols. Five megabytes take the kernel some 50 ms to print, so that it is read once.
fn functions_in_symbols<const N: usize>(names: [&str; N]) -> Option<[bool; N]> {
    let mut table = fs::File::open("/proc/kallsyms").ok()?;
    let mut there = [false; N];
    let (mut buffer, mut kept, mut any) = (vec![0; 1 << 16], 0, false);
    loop {
        let read = std::io::Read::read(&mut table, &mut buffer[kept..]).ok()?;
        if read == 0 {
            return any.then_some(there);
        }
        any = true;
        let filled = kept + read;
        let lines = buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // ADDRESS TYPE NAME [MODULE]; addresses are zeros for those without privileges, names aren't.
        for line in buffer[..lines].split(|byte| *byte == b'\n') {
            let Some(name) = line.split(|byte| matches!(byte, b' ' | b'\t')).nth(2) else { continue };
            if let Some(at) = names.iter().position(|wanted| wanted.as_bytes() == name) {
                there[at] = true;
            }
        }
        if there == [true; N] {
            return Some(there);
        }
        buffer.copy_within(lines..filled, 0);
        kept = filled - lines;
        if kept == buffer.len() {
            // A line that long is no symbol.
            return None;
        }
    }
}

/// `kernel/net/sched/sch_fq.ko.xz: …` is `sch_fq`.
fn module_of(line: &str) -> String {
    let path = line.split(':').next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    file.split(".ko").next().unwrap_or_default().replace('-', "_")
}

/// TCP ports on which something of this namespace listens, sorted. `None` where neither socket diagnostics nor `/proc/net/tcp` tell.
pub fn listening_ports() -> Option<Vec<u16>> {
    // The table lists every connection too: 100,000 of them take a tenth of a second to print and to read.
    let mut ports = Vec::new();
    if tcp::diag::each_socket(tcp::diag::States::LISTEN, |socket| ports.push(socket.local.port())).is_ok() {
        ports.sort_unstable();
        ports.dedup();
        return Some(ports);
    }
    let mut ports = listening(&fs::read_to_string("/proc/thread-self/net/tcp").ok()?);
    // A kernel without IPv6 has no such file.
    ports.extend(fs::read_to_string("/proc/thread-self/net/tcp6").map_or_else(|_| Vec::new(), |text| listening(&text)));
    ports.sort_unstable();
    ports.dedup();
    Some(ports)
}

/// State `0A` is LISTEN (net/tcp_states.h).
fn listening(table: &str) -> Vec<u16> {
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
        if state != "0A" {
            return None;
        }
        u16::from_str_radix(local.rsplit(':').next()?, 16).ok()
    };
    table.lines().skip(1).filter_map(port).collect()
}

/// Entries of this namespace's IPv4 neighbour table.
pub fn neighbours() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/arp").ok()?;
    Some(text.lines().skip(1).count() as u64)
}

/// What the receive soft interrupt has counted since boot, summed over CPUs: packets processed, dropped at the backlog's end, and
/// rounds that ended with work left (`net/core/net-procfs.c`).
pub fn softnet() -> Option<(u64, u64, u64)> {
    softnet_sums(&fs::read_to_string("/proc/thread-self/net/softnet_stat").ok()?)
}

fn softnet_sums(table: &str) -> Option<(u64, u64, u64)> {
    let mut sums = (0, 0, 0);
    for line in table.lines() {
        let mut fields = line.split_whitespace().map(|field| u64::from_str_radix(field, 16).ok());
        sums.0 += fields.next()??;
        sums.1 += fields.next()??;
        sums.2 += fields.next()??;
    }
    Some(sums)
}

/// Devices of this namespace that are up, without `lo`: name, index, and whether there is hardware behind them.
pub fn devices_up() -> Vec<(String, u32, bool)> {
    let Ok(folder) = fs::read_dir("/sys/class/net") else { return Vec::new() };
    let mut devices: Vec<(String, u32, bool)> = folder
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| name != "lo")?;
            let state = fs::read_to_string(entry.path().join("operstate")).ok()?;
            let index = fs::read_to_string(entry.path().join("ifindex")).ok()?.trim().parse().ok()?;
            // A TUN device's state is unknown, not up.
            matches!(state.trim(), "up" | "unknown").then(|| (name, index, entry.path().join("device").exists()))
        })
        .collect();
    devices.sort();
    devices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_that_listen_are_ports() {
        let table = "  sl  local_address rem_address   st tx_queue\n   0: 0100007F:1F90 00000000:0000 0A 00000000\n   \
                     1: 0100007F:0016 0200007F:1234 01 00000000\n   2: 00000000000000000000000000000000:0050 0:0 0A 0\n";
        assert_eq!(listening(table), [8080, 80]);
        assert_eq!(listening(""), Vec::<u16>::new());
    }

    #[test]
    fn softnet_is_summed_over_cpus() {
        assert_eq!(softnet_sums("0000000a 00000001 00000002 0\n00000010 00000000 00000001 0\n"), Some((26, 1, 3)));
        assert_eq!(softnet_sums("banana\n"), None);
    }

    #[test]
    fn functions_are_found_in_type_information_that_knows_a_witness() {
        let types = |strings: &[u8]| {
            let mut bytes = vec![0x9f, 0xeb, 1, 0];
            if cfg!(target_endian = "big") {
                bytes[..2].reverse();
            }
            for word in [24, 0, 0, 0, strings.len() as u32] {
                bytes.extend(u32::to_ne_bytes(word));
            }
            bytes.extend(strings);
            bytes
        };
        let names = ["fq_enqueue", "bbr_main"];
        let with = types(b"\0int\0pfifo_fast_enqueue\0bbr_main\0");
        assert_eq!(functions_in_types(&with, names), Some([false, true]));
        assert_eq!(functions_in_types(&types(b"\0int\0bbr_main\0"), names), None, "it holds no such functions at all");
        for length in 0..with.len() {
            assert_ne!(functions_in_types(&with[..length], names), Some([true, true]));
        }
        assert_eq!(functions_in_types(b"\x7fELF and what not, longer than a header", names), None);
    }

    #[test]
    fn modules_are_told_by_their_file_names() {
        assert_eq!(module_of("kernel/net/sched/sch_fq.ko.xz: kernel/lib/x.ko"), "sch_fq");
        assert_eq!(module_of("kernel/net/ipv4/tcp-bbr.ko"), "tcp_bbr");
        assert_ne!(module_of("kernel/net/sched/sch_fq_codel.ko:"), "sch_fq");
    }
}
