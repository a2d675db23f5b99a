//! What a device's driver tells, by the ioctl of ethtool(8): readable without privileges, and the same on every kernel.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use facts::{Channels, Rings};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// linux/sockios.h, linux/ethtool.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GDRVINFO: u32 = 0x03;
const GRINGPARAM: u32 = 0x10;
const GCHANNELS: u32 = 0x3c;
const GLINKSETTINGS: u32 = 0x4c;
const GFLAGS: u32 = 0x25;
/// `ETH_FLAG_LRO`
const FLAG_LRO: u32 = 1 << 15;
/// Commands that answer with one number, and the short names that people use.
const SWITCHES: [(u32, &str); 6] =
    [(0x14, "rx-checksum"), (0x16, "tx-checksum"), (0x18, "sg"), (0x1e, "tso"), (0x23, "gso"), (0x2b, "gro")];

/// Asks drivers of this namespace's devices.
pub struct Ethtool {
    socket: OwnedFd,
}

impl Ethtool {
    /// Asks in the calling thread's namespace.
    ///
    /// # Errors
    /// Where no socket can be had.
    pub fn new() -> io::Result<Self> {
        let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        Ok(Self { socket })
    }

    /// `data`: a command and room for its answer.
    fn ask(&self, device: &str, data: &mut [u32]) -> io::Result<()> {
        let mut name = [0; libc::IFNAMSIZ];
        if device.len() >= name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        let data = libc::__c_anonymous_ifr_ifru { ifru_data: data.as_mut_ptr().cast() };
        let mut request = libc::ifreq { ifr_name: name, ifr_ifru: data };
        // SAFETY: `request` is a whole ifreq with a NUL-terminated name; `data` is as long as the structure of the command in its
        // first word, which is all that the kernel writes (each caller below), and both outlive the call.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        nix::errno::Errno::result(result)?;
        Ok(())
    }

    /// The driver's name.
    ///
    /// # Errors
    /// What the kernel says: `EOPNOTSUPP` where the device has none.
    pub fn driver(&self, device: &str) -> io::Result<String> {
        // struct ethtool_drvinfo: the command, five texts of 32 bytes, 12 bytes and five words.
        let mut data = [0; 49];
        data[0] = GDRVINFO;
        self.ask(device, &mut data)?;
        let bytes: Vec<u8> = data[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(crate::netlink::text(&bytes))
    }

    /// Descriptors of its rings.
    ///
    /// # Errors
    /// What the kernel says: `EOPNOTSUPP` where the driver doesn't tell.
    pub fn rings(&self, device: &str) -> io::Result<Rings> {
        let mut data = [0; 9];
        data[0] = GRINGPARAM;
        self.ask(device, &mut data)?;
        Ok(Rings { rx_max: data[1], tx_max: data[4], rx: data[5], tx: data[8] })
    }

    /// Its queues.
    ///
    /// # Errors
    /// What the kernel says: `EOPNOTSUPP` where the driver doesn't tell.
    pub fn channels(&self, device: &str) -> io::Result<Channels> {
        let mut data = [0; 9];
        data[0] = GCHANNELS;
        self.ask(device, &mut data)?;
        Ok(Channels { combined_max: data[4], rx: data[5], tx: data[6], combined: data[8] })
    }

    /// Bits per second and `full` or `half`, where the link knows them.
    ///
    /// # Errors
    /// What the kernel says: `EOPNOTSUPP` where the driver doesn't tell.
    pub fn link(&self, device: &str) -> io::Result<(Option<u64>, Option<&'static str>)> {
        // struct ethtool_link_settings (twelve words) and three maps of link modes. How long those are, the first answer says by a
        // negative count (Documentation/networking/ethtool-netlink.rst; ethtool_get_link_ksettings, net/ethtool/ioctl.c).
        let mut data = [0; 12 + 3 * 127];
        data[0] = GLINKSETTINGS;
        self.ask(device, &mut data)?;
        let words = (data[3].to_ne_bytes()[3] as i8).unsigned_abs().min(127);
        data = [0; 12 + 3 * 127];
        data[0] = GLINKSETTINGS;
        data[3] = u32::from_ne_bytes([0, 0, 0, words]);
        self.ask(device, &mut data)?;
        let duplex = match data[2].to_ne_bytes()[0] {
            0 => Some("half"),
            1 => Some("full"),
            _ => None,
        };
        let mbps = data[1];
        Ok(((mbps != 0 && mbps != u32::MAX).then(|| u64::from(mbps) * 1_000_000), duplex))
    }

    /// Offloads and whether they are on. Those that the driver doesn't know are absent.
    pub fn offloads(&self, device: &str) -> BTreeMap<String, bool> {
        let value = |command| {
            let mut data = [command, 0];
            self.ask(device, &mut data).ok().map(|()| data[1])
        };
        let mut all: BTreeMap<String, bool> =
            SWITCHES.iter().filter_map(|(command, name)| Some(((*name).to_owned(), value(*command)? != 0))).collect();
        all.extend(value(GFLAGS).map(|flags| ("lro".to_owned(), flags & FLAG_LRO != 0)));
        all
    }
}
