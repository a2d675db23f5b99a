//! The two style sheets, both render-blocking: what this page uses, and around it the unused rules that real ones carry.

use std::fmt::Write;

use super::font::FAMILY;
use super::random::Random;
use super::text::WORDS;

/// The rules that give the page its look.
const BASE: &str = include_str!("base.css");

/// `base.css`: fonts, layout, and components in many variants, of `size` bytes or a rule more.
///
/// `font-display: swap` shows text in a fallback font until the web font is there, as the common font services ask for. With
/// `block` the text would stay invisible until the fonts had come, and First Contentful Paint with it: two more round trips, as the
/// fonts are only discovered in this file. The page takes the kinder and more usual choice.
pub(super) fn base(random: &mut Random, size: usize) -> String {
    let mut css = String::new();
    for (file, weight) in [("regular", 400), ("bold", 700)] {
        let _ = writeln!(
            css,
            "@font-face{{font-family:\"{FAMILY}\";src:url(/fonts/tideline-{file}.ttf) format(\"truetype\");\
             font-weight:{weight};font-style:normal;font-display:swap}}"
        );
    }
    css.push_str(BASE);
    let mut number = 0;
    while css.len() < size {
        number += 1;
        let (block, part) = (random.pick(&WORDS), random.pick(&WORDS));
        let (hue, space, radius) = (random.below(360), random.below(40), random.below(24));
        let _ = writeln!(
            css,
            ".{block}-{number}{{display:flex;gap:{space}px;padding:{}px {}px;border-radius:{radius}px;\
             background:hsl({hue} {}% 96%);color:hsl({hue} {}% 22%)}}\n\
             .{block}-{number}__{part}{{margin:0 0 {}px;border-bottom:1px solid hsl({hue} 30% 80%);transition:color .{}s ease}}\n\
             .{block}-{number}:hover .{block}-{number}__{part}{{color:hsl({} 60% 38%)}}",
            random.below(32),
            random.below(48),
            20 + random.below(60),
            30 + random.below(50),
            random.below(28),
            1 + random.below(8),
            random.below(360),
        );
    }
    css
}

/// `utilities.css`: one declaration per class, for several screen widths, as utility frameworks generate it.
pub(super) fn utilities(random: &mut Random, size: usize) -> String {
    const PROPERTIES: [(&str, &str); 12] = [
        ("m", "margin"),
        ("mt", "margin-top"),
        ("mb", "margin-bottom"),
        ("p", "padding"),
        ("px", "padding-inline"),
        ("py", "padding-block"),
        ("gap", "gap"),
        ("w", "width"),
        ("h", "height"),
        ("top", "top"),
        ("rounded", "border-radius"),
        ("text", "font-size"),
    ];
    let mut css = String::new();
    let mut step = 0;
    while css.len() < size {
        let (short, property) = PROPERTIES[step % PROPERTIES.len()];
        let number = step / PROPERTIES.len();
        let rem = number as f32 * 0.125 + random.below(8) as f32 / 64.;
        let _ = writeln!(css, ".{short}-{number}{{{property}:{rem}rem}}");
        if step % 3 == 0 {
            for (name, width) in [("sm", 640), ("md", 900), ("lg", 1200)] {
                let _ = writeln!(
                    css,
                    "@media(min-width:{width}px){{.{name}\\:{short}-{number}{{{property}:{}rem}}}}",
                    rem * 1.5
                );
            }
        }
        step += 1;
    }
    css
}
