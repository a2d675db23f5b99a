//! The document: masthead, large picture, cards, a long read, a table, a footer.

use std::fmt::Write;

use super::random::Random;
use super::text::{author, paragraph, section, title};

/// How many cards, each with a picture of its own.
pub(super) const CARDS: usize = 12;
/// How many authors, each with a portrait.
pub(super) const AUTHORS: usize = 4;

const MEASURE: &str = include_str!("measure.js");

/// The document, grown by paragraphs of the long read to `size` bytes or one more.
pub(super) fn document(random: &mut Random, size: usize) -> String {
    let mut html = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>Tideline: notes from long coasts</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <link rel=\"stylesheet\" href=\"/css/base.css\">\n<link rel=\"stylesheet\" href=\"/css/utilities.css\">\n\
         <script src=\"/js/head.js\"></script>\n\
         <script src=\"/js/vendor.js\" defer></script>\n<script src=\"/js/app.js\" defer></script>\n</head>\n<body>\n",
    );
    let _ = write!(
        html,
        "<header class=\"masthead\"><div class=\"wide\"><a class=\"brand\" href=\"#\">{LOGO}Tideline</a><nav class=\"nav\">"
    );
    for index in 0..6 {
        let _ = write!(html, "<a href=\"#s{index}\">{}</a>", section(index));
    }
    html.push_str("</nav><a class=\"button\" href=\"#subscribe\">Subscribe</a></div></header>\n");
    let _ = write!(
        html,
        "<section class=\"hero\"><img src=\"/images/hero.jpg\" width=\"1600\" height=\"720\" alt=\"A coast in slanting light\" \
         fetchpriority=\"high\"><div class=\"hero-text\"><div class=\"wide\"><span class=\"kicker\">The long read</span>\
         <h1>The last mile is always the one that nobody measured</h1><p>{}</p></div></div></section>\n<main>\n<div class=\"wide\">\
         <div class=\"intro\"><h2>From the coast this week</h2><p>{}</p></div>\n<div class=\"cards\">\n",
        paragraph(random, 2),
        paragraph(random, 2)
    );
    for card in 0..CARDS {
        let _ = writeln!(
            html,
            "<article class=\"card\"><img src=\"/images/coast-{card:02}.jpg\" width=\"660\" height=\"440\" alt=\"{}\">\
             <div class=\"card-body\"><span class=\"kicker\">{}</span><h3><a href=\"#a{card}\">{}</a></h3><p>{}</p>\
             <div class=\"byline\"><img src=\"/images/author-{}.svg\" width=\"30\" height=\"30\" alt=\"\">{}, {} min</div></div></article>",
            title(card),
            section(card),
            title(card),
            paragraph(random, 2),
            card % AUTHORS,
            author(card),
            3 + random.below(12)
        );
    }
    html.push_str("</div></div>\n<section class=\"feature\"><div class=\"wide\"><article>\n");
    let _ = writeln!(
        html,
        "<span class=\"kicker\">{}</span><h2>{}</h2><p class=\"lead\">{}</p>",
        section(3),
        title(0),
        paragraph(random, 3)
    );
    let tail = tail(random);
    let mut number = 0;
    while html.len() + tail.len() < size {
        if number % 6 == 3 {
            let _ = writeln!(html, "<blockquote>{}</blockquote>", paragraph(random, 1));
        }
        let sentences = 4 + random.below(4) as usize;
        let _ = writeln!(html, "<p>{}</p>", paragraph(random, sentences));
        number += 1;
    }
    html + &tail
}

const LOGO: &str = "<svg width=\"38\" height=\"38\" viewBox=\"0 0 38 38\" aria-hidden=\"true\"><circle cx=\"19\" cy=\"19\" r=\"19\" \
                    fill=\"#0f5e7c\"/><path d=\"M4 22q5-5 10 0t10 0 10 0M7 28q4-4 8 0t8 0 8 0\" fill=\"none\" stroke=\"#fff\" \
                    stroke-width=\"2.4\" stroke-linecap=\"round\"/><circle cx=\"19\" cy=\"12\" r=\"4\" fill=\"#ffdf9e\"/></svg>";

/// Everything after the long read.
fn tail(random: &mut Random) -> String {
    let mut html = String::from(
        "</article>\n<aside><div class=\"panel\"><h3>Tide today</h3><canvas id=\"tide\"></canvas></div>\
         <div class=\"panel\"><h3>Stations</h3><table><thead><tr><th>Place</th><th>High</th><th>Low</th><th>Range</th></tr></thead><tbody>\n",
    );
    const PLACES: [&str; 14] = [
        "Skarholm",
        "Lyngby Sand",
        "Port Ferrow",
        "Inish Dara",
        "Vik",
        "Cabo Leme",
        "Hollins Quay",
        "Brekkuvík",
        "Ness End",
        "Saint-Armel",
        "Ostrand",
        "Marsden Bar",
        "Tor Haven",
        "Punta Clara",
    ];
    for place in PLACES {
        let _ = writeln!(
            html,
            "<tr><td>{place}</td><td>{:02}:{:02}</td><td>{:02}:{:02}</td><td>{}.{} m</td></tr>",
            random.below(12),
            random.below(60),
            12 + random.below(12),
            random.below(60),
            1 + random.below(6),
            random.below(10)
        );
    }
    html.push_str(
        "</tbody></table></div></aside></div></section>\n</main>\n<footer class=\"foot\"><div class=\"wide\">",
    );
    let _ = write!(html, "<div><b>Tideline</b>{}</div>", paragraph(random, 2));
    for column in 0..3 {
        let _ = write!(html, "<div><b>{}</b>", section(column + 2));
        for link in 0..4 {
            let _ = write!(html, "<a href=\"#f{column}{link}\">{}</a>", title(column * 4 + link));
        }
        html.push_str("</div>");
    }
    let _ = write!(html, "</div></footer>\n<script>\n{MEASURE}</script>\n</body>\n</html>\n");
    html
}

/// The portrait of an author: a flat figure before a sky, as SVG.
pub(super) fn portrait(random: &mut Random) -> String {
    let (sky, coat, hair) = (random.below(360), random.below(360), random.below(60));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 60 60\"><rect width=\"60\" height=\"60\" fill=\"hsl({sky} 45% 78%)\"/>\n"
    );
    for _ in 0..24 {
        let _ = writeln!(
            svg,
            "<path d=\"M0 {y}q15 {bend} 30 0t30 0v60H0z\" fill=\"hsl({} 40% {}% / .12)\"/>",
            (sky + random.below(40)) % 360,
            40 + random.below(40),
            y = 8 + random.below(48),
            bend = 4 + random.below(9)
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M6 60q2-20 24-20t24 20z\" fill=\"hsl({coat} 45% 38%)\"/><circle cx=\"30\" cy=\"25\" r=\"12\" fill=\"hsl(26 48% {}%)\"/>\
         <path d=\"M17 25q0-15 13-15t13 15q-5-8-13-8t-13 8z\" fill=\"hsl({hair} 40% {}%)\"/></svg>",
        52 + random.below(28),
        16 + random.below(30)
    );
    svg
}
