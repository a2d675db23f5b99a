//! The options of a netem qdisc, as rtnetlink carries them: `struct tc_netem_qopt` and its attributes
//! (`include/uapi/linux/pkt_sched.h`, Linux 6.12). `TCA_OPTIONS` begins with the bare struct, which the netlink crates do not model.

use netlink_packet_core::{DecodeError, DefaultNla, Emitable, NlasIterator, parse_i64, parse_u32, parse_u64};
use units::{Bytes, Duration, Probability, Rate};

/// The kind's name.
pub const KIND: &str = "netem";

const QOPT_LEN: usize = 24;

const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_PRNG_SEED: u16 = 14;

const NETEM_LOSS_GE: u16 = 2;

/// Bytes of an Ethernet header, which netem counts and a path's packet does not have.
pub const ETHERNET_HEADER: Bytes = Bytes::new(14);

/// What a netem qdisc is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Netem {
    /// Delay of every packet.
    pub latency: Duration,
    /// Most packets inside, the one in service included.
    pub limit: u32,
    /// Random loss, before the queue.
    pub loss: Loss,
    /// The rate it sends at.
    pub rate: Option<Serializer>,
    /// Seed of the loss; kernels before 6.6 ignore it.
    pub seed: Option<u64>,
}

/// How fast, and what counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serializer {
    /// Bytes per second: netem's own unit, so that nothing is lost in reading it back.
    pub bytes_per_second: u64,
    /// Added to each frame's length, which includes its Ethernet header, in bytes.
    pub packet_overhead: i32,
}

/// netem's two loss models that a path has, with its 32-bit thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// None.
    None,
    /// A packet is lost where a random 32-bit number is at most this.
    Independent(u32),
    /// Gilbert-Elliott that loses nothing in the good state and everything in the bad one.
    GilbertElliott {
        /// Threshold of the change from good to bad.
        enter: u32,
        /// Threshold of the change back.
        leave: u32,
    },
}

impl Serializer {
    /// `rate` for IP packets that count with `overhead` bytes each. netem takes whole bytes per second, at least one.
    pub fn new(rate: Rate, overhead: Bytes) -> Self {
        Self {
            bytes_per_second: (rate.as_bps() / 8).max(1),
            packet_overhead: i32::try_from(overhead.as_u64()).unwrap_or(i32::MAX) - ETHERNET_HEADER.as_u64() as i32,
        }
    }
}

/// `probability` of 2^32, rounded.
fn threshold(probability: f64) -> u32 {
    // The cast saturates at 2^32 - 1, the nearest there is to one.
    (probability * 4_294_967_296.0).round() as u32
}

impl Loss {
    /// Every packet for itself. At least one in 2^32 where the probability is above zero: to netem, zero is no loss model.
    pub fn independent(probability: Probability) -> Self {
        match probability {
            Probability::ZERO => Self::None,
            // It compares with "at most", which is one case more than the threshold says.
            some => Self::Independent(threshold(some.as_f64()).saturating_sub(1).max(1)),
        }
    }

    /// Bursts, by the average over all packets and the mean length in thousandths of a packet.
    ///
    /// A packet in the bad state is lost, and then the state changes: bursts have the mean length 1/r, where r is the chance to leave,
    /// and p, the chance to enter, makes the average p/(p + r).
    pub fn burst(average: Probability, mean_burst_milli: u32) -> Self {
        let leave = 1_000.0 / f64::from(mean_burst_milli.max(1_000));
        let enter = leave * average.as_f64() / (1.0 - average.as_f64());
        if average == Probability::ZERO {
            return Self::None;
        }
        Self::GilbertElliott { enter: threshold(enter).max(1), leave: threshold(leave).max(1) }
    }
}

impl Netem {
    /// The content of `TCA_OPTIONS`.
    pub fn to_options(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        let loss = match self.loss {
            Loss::Independent(threshold) => threshold,
            Loss::None | Loss::GilbertElliott { .. } => 0,
        };
        // latency and jitter in ticks are superseded by the 64-bit attributes; gap is for reordering.
        let [latency, gap, duplicate, jitter] = [0_u32; 4];
        for field in [latency, self.limit, loss, gap, duplicate, jitter] {
            bytes.extend(field.to_ne_bytes());
        }
        let mut attribute = |kind, value: &[u8]| {
            let nla = DefaultNla::new(kind, value.to_vec());
            let start = bytes.len();
            bytes.resize(start + nla.buffer_len(), 0);
            nla.emit(&mut bytes[start..]);
        };
        attribute(TCA_NETEM_LATENCY64, &(self.latency.as_nanos() as i64).to_ne_bytes());
        if let Some(rate) = self.rate {
            if rate.bytes_per_second > u64::from(u32::MAX) {
                attribute(TCA_NETEM_RATE64, &rate.bytes_per_second.to_ne_bytes());
            }
            let short = u32::try_from(rate.bytes_per_second).unwrap_or(u32::MAX);
            let [cell_size, cell_overhead] = [[0; 4]; 2];
            let overhead = rate.packet_overhead.to_ne_bytes();
            attribute(TCA_NETEM_RATE, &[short.to_ne_bytes(), overhead, cell_size, cell_overhead].concat());
        }
        if let Loss::GilbertElliott { enter, leave } = self.loss {
            // h: kept in the bad state, none; k1: lost in the good state, none.
            let [h, k1] = [0_u32; 2];
            let model = DefaultNla::new(NETEM_LOSS_GE, [enter, leave, h, k1].map(u32::to_ne_bytes).concat());
            let mut nested = vec![0; model.buffer_len()];
            model.emit(&mut nested);
            attribute(TCA_NETEM_LOSS, &nested);
        }
        if let Some(seed) = self.seed {
            attribute(TCA_NETEM_PRNG_SEED, &seed.to_ne_bytes());
        }
        bytes
    }

    /// Reads the content of `TCA_OPTIONS` as a kernel shows it. Attributes that this type has no field for are passed over.
    ///
    /// # Errors
    /// Where it is too short or an attribute is broken.
    pub fn from_options(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() < QOPT_LEN {
            return Err(DecodeError::buffer_too_small(bytes.len(), QOPT_LEN));
        }
        let field = |index: usize| parse_u32(&bytes[index * 4..index * 4 + 4]);
        let mut netem = Self {
            latency: Duration::ZERO,
            limit: field(1)?,
            loss: match field(2)? {
                0 => Loss::None,
                threshold => Loss::Independent(threshold),
            },
            rate: None,
            seed: None,
        };
        let mut rate64 = None;
        for nla in NlasIterator::new(&bytes[QOPT_LEN..]) {
            let nla = nla?;
            let value = nla.value();
            match nla.kind() {
                TCA_NETEM_LATENCY64 => netem.latency = Duration::from_nanos(parse_i64(value)?.max(0) as u64),
                TCA_NETEM_RATE => netem.rate = serializer(value)?,
                TCA_NETEM_RATE64 => rate64 = Some(parse_u64(value)?),
                TCA_NETEM_LOSS => netem.loss = gilbert_elliott(value)?,
                TCA_NETEM_PRNG_SEED => netem.seed = Some(parse_u64(value)?),
                _ => {}
            }
        }
        if let (Some(rate), Some(bytes_per_second)) = (&mut netem.rate, rate64) {
            rate.bytes_per_second = bytes_per_second;
        }
        Ok(netem)
    }
}

/// `struct tc_netem_rate`; a rate of zero is none.
fn serializer(value: &[u8]) -> Result<Option<Serializer>, DecodeError> {
    if value.len() < 16 {
        return Err(DecodeError::buffer_too_small(value.len(), 16));
    }
    let bytes_per_second = u64::from(parse_u32(&value[..4])?);
    let packet_overhead = parse_u32(&value[4..8])?.cast_signed();
    Ok((bytes_per_second > 0).then_some(Serializer { bytes_per_second, packet_overhead }))
}

/// The nested loss model: `struct tc_netem_gemodel` is p, r, h, k1.
fn gilbert_elliott(value: &[u8]) -> Result<Loss, DecodeError> {
    for nla in NlasIterator::new(value) {
        let nla = nla?;
        let value = nla.value();
        if nla.kind() == NETEM_LOSS_GE {
            if value.len() < 16 {
                return Err(DecodeError::buffer_too_small(value.len(), 16));
            }
            return Ok(Loss::GilbertElliott { enter: parse_u32(&value[..4])?, leave: parse_u32(&value[4..8])? });
        }
    }
    Ok(Loss::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Mbit/s, 166 packets, 1 % loss, IP bytes only, seed 7: written by hand from pkt_sched.h.
    #[rustfmt::skip]
    const BOTTLENECK: &[u8] = &[
        0, 0, 0, 0,              // latency in ticks
        166, 0, 0, 0,            // limit
        0x28, 0x5c, 0x8f, 0x02,  // loss: 42949673 - 1
        0, 0, 0, 0,              // gap
        0, 0, 0, 0,              // duplicate
        0, 0, 0, 0,              // jitter in ticks
        12, 0, 10, 0,  0, 0, 0, 0, 0, 0, 0, 0,                   // LATENCY64: 0
        20, 0, 6, 0,   0x20, 0xbc, 0xbe, 0x00,  0xf2, 0xff, 0xff, 0xff,  0, 0, 0, 0,  0, 0, 0, 0, // RATE: 12,500,000 B/s, -14 B
        12, 0, 14, 0,  7, 0, 0, 0, 0, 0, 0, 0,                   // PRNG_SEED
    ];

    /// 80 ms and nothing else.
    #[rustfmt::skip]
    const DELAY: &[u8] = &[
        0, 0, 0, 0,  0x10, 0x27, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
        12, 0, 10, 0,  0x00, 0xb4, 0xc4, 0x04, 0, 0, 0, 0,       // LATENCY64: 80,000,000 ns
    ];

    /// 40 Gbit/s with 24 bytes of overhead, Gilbert-Elliott of 1 % on average in bursts of 4.
    #[rustfmt::skip]
    const FAST_AND_BURSTY: &[u8] = &[
        0, 0, 0, 0,  0xe8, 0x03, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
        12, 0, 10, 0,  0, 0, 0, 0, 0, 0, 0, 0,
        12, 0, 8, 0,   0x00, 0xf2, 0x05, 0x2a, 0x01, 0, 0, 0,    // RATE64: 5,000,000,000 B/s
        20, 0, 6, 0,   0xff, 0xff, 0xff, 0xff,  10, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
        24, 0, 5, 0,                                             // LOSS
        20, 0, 2, 0,   0xb5, 0x7e, 0xa5, 0x00,  0, 0, 0, 0x40,  0, 0, 0, 0,  0, 0, 0, 0, // GE: 2^30 / 99 = 10845877, 2^30, 0, 0
    ];

    fn bottleneck() -> Netem {
        Netem {
            latency: Duration::ZERO,
            limit: 166,
            loss: Loss::independent("1%".parse().unwrap()),
            rate: Some(Serializer::new(Rate::from_mbps(100), Bytes::ZERO)),
            seed: Some(7),
        }
    }

    fn delay() -> Netem {
        Netem { latency: Duration::from_millis(80), limit: 10_000, loss: Loss::None, rate: None, seed: None }
    }

    fn fast_and_bursty() -> Netem {
        Netem {
            latency: Duration::ZERO,
            limit: 1_000,
            loss: Loss::burst("1%".parse().unwrap(), 4_000),
            rate: Some(Serializer::new(Rate::from_mbps(40_000), Bytes::new(24))),
            seed: None,
        }
    }

    #[test]
    fn options_are_written_as_the_kernel_reads_them() {
        assert_eq!(bottleneck().to_options(), BOTTLENECK);
        assert_eq!(delay().to_options(), DELAY);
        assert_eq!(fast_and_bursty().to_options(), FAST_AND_BURSTY);
    }

    #[test]
    fn options_are_read_as_the_kernel_writes_them() {
        assert_eq!(Netem::from_options(BOTTLENECK).unwrap(), bottleneck());
        assert_eq!(Netem::from_options(DELAY).unwrap(), delay());
        assert_eq!(Netem::from_options(FAST_AND_BURSTY).unwrap(), fast_and_bursty());
    }

    #[test]
    fn options_that_are_cut_off_are_refused() {
        for whole in [BOTTLENECK, DELAY, FAST_AND_BURSTY] {
            assert!(Netem::from_options(&whole[..QOPT_LEN - 1]).is_err());
            assert!(Netem::from_options(&whole[..whole.len() - 3]).is_err());
        }
        let mut short_rate = BOTTLENECK[..QOPT_LEN].to_vec();
        short_rate.extend([12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert!(Netem::from_options(&short_rate).is_err());
    }

    #[test]
    fn loss_thresholds_stay_inside_their_32_bits_and_above_zero() {
        assert_eq!(Loss::independent(Probability::ZERO), Loss::None);
        assert_eq!(Loss::independent(Probability::from_ppb(1)), Loss::Independent(3));
        assert_eq!(Loss::independent("50%".parse().unwrap()), Loss::Independent(0x7fff_ffff));
        assert_eq!(Loss::burst(Probability::ZERO, 4_000), Loss::None);
        let alone = Loss::burst("10%".parse().unwrap(), 1_000);
        assert_eq!(alone, Loss::GilbertElliott { enter: 477_218_588, leave: u32::MAX });
    }
}
