//! Writes `docs/knobs.md` out of the catalogue: `cargo run -p linerate-tuning --example reference`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/knobs.md");
    std::fs::write(file, tuning::catalogue::reference(tuning::Catalogue::builtin()))
}
