//! Just enough of an HTML reader to check pages that this crate writes.

/// A tag: its name, whether it closes, and its attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Tag {
    pub name: String,
    pub closing: bool,
    pub attributes: Vec<(String, String)>,
    /// The text up to the next tag.
    pub text: String,
}

impl Tag {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The tags of a page in their order; the style sheet's text is that of its tag.
pub fn tags(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    for piece in html.split('<').skip(1) {
        let (inside, text) = piece.split_once('>').unwrap_or((piece, ""));
        let closing = inside.starts_with('/');
        let inside = inside.trim_start_matches('/').trim_end_matches('/');
        let (name, mut rest) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
        let mut attributes = Vec::new();
        while let Some((key, after)) = rest.split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap_or((after, ""));
            let key = key.split_whitespace().last().unwrap_or_default();
            attributes.push((key.to_owned(), value.to_owned()));
            rest = after;
        }
        tags.push(Tag { name: name.to_lowercase(), closing, attributes, text: text.trim().to_owned() });
    }
    tags
}

const EMPTY: [&str; 6] = ["!doctype", "meta", "circle", "path", "rect", "br"];

/// What is opened and not closed, or closed and not open.
pub fn unbalanced(html: &str) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for tag in tags(html) {
        if EMPTY.contains(&tag.name.as_str()) {
            continue;
        }
        if !tag.closing {
            open.push(tag.name);
        } else if open.pop().as_deref() != Some(tag.name.as_str()) {
            return Some(format!("</{}>", tag.name));
        }
    }
    open.pop()
}

/// Everything in a page that would be fetched or run: references to elsewhere, scripts, event handlers.
pub fn reaches_out(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    for tag in tags(html) {
        if ["script", "link", "iframe", "img", "object", "embed", "base", "form", "image", "use"]
            .contains(&tag.name.as_str())
        {
            found.push(format!("<{}>", tag.name));
        }
        for (key, value) in &tag.attributes {
            let reference = ["src", "href", "srcset", "xlink:href", "action", "data", "poster", "background"]
                .contains(&key.as_str());
            let refresh = key == "http-equiv" && value.eq_ignore_ascii_case("refresh");
            if (reference && !value.starts_with('#') && !value.starts_with("data:")) || key.starts_with("on") || refresh
            {
                found.push(format!("{key}={value}"));
            }
        }
        if tag.name == "style" && !tag.closing {
            found.extend(
                ["url(", "@import", "//"].iter().filter(|w| tag.text.contains(**w)).map(|w| format!("style: {w}")),
            );
        }
    }
    found
}

/// Headings, captions, tables and figures, one a line.
pub fn outline(html: &str) -> String {
    let mut out = String::new();
    let mut add = |depth: usize, text: &str| out.push_str(&format!("{}{text}\n", "  ".repeat(depth)));
    let mut depth = 0;
    let mut head: Vec<String> = Vec::new();
    for tag in tags(html) {
        let text = tag.text.as_str();
        match (tag.name.as_str(), tag.closing) {
            ("section" | "details", false) => {
                depth += 1;
                add(depth, &format!("[{} {}]", tag.name, tag.attribute("id").unwrap_or("-")));
            }
            ("section" | "details", true) => depth -= 1,
            ("h1" | "h2" | "h3" | "h4" | "caption" | "figcaption" | "li", false) => {
                add(depth + 1, &format!("{}: {text}", tag.name));
            }
            ("summary", false) if !text.is_empty() => add(depth + 1, &format!("summary: {text}")),
            ("span", false) if tag.attribute("class") == Some("name") => add(depth + 1, &format!("summary: {text}")),
            ("p", false) if matches!(tag.attribute("class"), Some("notice" | "lede" | "fact" | "shown")) => {
                add(depth + 1, &format!("{}: {text}", tag.attribute("class").unwrap()));
            }
            ("title", false) if tag.attribute("id").is_some() => add(depth + 2, &format!("title: {text}")),
            ("desc", false) => add(depth + 2, &format!("desc: {text}")),
            ("th", false) => head.push(text.to_owned()),
            ("thead", true) => add(depth + 2, &format!("columns: {}", std::mem::take(&mut head).join(" | "))),
            _ => {}
        }
    }
    out
}
