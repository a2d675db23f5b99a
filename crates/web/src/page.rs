//! The page: about 2 MB in 25 requests, made by code from a seed, the same on every machine.
//!
//! | what | requests | bytes, about | share |
//! | --- | --- | --- | --- |
//! | HTML | 1 | 32 kB | 2 % |
//! | style sheets, render-blocking | 2 | 72 kB | 4 % |
//! | script that blocks the parser | 1 | 38 kB | 2 % |
//! | scripts, deferred | 2 | 430 kB | 21 % |
//! | web fonts (`font-display: swap`) | 2 | 100 kB | 5 % |
//! | pictures: one large, twelve small, four portraits | 17 | 1330 kB | 66 % |
//!
//! The proportions are roughly those of the median desktop page of October 2024 (HTTP Archive, Web Almanac 2024, "Page Weight":
//! 2652 kB in 71 requests, of which HTML 18 kB, CSS 78 kB, JavaScript 613 kB, fonts 131 kB, images 1054 kB), scaled to the 2 MB of
//! the cellular guide's row, with its video counted as pictures and fewer, larger scripts.
//!
//! Nothing is compressed by the server: the sizes above are what crosses the path, to which only headers and TLS are added.

mod font;
mod markup;
mod picture;
mod random;
mod script;
mod style;
mod text;

use std::sync::OnceLock;

use hyper::body::Bytes as Body;
use units::Bytes;

use font::Weight;
use picture::Picture;
use random::Random;

/// What a resource is to the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The document itself.
    Html,
    /// A render-blocking style sheet.
    Css,
    /// A script in the head that the parser waits for.
    BlockingScript,
    /// A deferred script.
    DeferredScript,
    /// A web font.
    Font,
    /// A picture.
    Picture,
}

/// One file of the page.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Path in the URL, from the slash on.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// The file.
    pub body: Body,
}

impl Resource {
    /// Its size without headers.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.body.len() as u64)
    }

    /// Its media type, for the `content-type` header.
    pub fn media_type(&self) -> &'static str {
        match self.kind {
            Kind::Html => "text/html; charset=utf-8",
            Kind::Css => "text/css; charset=utf-8",
            Kind::BlockingScript | Kind::DeferredScript => "text/javascript; charset=utf-8",
            Kind::Font => "font/ttf",
            Kind::Picture if self.path.ends_with(".svg") => "image/svg+xml",
            Kind::Picture => "image/jpeg",
        }
    }
}

/// A page with everything that it loads.
#[derive(Debug, Clone)]
pub struct Page {
    resources: Vec<Resource>,
}

impl Page {
    /// The page that every measurement uses, made at the first call.
    pub fn standard() -> &'static Self {
        static PAGE: OnceLock<Page> = OnceLock::new();
        PAGE.get_or_init(|| Self::generate(20))
    }

    /// Makes the page of a seed: same structure and nearly the same sizes, other pictures, texts and scripts.
    pub fn generate(seed: u64) -> Self {
        let mut stream = 0;
        let mut random = || {
            stream += 1;
            Random::new(seed, stream)
        };
        let mut resources = Vec::new();
        let mut add = |path: String, kind, body: Vec<u8>| resources.push(Resource { path, kind, body: body.into() });
        add("/".into(), Kind::Html, markup::document(&mut random(), 31_500).into());
        add("/css/base.css".into(), Kind::Css, style::base(&mut random(), 30_000).into());
        add("/css/utilities.css".into(), Kind::Css, style::utilities(&mut random(), 42_000).into());
        add("/js/head.js".into(), Kind::BlockingScript, script::head(&mut random(), 38_000).into());
        add("/js/vendor.js".into(), Kind::DeferredScript, script::vendor(&mut random(), 270_000).into());
        add("/js/app.js".into(), Kind::DeferredScript, script::app(&mut random(), 160_000).into());
        add("/fonts/tideline-regular.ttf".into(), Kind::Font, font::truetype(Weight::Regular));
        add("/fonts/tideline-bold.ttf".into(), Kind::Font, font::truetype(Weight::Bold));
        for author in 0..markup::AUTHORS {
            add(format!("/images/author-{author}.svg"), Kind::Picture, markup::portrait(&mut random()).into());
        }
        let hero = Picture { width: 1600, height: 720, quality: 91, grain: 9., light: 2, seed: random().next() };
        let mut pictures = vec![("/images/hero.jpg".to_owned(), hero)];
        for card in 0..markup::CARDS {
            let picture = Picture { width: 660, height: 440, quality: 89, grain: 10., light: card, seed: random().next() };
            pictures.push((format!("/images/coast-{card:02}.jpg"), picture));
        }
        for (path, picture) in pictures {
            add(path, Kind::Picture, picture::jpeg(&picture));
        }
        Self { resources }
    }

    /// Every file, the document first.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The file at a path, if the page has one there.
    pub fn get(&self, path: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.path == path)
    }

    /// The size of all files, without headers.
    pub fn size(&self) -> Bytes {
        self.resources.iter().map(Resource::size).fold(Bytes::ZERO, |sum, size| sum + size)
    }
}
