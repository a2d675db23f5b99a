//! From runs to one line per cell.

mod common;

use common::sample;
use linerate_report::*;

fn line<'a>(report: &'a LabReport, profile: &str, loss: f64) -> &'a SummaryLine {
    report.summary.iter().find(|line| line.profile == profile && line.loss == loss).unwrap()
}

#[test]
fn lines_are_in_the_scenarios_order_whatever_the_order_of_runs() {
    let expected: Vec<(f64, String)> =
        sample::transcontinental(2).summary.iter().map(|line| (line.loss, line.profile.clone())).collect();
    assert_eq!(expected[..3], [(0.0, "cubic".to_owned()), (0.0, "bbr3".to_owned()), (0.005, "cubic".to_owned())]);
    let mut report = sample::transcontinental(2);
    report.results.reverse();
    report.summarise(&median_and_range);
    let reversed: Vec<_> = report.summary.iter().map(|line| (line.loss, line.profile.clone())).collect();
    assert_eq!(reversed, expected);
}

#[test]
fn invalid_runs_are_counted_and_left_out_of_the_median() {
    let mut report = sample::transcontinental(3);
    let before = line(&report, "cubic", 0.0).goodput_bps.unwrap();
    let run = report.results.iter_mut().find(|run| run.profile == "cubic" && run.loss == 0.0).unwrap();
    run.goodput_bps = Some(1);
    report.summarise(&median_and_range);
    assert_eq!(line(&report, "cubic", 0.0).goodput_bps.unwrap().low, 1.0);

    let run = report.results.iter_mut().find(|run| run.profile == "cubic" && run.loss == 0.0).unwrap();
    (run.valid, run.invalid_reason) = (false, Some("late".to_owned()));
    report.summarise(&median_and_range);
    let cell = line(&report, "cubic", 0.0);
    assert_eq!((cell.repeats, cell.valid_repeats), (3, 2));
    assert_eq!(cell.invalid_reasons, ["late"]);
    assert!(cell.goodput_bps.unwrap().low > 1.0 && cell.goodput_bps.unwrap().high <= before.high);
}

#[test]
fn a_cell_of_invalid_runs_has_no_figures_and_says_why_once() {
    let report = sample::cellular();
    let cell = line(&report, "bbr3 + tuned stack", 0.02);
    assert_eq!((cell.repeats, cell.valid_repeats), (5, 0));
    assert_eq!(cell.goodput_bps, None);
    assert_eq!(cell.drops, None);
    assert_eq!(cell.invalid_reasons.len(), 1);
    assert!(line(&report, "bbr (tuned)", 0.02).goodput_bps.is_some());
}

#[test]
fn an_invalid_run_without_a_reason_still_says_so() {
    let mut report = sample::transcontinental(1);
    report.results[0].valid = false;
    report.summarise(&median_and_range);
    assert_eq!(report.summary[0].invalid_reasons, ["no reason recorded"]);
}

#[test]
fn the_published_figure_for_the_cells_loss_goes_before_one_for_any() {
    let mut report = sample::transcontinental(1);
    assert_eq!(line(&report, "cubic", 0.015).published_goodput_bps, Some(42_000_000));
    assert_eq!(line(&report, "cubic", 0.015).published_rtt_under_load_ms, Some(240.0));
    let any = PublishedFigure {
        profile: "cubic".to_owned(),
        label: "any loss".to_owned(),
        goodput_bps: Some(7_000_000),
        ..PublishedFigure::default()
    };
    report.scenarios[0].published.insert(0, any);
    report.summarise(&median_and_range);
    assert_eq!(line(&report, "cubic", 0.015).published_goodput_bps, Some(42_000_000));
    report.scenarios[0].published.retain(|figure| figure.loss.is_none());
    report.summarise(&median_and_range);
    assert_eq!(line(&report, "cubic", 0.015).published_goodput_bps, Some(7_000_000));
    assert_eq!(line(&report, "cubic", 0.015).published_label.as_deref(), Some("any loss"));
    assert_eq!(line(&report, "bbr3", 0.015).published_goodput_bps, None);
}

#[test]
fn the_interval_is_the_callers() {
    let mut report = sample::transcontinental(3);
    report.summarise(&|values| {
        assert_eq!(values.len(), 3);
        Interval { median: 2.0, low: 1.0, high: 3.0 }
    });
    assert_eq!(report.summary[0].goodput_bps, Some(Interval { median: 2.0, low: 1.0, high: 3.0 }));
    report.summarise(&|_| Interval { median: f64::NAN, low: 1.0, high: 3.0 });
    assert_eq!(report.summary[0].goodput_bps, None, "JSON has no word for what is not a number");
}

#[test]
fn competing_flows_have_shares_by_label_and_one_flow_has_none() {
    let report = sample::coexistence();
    let shares = &report.summary[0].shares;
    assert_eq!(shares.iter().map(|share| share.label.as_str()).collect::<Vec<_>>(), ["cubic", "bbr"]);
    let sum: f64 = shares.iter().map(|share| share.share.median).sum();
    assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    assert!(shares[0].share.median < 0.2 && report.summary[3].shares[0].share.median > 0.7);
    assert!(report.summary[0].jain_index.unwrap().median < report.summary[2].jain_index.unwrap().median);
    let single = sample::transcontinental(1);
    assert!(single.summary[0].shares.is_empty() && single.summary[0].jain_index.is_none());
}

#[test]
fn several_flows_of_one_of_two_labels_are_one_share() {
    let mut report = sample::coexistence();
    for run in &mut report.results {
        let mut second = run.flows[1].clone();
        second.index = 1;
        run.flows.push(second);
    }
    report.summarise(&median_and_range);
    let shares = &report.summary[0].shares;
    assert_eq!(
        shares.iter().map(|share| (share.label.as_str(), share.flows)).collect::<Vec<_>>(),
        [("cubic", 1), ("bbr", 2)]
    );
}

#[test]
fn flows_alike_are_told_apart_by_number_and_compared_while_all_of_them_ran() {
    let mut report = sample::late_joiner();
    let shares = &report.summary[0].shares;
    assert_eq!(
        shares.iter().map(|share| share.label.as_str()).collect::<Vec<_>>(),
        ["bulk 1", "bulk 2", "bulk 3", "bulk 4"]
    );
    // Before the last one starts the first has the path nearly to itself: that counts for nothing.
    let before = shares[0].share.median;
    let flow = &mut report.results[0].flows[0];
    let doubled = flow.series.goodput_bps.points().map(|(time, bps)| {
        (units::Instant::from_nanos((time * 1e9) as u64), if time < 20.0 { bps * 3.0 } else { bps })
    });
    flow.series.goodput_bps = Series::from_points(doubled.collect::<Vec<_>>());
    flow.goodput_bps = flow.goodput_bps.map(|bps| bps * 2);
    report.summarise(&median_and_range);
    assert_eq!(report.summary[0].shares[0].share.median, before);
    // Without its series the flow's own figure has to do.
    report.results[0].flows[0].series.goodput_bps = Series::new();
    report.summarise(&median_and_range);
    assert!(report.summary[0].shares[0].share.median > before + 0.1);
}

#[test]
fn request_and_response_flows_have_no_share() {
    let mut report = sample::coexistence();
    for run in &mut report.results {
        run.flows[1].traffic = FlowTraffic::RequestResponse;
    }
    report.summarise(&median_and_range);
    assert!(report.summary.iter().all(|line| line.shares.is_empty()));
}

#[test]
fn limits_are_parts_of_the_busy_time() {
    let mut report = sample::transcontinental(1);
    let flow = &mut report.results[0].flows[0];
    (flow.busy_s, flow.receive_window_limited_s, flow.send_buffer_limited_s) = (Some(10.0), Some(8.3), None);
    report.summarise(&median_and_range);
    assert_eq!(report.summary[0].receive_window_limited.unwrap().median, 0.83);
    assert_eq!(report.summary[0].send_buffer_limited, None);
}

#[test]
fn jains_index_is_one_for_equals_and_one_nth_for_a_winner_that_takes_all() {
    assert_eq!(jain_index(&[5.0, 5.0, 5.0]), Some(1.0));
    assert_eq!(jain_index(&[9.0, 0.0, 0.0]), Some(1.0 / 3.0));
    assert_eq!(jain_index(&[0.0, 0.0]), None);
}

#[test]
fn the_median_of_an_even_number_lies_between_the_middle_two() {
    assert_eq!(median_and_range(&[4.0, 1.0, 3.0, 2.0]), Interval { median: 2.5, low: 1.0, high: 4.0 });
    assert_eq!(median_and_range(&[3.0, 1.0, 2.0]), Interval { median: 2.0, low: 1.0, high: 3.0 });
}

fn with_goodput_published(mbps: u64) -> Vec<Disagreement> {
    let mut report = sample::transcontinental(3);
    report.scenarios[0].published.clear();
    report.scenarios[0].published.push(PublishedFigure {
        profile: "bbr3".to_owned(),
        label: "bbr3".to_owned(),
        loss: Some(0.0),
        goodput_bps: Some(mbps * 1_000_000),
        note: Some("because".to_owned()),
        ..PublishedFigure::default()
    });
    report.summarise(&median_and_range);
    disagreements(&report)
}

#[test]
fn a_published_figure_within_a_quarter_agrees_and_one_outside_disagrees_with_its_note() {
    assert_eq!(with_goodput_published(942), []);
    assert_eq!(with_goodput_published(1_100), []);
    let low = with_goodput_published(500);
    assert_eq!(low.len(), 1);
    assert_eq!(low[0].note.as_deref(), Some("because"));
    assert!(low[0].sentence().starts_with("bbr3, goodput: published 500 Mbit/s, measured 9"), "{}", low[0].sentence());
    assert!(low[0].sentence().ends_with("Mbit/s with no loss."), "{}", low[0].sentence());
    assert_eq!(with_goodput_published(1_300).len(), 1);
}

#[test]
fn cells_with_one_note_share_a_sentence() {
    let all = disagreements(&sample::transcontinental(3));
    let cubic: Vec<_> = all.iter().filter(|d| d.profile == "cubic" && d.quantity == "goodput").collect();
    assert_eq!(cubic.len(), 1);
    assert_eq!(cubic[0].cells.len(), 3, "without loss published and measured agree");
}

#[test]
fn a_cell_without_a_valid_run_does_not_disagree() {
    let mut report = sample::transcontinental(1);
    assert!(!disagreements(&report).is_empty());
    report.results.iter_mut().for_each(|run| run.valid = false);
    report.summarise(&median_and_range);
    assert_eq!(disagreements(&report), []);
}
