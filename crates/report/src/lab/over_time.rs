//! The local fraction over a run, as a row of bars.

use super::Slice;

/// Bars of growing height; a slice without accesses is a blank.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// At most `width` bars. Each stands for the same number of slices, whose accesses are summed.
#[must_use]
pub fn bars(slices: &[Slice], width: usize) -> String {
    let together = slices.len().div_ceil(width.max(1)).max(1);
    slices.chunks(together).map(bar).collect()
}

fn bar(slices: &[Slice]) -> char {
    let (mut local, mut all) = (0, 0);
    for (node, row) in slices.iter().flat_map(|s| s.accesses.iter().enumerate()) {
        local += row.get(node).unwrap_or(&0);
        all += row.iter().sum::<u64>();
    }
    if all == 0 {
        return ' ';
    }
    BARS[(local as f64 / all as f64 * (BARS.len() - 1) as f64).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_local_fraction_and_slices_are_joined() {
        let slice = |local: u64, remote: u64| Slice {
            end_seconds: 1.0,
            accesses: vec![vec![local, remote], vec![0, 0]],
            local_fraction: None,
        };
        let all = [slice(0, 9), slice(1, 1), slice(9, 0), slice(0, 0)];
        assert_eq!(bars(&all, 80), "▁▅█ ");
        assert_eq!(bars(&all, 2), "▂█");
        assert_eq!(
            (bars(&[], 80), bars(&all[..1], 0)),
            (String::new(), "▁".to_owned())
        );
    }
}
