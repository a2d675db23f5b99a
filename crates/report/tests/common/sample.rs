//! Invented reports that look like real ones: the same on every machine, so that renderings can be kept as goldens.

use linerate_report::*;
use units::Instant;

/// A small generator with a fixed sequence (splitmix64).
struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around `value`, at most `part` of it off.
    fn around(&mut self, value: f64, part: f64) -> f64 {
        value * (1.0 + part * (2.0 * self.unit() - 1.0))
    }
}

fn at(seconds: f64) -> Instant {
    Instant::from_nanos((seconds * 1e9).round() as u64)
}

/// Of a cell that is to be invented.
#[derive(Clone)]
struct Shape {
    scenario: &'static str,
    profile: &'static str,
    congestion_control: &'static str,
    version: Option<&'static str>,
    loss: f64,
    rtt_ms: f64,
    queue: &'static str,
    queue_bytes: u64,
    /// Label, congestion control, start and goodput of each flow.
    flows: Vec<(&'static str, u32, &'static str, f64, f64)>,
    queueing_ms: f64,
    duration_s: f64,
    warmup_s: f64,
}

fn run(shape: &Shape, repeat: u32, started_after_s: f64) -> RunReport {
    let seed = 1 + u64::from(repeat);
    let mut noise = Noise(seed ^ (shape.loss * 1e6) as u64 ^ ((shape.profile.len() as u64) << 32) ^ shape.queue_bytes);
    let steps = (shape.duration_s * 10.0) as u64;
    let flows: Vec<FlowReport> = shape
        .flows
        .iter()
        .map(|(label, index, control, start_s, bps)| {
            let bps = noise.around(*bps, 0.03);
            let within = |step: u64| step as f64 / 10.0 > *start_s;
            let grown = |step: u64| 1.0 - (-(step as f64 / 10.0 - start_s) * 1.5).exp();
            let mut series = |mean: f64, part: f64| {
                let points = (1..=steps).filter(|step| within(*step));
                Series::from_points(points.map(|step| (at(step as f64 / 10.0), noise.around(mean * grown(step), part))))
            };
            let segments = bps * shape.duration_s / 8.0 / 1448.0;
            FlowReport {
                label: (*label).to_owned(),
                index: *index,
                traffic: FlowTraffic::Bulk,
                congestion_control: (*control).to_owned(),
                rtt_ms: shape.rtt_ms,
                start_s: *start_s,
                end_s: shape.duration_s,
                goodput_bps: Some(bps.round() as u64),
                received_bytes: Some((bps * (shape.duration_s - start_s) / 8.0) as u64),
                sent_segments: Some((segments * (1.0 + shape.loss)) as u64),
                retransmitted_segments: Some((segments * shape.loss) as u64),
                min_rtt_ms: Some(shape.rtt_ms),
                busy_s: Some(shape.duration_s - start_s),
                receive_window_limited_s: Some(0.0),
                send_buffer_limited_s: Some(if *control == "cubic" { 0.0 } else { 0.2 }),
                completion_s: None,
                responses: None,
                response_ms: None,
                series: FlowSeries {
                    goodput_bps: series(bps, 0.08),
                    cwnd_segments: series(bps * shape.rtt_ms / 1e3 / 8.0 / 1448.0, 0.3),
                    pacing_rate_bps: series(bps * 1.2, 0.2),
                    smoothed_rtt_ms: series(shape.rtt_ms + shape.queueing_ms, 0.02),
                },
            }
        })
        .collect();
    let goodput: u64 = flows.iter().filter_map(|flow| flow.goodput_bps).sum();
    let q = noise.around(shape.queueing_ms, 0.1);
    let rate = shape.flows.iter().map(|(.., bps)| bps).sum::<f64>();
    let packets = rate * shape.duration_s / 8.0 / 1500.0;
    let random = (packets * shape.loss) as u64;
    let overflow = if q > 10.0 { 40 + u64::from(repeat) } else { 0 };
    let per_step = |total: u64, noise: &mut Noise| {
        Series::from_points(
            (1..=steps).map(|step| (at(step as f64 / 10.0), noise.around(total as f64 / steps as f64, 0.5).round())),
        )
    };
    let in_bursts = |total: u64| {
        let burst = |step: u64| if step.is_multiple_of(8) { total as f64 * 8.0 / steps as f64 } else { 0.0 };
        Series::from_points((1..=steps).map(|step| (at(step as f64 / 10.0), burst(step).round())))
    };
    RunReport {
        scenario: shape.scenario.to_owned(),
        profile: shape.profile.to_owned(),
        congestion_control: shape.congestion_control.to_owned(),
        congestion_control_version: shape.version.map(str::to_owned),
        loss: shape.loss,
        rtt_ms: shape.rtt_ms,
        queue: shape.queue.to_owned(),
        queue_bytes: Some(shape.queue_bytes),
        repeat,
        seed,
        started_after_s,
        duration_s: shape.duration_s,
        warmup_s: shape.warmup_s,
        valid: true,
        invalid_reason: None,
        goodput_bps: Some(goodput),
        rtt_idle_ms: Some(noise.around(shape.rtt_ms + 0.2, 0.001)),
        rtt_under_load_ms: Some(Percentiles {
            p50: shape.rtt_ms + q,
            p95: shape.rtt_ms + q * 1.6,
            p99: shape.rtt_ms + q * 2.0,
        }),
        queueing_delay_ms: Some(DelayPercentiles { mean: q, p50: q, p95: q * 1.6, p99: q * 2.0 }),
        retransmitted_segments: flows.iter().map(|flow| flow.retransmitted_segments).sum(),
        completion_s: None,
        first_contentful_paint_ms: None,
        page_load_ms: None,
        drops: DropCounts { random, overflow, aqm: 0, policer: 0, unattributed: 0 },
        marks: 0,
        emulator: Some(EmulatorReport {
            kind: "model".to_owned(),
            lateness_us: Some(TimingError { p50: 8.0, p99: 61.0, p999: noise.around(240.0, 0.3), max: 1_100.0 }),
            intake_us: Some(TimingError { p50: 3.0, p99: 20.0, p999: 80.0, max: 400.0 }),
            packets: (packets * 1.5) as u64,
            outside_drops: 0,
        }),
        series: RunSeries {
            rtt_under_load_ms: Series::from_points((1..=steps * 5).map(|step| {
                let saw = (step as f64 / 50.0 * 1.3).fract();
                (at(step as f64 / 50.0), shape.rtt_ms + q * 2.0 * saw + noise.around(0.3, 1.0))
            })),
            queue_depth_bytes: Series::from_points((1..=steps * 10).map(|step| {
                let saw = (step as f64 / 100.0 * 1.3).fract();
                (at(step as f64 / 100.0), (q * saw * 2.0 / 1e3 * rate / 8.0).round())
            }))
            .extremes(MAX_POINTS),
            drops_packets: DropSeries {
                random: per_step(random, &mut noise),
                overflow: in_bursts(overflow),
                aqm: Series::new(),
                policer: Series::new(),
            },
            marks_packets: Series::new(),
        },
        flows,
    }
}

fn kernel() -> Kernel {
    Kernel {
        release: "6.18.0".to_owned(),
        architecture: "x86_64".to_owned(),
        cpus: 2,
        memory_bytes: Some(16 << 30),
        btf: true,
        available_congestion_controls: ["reno", "cubic", "bbr", "bbr3"].map(String::from).to_vec(),
    }
}

/// A report of no scenario.
pub fn empty() -> LabReport {
    let words = ["linerate", "lab", "run", "--json", "out.json"].map(String::from).to_vec();
    LabReport::new("0.1.0", kernel(), words, "2026-12-01T10:20:30Z")
}

fn profile(name: &str, congestion_control: &str, sysctls: &[(&str, &str)]) -> ProfileReport {
    ProfileReport {
        name: name.to_owned(),
        congestion_control: congestion_control.to_owned(),
        sysctls: sysctls.iter().map(|(name, value)| Setting::new(name, value)).collect(),
    }
}

fn published(profile: &str, loss: Option<f64>, goodput_mbps: Option<f64>, note: Option<&str>) -> PublishedFigure {
    PublishedFigure {
        profile: profile.to_owned(),
        label: profile.to_owned(),
        loss,
        goodput_bps: goodput_mbps.map(|mbps| (mbps * 1e6) as u64),
        note: note.map(str::to_owned),
        ..PublishedFigure::default()
    }
}

const LOSSES: [f64; 4] = [0.0, 0.005, 0.015, 0.03];

/// Eight cells: two congestion controls at four losses, with published figures that partly hold.
pub fn transcontinental(repeats: u32) -> LabReport {
    let mut report = empty();
    add_transcontinental(&mut report, repeats);
    report.summarise(&median_and_range);
    report
}

fn add_transcontinental(report: &mut LabReport, repeats: u32) {
    let bursts = "CUBIC halves its growth at every loss event; 1.5 % independent loss holds it near 1 Mbit/s, so the \
                  published figure needs losses that come in bursts of several hundred packets.";
    let mut figures = Vec::new();
    for (profile, mbps, note, rtt) in [
        ("cubic", [940.0, 240.0, 42.0, 12.0], Some(bursts), 240.0),
        ("bbr3", [942.0, 938.0, 910.0, 780.0], Some("BBRv3 lowers inflight_hi above 2 % loss."), 44.0),
    ] {
        for (loss, mbps) in LOSSES.into_iter().zip(mbps) {
            figures.push(published(profile, Some(loss), Some(mbps), note));
        }
        let note = "An RTT below the path's own 80 ms can only be the queueing delay.";
        figures.push(PublishedFigure {
            rtt_under_load_ms: Some(rtt),
            ..published(profile, None, None, (rtt < 80.0).then_some(note))
        });
    }
    report.scenarios.push(ScenarioReport {
        name: "transcontinental".to_owned(),
        title: "One flow over a long path with random loss".to_owned(),
        about: "Figures of a guide on BBRv3, packet loss and RTT fairness.".to_owned(),
        path: PathReport {
            rate: "1 Gbit/s".to_owned(),
            rate_bps: Some(1_000_000_000),
            rtt_ms: vec![80.0],
            loss: LOSSES.to_vec(),
            loss_model: "independent".to_owned(),
            queue: vec!["1 BDP".to_owned()],
            discipline: "drop-tail".to_owned(),
            mtu_bytes: 1500,
            emulator: "model".to_owned(),
            details: Vec::new(),
        },
        profiles: vec![
            profile("cubic", "cubic", &[]),
            profile("bbr3", "bbr3", &[("net.ipv4.tcp_rmem", "4096 131072 33554432")]),
        ],
        sysctls: vec![Setting::new("net.ipv4.tcp_no_metrics_save", "1")],
        duration_s: 15.0,
        warmup_s: 3.0,
        repeats,
        seed: 1,
        published: figures,
    });
    let mut started = 0.0;
    for repeat in 0..repeats {
        for (index, loss) in LOSSES.into_iter().enumerate() {
            for (control, version, mbps, queueing_ms) in [
                ("cubic", None, [965.0, 3.9, 1.3, 0.92], [34.0, 0.2, 0.1, 0.1]),
                ("bbr3", Some("BBRv3"), [930.0, 905.0, 640.0, 31.0], [4.1, 3.0, 2.0, 0.4]),
            ] {
                let shape = Shape {
                    scenario: "transcontinental",
                    profile: control,
                    congestion_control: control,
                    version,
                    loss,
                    rtt_ms: 80.0,
                    queue: "1 BDP",
                    queue_bytes: 10_000_000,
                    flows: vec![("bulk", 0, control, 0.0, mbps[index] * 1e6)],
                    queueing_ms: queueing_ms[index],
                    duration_s: 15.0,
                    warmup_s: 3.0,
                };
                report.results.push(run(&shape, repeat, started));
                started += 15.6;
            }
        }
    }
}

/// A transfer and a page on a cellular path; one run invalid, one profile with invalid runs only.
pub fn cellular() -> LabReport {
    let mut report = empty();
    add_cellular(&mut report);
    report.summarise(&median_and_range);
    report
}

fn add_cellular(report: &mut LabReport) {
    let figures = [("default (cubic)", 4.2, 340.0, 48.2, 1840.0), ("bbr (tuned)", 28.6, 18.0, 7.1, 620.0)];
    report.scenarios.push(ScenarioReport {
        name: "cellular-4g".to_owned(),
        title: "25 MB over a lossy cellular path".to_owned(),
        about: String::new(),
        path: PathReport {
            rate: "32 Mbit/s".to_owned(),
            rate_bps: Some(32_000_000),
            rtt_ms: vec![65.0],
            loss: vec![0.02],
            loss_model: "independent".to_owned(),
            queue: vec!["500 ms".to_owned()],
            discipline: "drop-tail".to_owned(),
            mtu_bytes: 1500,
            emulator: "model".to_owned(),
            details: vec![Setting::new("jitter", "4 ms")],
        },
        profiles: vec![
            profile("default (cubic)", "cubic", &[]),
            profile("bbr (tuned)", "bbr", &[("net.core.rmem_max", "67108864")]),
            profile("bbr3 + tuned stack", "bbr3", &[("net.core.rmem_max", "67108864")]),
        ],
        sysctls: Vec::new(),
        duration_s: 60.0,
        warmup_s: 0.0,
        repeats: 5,
        seed: 1,
        published: figures
            .iter()
            .map(|(profile, mbps, queueing, completion, paint)| PublishedFigure {
                label: format!("{profile} in the guide"),
                queueing_delay_ms: Some(*queueing),
                completion_s: Some(*completion),
                first_contentful_paint_ms: Some(*paint),
                ..published(profile, None, Some(*mbps), None)
            })
            .collect(),
    });
    for repeat in 0..5 {
        for (profile, control, version, mbps, queueing_ms) in [
            ("default (cubic)", "cubic", None, 1.35, 0.3),
            ("bbr (tuned)", "bbr", Some("BBRv1"), 27.7, 18.0),
            ("bbr3 + tuned stack", "bbr3", Some("BBRv3"), 26.1, 6.0),
        ] {
            let shape = Shape {
                scenario: "cellular-4g",
                profile,
                congestion_control: control,
                version,
                loss: 0.02,
                rtt_ms: 65.0,
                queue: "500 ms",
                queue_bytes: 2_000_000,
                flows: vec![("download", 0, control, 0.0, mbps * 1e6)],
                queueing_ms,
                duration_s: 60.0,
                warmup_s: 0.0,
            };
            let mut run = run(&shape, repeat, 200.0 + f64::from(repeat) * 180.0);
            run.completion_s = run.goodput_bps.map(|bps| 25e6 * 8.0 / bps as f64);
            run.first_contentful_paint_ms = Some(800.0 + 10.0 * f64::from(repeat));
            run.page_load_ms = Some(1900.0 + 15.0 * f64::from(repeat));
            if control == "bbr3" || (control == "bbr" && repeat == 2) {
                run.valid = false;
                run.invalid_reason = Some("the emulator was late: p99.9 3.4 ms, over 2 ms".to_owned());
            }
            report.results.push(run);
        }
    }
}

/// Two flows that share queues of four sizes.
pub fn coexistence() -> LabReport {
    let mut report = empty();
    add_coexistence(&mut report);
    report.summarise(&median_and_range);
    report
}

fn add_coexistence(report: &mut LabReport) {
    let queues = [("0.25 BDP", 0.25, 0.14), ("1 BDP", 1.0, 0.37), ("2 BDP", 2.0, 0.52), ("8 BDP", 8.0, 0.81)];
    report.scenarios.push(ScenarioReport {
        name: "coexistence".to_owned(),
        title: "CUBIC and BBR share a bottleneck".to_owned(),
        about: String::new(),
        path: PathReport {
            rate: "100 Mbit/s".to_owned(),
            rate_bps: Some(100_000_000),
            rtt_ms: vec![40.0],
            loss: vec![0.0],
            loss_model: String::new(),
            queue: queues.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            discipline: "drop-tail".to_owned(),
            mtu_bytes: 1500,
            emulator: "model".to_owned(),
            details: Vec::new(),
        },
        profiles: vec![profile("stock", "cubic", &[])],
        sysctls: Vec::new(),
        duration_s: 30.0,
        warmup_s: 5.0,
        repeats: 3,
        seed: 1,
        published: Vec::new(),
    });
    for repeat in 0..3 {
        for (queue, bdp, cubic) in queues {
            let shape = Shape {
                scenario: "coexistence",
                profile: "stock",
                congestion_control: "cubic",
                version: None,
                loss: 0.0,
                rtt_ms: 40.0,
                queue,
                queue_bytes: (500_000.0 * bdp) as u64,
                flows: vec![("cubic", 0, "cubic", 0.0, 95e6 * cubic), ("bbr", 0, "bbr", 0.0, 95e6 * (1.0 - cubic))],
                queueing_ms: 40.0 * bdp * 0.7,
                duration_s: 30.0,
                warmup_s: 5.0,
            };
            report.results.push(run(&shape, repeat, 1200.0));
        }
    }
}

/// Four flows alike that start one after the other.
pub fn late_joiner() -> LabReport {
    let mut report = empty();
    add_late_joiner(&mut report);
    report.summarise(&median_and_range);
    report
}

fn add_late_joiner(report: &mut LabReport) {
    report.scenarios.push(ScenarioReport {
        name: "late-joiner".to_owned(),
        title: "Flows start one by one".to_owned(),
        about: String::new(),
        path: PathReport {
            rate: "100 Mbit/s".to_owned(),
            rate_bps: Some(100_000_000),
            rtt_ms: vec![40.0],
            loss: vec![0.0],
            queue: vec!["1 BDP".to_owned()],
            discipline: "FQ-CoDel".to_owned(),
            mtu_bytes: 1500,
            emulator: "model".to_owned(),
            ..PathReport::default()
        },
        profiles: vec![profile("bbr3", "bbr3", &[])],
        sysctls: Vec::new(),
        duration_s: 40.0,
        warmup_s: 2.0,
        repeats: 1,
        seed: 7,
        published: Vec::new(),
    });
    let shape = Shape {
        scenario: "late-joiner",
        profile: "bbr3",
        congestion_control: "bbr3",
        version: Some("BBRv3"),
        loss: 0.0,
        rtt_ms: 40.0,
        queue: "1 BDP",
        queue_bytes: 500_000,
        flows: (0..4u32).map(|i| ("bulk", i, "bbr3", f64::from(i) * 8.0, 30e6 - 4e6 * f64::from(i))).collect(),
        queueing_ms: 12.0,
        duration_s: 40.0,
        warmup_s: 2.0,
    };
    report.results.push(run(&shape, 0, 1700.0));
}

/// Everything at once: several scenarios, competing flows, invalid runs, and stopped before the end.
pub fn full() -> LabReport {
    let mut report = empty();
    report.command_line = ["linerate", "lab", "run", "transcontinental", "cellular-4g", "--html", "my report.html"]
        .map(String::from)
        .to_vec();
    add_transcontinental(&mut report, 5);
    add_cellular(&mut report);
    add_coexistence(&mut report);
    add_late_joiner(&mut report);
    report.results.retain(|run| run.scenario != "coexistence" || run.repeat < 2);
    report.partial = true;
    report.partial_reason = Some("interrupted".to_owned());
    report.warnings.push("no netem in this kernel; the TUN emulator was used".to_owned());
    report.summarise(&median_and_range);
    report
}
