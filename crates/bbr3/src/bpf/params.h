/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Constants and knobs.
 *
 * The loader writes `knobs` and `features` before the program is verified; after that they are read-only, and the verifier
 * treats every one of them as a known number. The defaults are the faithful BBRv3. Fractions are in 1/256.
 *
 * draft-ietf-ccwg-bbr, "Core Algorithm Design Parameters" and the parameter sections that follow it.
 */
#ifndef BBR3_PARAMS_H
#define BBR3_PARAMS_H

#include "platform.h"

/* Behaviour that may be chosen when the program is loaded. */
struct bbr3_knobs {
	/* Loss rate of one flight above which a bandwidth probe went too high: bounds inflight_hi. BBR.LossThresh 2 %. */
	u32 loss_thresh;
	/* The same, for leaving STARTUP. BBR.LossThresh 2 %. */
	u32 startup_loss_thresh;
	/* Loss rate of one flight up to which bw_lo stays as it is. 0: every loss lowers it. */
	u32 bw_lo_loss_thresh;
	/* Loss rate of one flight up to which inflight_lo stays as it is. 0: every loss lowers it. */
	u32 inflight_lo_loss_thresh;
	/* Part that is cut off on congestion. 1 - BBR.Beta = 0.3. */
	u32 beta;
	/* Part of inflight_hi left free for others in CRUISE. BBR.Headroom 0.15. */
	u32 headroom;
	/* Wait between bandwidth probes: this, plus a random part. 2 s and 1 s. Microseconds. */
	u32 probe_wait_base_us;
	u32 probe_wait_random_us;
	/* Round trips between bandwidth probes, at most. 63. */
	u32 probe_max_rounds;
	/* PROBE_RTT comes at most this often. BBR.ProbeRTTInterval 5 s. Microseconds. */
	u32 probe_rtt_interval_us;
	/* PROBE_RTT holds the low window at least this long. BBR.ProbeRTTDuration 200 ms. Microseconds. */
	u32 probe_rtt_duration_us;
	/* How long a minimum RTT is believed. BBR.MinRTTFilterLen 10 s. Microseconds. */
	u32 min_rtt_window_us;
	/* Pacing stays this far below the estimated bandwidth. BBR.PacingMarginPercent 1. Percent. */
	u32 pacing_margin_percent;
	/* ACKs that bring news of loss in one round of recovery before STARTUP may end on loss. BBRStartupFullLossCnt 6. */
	u32 startup_full_loss_count;
};

#define BBR3_DEFAULT_KNOBS                                                                                             \
	{                                                                                                              \
		.loss_thresh = 5, .startup_loss_thresh = 5, .bw_lo_loss_thresh = 0, .inflight_lo_loss_thresh = 0,      \
		.beta = 76, .headroom = 38, .probe_wait_base_us = 2000000, .probe_wait_random_us = 1000000,            \
		.probe_max_rounds = 63, .probe_rtt_interval_us = 5000000, .probe_rtt_duration_us = 200000,             \
		.min_rtt_window_us = 10000000, .pacing_margin_percent = 1, .startup_full_loss_count = 6,               \
	}

/* What the running kernel can do. The loader finds out from its BTF and by trying. */
struct bbr3_features {
	/* cong_control(sk, ack, flag, rs) instead of cong_control(sk, rs). */
	u32 cong_control_four_args;
	/* A program may write tcp_sock.app_limited. */
	u32 app_limited_writable;
};

#ifdef __bpf__
/* Each in a section, and so a map, of its own: the loader writes the whole value. */
const volatile struct bbr3_knobs knobs SEC(".rodata.knobs") = BBR3_DEFAULT_KNOBS;
const volatile struct bbr3_features features SEC(".rodata.feature") = {};
#else
/* One set for each test thread. */
static _Thread_local struct bbr3_knobs knobs = BBR3_DEFAULT_KNOBS;
static _Thread_local struct bbr3_features features = { .app_limited_writable = 1 };
#endif

/* Gains: draft, "Summary of Control Behavior in the State Machine". */
#define STARTUP_PACING_GAIN 710 /* 2.77 */
#define DRAIN_PACING_GAIN 128   /* 0.5 */
#define DOWN_PACING_GAIN 232    /* 0.906 */
#define UP_PACING_GAIN 320      /* 1.25 */
#define CWND_GAIN 512           /* 2 */
#define UP_CWND_GAIN 576        /* 2.25 */
#define PROBE_RTT_CWND_GAIN 128 /* 0.5 */

/* BBR.MinPipeCwnd, packets. */
#define MIN_PIPE_CWND 4

/* "Exiting Acceleration Based on Bandwidth Plateau": growth by a quarter within three rounds, else the pipe is full. */
#define FULL_BW_GROWTH 320
#define FULL_BW_ROUNDS 3

/* "Drain": leave after more rounds than this. */
#define MAX_DRAIN_ROUNDS 3

/* "BBR.extra_acked": two slots of five rounds; one round in STARTUP. */
#define EXTRA_ACKED_ROUNDS 5
#define STARTUP_EXTRA_ACKED_ROUNDS 1
/* Aggregation never adds more to the window than this time's worth of bandwidth. Microseconds. */
#define EXTRA_ACKED_MAX_US (100 * USEC_PER_MSEC)
/* Packets after which an aggregation epoch starts anew, and the highest count kept. */
#define ACK_EPOCH_RESET (1U << 20)
#define ACK_EPOCH_MAX 0xFFFFFU

/* Doublings of the growth of inflight_hi within one UP phase, at most. */
#define MAX_PROBE_UP_ROUNDS 30

/* "Send Quantum": bursts the kernel's TCP builds: one part of sk_pacing_shift of a second, and 64 KiB halved for every 512 us
 * of minimum RTT (net.ipv4.tcp_tso_rtt_log's default). Packets and bytes. */
#define MIN_TSO_PACKETS 2
#define TSO_RTT_SHIFT 9
#define TSO_MAX_BYTES 65536U
/* Headers in the largest burst: MAX_TCP_HEADER (128 + MAX_HEADER 160, aligned) and one. Bytes. */
#define TSO_HEADER_BYTES 321U
/* Bursts that may be at the sender's queue, in segmentation, and at the receiver at once. */
#define OFFLOAD_QUANTA 3

/* Send buffer, as a multiple of the window. */
#define SNDBUF_EXPAND 3

/* Largest initial window remembered, packets. */
#define MAX_INIT_CWND 127

#endif
