//! The HTML file: complete in itself, harmless whatever the names in it, readable by everybody.

mod common;

use std::collections::HashSet;

use common::page::{outline, reaches_out, tags, unbalanced};
use common::sample;
use linerate_report::*;

fn every_sample() -> Vec<LabReport> {
    vec![
        sample::full(),
        sample::empty(),
        sample::transcontinental(1),
        sample::cellular(),
        sample::coexistence(),
        sample::late_joiner(),
    ]
}

#[test]
fn a_sweep_has_this_outline() {
    insta::assert_snapshot!(outline(&render_html(&sample::transcontinental(1))));
}

#[test]
fn a_partial_report_with_invalid_runs_and_competing_flows_has_this_outline() {
    insta::assert_snapshot!(outline(&render_html(&sample::full())));
}

#[test]
fn the_page_fetches_nothing_and_runs_nothing() {
    for report in every_sample() {
        assert_eq!(reaches_out(&render_html(&report)), [""; 0]);
    }
}

#[test]
fn the_check_for_references_sees_them() {
    let page = render_html(&sample::empty());
    for added in [
        r#"<img src="https://example.org/a.png">"#,
        r#"<a href="http://example.org/">x</a>"#,
        r#"<link rel="stylesheet" href="a.css">"#,
        r#"<script>1</script>"#,
        r#"<p onclick="x()">"#,
        r#"<style>p { background: url(a.png) }</style>"#,
        r#"<meta http-equiv="refresh" content="0">"#,
    ] {
        let spoilt = page.replace("</main>", &format!("{added}</main>"));
        assert!(!reaches_out(&spoilt).is_empty(), "{added}");
    }
}

#[test]
fn tags_are_closed_in_their_order() {
    for report in every_sample() {
        assert_eq!(unbalanced(&render_html(&report)), None);
    }
    let page = render_html(&sample::full());
    assert!(unbalanced(&page.replacen("</figure>", "", 1)).is_some());
    assert!(unbalanced(&page.replacen("</section>", "", 1)).is_some());
}

/// References to an id that does not exist, and ids that exist twice.
fn broken_ids(html: &str) -> Vec<String> {
    let tags = tags(html);
    let ids: Vec<&str> = tags.iter().filter_map(|tag| tag.attribute("id")).collect();
    let mut seen = HashSet::new();
    let mut broken: Vec<String> = ids.iter().filter(|id| !seen.insert(**id)).map(|id| format!("twice: {id}")).collect();
    let links = tags.iter().filter_map(|tag| tag.attribute("href")).map(|href| href.trim_start_matches('#'));
    let labels = tags.iter().filter_map(|tag| tag.attribute("aria-labelledby")).flat_map(str::split_whitespace);
    broken.extend(links.chain(labels).filter(|id| !seen.contains(id)).map(|id| format!("missing: {id}")));
    broken
}

#[test]
fn every_link_and_label_leads_somewhere_and_no_id_exists_twice() {
    for report in every_sample() {
        assert_eq!(broken_ids(&render_html(&report)), [""; 0]);
    }
    let page = render_html(&sample::transcontinental(1));
    assert_eq!(broken_ids(&page.replace("id=\"s0c0\"", "id=\"s0c1\"")), ["twice: s0c1", "missing: s0c0"]);
}

#[test]
fn every_plot_has_a_title_and_a_description_and_its_figures_stand_in_a_table() {
    let page = render_html(&sample::full());
    let tags = tags(&page);
    let plots = tags.iter().filter(|tag| tag.attribute("class") == Some("plot")).count();
    let of = |name: &str| {
        tags.iter()
            .filter(|t| t.name == name && !t.closing && t.attribute("id").is_some() && !t.text.is_empty())
            .count()
    };
    assert!(plots > 50, "{plots}");
    assert_eq!((of("title"), of("desc")), (plots, plots));
    let cells = tags.iter().filter(|tag| tag.attribute("class") == Some("shown")).count();
    let steps = tags.iter().filter(|tag| tag.attribute("class") == Some("steps")).count();
    assert_eq!(steps, cells);
    let other = tags.iter().filter(|tag| tag.name == "svg" && !tag.closing && tag.attribute("class") != Some("plot"));
    assert!(other.clone().count() > 0);
    assert!(other.clone().all(|tag| tag.attribute("aria-hidden") == Some("true")));
}

const HOSTILE: &str =
    "\u{202e}<script>alert(1)</script><img src=x onerror=alert(2)>\"' onload=\"x{{ 7*7 }}{% raw %}&amp;";

/// The full sample with every string in it hostile.
fn hostile() -> LabReport {
    let report = sample::full();
    let mut value: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    fn spoil(value: &mut serde_json::Value, key: &str) {
        match value {
            serde_json::Value::String(text) if !["schema", "traffic"].contains(&key) => {
                // Names keep what tells them apart.
                *text = format!("{HOSTILE}{text}");
            }
            serde_json::Value::Array(values) => values.iter_mut().for_each(|value| spoil(value, key)),
            serde_json::Value::Object(map) => map.iter_mut().for_each(|(key, value)| spoil(value, key)),
            _ => {}
        }
    }
    spoil(&mut value, "");
    let mut report = LabReport::from_json(&value.to_string()).unwrap();
    report.summarise(&median_and_range);
    report
}

#[test]
fn hostile_names_stay_text() {
    let report = hostile();
    assert_eq!(report.summary.len(), sample::full().summary.len());
    let page = render_html(&report);
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert_eq!(reaches_out(&page), [""; 0]);
    assert_eq!(unbalanced(&page), None);
    assert_eq!(broken_ids(&page), [""; 0]);
    // Without escaping the checks would have seen them.
    let raw = page.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    assert!(!reaches_out(&raw).is_empty());
}

#[test]
fn a_template_in_a_name_is_not_run() {
    let page = render_html(&hostile());
    assert!(page.contains("{{ 7*7 }}") && !page.contains("x49"));
}

#[test]
fn the_template_renders_every_sample_without_an_error() {
    for report in every_sample() {
        let page = render_html(&report);
        assert!(page.starts_with("<!doctype html>\n<html"), "{}", &page[..200.min(page.len())]);
        assert!(page.trim_end().ends_with("</html>"));
    }
}

#[test]
fn eight_cells_of_five_runs_stay_under_two_megabytes() {
    let size = render_html(&sample::transcontinental(5)).len();
    assert!(size < 2_000_000, "{size}");
    assert!(size > 100_000, "{size} bytes cannot hold eight cells of plots");
}

#[test]
fn partial_empty_and_unrun_reports_say_so() {
    assert!(render_html(&sample::full()).contains("PARTIAL: 64 of 68 runs were finished (interrupted)."));
    assert!(!render_html(&sample::transcontinental(1)).contains("PARTIAL"));
    assert!(render_html(&sample::empty()).contains("no scenario"));
    let mut report = sample::transcontinental(1);
    report.results.clear();
    report.summarise(&median_and_range);
    assert!(render_html(&report).contains("No run was made."));
}

#[test]
fn a_cell_without_a_valid_run_is_marked_and_its_run_still_shown() {
    let page = render_html(&sample::cellular());
    assert!(page.contains("no valid run"));
    assert!(
        page.contains("5 of 5 runs invalid and left out of the figures: the emulator was late"),
        "{}",
        outline(&page)
    );
    assert!(page.contains("none of them valid; seed 1"));
    assert!(!render_html(&sample::transcontinental(1)).contains("no valid run"));
}

#[test]
fn figures_at_the_ends_of_their_range_are_rendered() {
    let mut report = sample::transcontinental(1);
    let runs = &mut report.results;
    runs[0].goodput_bps = Some(u64::MAX);
    runs[1].goodput_bps = Some(0);
    runs[2].goodput_bps = None;
    runs[3].rtt_under_load_ms = Some(Percentiles { p50: 0.0, p95: 0.0, p99: f64::MAX });
    (runs[4].duration_s, runs[4].warmup_s) = (0.0, 0.0);
    runs[5].flows.clear();
    runs[6].drops.random = u64::MAX;
    runs[7].flows[0].series.goodput_bps = Series::from_points([(units::Instant::MAX, 1e300)]);
    report.summarise(&median_and_range);
    let page = render_html(&report);
    assert_eq!(unbalanced(&page), None);
    let not_a_number =
        |page: &str| page.split(|c: char| !c.is_alphanumeric()).any(|word| word == "NaN" || word == "inf");
    assert!(!not_a_number(&page));
    assert!(not_a_number(&page.replacen("viewBox=\"0 0 460 200\"", "viewBox=\"0 0 NaN 200\"", 1)));
    let table = render_lab_table(&report, 100, false);
    assert!(table.contains("cubic") && !table.contains("NaN"));
}

/// Colours of the style sheet by block: light, dark and print, each name with its value.
fn palettes() -> Vec<Vec<(String, [f64; 3])>> {
    let style = include_str!("../templates/style.css");
    let blocks = style.split(":root {").skip(1).map(|block| block.split('}').next().unwrap());
    let palettes = blocks.map(|block| {
        let declarations = block.split(';').filter_map(|line| line.split_once(':'));
        let colour =
            |hex: &str| [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0);
        declarations.map(|(name, value)| (name.trim().to_owned(), colour(value.trim()))).collect()
    });
    palettes.collect()
}

/// Contrast ratio of WCAG 2.2.
fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let linear = |c: f64| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
    let luminance = |c: [f64; 3]| 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn text_and_lines_stand_out_from_their_ground_in_light_dark_and_print() {
    let palettes = palettes();
    assert_eq!(palettes.len(), 3);
    for palette in &palettes {
        let of = |name: &str| palette.iter().find(|(known, _)| known == name).unwrap().1;
        for name in ["--ink", "--soft", "--link", "--off", "--c0", "--c1", "--c2", "--c3", "--c4", "--c5"] {
            for ground in ["--ground", "--raised"] {
                let contrast = contrast(of(name), of(ground));
                assert!(contrast >= 4.5, "{name} on {ground}: {contrast:.2}");
            }
        }
        assert!(contrast(of("--notice-ink"), of("--notice")) >= 4.5);
        assert!(contrast(of("--grid"), of("--ground")) < 4.5, "the check sees what does not stand out");
    }
}
