//! Network devices of the calling thread's namespace, with their queue disciplines, read by netlink and ethtool's ioctl.

use std::io;

use facts::{Device, DeviceCounters, Fact, QdiscState};
use netlink_sys::protocols::NETLINK_ROUTE;

use super::ethtool::Ethtool;
use super::tree::sentence;
use crate::netlink::{attributes, dump, text, u16_at, u32_at, u64_at};

/// linux/rtnetlink.h, linux/if_link.h, linux/if.h, linux/gen_stats.h.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const LINK_HEADER: usize = 16;
const TC_HEADER: usize = 20;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_PARENT_DEV_NAME: u16 = 56;
/// Up, and with a carrier.
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 1 << 16;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;
const TC_H_ROOT: u32 = u32::MAX;
const TC_H_INGRESS: u32 = 0xffff_fff1;

/// Where all this is read.
const FROM: &str = "netlink RTM_GETLINK, RTM_GETQDISC; ioctl SIOCETHTOOL";

/// All devices.
pub fn read() -> Fact<Vec<Device>> {
    match list() {
        Ok(devices) => Fact::known(FROM, devices),
        Err(error) => Fact::missing(FROM, sentence(&error)),
    }
}

fn list() -> io::Result<Vec<Device>> {
    let mut devices: Vec<Device> = Vec::new();
    dump(NETLINK_ROUTE, RTM_GETLINK, &[0; LINK_HEADER], |kind, body| {
        if kind == RTM_NEWLINK {
            devices.extend(device(body));
        }
    })?;
    dump(NETLINK_ROUTE, RTM_GETQDISC, &[0; TC_HEADER], |kind, body| {
        if kind == RTM_NEWQDISC
            && let Some((index, qdisc)) = qdisc(body)
            // A device that came in between the two answers has no entry, and none is made up.
            && let Some(device) = devices.iter_mut().find(|device| device.index == index)
        {
            device.qdiscs.push(qdisc);
        }
    })?;
    let ethtool = Ethtool::new()?;
    for device in &mut devices {
        ask(&ethtool, device);
    }
    Ok(devices)
}

/// What the driver tells. A device that is gone by now answers with an error, which stands in its facts.
fn ask(ethtool: &Ethtool, device: &mut Device) {
    const IOCTL: &str = "ioctl SIOCETHTOOL";
    let name = device.name.clone();
    if !device.physical {
        for fact in [&mut device.driver, &mut device.duplex] {
            *fact = Fact::missing(IOCTL, "no hardware behind it");
        }
        device.speed_bps = Fact::missing(IOCTL, "no hardware behind it");
        device.rings = Fact::missing(IOCTL, "no hardware behind it");
        device.channels = Fact::missing(IOCTL, "no hardware behind it");
        return;
    }
    let why = |error: &io::Error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "the driver doesn't tell".to_owned(),
        Some(libc::ENODEV) => "the device went away".to_owned(),
        _ => sentence(error),
    };
    device.driver = Fact::of(format!("{IOCTL} GDRVINFO"), ethtool.driver(&name).map_err(|e| why(&e)));
    device.rings = Fact::of(format!("{IOCTL} GRINGPARAM"), ethtool.rings(&name).map_err(|e| why(&e)));
    device.channels = Fact::of(format!("{IOCTL} GCHANNELS"), ethtool.channels(&name).map_err(|e| why(&e)));
    let link = ethtool.link(&name).map_err(|error| why(&error));
    let from = format!("{IOCTL} GLINKSETTINGS");
    let unknown = || "the link doesn't tell".to_owned();
    device.speed_bps = Fact::of(from.clone(), link.clone().and_then(|(speed, _)| speed.ok_or_else(unknown)));
    device.duplex = Fact::of(from, link.and_then(|(_, duplex)| duplex.map(str::to_owned).ok_or_else(unknown)));
    device.offloads = ethtool.offloads(&name);
}

fn device(body: &[u8]) -> Option<Device> {
    let flags = u32_at(body, 8)?;
    let up = IFF_UP | IFF_LOWER_UP;
    let mut device = Device { index: u32_at(body, 4)?, up: flags & up == up, ..Device::default() };
    let number = |value: &[u8]| u32_at(value, 0).unwrap_or(0);
    for (kind, value) in attributes(body.get(LINK_HEADER..)?) {
        match kind {
            IFLA_IFNAME => device.name = text(value),
            IFLA_MTU => device.mtu_bytes = number(value),
            IFLA_TXQLEN => device.tx_queue_frames = number(value),
            IFLA_NUM_TX_QUEUES => device.tx_queues = number(value),
            IFLA_NUM_RX_QUEUES => device.rx_queues = number(value),
            IFLA_STATS64 => device.counters = counters(value),
            IFLA_PARENT_DEV_NAME => device.physical = true,
            IFLA_LINKINFO => {
                let kinds = attributes(value).filter(|(kind, _)| *kind == IFLA_INFO_KIND);
                device.kind = kinds.map(|(_, kind)| text(kind)).next().unwrap_or_default();
            }
            _ => {}
        }
    }
    Some(device)
}

/// `struct rtnl_link_stats64`.
fn counters(value: &[u8]) -> DeviceCounters {
    let at = |field: usize| u64_at(value, field * 8).unwrap_or(0);
    DeviceCounters {
        rx_packets: at(0),
        tx_packets: at(1),
        rx_bytes: at(2),
        tx_bytes: at(3),
        rx_errors: at(4),
        tx_errors: at(5),
        rx_dropped: at(6),
        tx_dropped: at(7),
        rx_crc_errors: at(12),
        rx_frame_errors: at(13),
        rx_fifo_errors: at(14),
        rx_missed: at(15),
        tx_carrier_errors: at(17),
    }
}

fn qdisc(body: &[u8]) -> Option<(u32, QdiscState)> {
    let (index, handle, parent) = (u32_at(body, 4)?, u32_at(body, 8)?, u32_at(body, 12)?);
    let mut qdisc = QdiscState {
        handle: format!("{:x}:", handle >> 16),
        parent: match parent {
            TC_H_ROOT => "root".to_owned(),
            TC_H_INGRESS => "ingress".to_owned(),
            parent => format!("{:x}:{:x}", parent >> 16, parent & 0xffff),
        },
        ..QdiscState::default()
    };
    for (kind, value) in attributes(body.get(TC_HEADER..)?) {
        match kind {
            TCA_KIND => qdisc.kind = text(value),
            TCA_STATS2 => statistics(&mut qdisc, value),
            _ => {}
        }
    }
    Some((index, qdisc))
}

/// `struct gnet_stats_basic`, `gnet_stats_queue` and the packets in 64 bits.
fn statistics(qdisc: &mut QdiscState, value: &[u8]) {
    let mut wide = None;
    for (kind, value) in attributes(value) {
        let at = |field: usize| u64::from(u32_at(value, field * 4).unwrap_or(0));
        match kind {
            TCA_STATS_BASIC => {
                qdisc.sent_bytes = u64_at(value, 0).unwrap_or(0);
                qdisc.sent_packets = at(2);
            }
            TCA_STATS_PKT64 => wide = u64_at(value, 0),
            TCA_STATS_QUEUE => {
                qdisc.backlog_packets = at(0);
                qdisc.backlog_bytes = at(1);
                qdisc.dropped = at(2);
                qdisc.requeues = at(3);
                qdisc.overlimits = at(4);
            }
            _ => {}
        }
    }
    qdisc.sent_packets = wide.unwrap_or(qdisc.sent_packets);
}

/// Any bytes in place of the kernel's answers: for tests.
#[doc(hidden)]
pub fn exercise(bytes: &[u8]) {
    let _ = u16_at(bytes, 0);
    drop((device(bytes), qdisc(bytes)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_device_is_read_with_its_counters_and_what_is_behind_it() {
        let mut body = vec![0; LINK_HEADER];
        body[4] = 2;
        body[8..12].copy_from_slice(&(IFF_UP | IFF_LOWER_UP).to_ne_bytes());
        let stats: Vec<u8> = (0..25u64).flat_map(u64::to_ne_bytes).collect();
        body.extend(attribute(IFLA_IFNAME, b"eth0\0"));
        body.extend(attribute(IFLA_STATS64, &stats));
        let virtual_one = device(&body).unwrap();
        assert!(virtual_one.up && !virtual_one.physical);
        assert_eq!((virtual_one.counters.rx_missed, virtual_one.counters.rx_dropped), (15, 6));
        body.extend(attribute(IFLA_PARENT_DEV_NAME, b"virtio2\0"));
        body.extend(attribute(IFLA_LINKINFO | 0x8000, &attribute(IFLA_INFO_KIND, b"veth\0")));
        let read = device(&body).unwrap();
        assert_eq!((read.name.as_str(), read.kind.as_str(), read.physical), ("eth0", "veth", true));
        for length in 0..body.len() {
            exercise(&body[..length]);
        }
    }

    #[test]
    fn a_discipline_is_read_with_what_it_dropped() {
        let mut body = vec![0; 4];
        for word in [2u32, 0x8001_0000, TC_H_ROOT, 0] {
            body.extend(word.to_ne_bytes());
        }
        body.extend(attribute(TCA_KIND, b"htb\0"));
        let words: Vec<u8> = [1u32, 1500, 7, 8, 9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        body.extend(attribute(TCA_STATS2 | 0x8000, &attribute(TCA_STATS_QUEUE, &words)));
        let (index, read) = qdisc(&body).unwrap();
        assert_eq!(
            (index, read.kind.as_str(), read.handle.as_str(), read.parent.as_str()),
            (2, "htb", "8001:", "root")
        );
        assert_eq!((read.backlog_packets, read.dropped, read.requeues, read.overlimits), (1, 7, 8, 9));
        assert_eq!(qdisc(&body[..19]), None);
    }
}
