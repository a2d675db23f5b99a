//! Pictures of coasts that never were: skies, ridges and water from value noise, with film grain, as JPEG.
//!
//! The grain keeps the files as hard to compress as a camera's. Only `+ - * /` and `floor` are used on floating point numbers,
//! which IEEE 754 defines to the bit: a seed gives the same file on every machine.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::random::{Random, mix, unit};

type Rgb = [f32; 3];

/// What to paint, and how large.
#[derive(Debug, Clone, Copy)]
pub(super) struct Picture {
    pub(super) width: u16,
    pub(super) height: u16,
    /// JPEG quality, 1 to 100.
    pub(super) quality: u8,
    /// Amplitude of the grain, of 255.
    pub(super) grain: f32,
    /// Which of the lights: any number, counted round.
    pub(super) light: usize,
    pub(super) seed: u64,
}

/// Colours of one light: sky above and at the horizon, clouds, far and near ridges, water, sun.
struct Light {
    zenith: Rgb,
    horizon: Rgb,
    cloud: Rgb,
    far: Rgb,
    near: Rgb,
    water: Rgb,
    sun: Rgb,
}

const LIGHTS: [Light; 5] = [
    // Morning.
    Light {
        zenith: [92., 140., 190.],
        horizon: [252., 214., 178.],
        cloud: [255., 238., 222.],
        far: [168., 160., 186.],
        near: [44., 62., 74.],
        water: [70., 110., 140.],
        sun: [255., 244., 214.],
    },
    // Noon.
    Light {
        zenith: [38., 110., 188.],
        horizon: [196., 224., 240.],
        cloud: [250., 252., 255.],
        far: [136., 168., 190.],
        near: [40., 78., 56.],
        water: [26., 104., 138.],
        sun: [255., 255., 240.],
    },
    // Evening.
    Light {
        zenith: [58., 52., 104.],
        horizon: [250., 146., 92.],
        cloud: [242., 164., 150.],
        far: [140., 88., 116.],
        near: [34., 26., 46.],
        water: [78., 56., 98.],
        sun: [255., 226., 160.],
    },
    // Fog.
    Light {
        zenith: [166., 182., 190.],
        horizon: [226., 230., 228.],
        cloud: [240., 242., 240.],
        far: [182., 192., 194.],
        near: [72., 90., 92.],
        water: [134., 154., 160.],
        sun: [250., 248., 236.],
    },
    // Weather.
    Light {
        zenith: [50., 66., 84.],
        horizon: [164., 178., 176.],
        cloud: [92., 104., 116.],
        far: [96., 116., 124.],
        near: [24., 40., 44.],
        water: [36., 66., 78.],
        sun: [226., 232., 220.],
    },
];

/// Paints the picture and encodes it as baseline JPEG with 4:2:0 chroma, the form most photographs on the web have.
pub(super) fn jpeg(picture: &Picture) -> Vec<u8> {
    let pixels = paint(picture);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, picture.quality);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder
        .encode(&pixels, picture.width, picture.height, ColorType::Rgb)
        .expect("the pixels fill the picture, and writing into memory does not fail");
    file
}

struct Ridge {
    base: f32,
    amplitude: f32,
    frequency: f32,
    seed: u64,
    colour: Rgb,
}

struct Scene<'a> {
    width: f32,
    height: f32,
    horizon: f32,
    light: &'a Light,
    sun: (f32, f32, f32),
    ridges: Vec<Ridge>,
    clouds: f32,
    seed: u64,
}

fn paint(picture: &Picture) -> Vec<u8> {
    let mut random = Random::new(picture.seed, 1);
    let (width, height) = (f32::from(picture.width), f32::from(picture.height));
    let light = &LIGHTS[picture.light % LIGHTS.len()];
    let horizon = height * (0.56 + 0.12 * random.fraction());
    let layers = 3 + random.below(3);
    let ridges = (0..layers)
        .map(|layer| {
            let depth = layer as f32 / (layers - 1) as f32;
            Ridge {
                base: horizon - height * 0.16 * (1. - depth) + height * 0.02,
                amplitude: height * (0.30 - 0.10 * depth) * (0.7 + 0.6 * random.fraction()),
                frequency: (2.2 + 2.2 * depth) / width,
                seed: random.next(),
                colour: blend(light.far, light.near, 0.1 + 0.9 * depth),
            }
        })
        .collect();
    let sun = (
        width * (0.15 + 0.7 * random.fraction()),
        horizon * (0.25 + 0.45 * random.fraction()),
        height * (0.03 + 0.025 * random.fraction()),
    );
    let clouds = 0.25 + 0.6 * random.fraction();
    let scene = Scene { width, height, horizon, light, sun, ridges, clouds, seed: random.next() };
    let skylines: Vec<Vec<f32>> = scene.ridges.iter().map(|ridge| skyline(ridge, picture.width)).collect();

    let mut pixels = Vec::with_capacity(usize::from(picture.width) * usize::from(picture.height) * 3);
    for y in 0..picture.height {
        for x in 0..picture.width {
            let colour = scene.colour(usize::from(x), f32::from(y), &skylines);
            // Grain is grey, as in film and sensors: the same for the three channels.
            let grain = unit(mix(picture.seed ^ (u64::from(y) << 20 | u64::from(x)))) - 0.5;
            pixels.extend(colour.map(|channel| (channel + grain * 2. * picture.grain).clamp(0., 255.) as u8));
        }
    }
    pixels
}

impl Scene<'_> {
    fn colour(&self, x: usize, y: f32, skylines: &[Vec<f32>]) -> Rgb {
        if y < self.horizon {
            return self.above_water(x, y, skylines);
        }
        // Water mirrors what stands above it, stretched and broken up by ripples that grow towards the viewer.
        let depth = (y - self.horizon) / (self.height - self.horizon);
        let ripple = noise(self.seed ^ 7, x as f32 * (9. - 5. * depth) / self.width, y * (0.55 - 0.35 * depth)) - 0.5;
        let mirrored_y = (self.horizon - (y - self.horizon) * 1.1 - ripple * 26. * (0.2 + depth)).max(0.);
        let shift = ripple * 60. * depth;
        let mirrored_x = (x as f32 + shift).clamp(0., self.width - 1.) as usize;
        let mirrored = self.above_water(mirrored_x, mirrored_y.min(self.horizon - 1.), skylines);
        let water = blend(mirrored, self.light.water, 0.34 + 0.36 * depth);
        scale(water, 0.9 + 0.28 * ripple)
    }

    fn above_water(&self, x: usize, y: f32, skylines: &[Vec<f32>]) -> Rgb {
        for (ridge, skyline) in self.ridges.iter().zip(skylines).rev() {
            let top = skyline[x];
            if y >= top {
                // Rock and scrub: light from above, and texture down to a pixel or two.
                let below = ((y - top) / (self.height * 0.22)).min(1.);
                let texture = fractal(ridge.seed ^ 3, x as f32 * 0.043, y * 0.061 + x as f32 * 0.017, 4);
                let mist = blend(ridge.colour, self.light.horizon, 0.22 * below);
                return scale(mist, 0.7 + 0.62 * texture);
            }
        }
        let up = y / self.horizon;
        let sky = blend(self.light.zenith, self.light.horizon, up * up * (3. - 2. * up));
        let (u, v) = (x as f32 * 3.2 / self.width, y * 7. / self.horizon);
        let cover = fractal(self.seed, u, v, 5);
        let cloud = ((cover - (0.75 - 0.35 * self.clouds)) * 4.).clamp(0., 1.);
        let sky = blend(sky, self.light.cloud, cloud * 0.75);
        let (sun_x, sun_y, radius) = self.sun;
        let (dx, dy) = (x as f32 - sun_x, y - sun_y);
        let distance = (dx * dx + dy * dy) / (radius * radius);
        let glow = 1. / (1. + distance * 0.12);
        let disc = (1.6 - distance * 0.6).clamp(0., 1.);
        blend(sky, self.light.sun, (glow * 0.7).max(disc * (1. - 0.6 * cloud)))
    }
}

fn skyline(ridge: &Ridge, width: u16) -> Vec<f32> {
    (0..width)
        .map(|x| ridge.base - ridge.amplitude * (fractal(ridge.seed, f32::from(x) * ridge.frequency, 0.5, 6) - 0.35))
        .collect()
}

/// Sum of `octaves` of value noise, each twice as fine and half as strong; about 0 to 1.
fn fractal(seed: u64, x: f32, y: f32, octaves: u32) -> f32 {
    let (mut sum, mut strength, mut frequency) = (0., 0.5, 1.);
    for octave in 0..octaves {
        sum += strength * noise(seed.wrapping_add(u64::from(octave)), x * frequency, y * frequency);
        strength *= 0.5;
        frequency *= 2.;
    }
    sum
}

/// Value noise: random values on the integer lattice, smoothly interpolated. 0 to 1.
fn noise(seed: u64, x: f32, y: f32) -> f32 {
    let (column, row) = (x.floor(), y.floor());
    let smooth = |t: f32| t * t * (3. - 2. * t);
    let (u, v) = (smooth(x - column), smooth(y - row));
    let (column, row) = (column as i64 as u64, row as i64 as u64);
    let at = |dx: u64, dy: u64| {
        let point = (column.wrapping_add(dx) << 32) ^ (row.wrapping_add(dy) & 0xFFFF_FFFF);
        unit(mix(seed ^ point))
    };
    let top = at(0, 0) * (1. - u) + at(1, 0) * u;
    let bottom = at(0, 1) * (1. - u) + at(1, 1) * u;
    top * (1. - v) + bottom * v
}

fn blend(from: Rgb, to: Rgb, share: f32) -> Rgb {
    [0, 1, 2].map(|i| from[i] * (1. - share) + to[i] * share)
}

fn scale(colour: Rgb, factor: f32) -> Rgb {
    colour.map(|channel| channel * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Picture = Picture { width: 330, height: 220, quality: 80, grain: 8., light: 0, seed: 5 };

    #[test]
    fn a_seed_gives_one_file_and_another_seed_another() {
        let file = jpeg(&SMALL);
        assert_eq!(file, jpeg(&SMALL));
        assert_ne!(file, jpeg(&Picture { seed: 6, ..SMALL }));
        assert!(file.starts_with(&[0xFF, 0xD8, 0xFF]) && file.ends_with(&[0xFF, 0xD9]), "start and end of image");
    }

    #[test]
    fn grain_is_what_makes_the_files_large() {
        assert!(jpeg(&SMALL).len() > jpeg(&Picture { grain: 0., ..SMALL }).len() * 5 / 4);
    }
}
