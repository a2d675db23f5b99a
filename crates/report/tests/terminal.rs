//! What `lab run` and `lab compare` print.

mod common;

use common::sample;
use linerate_report::*;
use unicode_width::UnicodeWidthStr;

fn widest(text: &str) -> usize {
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

#[test]
fn a_full_report_in_a_hundred_columns() {
    insta::assert_snapshot!(render_lab_table(&sample::full(), 100, false));
}

#[test]
fn the_same_in_eighty_columns_gives_up_columns_and_wraps_no_figure() {
    insta::assert_snapshot!(render_lab_table(&sample::full(), 80, false));
}

#[test]
fn wide_terminals_get_every_column() {
    insta::assert_snapshot!(render_lab_table(&sample::cellular(), 150, false));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 120, 160] {
        let text = render_lab_table(&sample::full(), width, false);
        assert!(widest(&text) <= width, "{width}:\n{text}");
    }
    assert!(widest(&render_lab_table(&sample::full(), 160, false)) > 80, "the check sees a line that is too wide");
}

#[test]
fn a_terminal_too_narrow_for_anything_still_gets_profile_and_goodput() {
    let text = render_lab_table(&sample::transcontinental(3), 1, false);
    assert!(text.contains("goodput") && text.contains("bbr3"), "{text}");
    assert!(!text.contains("published  "), "{text}");
}

#[test]
fn a_single_repeat_shows_no_interval() {
    let text = render_lab_table(&sample::transcontinental(1), 100, false);
    assert!(!text.contains('['), "{text}");
    assert!(render_lab_table(&sample::transcontinental(3), 100, false).contains('['));
}

#[test]
fn an_empty_report_says_so() {
    insta::assert_snapshot!(render_lab_table(&sample::empty(), 80, false), @r"
    linerate 0.1.0, kernel 6.18.0 x86_64, 2 CPUs, 2026-12-01T10:20:30Z
    no scenario was run
    ");
}

#[test]
fn a_scenario_that_was_stopped_before_its_first_run_says_so() {
    let mut report = sample::transcontinental(2);
    report.results.clear();
    (report.partial, report.partial_reason) = (true, Some("interrupted".to_owned()));
    report.summarise(&median_and_range);
    let text = render_lab_table(&report, 80, false);
    assert!(text.contains("PARTIAL: 0 of 16 runs were finished (interrupted)."), "{text}");
    assert!(text.contains("no run was made"), "{text}");
    assert!(!render_lab_table(&sample::transcontinental(2), 80, false).contains("PARTIAL"));
}

#[test]
fn colours_change_nothing_but_colours() {
    let plain = render_lab_table(&sample::full(), 100, false);
    let coloured = render_lab_table(&sample::full(), 100, true);
    assert!(!plain.contains('\x1b') && coloured.contains("\x1b["));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some(start) = rest.find('\x1b') {
        stripped.push_str(&rest[..start]);
        rest = &rest[start + 1 + rest[start..].find('m').unwrap()..];
        rest = rest.strip_prefix('m').unwrap_or(rest);
    }
    stripped.push_str(rest);
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&stripped), trimmed(&plain));
}

#[test]
fn names_from_files_cannot_write_to_the_terminal() {
    let mut report = sample::full();
    let hostile = "evil\x1b[2J\x07\u{202e}name";
    report.scenarios[0].name = hostile.to_owned();
    report.scenarios[0].title = hostile.to_owned();
    for run in report.results.iter_mut().filter(|run| run.scenario == "transcontinental") {
        run.scenario = hostile.to_owned();
        run.profile = format!("{hostile}{}", run.profile);
        run.queue = hostile.to_owned();
        run.valid = false;
        run.invalid_reason = Some(hostile.to_owned());
        run.congestion_control_version = Some(hostile.to_owned());
    }
    for run in report.results.iter_mut().filter(|run| run.scenario == "coexistence") {
        run.flows.iter_mut().for_each(|flow| flow.label = format!("{hostile}{}", flow.label));
    }
    report.warnings.push(hostile.to_owned());
    report.partial_reason = Some(hostile.to_owned());
    report.kernel.release = hostile.to_owned();
    report.summarise(&median_and_range);
    let mut text = render_lab_table(&report, 100, false);
    text.push_str(&render_compare(&compare(&report, &sample::full()), 100, false));
    assert!(text.contains("evil"));
    let unsafe_char = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(unsafe_char), "{text:?}");
    assert!(hostile.contains(unsafe_char));
}

#[test]
fn many_flows_are_summed_up_by_the_largest_and_the_smallest_share() {
    let mut report = sample::late_joiner();
    for index in 4..12 {
        let mut flow = report.results[0].flows[3].clone();
        flow.index = index;
        report.results[0].flows.push(flow);
    }
    report.summarise(&median_and_range);
    let text = render_lab_table(&report, 80, false);
    assert!(text.contains("largest share") && text.contains("bulk 1 (bbr3)"), "{text}");
    assert!(!render_lab_table(&sample::late_joiner(), 80, false).contains("largest share"));
}

/// The same runs, with one congestion control's goodput changed.
fn changed(repeats: u32, per_mille: u64) -> LabReport {
    let mut report = sample::transcontinental(repeats);
    for run in report.results.iter_mut().filter(|run| run.congestion_control == "bbr3") {
        run.goodput_bps = run.goodput_bps.map(|bps| bps * per_mille / 1000);
    }
    report.summarise(&median_and_range);
    report
}

#[test]
fn reports_that_differ_are_told_from_reports_that_do_not() {
    let same = compare(&sample::transcontinental(5), &sample::transcontinental(5));
    assert!(!same.differs() && same.figures.len() == 16);
    assert!(same.figures.iter().all(|figure| figure.verdict == Verdict::NoDifferenceSeen));
    let slightly = compare(&sample::transcontinental(5), &changed(5, 1_005));
    assert!(!slightly.differs(), "within what repeats differ among themselves");
    let different = compare(&sample::transcontinental(5), &changed(5, 1_125));
    assert!(different.differs());
    let differing = different.figures.iter().filter(|figure| figure.verdict == Verdict::Differs);
    assert!(differing.clone().all(|figure| figure.profile == "bbr3" && figure.figure == "goodput_bps"));
    assert_eq!(differing.count(), 4);
}

#[test]
fn too_few_runs_decide_nothing_however_far_apart_they_are() {
    let few = compare(&sample::transcontinental(3), &changed(3, 5_000));
    assert!(!few.differs());
    assert!(few.figures.iter().any(|figure| figure.verdict == Verdict::TooFewRuns));
    assert!(compare(&sample::transcontinental(4), &changed(4, 5_000)).differs());
}

#[test]
fn a_comparison_looks_like_this() {
    let mut later = changed(5, 1_125);
    later.kernel.release = "7.2.0".to_owned();
    later.scenarios[0].profiles[1].sysctls.clear();
    later.results.retain(|run| run.profile != "cubic" || run.loss < 0.03);
    later.summarise(&median_and_range);
    insta::assert_snapshot!(render_compare(&compare(&sample::transcontinental(5), &later), 100, false));
}

#[test]
fn a_comparison_fits_eighty_columns() {
    let comparison = compare(&sample::full(), &sample::full());
    let text = render_compare(&comparison, 80, false);
    assert!(widest(&text) <= 80, "{text}");
    assert!(widest(&render_compare(&comparison, 120, false)) > 80);
}

#[test]
fn reports_without_a_common_cell_say_so() {
    let comparison = compare(&sample::cellular(), &sample::coexistence());
    assert!(!comparison.differs());
    let text = render_compare(&comparison, 80, false);
    assert!(text.contains("The two reports have no cell in common."), "{text}");
    assert!(text.contains("Only A has cellular-4g default (cubic) and cellular-4g bbr (tuned)."), "{text}");
}
