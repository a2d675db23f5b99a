//! What the page reports about itself (`page/measure.js`), and whether it had everything.

use std::collections::BTreeMap;

use serde::Deserialize;
use units::Duration;

use crate::page::Kind;
use crate::{Page, Protocol};

/// One report. Times are milliseconds since the navigation began.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Beacon {
    pub(crate) run: String,
    pub(crate) first_contentful_paint_ms: f64,
    pub(crate) largest_contentful_paint_ms: Option<f64>,
    pub(crate) response_start_ms: f64,
    pub(crate) dom_content_loaded_ms: f64,
    pub(crate) load_ms: f64,
    /// How many web fonts were used.
    pub(crate) fonts: usize,
    pub(crate) resources: Vec<Fetched>,
}

/// One thing the browser fetched.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Fetched {
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) protocol: String,
    pub(crate) blocking: bool,
}

/// A time of the report.
pub(crate) fn time(milliseconds: f64) -> Duration {
    // Casts of negative and impossible numbers saturate at zero, which `problems` refuses.
    Duration::from_micros((milliseconds * 1_000.).round() as u64)
}

impl Beacon {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// A protocol other than `wanted` that something came over.
    pub(crate) fn other_protocol(&self, wanted: Protocol) -> Option<&str> {
        self.resources.iter().map(|fetched| fetched.protocol.as_str()).find(|protocol| *protocol != wanted.alpn())
    }

    /// Everything that shows that the browser did not load `page` once and whole; empty where it did.
    pub(crate) fn problems(&self, page: &Page) -> Vec<String> {
        let mut problems = Vec::new();
        let mut fetched: BTreeMap<&str, Vec<&Fetched>> = BTreeMap::new();
        for resource in &self.resources {
            fetched.entry(&resource.path).or_default().push(resource);
        }
        for resource in page.resources() {
            let path = &resource.path;
            match fetched.remove(path.as_str()).as_deref() {
                None => problems.push(format!("{path} was not loaded")),
                Some([one]) => {
                    if one.status != 200 {
                        problems.push(format!("{path} was answered with status {}", one.status));
                    } else if one.body_bytes != resource.size().as_u64() {
                        let size = resource.size().as_u64();
                        problems.push(format!("{path} came with {} of {size} bytes", one.body_bytes));
                    }
                    if matches!(resource.kind, Kind::Css | Kind::BlockingScript) && !one.blocking {
                        problems.push(format!("{path} did not block rendering"));
                    }
                }
                Some(several) => problems.push(format!("{path} was loaded {} times", several.len())),
            }
        }
        problems.extend(fetched.keys().map(|path| format!("{path} is not part of the page")));
        let fonts = page.resources().iter().filter(|resource| resource.kind == Kind::Font).count();
        if self.fonts != fonts {
            problems.push(format!("{} of {fonts} web fonts were used", self.fonts));
        }
        if time(self.first_contentful_paint_ms) == Duration::ZERO || time(self.load_ms) == Duration::ZERO {
            problems.push("paint or load time is missing".into());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Resource;

    fn page() -> Page {
        let parts = [
            ("/", Kind::Html),
            ("/a.css", Kind::Css),
            ("/a.ttf", Kind::Font),
            ("/head.js", Kind::BlockingScript),
            ("/a.jpg", Kind::Picture),
        ];
        let resource = |(path, kind): (&str, Kind)| Resource { path: path.into(), kind, body: vec![b'x'; 100].into() };
        Page::new(parts.map(resource).to_vec())
    }

    fn whole() -> Beacon {
        let fetched = |resource: &Resource| Fetched {
            path: resource.path.clone(),
            status: 200,
            body_bytes: resource.size().as_u64(),
            protocol: "h2".into(),
            blocking: matches!(resource.kind, Kind::Css | Kind::BlockingScript),
        };
        Beacon {
            run: "1".into(),
            first_contentful_paint_ms: 120.4,
            largest_contentful_paint_ms: None,
            response_start_ms: 3.,
            dom_content_loaded_ms: 140.,
            load_ms: 300.,
            fonts: 1,
            resources: page().resources().iter().map(fetched).collect(),
        }
    }

    fn problem(spoil: impl FnOnce(&mut Beacon)) -> String {
        let mut beacon = whole();
        spoil(&mut beacon);
        beacon.problems(&page()).join("; ")
    }

    #[test]
    fn a_whole_page_has_no_problems() {
        assert_eq!(problem(|_| {}), "");
    }

    #[test]
    fn every_way_to_be_less_than_a_whole_page_is_named() {
        assert_eq!(problem(|b| b.resources[3].body_bytes -= 1), "/head.js came with 99 of 100 bytes");
        assert_eq!(problem(|b| b.resources[3].status = 404), "/head.js was answered with status 404");
        assert_eq!(problem(|b| b.resources[3].blocking = false), "/head.js did not block rendering");
        assert_eq!(problem(|b| drop(b.resources.remove(3))), "/head.js was not loaded");
        assert_eq!(problem(|b| b.resources.push(b.resources[3].clone())), "/head.js was loaded 2 times");
        assert_eq!(
            problem(|b| b.resources[3].path = "/favicon.ico".into()),
            "/head.js was not loaded; /favicon.ico is not part of the page"
        );
        assert_eq!(problem(|b| b.fonts = 0), "0 of 1 web fonts were used");
        assert_eq!(problem(|b| b.first_contentful_paint_ms = -1.), "paint or load time is missing");
        assert_eq!(problem(|b| b.load_ms = f64::NAN), "paint or load time is missing");
    }

    #[test]
    fn one_resource_over_another_protocol_is_found() {
        assert_eq!(whole().other_protocol(Protocol::Http2), None);
        assert_eq!(whole().other_protocol(Protocol::Http1), Some("h2"));
        let mut mixed = whole();
        mixed.resources[4].protocol = "h3".into();
        assert_eq!(mixed.other_protocol(Protocol::Http2), Some("h3"));
    }

    #[test]
    fn a_report_that_lacks_a_field_is_refused() {
        let report = r#"{"run":"1","first_contentful_paint_ms":1.5,"largest_contentful_paint_ms":null,"response_start_ms":1,
            "dom_content_loaded_ms":2,"load_ms":3,"fonts":2,"resources":[]}"#;
        assert_eq!(Beacon::parse(report.as_bytes()).expect("a report").first_contentful_paint_ms, 1.5);
        let lacking = report.replace(r#""load_ms":3,"#, "");
        assert!(Beacon::parse(lacking.as_bytes()).expect_err("no load time").to_string().contains("load_ms"));
    }
}
