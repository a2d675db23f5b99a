//! Renders the invented reports of the tests, for looking at: `cargo run -p linerate-report --example sample -- DIRECTORY`.

#[allow(dead_code)]
#[path = "../tests/common/sample.rs"]
mod sample;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let width = std::env::args().nth(2).and_then(|width| width.parse().ok()).unwrap_or(100);
    let directory = Path::new(&directory);
    let reports = [
        ("full", sample::full()),
        ("transcontinental", sample::transcontinental(5)),
        ("single", sample::transcontinental(1)),
        ("empty", sample::empty()),
    ];
    for (name, report) in &reports {
        std::fs::write(directory.join(format!("{name}.html")), linerate_report::render_html(report))?;
        std::fs::write(directory.join(format!("{name}.json")), report.to_json())?;
    }
    print!("{}", linerate_report::render_lab_table(&reports[0].1, width, true));
    let mut later = sample::transcontinental(5);
    later.kernel.release = "7.2.0".to_owned();
    for run in &mut later.results {
        if run.congestion_control == "bbr3" {
            run.goodput_bps = run.goodput_bps.map(|bps| bps + bps / 8);
        }
    }
    later.summarise(&linerate_report::median_and_range);
    println!();
    print!("{}", linerate_report::render_compare(&linerate_report::compare(&reports[1].1, &later), width, true));
    Ok(())
}
