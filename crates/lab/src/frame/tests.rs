use super::*;

/// A TCP burst as the kernel hands it over: virtio header, IPv4 and TCP with timestamps, `payload` bytes counting up.
fn tcp4_burst(payload: usize, gso_size: u16, tos: u8) -> Vec<u8> {
    let mut bytes = vec![0u8; VNET_LEN + 20 + 32 + payload];
    bytes[0] = NEEDS_CSUM;
    bytes[1] = GSO_TCPV4;
    bytes[2..4].copy_from_slice(&52u16.to_ne_bytes());
    bytes[4..6].copy_from_slice(&gso_size.to_ne_bytes());
    bytes[6..8].copy_from_slice(&20u16.to_ne_bytes());
    bytes[8..10].copy_from_slice(&16u16.to_ne_bytes());
    let ip = &mut bytes[VNET_LEN..];
    ip[0] = 0x45;
    ip[1] = tos;
    ip[2..4].copy_from_slice(&((52 + payload) as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&0xfffe_u16.to_be_bytes());
    ip[8] = 64;
    ip[9] = TCP;
    ip[12..16].copy_from_slice(&[198, 18, 0, 1]);
    ip[16..20].copy_from_slice(&[198, 18, 0, 2]);
    let t = &mut ip[20..];
    t[0..2].copy_from_slice(&40_000u16.to_be_bytes());
    t[2..4].copy_from_slice(&5_201u16.to_be_bytes());
    t[4..8].copy_from_slice(&0xffff_f000_u32.to_be_bytes());
    t[12] = 8 << 4;
    t[13] = 0x18 | TCP_CWR | TCP_FIN;
    for (index, byte) in t[32..].iter_mut().enumerate() {
        *byte = index as u8;
    }
    bytes
}

fn whole(frame: &Frame, bytes: &[u8], first: u16, count: u16, ce: bool) -> Vec<u8> {
    let mut header = HeaderBuf::default();
    let payload = frame.run(bytes, first, count, ce, &mut header).to_vec();
    [header.as_slice(), &payload].concat()
}

#[test]
fn a_burst_counts_as_the_packets_it_stands_for() {
    let bytes = tcp4_burst(3_000, 1_448, 0);
    let frame = Frame::parse(&bytes).unwrap();
    assert_eq!(frame.segments(), 3);
    let sizes: Vec<_> = (0..3).map(|s| frame.segment_size(s).as_u64()).collect();
    assert_eq!(sizes, [1_500, 1_500, 52 + 104]);
    assert_eq!(frame.ports, (40_000, 5_201));
}

#[test]
fn a_run_out_of_the_middle_has_its_own_sequence_lengths_and_flags() {
    let bytes = tcp4_burst(1_448 * 4 + 10, 1_448, 2);
    let frame = Frame::parse(&bytes).unwrap();
    let run = whole(&frame, &bytes, 1, 2, false);
    let ip = &run[VNET_LEN..];
    assert_eq!(run[1], GSO_TCPV4, "two full packets are still a burst");
    assert_eq!(u16::from_be_bytes([ip[2], ip[3]]), 52 + 2 * 1_448);
    assert_eq!(u16::from_be_bytes([ip[4], ip[5]]), 0xffff, "the second packet's IP id");
    let t = &ip[20..];
    assert_eq!(u32::from_be_bytes([t[4], t[5], t[6], t[7]]), 0xffff_f000_u32.wrapping_add(1_448));
    assert_eq!(t[13], 0x10, "only the first packet has CWR, only the last PSH and FIN");
    assert_eq!(t[32..], bytes[VNET_LEN + 52 + 1_448..VNET_LEN + 52 + 3 * 1_448]);
    assert_eq!(folded(sum16(&ip[..20])), 0xffff, "the IP checksum holds");
}

#[test]
fn single_packets_are_no_bursts_and_the_last_keeps_fin() {
    let bytes = tcp4_burst(1_448 * 2 + 10, 1_448, 0);
    let frame = Frame::parse(&bytes).unwrap();
    let last = whole(&frame, &bytes, 2, 1, false);
    assert_eq!((last[0], last[1], last[4], last[5]), (NEEDS_CSUM, GSO_NONE, 0, 0));
    assert_eq!(last.len(), VNET_LEN + 52 + 10);
    let flags = last[VNET_LEN + 20 + 13];
    assert_eq!(flags & (TCP_FIN | TCP_CWR), TCP_FIN);
}

#[test]
fn all_runs_together_are_the_whole_payload_for_any_cut() {
    let bytes = tcp4_burst(10_000, 1_400, 0);
    let frame = Frame::parse(&bytes).unwrap();
    for cut in 1..frame.segments() {
        let head = whole(&frame, &bytes, 0, cut, false);
        let tail = whole(&frame, &bytes, cut, frame.segments() - cut, false);
        assert_eq!([&head[VNET_LEN + 52..], &tail[VNET_LEN + 52..]].concat(), bytes[VNET_LEN + 52..]);
    }
    let all = whole(&frame, &bytes, 0, frame.segments(), false);
    assert_eq!(all[VNET_LEN + 52..], bytes[VNET_LEN + 52..]);
}

#[test]
fn marking_sets_ce_and_mends_the_ip_checksum() {
    let bytes = tcp4_burst(3_000, 1_448, 2);
    let frame = Frame::parse(&bytes).unwrap();
    assert_eq!(frame.ecn, Ecn::Ect0);
    let marked = whole(&frame, &bytes, 0, 1, true);
    assert_eq!(Frame::parse(&marked).unwrap().ecn, Ecn::Ce);
    assert_eq!(folded(sum16(&marked[VNET_LEN..VNET_LEN + 20])), 0xffff);
    let unmarked = whole(&frame, &bytes, 0, 1, false);
    assert_eq!(Frame::parse(&unmarked).unwrap().ecn, Ecn::Ect0);
}

#[test]
fn the_partial_checksum_is_the_pseudo_header_of_the_new_length() {
    let bytes = tcp4_burst(3_000, 1_448, 0);
    let frame = Frame::parse(&bytes).unwrap();
    let one = whole(&frame, &bytes, 0, 1, false);
    let ip = &one[VNET_LEN..];
    // By hand: 198.18 + 0.1 + 198.18 + 0.2 + 6 + 1480.
    let sum = 0xc612u32 + 0x0001 + 0xc612 + 0x0002 + 6 + 1_480;
    assert_eq!(u16::from_be_bytes([ip[36], ip[37]]), ((sum & 0xffff) + (sum >> 16)) as u16);
}

#[test]
fn ipv6_bursts_are_cut_alike() {
    let v4 = tcp4_burst(3_000, 1_448, 0);
    let mut bytes = vec![0u8; VNET_LEN + 40];
    bytes[..VNET_LEN].copy_from_slice(&v4[..VNET_LEN]);
    bytes[1] = GSO_TCPV6;
    bytes[VNET_LEN] = 0x60;
    bytes[VNET_LEN + 1] = 0x20;
    bytes[VNET_LEN + 6] = TCP;
    bytes.extend_from_slice(&v4[VNET_LEN + 20..]);
    let frame = Frame::parse(&bytes).unwrap();
    assert_eq!((frame.segments(), frame.ecn), (3, Ecn::Ect0));
    let run = whole(&frame, &bytes, 1, 1, true);
    assert_eq!(u16::from_be_bytes([run[VNET_LEN + 4], run[VNET_LEN + 5]]), 32 + 1_448);
    assert_eq!(Frame::parse(&run).unwrap().ecn, Ecn::Ce);
}

#[test]
fn frames_that_contradict_themselves_are_refused_and_never_panic() {
    let good = tcp4_burst(3_000, 1_448, 0);
    for len in 0..good.len().min(80) {
        let _ = Frame::parse(&good[..len]);
    }
    assert_eq!(Frame::parse(&good[..40]), Err(Malformed));
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Frame::parse(&bytes)
    };
    assert_eq!(with(VNET_LEN, 0x15), Err(Malformed), "IP version 1");
    assert_eq!(with(1, 9), Err(Malformed), "unknown offload type");
    assert_eq!(with(VNET_LEN + 9, UDP), Err(Malformed), "a TCP burst of UDP");
    let mut no_size = good.clone();
    no_size[4..6].fill(0);
    assert_eq!(Frame::parse(&no_size), Err(Malformed), "a burst of no size");
    assert!(Frame::parse(&good).is_ok());
}

#[test]
fn packets_are_told_apart_by_the_server_port_in_either_direction() {
    let base = Frame::parse(&tcp4_burst(10, 1_448, 0)).unwrap();
    let classifier = Classifier::new(5_201, 2, Some(FlowId(3)));
    let of = |ports, protocol| classifier.flow(&Frame { ports, protocol, ..base });
    assert_eq!(of((40_000, 5_201), TCP), FlowId(1));
    assert_eq!(of((5_202, 40_000), TCP), FlowId(2));
    assert_eq!(of((40_000, 5_203), TCP), FlowId(0));
    assert_eq!(of((40_000, 5_200), TCP), FlowId(0));
    assert_eq!(of((40_000, 5_201), UDP), FlowId(3), "the probe");
    let without = Classifier::new(5_201, 2, None);
    assert_eq!(without.flow(&Frame { ports: (40_000, 5_201), protocol: UDP, ..base }), FlowId(1));
}
