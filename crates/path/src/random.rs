//! One random stream per stage, all from one seed.
//!
//! Streams are xoshiro256++ sequences 2^128 draws apart (its published jump), so a stage that draws more or less does not
//! move what another stage sees: adding jitter does not change which packets are lost.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A part of the link that needs randomness. The order is part of what a seed means: append, never reorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Duplicate,
    Loss,
    LossOfCopies,
    Queue,
    Jitter,
    Reorder,
}

/// A stage's own random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(crate) fn new(seed: u64, stage: Stage) -> Self {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..stage as u8 {
            generator.jump();
        }
        Self(generator)
    }

    /// Uniform over all of `u64`.
    #[inline]
    pub(crate) fn draw(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform from 0 to `most`, both included, up to a bias of `most` / 2^64.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.draw()) * (u128::from(most) + 1)) >> 64) as u64
    }
}
