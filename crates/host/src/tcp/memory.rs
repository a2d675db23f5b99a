use std::fs;

use nix::unistd::{SysconfVar, sysconf};
use units::Bytes;

use crate::sysctl;

/// The memory that all TCP sockets of the host share, with the marks of sysctl `net.ipv4.tcp_mem`.
///
/// Above `pressure` the kernel stops growing windows, shrinks receive buffers, and goes on so until the use falls below `low`. The
/// account is the host's: a namespace has none of its own, and sockets left behind by anything else count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpMemory {
    /// In use now.
    pub used: Bytes,
    /// Below this the kernel leaves the state of pressure.
    pub low: Bytes,
    /// Above this it enters it.
    pub pressure: Bytes,
    /// Above this it drops and refuses.
    pub limit: Bytes,
}

impl TcpMemory {
    /// Reads it; `None` where the marks are not visible, as in a container with a network namespace of its own.
    pub fn read() -> Option<Self> {
        let page = u64::try_from(sysconf(SysconfVar::PAGE_SIZE).ok()??).ok()?;
        let sockstat = fs::read_to_string("/proc/thread-self/net/sockstat").ok()?;
        Self::parse(&sockstat, &sysctl::read("net.ipv4.tcp_mem").ok()?, page)
    }

    /// From `/proc/net/sockstat` and the three page counts of `tcp_mem`.
    fn parse(sockstat: &str, marks: &str, page: u64) -> Option<Self> {
        let pages = |text: &str| Some(Bytes::new(text.parse::<u64>().ok()?.saturating_mul(page)));
        let tcp = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
        let mut words = tcp.split_whitespace();
        words.find(|word| *word == "mem")?;
        let used = pages(words.next()?)?;
        let mut marks = marks.split_whitespace().map(pages);
        Some(Self { used, low: marks.next()??, pressure: marks.next()??, limit: marks.next()?? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKSTAT: &str = "sockets: used 19\nTCP: inuse 2 orphan 32 tw 0 alloc 34 mem 151855\nUDP: inuse 0 mem 7\n";

    #[test]
    fn pages_of_tcp_become_bytes() {
        let memory = TcpMemory::parse(SOCKSTAT, "287898 383866 575796", 4096).unwrap();
        assert_eq!(memory.used, Bytes::new(151_855 * 4096));
        assert_eq!(memory.low, Bytes::new(287_898 * 4096));
        assert_eq!(memory.pressure, Bytes::new(383_866 * 4096));
        assert_eq!(memory.limit, Bytes::new(575_796 * 4096));
    }

    #[test]
    fn anything_else_is_not_taken_for_it() {
        assert_eq!(TcpMemory::parse("UDP: inuse 0 mem 7\n", "1 2 3", 4096), None);
        assert_eq!(TcpMemory::parse("TCP: inuse 2\n", "1 2 3", 4096), None);
        assert_eq!(TcpMemory::parse(SOCKSTAT, "1 2", 4096), None);
        assert_eq!(TcpMemory::parse(SOCKSTAT, "1 x 3", 4096), None);
    }
}
