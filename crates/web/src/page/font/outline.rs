//! From pen strokes to TrueType contours: a round pen of a given width drawn along lines and arcs.
//!
//! Every stroke becomes contours of its own that overlap their neighbours; all run clockwise, so that the non-zero winding rule
//! fills their union.

/// One point of a contour, in font units; off-curve points are control points of quadratic curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) x: i16,
    pub(super) y: i16,
    pub(super) on_curve: bool,
}

pub(super) type Contour = Vec<Point>;

/// Font units per step of the stroke grid.
const GRID: f32 = 10.;
const HALF_SQRT: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// tan 22.5°: where the tangents at two neighbouring eighths of the unit circle meet.
const TANGENT: f32 = std::f32::consts::SQRT_2 - 1.;

/// The unit circle at each eighth of a turn.
const ON: [(f32, f32); 8] = [
    (1., 0.),
    (HALF_SQRT, HALF_SQRT),
    (0., 1.),
    (-HALF_SQRT, HALF_SQRT),
    (-1., 0.),
    (-HALF_SQRT, -HALF_SQRT),
    (0., -1.),
    (HALF_SQRT, -HALF_SQRT),
];

/// The control point between an eighth and the next.
const OFF: [(f32, f32); 8] = [
    (1., TANGENT),
    (TANGENT, 1.),
    (-TANGENT, 1.),
    (-1., TANGENT),
    (-1., -TANGENT),
    (-TANGENT, -1.),
    (TANGENT, -1.),
    (1., -TANGENT),
];

/// Draws `strokes` (in the notation of [`super::glyphs`]), moved by `(dx, dy)` steps, with a pen `pen` font units wide.
///
/// # Panics
///
/// Panics on text that is not in the notation: the strokes are constants of this crate.
pub(super) fn draw(strokes: &str, (dx, dy): (i16, i16), pen: f32) -> Vec<Contour> {
    let half = pen / 2.;
    let (dx, dy) = (f32::from(dx), f32::from(dy));
    let mut contours = Vec::new();
    let mut tokens = strokes.split_ascii_whitespace().peekable();
    while let Some(command) = tokens.next() {
        let mut numbers = Vec::new();
        while let Some(number) = tokens.peek().and_then(|token| token.parse::<f32>().ok()) {
            numbers.push(number);
            tokens.next();
        }
        let place = |x: f32, y: f32| ((x + dx) * GRID, (y + dy) * GRID);
        match (command, numbers.as_slice()) {
            ("l", points) if points.len() >= 4 && points.len() % 2 == 0 => {
                let points: Vec<_> = points.chunks_exact(2).map(|point| place(point[0], point[1])).collect();
                contours.extend(points.windows(2).map(|ends| line(ends[0], ends[1], half)));
                contours.extend(points.iter().map(|&point| ellipse(point, (half, half))));
            }
            ("a", &[x, y, rx, ry, from, to]) => {
                let (from, to) = (from as i32, to as i32);
                arc(&mut contours, place(x, y), (rx * GRID, ry * GRID), (from, to), half);
            }
            ("d", &[x, y]) => contours.push(ellipse(place(x, y), (half * 1.25, half * 1.25))),
            _ => panic!("not a stroke: {command} {numbers:?}"),
        }
    }
    contours
}

fn point((x, y): (f32, f32), on_curve: bool) -> Point {
    Point { x: x.round() as i16, y: y.round() as i16, on_curve }
}

/// The rectangle that the pen's middle part covers from one point to another.
fn line(from: (f32, f32), to: (f32, f32), half: f32) -> Contour {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let scale = half / (dx * dx + dy * dy).sqrt();
    let (nx, ny) = (-dy * scale, dx * scale);
    [(from.0 + nx, from.1 + ny), (to.0 + nx, to.1 + ny), (to.0 - nx, to.1 - ny), (from.0 - nx, from.1 - ny)]
        .map(|corner| point(corner, true))
        .to_vec()
}

fn on_ellipse(centre: (f32, f32), radii: (f32, f32), unit: (f32, f32)) -> (f32, f32) {
    (centre.0 + radii.0 * unit.0, centre.1 + radii.1 * unit.1)
}

fn eighth(index: i32) -> usize {
    index.rem_euclid(8) as usize
}

/// A whole ellipse, clockwise.
fn ellipse(centre: (f32, f32), radii: (f32, f32)) -> Contour {
    let mut contour = clockwise(centre, radii, (0, 8));
    contour.pop();
    contour
}

/// Points from the eighth `to` back to the eighth `from`, both included.
fn clockwise(centre: (f32, f32), radii: (f32, f32), (from, to): (i32, i32)) -> Contour {
    let mut contour = Vec::new();
    for index in (from..to).rev() {
        contour.push(point(on_ellipse(centre, radii, ON[eighth(index + 1)]), true));
        contour.push(point(on_ellipse(centre, radii, OFF[eighth(index)]), false));
    }
    contour.push(point(on_ellipse(centre, radii, ON[eighth(from)]), true));
    contour
}

/// The band that the pen covers along an arc, with round ends. The curve parallel to an ellipse is taken to be the ellipse with
/// larger or smaller radii, which the eye can't tell at these shapes.
fn arc(contours: &mut Vec<Contour>, centre: (f32, f32), (rx, ry): (f32, f32), (from, to): (i32, i32), half: f32) {
    assert!(from < to && to - from <= 8 && rx > half && ry > half, "not an arc that this pen can draw");
    let mut outer = clockwise(centre, (rx + half, ry + half), (from, to));
    let mut inner = clockwise(centre, (rx - half, ry - half), (from, to));
    inner.reverse();
    if to - from == 8 {
        outer.pop();
        inner.pop();
        contours.extend([outer, inner]);
        return;
    }
    outer.extend(inner);
    contours.push(outer);
    for end in [from, to] {
        contours.push(ellipse(on_ellipse(centre, (rx, ry), ON[eighth(end)]), (half, half)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice the signed area of the polygon through all points: negative where it runs clockwise.
    fn doubled_area(contour: &Contour) -> i64 {
        let next = contour.iter().cycle().skip(1);
        contour.iter().zip(next).map(|(a, b)| i64::from(a.x) * i64::from(b.y) - i64::from(b.x) * i64::from(a.y)).sum()
    }

    #[test]
    fn strokes_run_clockwise_and_only_the_hole_of_a_ring_runs_the_other_way() {
        for strokes in ["l 0 0 10 20 30 0", "a 20 20 20 20 1 7", "d 0 0"] {
            assert!(draw(strokes, (0, 0), 80.).iter().all(|contour| doubled_area(contour) < 0), "{strokes}");
        }
        let ring = draw("a 20 20 20 20 0 8", (0, 0), 80.);
        assert_eq!(ring.iter().map(|contour| doubled_area(contour) < 0).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_line_is_as_wide_as_the_pen() {
        let bar = &draw("l 0 0 0 70", (0, 0), 80.)[0];
        assert_eq!(bar.iter().map(|p| p.x).max(), Some(40));
        assert_eq!(bar.iter().map(|p| p.x).min(), Some(-40));
        assert_eq!(bar.iter().map(|p| p.y).max(), Some(700));
    }

    #[test]
    #[should_panic(expected = "not a stroke")]
    fn a_line_with_half_a_point_is_no_stroke() {
        draw("l 0 0 10", (0, 0), 80.);
    }
}
