//! The namespaces between the two ends, and what stands at each hop.
//!
//! ```text
//! client --- router 1 -------- router 2 ------------- router 3 --- server
//! path0      |    right:       |    right: bottleneck |    right: delay
//!            |    split        |                      |
//!            left: delay       left: bottleneck       left: split         (the way back)
//! ```
//!
//! The sender's TCP hands segments of up to 64 KiB to its device, as to a network card with segmentation offload. Before the
//! bottleneck a hop cuts them into packets, which netem itself would not do: it would drop or delay 44 packets as one. The delay comes
//! after the bottleneck, in a qdisc of its own, since netem holds delayed packets in the queue that its limit counts.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use host::netns::NetNs;
use host::sysctl;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, State};
use netlink_packet_route::tc::TcMessage;
use nix::net::if_::if_nametoindex;

use super::NetemError;
use super::message::{self, End, Mac};
use super::options::Netem;
use super::plan::DirectionPlan;
use super::rtnl::Rtnl;
use super::stats::{QdiscStats, options_of};
use crate::world::{CLIENT, DEVICE, SERVER};

/// The namespaces in a row: the client, three routers, the server.
pub const PLACES: usize = 5;
const LAST: usize = PLACES - 1;

/// The network that both ends are in.
pub const NETWORK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// Its prefix length.
pub const PREFIX: u8 = 24;

/// The device of a router towards the client.
pub const LEFT: &str = "left";
/// The device of a router towards the server.
pub const RIGHT: &str = "right";

/// In a router, before it has devices: forward, whatever the host's defaults are, and send nothing of its own.
const ROUTER: &[(&str, &str)] = &[
    ("net.ipv4.ip_forward", "1"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.send_redirects", "0"),
    ("net.ipv4.conf.default.send_redirects", "0"),
    ("net.ipv6.conf.all.disable_ipv6", "1"),
    ("net.ipv6.conf.default.disable_ipv6", "1"),
];

/// How long devices may take to have a carrier.
const PATIENCE: Duration = Duration::from_secs(10);

/// A netem qdisc that can be asked for its account.
pub struct Tap {
    rtnl: Rtnl,
    index: u32,
}

impl Tap {
    /// What it counted so far.
    ///
    /// # Errors
    /// Where netlink fails, or the qdisc is gone.
    pub fn stats(&mut self) -> Result<QdiscStats, NetemError> {
        let message = self.ask().map_err(NetemError::netlink("read a qdisc's statistics"))?;
        QdiscStats::of(&message).ok_or(NetemError::NoStatistics)
    }

    fn ask(&mut self) -> io::Result<TcMessage> {
        match self.rtnl.get(message::get_qdisc(self.index))? {
            RouteNetlinkMessage::NewQueueDiscipline(message) => Ok(message),
            other => Err(io::Error::other(format!("unexpected answer: {other:?}"))),
        }
    }
}

/// The two qdiscs of one direction.
pub struct Taps {
    /// Rate, queue and loss.
    pub bottleneck: Tap,
    /// Delay.
    pub delay_line: Tap,
    /// Whether this kernel takes a seed for the loss (6.6 and later).
    pub seeded: bool,
}

/// The link between places `k` and `k + 1` has the address of its ends from here.
fn mac(link: usize, left_end_of_the_right_place: bool) -> Mac {
    // Locally administered, unicast.
    [0x02, 0, 0, 0, link as u8, u8::from(left_end_of_the_right_place) + 1]
}

fn right_of(place: usize) -> End<'static> {
    End { name: if place == 0 { DEVICE } else { RIGHT }, mac: mac(place, false) }
}

fn left_of(place: usize) -> End<'static> {
    End { name: if place == LAST { DEVICE } else { LEFT }, mac: mac(place - 1, true) }
}

/// Turns a new namespace into a router, before it has devices.
///
/// # Errors
/// Where the kernel refuses one of the sysctls.
pub fn prepare_router() -> Result<(), NetemError> {
    for (key, value) in ROUTER {
        match sysctl::write(key, value) {
            // A kernel built without IPv6 has none of its keys.
            Ok(_) | Err(sysctl::SysctlError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Joins the prepared namespaces, with what stands at each hop. The taps are those of the way up and the way down.
///
/// # Errors
/// The step that failed; devices go with the namespaces.
pub fn build(
    places: &[NetNs; PLACES],
    mtu: u16,
    up: &DirectionPlan,
    down: &DirectionPlan,
) -> Result<[Taps; 2], NetemError> {
    for (place, pair) in places.windows(2).enumerate() {
        let [here, there] = pair else { continue };
        here.run(|| join(place, there, mtu))??;
    }
    for (place, namespace) in places.iter().enumerate() {
        namespace.run(|| bring_up(place))??;
    }
    // Only now: a device that has no carrier yet drops what it is given.
    for (place, namespace) in places.iter().enumerate() {
        namespace.run(|| equip(place))??;
    }
    let tap = |place: usize, end: End<'static>, netem: &Netem| places[place].run(|| attach(end, netem))?;
    let (up_bottleneck, up_seeded) = tap(2, right_of(2), &up.bottleneck)?;
    let (down_bottleneck, down_seeded) = tap(2, left_of(2), &down.bottleneck)?;
    let (up_line, _) = tap(3, right_of(3), &up.delay_line)?;
    let (down_line, _) = tap(1, left_of(1), &down.delay_line)?;
    Ok([
        Taps { bottleneck: up_bottleneck, delay_line: up_line, seeded: up_seeded },
        Taps { bottleneck: down_bottleneck, delay_line: down_line, seeded: down_seeded },
    ])
}

/// The ends that a place has.
fn ends(place: usize) -> impl Iterator<Item = End<'static>> {
    let left = (place > 0).then(|| left_of(place));
    let right = (place < LAST).then(|| right_of(place));
    left.into_iter().chain(right)
}

/// The ends that cut bursts into packets: the ones before the bottleneck, in either direction.
fn splits(place: usize, end: End<'_>) -> bool {
    (place == 1 && end.name == RIGHT) || (place == 3 && end.name == LEFT)
}

fn index_of(end: End<'_>) -> Result<u32, NetemError> {
    if_nametoindex(end.name).map_err(|error| NetemError::netlink("find a device")(error.into()))
}

fn join(place: usize, there: &NetNs, mtu: u16) -> Result<(), NetemError> {
    let mut rtnl = Rtnl::open().map_err(NetemError::netlink("open rtnetlink"))?;
    let pair = message::veth(right_of(place), left_of(place + 1), there.as_fd(), mtu);
    rtnl.create(pair).map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => NetemError::NoVeth,
        _ => NetemError::netlink("make a veth pair")(error),
    })
}

fn bring_up(place: usize) -> Result<(), NetemError> {
    let mut rtnl = Rtnl::open().map_err(NetemError::netlink("open rtnetlink"))?;
    for end in ends(place) {
        super::offload::disable_gro(end.name).map_err(NetemError::netlink("switch receive offload off"))?;
        let index = index_of(end)?;
        rtnl.create(message::up(index, splits(place, end))).map_err(NetemError::netlink("bring a device up"))?;
    }
    Ok(())
}

/// Addresses, neighbours and routes of a place, once its devices can send.
fn equip(place: usize) -> Result<(), NetemError> {
    let mut rtnl = Rtnl::open().map_err(NetemError::netlink("open rtnetlink"))?;
    for end in ends(place) {
        let index = index_of(end)?;
        wait_for_carrier(&mut rtnl, index, splits(place, end))?;
        let towards_server = end.mac == right_of(place).mac;
        // The address at the path's end on this side, and the device at the link's other end.
        let (far, next): (Ipv4Addr, Mac) =
            if towards_server { (SERVER, mac(place, true)) } else { (CLIENT, mac(place - 1, false)) };
        match place {
            0 => rtnl.create(message::address(index, CLIENT, PREFIX)),
            LAST => rtnl.create(message::address(index, SERVER, PREFIX)),
            _ => rtnl.create(message::route(index, far)),
        }
        .map_err(NetemError::netlink("set an address or a route"))?;
        rtnl.create(message::neighbour(index, far, next)).map_err(NetemError::netlink("set a neighbour"))?;
    }
    Ok(())
}

/// Waits until the kernel has switched a device's queue on, which it does some time after both ends are up.
fn wait_for_carrier(rtnl: &mut Rtnl, index: u32, split: bool) -> Result<(), NetemError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = rtnl.get(message::get_link(index)).map_err(NetemError::netlink("read a device"))?;
        let RouteNetlinkMessage::NewLink(link) = answer else { return Err(NetemError::NoCarrier) };
        if split && !link.attributes.contains(&LinkAttribute::GsoMaxSegs(1)) {
            return Err(NetemError::NoSplitting);
        }
        if is_up(&link) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(NetemError::NoCarrier);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_up(link: &LinkMessage) -> bool {
    link.attributes.contains(&LinkAttribute::OperState(State::Up))
}

/// Sets a netem qdisc and reads back whether the kernel took all of it. True where it took the seed too.
fn attach(end: End<'_>, netem: &Netem) -> Result<(Tap, bool), NetemError> {
    let index = index_of(end)?;
    let mut tap = Tap { rtnl: Rtnl::open().map_err(NetemError::netlink("open rtnetlink"))?, index };
    add(&mut tap.rtnl, index, netem)?;
    let message = tap.ask().map_err(NetemError::netlink("read a qdisc"))?;
    let shown = options_of(&message).ok_or(NetemError::NoStatistics)?;
    if (Netem { seed: netem.seed, ..shown }) != *netem {
        return Err(NetemError::Differs(Box::new([*netem, shown])));
    }
    Ok((tap, netem.seed.is_some() && shown.seed == netem.seed))
}

/// Sets a netem qdisc as a device's root.
pub(super) fn add(rtnl: &mut Rtnl, index: u32, netem: &Netem) -> Result<(), NetemError> {
    rtnl.create(message::add_netem(index, netem)).map_err(|error| match error.raw_os_error() {
        // qdisc_create in net/sched/sch_api.c: no such kind, and no module of that name.
        Some(libc::ENOENT) => NetemError::NoNetem,
        _ => NetemError::netlink("set a netem qdisc")(error),
    })
}
