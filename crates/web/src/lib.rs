//! The web row of the cellular guide: a page of about 2 MB, served in one network namespace and loaded by a browser in another.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`page`] | the page, made by code: HTML, style, fonts, pictures, script |
//! | [`server`] | serves it over HTTP/1.1 or HTTP/2 with a given congestion control |
//! | [`browser`] | finds Chromium, runs it enclosed, leaves nothing behind |
//! | [`measure`] | loads the page again and again with a cold cache, and says when it painted |
//!
//! The page measures itself with the browser's own clocks (Paint Timing, Navigation Timing) and posts the result to the server,
//! so that what is reported is what a visitor's browser would report.

mod beacon;
pub mod browser;
mod error;
mod measure;
pub mod page;
pub mod server;

use std::fmt;

pub use error::WebError;
pub use measure::{PageLoad, Progress, WebPlan, measure};
pub use page::Page;

/// Which HTTP the page is served over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112) in clear: six connections, each with a slow start of its own.
    Http1,
    /// HTTP/2 (RFC 9113) over TLS 1.3: one connection for everything.
    Http2,
}

impl Protocol {
    /// Its ALPN identifier, which `nextHopProtocol` shows too.
    pub fn alpn(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        })
    }
}
