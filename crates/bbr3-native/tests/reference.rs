//! The cells of native BBRv3 (revision A) that a faithful one is held against, in virtual time.

mod common;

use common::{dumbbell, reference_flow, Cell};

#[test]
fn probe() {
    for q in [17, 41, 83, 165, 330, 660] {
        let mut cell = Cell::new(dumbbell(q, 0.0), vec![reference_flow(1)]);
        println!("q {q}: {:?}", cell.measure());
    }
}
