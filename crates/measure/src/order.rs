//! In which order runs are made.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// `kinds` kinds of run, `repeats` times each: every repeat has each kind once, in an order that `seed` draws anew.
///
/// Neighbours in time compare fairly however a path drifts over minutes, and no kind is always the one that follows another.
/// The result holds (kind, repeat), both from 0.
pub fn interleaved(kinds: usize, repeats: u32, seed: u64) -> Vec<(usize, u32)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut order = Vec::new();
    for repeat in 0..repeats {
        let mut block: Vec<usize> = (0..kinds).collect();
        // Fisher and Yates; the bias of the product's high half is below kinds / 2^64.
        for last in (1..block.len()).rev() {
            let other = ((u128::from(random.next_u64()) * (last as u128 + 1)) >> 64) as usize;
            block.swap(last, other);
        }
        order.extend(block.into_iter().map(|kind| (kind, repeat)));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repeat_has_every_kind_once_and_a_seed_gives_one_order() {
        let order = interleaved(3, 40, 7);
        for (repeat, block) in order.chunks(3).enumerate() {
            let mut kinds: Vec<usize> = block.iter().map(|(kind, _)| *kind).collect();
            kinds.sort_unstable();
            assert_eq!(kinds, [0, 1, 2]);
            assert!(block.iter().all(|(_, number)| *number == repeat as u32));
        }
        assert_eq!(order, interleaved(3, 40, 7));
        assert_ne!(order, interleaved(3, 40, 8));
    }

    #[test]
    fn each_kind_comes_first_about_as_often() {
        let firsts = interleaved(2, 1_000, 1).chunks(2).filter(|block| block[0].0 == 0).count();
        assert!((430..=570).contains(&firsts), "{firsts} of 1000");
    }
}
