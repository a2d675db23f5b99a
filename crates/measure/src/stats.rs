//! temporary
/// tmp
pub fn percentile_of_sorted(v: &[f64], q: f64) -> f64 { v[((q * v.len() as f64).ceil() as usize).clamp(1, v.len()) - 1] }
/// tmp
pub fn median_interval(v: &[f64], _s: u64) -> (f64, f64, f64) {
    let mut v = v.to_vec();
    v.sort_by(f64::total_cmp);
    if v.is_empty() { return (0.0, 0.0, 0.0); }
    (v[v.len() / 2], v[0], v[v.len() - 1])
}
