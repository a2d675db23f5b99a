//! The page's web font: a round sans-serif in two weights, drawn by this crate and written as TrueType.
//!
//! Follows the OpenType specification 1.9.1 (tables `head`, `hhea`, `maxp`, `OS/2`, `hmtx`, `cmap` format 4, `loca`, `glyf`,
//! `name`, `post`). Browsers refuse a font with a single wrong length, so the test reads it back with a strict parser and the
//! browser test asks Chromium whether it used it.

mod glyphs;
mod outline;

use outline::{Contour, Point};

/// A weight of the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

/// The family's name in CSS and in the `name` table.
pub(super) const FAMILY: &str = "Tideline";

const UNITS_PER_EM: u16 = 1000;
const ASCENT: i16 = 960;
const DESCENT: i16 = -260;
const BEARING: i16 = 46;
const SPACE_ADVANCE: u16 = 250;

struct Glyph {
    /// `None` for the glyph that stands for missing characters.
    character: Option<char>,
    contours: Vec<Contour>,
    advance: u16,
}

/// Smallest and largest coordinates.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    x: (i16, i16),
    y: (i16, i16),
}

impl Glyph {
    /// Puts the outline one bearing right of the origin and sets the advance a bearing past its end.
    fn spaced(character: Option<char>, mut contours: Vec<Contour>) -> Self {
        let bounds = bounds(contours.iter().flatten());
        for point in contours.iter_mut().flatten() {
            point.x += BEARING - bounds.x.0;
        }
        let advance = (bounds.x.1 - bounds.x.0 + 2 * BEARING) as u16;
        Self { character, contours, advance }
    }

    fn bounds(&self) -> Bounds {
        bounds(self.contours.iter().flatten())
    }

    fn points(&self) -> usize {
        self.contours.iter().map(Vec::len).sum()
    }
}

/// Bounds of the points on the curves; nothing reaches beyond, as extremes are always on-curve points here.
fn bounds<'a>(points: impl Iterator<Item = &'a Point>) -> Bounds {
    points
        .filter(|point| point.on_curve)
        .fold(None, |bounds: Option<Bounds>, &Point { x, y, .. }| {
            let old = bounds.unwrap_or(Bounds { x: (x, x), y: (y, y) });
            Some(Bounds { x: (old.x.0.min(x), old.x.1.max(x)), y: (old.y.0.min(y), old.y.1.max(y)) })
        })
        .unwrap_or_default()
}

/// The font file of one weight.
pub(super) fn truetype(weight: Weight) -> Vec<u8> {
    let glyphs = draw_all(weight);
    let all = bounds(glyphs.iter().flat_map(|glyph| glyph.contours.iter().flatten()));
    let (glyf, loca) = outlines(&glyphs);
    // In the order of the tags, as the table directory must be.
    assemble(&[
        (b"OS/2", os2(&glyphs, weight)),
        (b"cmap", cmap(&glyphs)),
        (b"glyf", glyf),
        (b"head", head(all, weight)),
        (b"hhea", hhea(&glyphs, all)),
        (b"hmtx", hmtx(&glyphs)),
        (b"loca", loca),
        (b"maxp", maxp(&glyphs)),
        (b"name", name(weight)),
        (b"post", post()),
    ])
}

fn draw_all(weight: Weight) -> Vec<Glyph> {
    let pen = match weight {
        Weight::Regular => 78.,
        Weight::Bold => 118.,
    };
    let mut drawn = vec![Glyph { character: Some(' '), contours: Vec::new(), advance: SPACE_ADVANCE }];
    for &(character, strokes) in glyphs::STROKES {
        drawn.push(Glyph::spaced(Some(character), outline::draw(strokes, (0, 0), pen)));
    }
    for &(character, strokes, middle, mark) in glyphs::MARKED {
        let lift = if character.is_uppercase() { mark.lift() } else { 0 };
        let mut contours = outline::draw(strokes, (0, 0), pen);
        contours.extend(outline::draw(mark.strokes(), (middle, lift), pen * 0.9));
        drawn.push(Glyph::spaced(Some(character), contours));
    }
    drawn.sort_by_key(|glyph| glyph.character);
    // Glyph 0 is shown for characters that the font lacks: an empty box.
    drawn.insert(0, Glyph::spaced(None, outline::draw("l 0 0 0 70 40 70 40 0 0 0", (0, 0), pen)));
    drawn
}

/// Big-endian writer, as all of OpenType is.
#[derive(Default)]
struct Table(Vec<u8>);

impl Table {
    fn u16(&mut self, values: impl IntoIterator<Item = u16>) -> &mut Self {
        self.0.extend(values.into_iter().flat_map(u16::to_be_bytes));
        self
    }

    fn i16(&mut self, values: impl IntoIterator<Item = i16>) -> &mut Self {
        self.0.extend(values.into_iter().flat_map(i16::to_be_bytes));
        self
    }

    fn u32(&mut self, values: impl IntoIterator<Item = u32>) -> &mut Self {
        self.0.extend(values.into_iter().flat_map(u32::to_be_bytes));
        self
    }
}

/// `glyf` and `loca` (long form).
fn outlines(glyphs: &[Glyph]) -> (Vec<u8>, Vec<u8>) {
    const ON_CURVE: u8 = 1;
    /// Bit that says that the delta takes one byte, and the bit that then is its sign, else "no change"; y's are twice x's.
    const SHORT: u8 = 1 << 1;
    const POSITIVE_OR_SAME: u8 = 1 << 4;
    const OVERLAP: u8 = 1 << 6;

    let mut glyf = Table::default();
    let mut loca = Table::default();
    for glyph in glyphs {
        loca.u32([glyf.0.len() as u32]);
        if glyph.contours.is_empty() {
            continue;
        }
        let bounds = glyph.bounds();
        glyf.i16([glyph.contours.len() as i16, bounds.x.0, bounds.y.0, bounds.x.1, bounds.y.1]);
        let mut end = 0;
        for contour in &glyph.contours {
            end += contour.len() as u16;
            glyf.u16([end - 1]);
        }
        glyf.u16([0]);
        let (mut flags, mut xs, mut ys) = (Vec::new(), Vec::new(), Vec::new());
        let (mut x, mut y) = (0i16, 0i16);
        for point in glyph.contours.iter().flatten() {
            let mut flag = if point.on_curve { ON_CURVE } else { 0 };
            if flags.is_empty() {
                flag |= OVERLAP;
            }
            for (delta, deltas, shift) in [(point.x - x, &mut xs, 0), (point.y - y, &mut ys, 1)] {
                match delta {
                    0 => flag |= POSITIVE_OR_SAME << shift,
                    -255..=255 => {
                        flag |= SHORT << shift;
                        if delta > 0 {
                            flag |= POSITIVE_OR_SAME << shift;
                        }
                        deltas.push(delta.unsigned_abs() as u8);
                    }
                    _ => deltas.extend(delta.to_be_bytes()),
                }
            }
            (x, y) = (point.x, point.y);
            flags.push(flag);
        }
        for part in [flags, xs, ys] {
            glyf.0.extend(part);
        }
        pad(&mut glyf.0);
    }
    loca.u32([glyf.0.len() as u32]);
    (glyf.0, loca.0)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn head(all: Bounds, weight: Weight) -> Vec<u8> {
    let mut table = Table::default();
    // Version 1.0, revision 1.0, checkSumAdjustment (filled in when the file is whole), magic.
    table.u32([0x0001_0000, 0x0001_0000, 0, 0x5F0F_3CF5]);
    // Baseline at y = 0, left bearing at x = 0.
    table.u16([0b11, UNITS_PER_EM]);
    // Created and modified: at the epoch, so that the file is always the same.
    table.u32([0; 4]);
    table.i16([all.x.0, all.y.0, all.x.1, all.y.1]);
    // Style, smallest readable size, direction hint (obsolete), long `loca`, glyph data format.
    table.u16([u16::from(weight == Weight::Bold), 8, 2, 1, 0]);
    table.0
}

fn hhea(glyphs: &[Glyph], all: Bounds) -> Vec<u8> {
    let widest = glyphs.iter().map(|glyph| glyph.advance).max().unwrap_or(0);
    let mut table = Table::default();
    table.u32([0x0001_0000]).i16([ASCENT, DESCENT, 0]).u16([widest]);
    // Smallest bearings, largest extent, upright caret, reserved.
    table.i16([BEARING, BEARING, all.x.1, 1, 0, 0, 0, 0, 0, 0, 0]);
    table.u16([glyphs.len() as u16]);
    table.0
}

fn hmtx(glyphs: &[Glyph]) -> Vec<u8> {
    let mut table = Table::default();
    for glyph in glyphs {
        table.u16([glyph.advance]).i16([glyph.bounds().x.0]);
    }
    table.0
}

fn maxp(glyphs: &[Glyph]) -> Vec<u8> {
    let most_points = glyphs.iter().map(Glyph::points).max().unwrap_or(0);
    let most_contours = glyphs.iter().map(|glyph| glyph.contours.len()).max().unwrap_or(0);
    let mut table = Table::default();
    table.u32([0x0001_0000]).u16([glyphs.len() as u16, most_points as u16, most_contours as u16]);
    // No composites; one zone; no instructions.
    table.u16([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    table.0
}

fn cmap(glyphs: &[Glyph]) -> Vec<u8> {
    // Runs of characters with consecutive codes: (first code, last code, first glyph).
    let mut runs: Vec<(u16, u16, u16)> = Vec::new();
    for (index, glyph) in glyphs.iter().enumerate() {
        let Some(code) = glyph.character.map(|character| character as u32 as u16) else { continue };
        match runs.last_mut() {
            Some((_, last, _)) if *last + 1 == code => *last = code,
            _ => runs.push((code, code, index as u16)),
        }
    }
    let segments = runs.len() as u16 + 1;
    let search = 2 * (1 << segments.ilog2());
    let mut table = Table::default();
    // Version, one subtable: Windows, Unicode BMP, at offset 12.
    table.u16([0, 1, 3, 1]).u32([12]);
    table.u16([4, 16 + 8 * segments, 0, segments * 2, search, segments.ilog2() as u16, segments * 2 - search]);
    table.u16(runs.iter().map(|&(_, last, _)| last)).u16([0xFFFF, 0]);
    table.u16(runs.iter().map(|&(first, ..)| first)).u16([0xFFFF]);
    table.u16(runs.iter().map(|&(first, _, glyph)| glyph.wrapping_sub(first))).u16([1]);
    table.u16(vec![0; usize::from(segments)]);
    table.0
}

fn os2(glyphs: &[Glyph], weight: Weight) -> Vec<u8> {
    let advances: u32 = glyphs.iter().map(|glyph| u32::from(glyph.advance)).sum();
    let codes: Vec<u16> = glyphs.iter().filter_map(|glyph| glyph.character).map(|c| c as u32 as u16).collect();
    let (class, selection) = match weight {
        Weight::Regular => (400, 1 << 6),
        Weight::Bold => (700, 1 << 5),
    };
    let mut table = Table::default();
    // Version 4, average advance, weight, normal width, installable embedding.
    table.u16([4, (advances / glyphs.len() as u32) as u16, class, 5, 0]);
    // Subscript and superscript boxes, strikeout, no family class.
    table.i16([650, 600, 0, 75, 650, 600, 0, 350, 50, 260, 0]);
    // No PANOSE classification; Basic Latin, Latin-1 and punctuation; vendor.
    table.0.extend([0; 10]);
    table.u32([0b11, 1 << 0, 0, 0]);
    table.0.extend(b"    ");
    table.u16([selection, codes.iter().copied().min().unwrap_or(0), codes.iter().copied().max().unwrap_or(0)]);
    table.i16([ASCENT, DESCENT, 0]).u16([ASCENT as u16, DESCENT.unsigned_abs()]);
    // Code page Latin 1; heights of small letters and capitals; default and break character; longest context.
    table.u32([1, 0]).i16([480, 700]).u16([0, 32, 1]);
    table.0
}

fn name(weight: Weight) -> Vec<u8> {
    let style = match weight {
        Weight::Regular => "Regular",
        Weight::Bold => "Bold",
    };
    let full = format!("{FAMILY} {style}");
    let postscript = format!("{FAMILY}-{style}");
    let names = [(1, FAMILY), (2, style), (3, &full), (4, &full), (5, "Version 1.000"), (6, &postscript)];
    let mut records = Table::default();
    let mut storage = Table::default();
    records.u16([0, names.len() as u16, 6 + 12 * names.len() as u16]);
    for (id, text) in names {
        let start = storage.0.len() as u16;
        storage.u16(text.encode_utf16());
        // Windows, Unicode BMP, English (United States).
        records.u16([3, 1, 0x409, id, storage.0.len() as u16 - start, start]);
    }
    records.0.extend(storage.0);
    records.0
}

fn post() -> Vec<u8> {
    let mut table = Table::default();
    // Version 3.0: no glyph names. Upright; underline; proportional; no memory hints.
    table.u32([0x0003_0000, 0]).i16([-120, 60]).u32([0; 5]);
    table.0
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(4)
        .map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_be_bytes(word)
        })
        .fold(0, u32::wrapping_add)
}

fn assemble(tables: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let count = tables.len() as u16;
    let search = 16 * (1 << count.ilog2());
    let mut file = Table::default();
    file.u32([0x0001_0000]).u16([count, search, count.ilog2() as u16, count * 16 - search]);
    let mut offset = 12 + 16 * tables.len();
    for (tag, table) in tables {
        file.0.extend(*tag);
        file.u32([checksum(table), offset as u32, table.len() as u32]);
        offset += table.len().next_multiple_of(4);
    }
    let mut head = 0;
    for (tag, table) in tables {
        if *tag == b"head" {
            head = file.0.len();
        }
        file.0.extend(table);
        pad(&mut file.0);
    }
    let adjustment = 0xB1B0_AFBA_u32.wrapping_sub(checksum(&file.0));
    file.0[head + 8..head + 12].copy_from_slice(&adjustment.to_be_bytes());
    file.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_parser_finds_every_character_with_an_outline_and_a_width() {
        for weight in [Weight::Regular, Weight::Bold] {
            let file = truetype(weight);
            let face = ttf_parser::Face::parse(&file, 0).expect("a font");
            assert_eq!((face.units_per_em(), face.is_bold()), (1000, weight == Weight::Bold));
            let printable = (' '..='~').chain("é Ü — “ ’ …".chars());
            for character in printable {
                let glyph = face.glyph_index(character).unwrap_or_else(|| panic!("{character:?} has no glyph"));
                assert!(face.glyph_hor_advance(glyph).is_some_and(|advance| advance > 100), "{character:?}");
                let outlined = face.outline_glyph(glyph, &mut Nothing).is_some();
                assert_eq!(outlined, character != ' ', "{character:?}");
            }
            assert_eq!(face.glyph_index('中'), None);
        }
    }

    #[test]
    fn the_bold_weight_is_wider_and_another_file() {
        let files = [truetype(Weight::Regular), truetype(Weight::Bold)];
        assert_ne!(files[0], files[1]);
        let advances = files.map(|file| {
            let face = ttf_parser::Face::parse(&file, 0).expect("a font");
            face.glyph_index('H').and_then(|glyph| face.glyph_hor_advance(glyph))
        });
        assert!(advances[0] < advances[1]);
    }

    #[test]
    fn the_checksum_over_the_whole_file_is_the_constant_of_the_specification() {
        let mut file = truetype(Weight::Regular);
        assert_eq!(checksum(&file), 0xB1B0_AFBA);
        let last = file.len() - 1;
        file[last] ^= 1;
        assert_ne!(checksum(&file), 0xB1B0_AFBA);
    }

    struct Nothing;

    impl ttf_parser::OutlineBuilder for Nothing {
        fn move_to(&mut self, _: f32, _: f32) {}
        fn line_to(&mut self, _: f32, _: f32) {}
        fn quad_to(&mut self, _: f32, _: f32, _: f32, _: f32) {}
        fn curve_to(&mut self, _: f32, _: f32, _: f32, _: f32, _: f32, _: f32) {}
        fn close(&mut self) {}
    }
}
