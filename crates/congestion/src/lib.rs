//! Congestion control without a clock, a socket or a thread: Reno, CUBIC, BBRv1 and BBRv3.
//!
//! A [`Controller`] is told what happens to a connection and answers in a [`Control`]: how much may be in flight, how fast to send, and in
//! how large bursts. It knows the time from [`Connection::now`], its random numbers from a seed; nothing else goes in. The crate is
//! `no_std`, allocates nothing and calculates in integers only, so the same events give the same decisions on every machine.
//!
//! | controller | after |
//! | --- | --- |
//! | [`Reno`] | RFC 5681, RFC 6582 |
//! | [`Cubic`] | RFC 9438 with fast convergence and the Reno-friendly region; HyStart++ of RFC 9406 |
//! | [`Bbr1`] | draft-cardwell-iccrg-bbr-congestion-control-00, as Linux's tcp_bbr behaves |
//! | [`Bbr3`] | draft-ietf-ccwg-bbr, state of 2026-08-03 (after -06) |
//!
//! [`RateSampler`] measures delivery rates for BBR, as the draft and Linux do. With the cargo feature `quinn` all of them are controllers of
//! that QUIC implementation.
//!
//! # BBRv3 in your own transport
//!
//! Windows and counts are in packets, each of up to [`Connection::mss`] bytes, as in Linux: a transport that counts bytes divides by the
//! size of a full packet, and rounds up.
//!
//! 1. Keep one [`RateSampler`], one [`Control`] and one [`Connection`] for each connection. Fill the connection in before each call: its
//!    fields say how. For BBR the important ones are `now`, `in_flight`, `delivered`, `delivered_at`, `lost`, `srtt`, `is_cwnd_limited`
//!    and `recovery`.
//! 2. As a packet is sent (again or for the first time): [`RateSampler::on_sent`], and keep what it returns with the packet.
//! 3. As an ACK comes in: [`RateSampler::on_delivered`] for each packet it delivers; [`RateSampler::on_lost`] and
//!    [`Controller::on_lost`] for each that is now taken for lost; then [`RateSampler::finish`] and [`Controller::on_ack`]. What else there is to
//!    tell, and in which order, is written at [`Controller`].
//! 4. Send no faster than [`Control::pacing_rate`], at most [`Control::send_quantum`] packets back to back, and never more than
//!    [`Control::cwnd`] in flight. BBR without pacing does not work.
//! 5. Where the application has nothing to send and the window has room, call [`RateSampler::mark_app_limited`], before the ACK is
//!    processed; and where [`Control::mark_app_limited`] is set after a call. Else BBR takes the application's rate for the path's.
//!
//! A whole round trip, for one packet:
//!
//! ```
//! use congestion::bbr3::Params;
//! use congestion::{Ack, Bbr3, Connection, Control, Controller, Ignore, RateSampler};
//! use units::{Bytes, Duration, Instant};
//!
//! let start = Instant::ZERO;
//! let mut conn = Connection::new(start, Bytes::new(1200));
//! let mut control = Control::new(10);
//! let mut sampler = RateSampler::new(start);
//! // Another seed for each connection.
//! let mut bbr = Bbr3::new(Params::default(), 42)?;
//! bbr.init(&conn, &mut control, &mut Ignore);
//!
//! // A packet leaves.
//! bbr.on_idle_restart(&conn, &mut control, &mut Ignore);
//! conn.in_flight += 1;
//! let stamp = sampler.on_sent(conn.now, conn.in_flight, true);
//!
//! // It is acknowledged 40 ms later.
//! conn.now = start + Duration::from_millis(40);
//! let prior_in_flight = conn.in_flight;
//! conn.in_flight -= 1;
//! sampler.on_delivered(&stamp, 0);
//! let rtt = conn.now.since(stamp.sent_at);
//! (conn.srtt, conn.min_rtt) = (Some(rtt), Some(rtt));
//! let sample = sampler.finish(conn.now, conn.min_rtt);
//! conn.delivered = sampler.delivered();
//! conn.delivered_at = sampler.delivered_at();
//! let ack = Ack { newly_acked: 1, prior_in_flight, rtt: Some(rtt), sample, ..Ack::default() };
//! bbr.on_ack(&conn, &ack, &mut control, &mut Ignore);
//!
//! // 2.77 windows of 10 packets in 40 ms, less the margin of 1 %.
//! assert_eq!(control.pacing_rate.unwrap().as_mbps_f64().round(), 7.0);
//! assert_eq!(control.cwnd, 11);
//! # Ok::<(), congestion::bbr3::ParamError>(())
//! ```
//!
//! An [`Observer`] instead of [`Ignore`] is told every change of state and of bounds. [`Bbr3::state`] shows everything.
//!
//! # Where BBRv3 differs from the draft
//!
//! It is the same as linerate's program for the Linux kernel, in the same fixed-point arithmetic: recordings of that program in a kernel lead
//! to the same decisions here, bit by bit. Both follow Google's Linux code where draft and code differ.
//!
//! | draft | here | why |
//! | --- | --- | --- |
//! | the plateau test runs once a round | growth is looked for at every ACK, its absence counted once a round | as Linux |
//! | a minimum RTT is replaced by a lower one | or by an equal one, which refreshes its time; a held back ACK opens no new window | as Linux |
//! | CRUISE leaves inflight_shortterm | holds it at or below inflight_longterm | as Linux |
//! | extra_acked: a filter of ten rounds | two slots of five rounds; adds at most what 100 ms of the bandwidth carry | as Linux |
//! | PROBE_RTT's window gain is 0.5 | gain 1, and a cap of 0.5 BDP of the minimum RTT before it | as Linux; the older minimum: draft issue 109 |
//! | rounds are counted | a round's end is a count of delivered packets; rounds in DRAIN and since the last probe saturate | fewer bits |
//! | send quantum: 1 ms of the pacing rate, 64 KiB at most | that of Linux's TCP: 1/1024 s, and 64 KiB halved for every 512 us of RTT | as Linux |
//! | thresholds of 2 %, 0.7, 15 % | 5/256 = 1.95 %, 180/256 = 0.703, 38/256 = 14.8 % | fixed point |
//! | bytes | packets | as Linux |
//! | the test case "Exiting STARTUP on Loss" wants full_bw_now set | only full_bw_reached | as the draft's own text |
//! | ECN: CE marks are congestion, how is open | a mark counts as a loss above every threshold: it ends STARTUP or a probe, and its round lowers the short-term bounds | the draft demands a response |
//!
//! And from the kernel program, for this has what a stock kernel keeps from it:
//!
//! | kernel program | here |
//! | --- | --- |
//! | rebuilds packets in flight and lost for each packet from a ring | the transport tells, exactly ([`RateSample`], [`Lost`]) |
//! | sees losses one ACK late, several at once | as they happen; several at once too |
//! | tests for itself whether the connection is application-limited | the transport marks ([`RateSampler::mark_app_limited`]) |
//! | counters of 32 bits that wrap | 64 bits |
//! | a pacing rate of 0 where the arithmetic gives it (below 1 B/s) | at least 1 B/s |
//! | knows no ECN | see above |
//!
//! # Limits
//!
//! Bandwidths have steps of one packet in 16.8 s (690 bit/s at 1448 bytes) and end at 255 packets per microsecond (2.96 Tbit/s at 1448
//! bytes, 204 Gbit/s at 100). On a path of 1 kbit/s BBR is therefore up to 70 % off.
#![no_std]
#![forbid(unsafe_code)]

mod ack;
mod bbr1;
pub mod bbr3;
mod connection;
mod control;
mod cubic;
#[doc(hidden)]
pub mod exercise;
mod filter;
mod fixed;
mod observer;
#[cfg(feature = "quinn")]
pub mod quinn;
mod rate;
mod reno;
mod round;

pub use ack::{Ack, Flight, Lost, RateSample};
pub use bbr1::Bbr1;
pub use bbr3::Bbr3;
pub use connection::{Connection, Recovery};
pub use control::{Cause, Control, Controller, INFINITE_SSTHRESH, Undo};
pub use cubic::{Cubic, CubicParams};
pub use fixed::Bandwidth;
pub use observer::{Bound, Ignore, Observer, Phase};
pub use rate::{PacketStamp, RateSampler};
pub use reno::Reno;
