//! The page: about 2 MB in 25 requests, made by code from a seed, the same on every machine.
//!
//! | what | requests | bytes, about | share |
//! | --- | --- | --- | --- |
//! | HTML | 1 | 32 kB | 2 % |
//! | style sheets, render-blocking | 2 | 72 kB | 4 % |
//! | script that blocks the parser | 1 | 39 kB | 2 % |
//! | scripts, deferred | 2 | 432 kB | 22 % |
//! | web fonts (`font-display: swap`) | 2 | 89 kB | 4 % |
//! | pictures: one large, twelve small, four portraits | 17 | 1325 kB | 67 % |
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

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

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
    /// A page of these files, the document first.
    pub fn new(resources: Vec<Resource>) -> Self {
        Self { resources }
    }

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
            let picture =
                Picture { width: 660, height: 440, quality: 89, grain: 10., light: card, seed: random().next() };
            pictures.push((format!("/images/coast-{card:02}.jpg"), picture));
        }
        thread::scope(|scope| {
            let painting: Vec<_> = pictures
                .into_iter()
                .map(|(path, picture)| (path, scope.spawn(move || picture::jpeg(&picture))))
                .collect();
            for (path, file) in painting {
                add(path, Kind::Picture, file.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD_SIZE: u64 = 1_989_360;

    fn of_kind(page: &Page, kind: Kind) -> (usize, u64) {
        let sizes =
            page.resources().iter().filter(|resource| resource.kind == kind).map(|resource| resource.size().as_u64());
        (sizes.clone().count(), sizes.sum())
    }

    #[test]
    fn the_sizes_are_those_of_the_table_above_within_a_twentieth() {
        let page = Page::standard();
        let table = [
            (Kind::Html, 1, 32_000),
            (Kind::Css, 2, 72_000),
            (Kind::BlockingScript, 1, 39_000),
            (Kind::DeferredScript, 2, 432_000),
            (Kind::Font, 2, 89_000),
            (Kind::Picture, 17, 1_325_000),
        ];
        for (kind, requests, documented) in table {
            let (count, size) = of_kind(page, kind);
            assert_eq!(count, requests, "{kind:?}");
            assert!(
                size.abs_diff(documented) * 20 <= documented,
                "{kind:?} has {size} bytes, documented are {documented}"
            );
        }
        assert_eq!(page.resources().len(), table.iter().map(|(_, requests, _)| requests).sum::<usize>());
    }

    #[test]
    fn pages_of_several_seeds_are_within_a_twentieth_of_2_megabytes() {
        for page in [Page::standard(), &Page::generate(1)] {
            let size = page.size().as_u64();
            assert!(size.abs_diff(2_000_000) <= 100_000, "{size}");
        }
    }

    #[test]
    fn the_standard_page_is_the_same_everywhere_and_another_seed_gives_another() {
        // Not a checksum of every byte, but floating point that differs between machines would move the size of some picture.
        assert_eq!(Page::standard().size(), Bytes::new(STANDARD_SIZE));
        let (again, other) = (Page::generate(20), Page::generate(21));
        for (index, resource) in Page::standard().resources().iter().enumerate() {
            assert_eq!(resource.body, again.resources[index].body, "{}", resource.path);
            if resource.kind != Kind::Font {
                assert_ne!(resource.body, other.resources[index].body, "{}", resource.path);
            }
        }
    }

    #[test]
    fn everything_the_page_refers_to_is_there_and_nothing_is_there_in_vain() {
        let page = Page::standard();
        let text = |path: &str| {
            let body = &page.get(path).unwrap_or_else(|| panic!("{path} is missing")).body;
            String::from_utf8(body.to_vec()).expect("text")
        };
        let (html, css) = (text("/"), text("/css/base.css"));
        let mut named: Vec<&str> = vec!["/"];
        for (source, before, after) in [(&html, "src=\"", '"'), (&html, "href=\"/", '"'), (&css, "url(", ')')] {
            for (start, _) in source.match_indices(before) {
                let path = &source[start + before.len() - usize::from(before.ends_with('/'))..];
                named.push(&path[..path.find(after).expect("the end of a reference")]);
            }
        }
        for path in &named {
            assert!(page.get(path).is_some(), "{path} is referred to and missing");
        }
        for resource in page.resources() {
            assert!(named.contains(&resource.path.as_str()), "nothing refers to {}", resource.path);
        }
        assert!(page.get("/favicon.ico").is_none());
    }

    #[test]
    fn pictures_are_as_dense_as_compressed_files_are_and_text_is_not() {
        for resource in Page::standard().resources().iter().filter(|resource| resource.path.ends_with(".jpg")) {
            assert!(entropy(&resource.body) > 7.8, "{}: {}", resource.path, entropy(&resource.body));
        }
        assert!(entropy(&Page::standard().resources()[0].body) < 6., "text is not like that");
    }

    /// Bits per byte, by the frequency of single bytes: near 8 in what is compressed already.
    fn entropy(bytes: &[u8]) -> f64 {
        let mut counts = [0u32; 256];
        for byte in bytes {
            counts[usize::from(*byte)] += 1;
        }
        let share = |count: u32| f64::from(count) / bytes.len() as f64;
        counts.iter().filter(|count| **count > 0).map(|count| -share(*count) * share(*count).log2()).sum()
    }
}
