//! One HTML file: tables, inline SVG, no script, nothing fetched.

mod cell;
mod plots;
mod repeat;
mod section;
mod sweep;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use crate::groups::groups;
use crate::model::LabReport;
use crate::terminal::{partial_words, simulated_words};
use crate::text;

const PAGE: &str = include_str!("../../templates/lab.html");
const STYLE: &str = include_str!("../../templates/style.css");

/// The report as one HTML file that fetches nothing (a content security policy in it forbids even trying), runs no script,
/// follows the reader's light or dark theme, and folds the plots of each cell away.
pub fn render_html(report: &LabReport) -> String {
    let mut environment = Environment::new();
    // A name that the template gets wrong is an error, not an empty place.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    // The name's ending switches on escaping of everything that is not marked safe.
    let rendered = syntax
        .map(|syntax| environment.set_syntax(syntax))
        .and_then(|()| environment.add_template("lab.html", PAGE))
        .and_then(|()| environment.get_template("lab.html"))
        .and_then(|template| template.render(Serde(Page::of(report))));
    // The template is part of this crate and its tests render all of it; a page that says so is still better than a panic
    // after an hour of measurements.
    let page = rendered
        .unwrap_or_else(|error| format!("<!doctype html><pre>{}</pre>", minijinja::HtmlEscape(&error.to_string())));
    // Escaping leaves characters that reverse a sentence, and names come from files.
    page.chars().map(text::without_reordering).collect()
}

#[derive(Serialize)]
struct Page {
    style: Value,
    title: String,
    linerate_version: String,
    started_at: String,
    kernel: String,
    lede: String,
    partial: Option<String>,
    warnings: Vec<String>,
    sections: Vec<section::Section>,
    emulator: Option<Table>,
    repeat: repeat::Repeat,
}

/// A table for the template.
#[derive(Serialize, Default)]
struct Table {
    caption: String,
    head: Vec<Head>,
    rows: Vec<Vec<Data>>,
}

#[derive(Serialize)]
struct Head {
    text: String,
    unit: String,
    class: &'static str,
    picture: Option<Value>,
}

/// A table's cell: a figure, and what stands below it in small.
#[derive(Serialize, Default)]
struct Data {
    main: String,
    below: String,
    class: &'static str,
    picture: Option<Value>,
    /// The id of what it leads to.
    to: Option<String>,
}

/// A plot with its caption.
#[derive(Serialize)]
struct Figure {
    caption: String,
    svg: Value,
}

impl Head {
    /// Of a column of figures.
    fn figure(text: &str, unit: &str) -> Self {
        Self { text: text.to_owned(), unit: unit.to_owned(), class: "figure", picture: None }
    }

    /// Of a column of names.
    fn name(text: &str) -> Self {
        Self { text: text.to_owned(), unit: String::new(), class: "word", picture: None }
    }
}

impl Data {
    fn figure(main: impl Into<String>) -> Self {
        Self { main: main.into(), class: "figure", ..Self::default() }
    }

    fn name(main: impl Into<String>) -> Self {
        Self { main: main.into(), class: "word", ..Self::default() }
    }

    fn below(mut self, below: impl Into<String>) -> Self {
        self.below = below.into();
        self
    }
}

impl Page {
    fn of(report: &LabReport) -> Self {
        let groups = groups(report);
        let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
        Self {
            style: Value::from_safe_string(STYLE.to_owned()),
            title: if names.is_empty() { "no scenario".to_owned() } else { names.join(", ") },
            linerate_version: report.linerate_version.clone(),
            started_at: report.started_at.clone(),
            kernel: kernel_words(report),
            lede: lede(report),
            partial: partial_words(report),
            warnings: simulated_words(report).map(str::to_owned).into_iter().chain(report.warnings.clone()).collect(),
            sections: groups.iter().enumerate().map(|(i, group)| section::Section::of(report, group, i)).collect(),
            emulator: repeat::emulator_table(report),
            repeat: repeat::Repeat::of(report),
        }
    }
}

fn kernel_words(report: &LabReport) -> String {
    let kernel = &report.kernel;
    let cpus = if kernel.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", kernel.cpus) };
    format!("{} {}, {cpus}", kernel.release, kernel.architecture)
}

/// What was done and how it came out, in one or two sentences.
fn lede(report: &LabReport) -> String {
    let plural = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let valid = report.results.iter().filter(|run| run.valid).count();
    let scenarios = groups(report).len();
    let mut words =
        format!("{} of {}", plural(report.results.len(), "run", "runs"), plural(scenarios, "scenario", "scenarios"));
    words.push_str(if valid == report.results.len() { ", all valid." } else { "" });
    if valid < report.results.len() {
        words.push_str(&format!(", {valid} of them valid."));
    }
    let published = report.summary.iter().filter(|line| line.measured_over_published.is_some()).count();
    if published > 0 {
        let disagree = report.summary.iter().filter(|line| crate::disagree::goodput_disagrees(line)).count();
        words.push_str(&format!(
            " Of {} that could be held against a measurement, {disagree} {} by more than a factor of {}.",
            plural(published, "published goodput", "published goodputs"),
            if disagree == 1 { "is off" } else { "are off" },
            crate::AGREES_WITHIN
        ));
    }
    words
}
