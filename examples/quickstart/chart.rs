//! A chart for the terminal.

use std::fmt::Write;

const WIDTH: usize = 72;
const HEIGHT: usize = 12;

/// Draws values as columns; `^` below a column says that a mark falls into it.
pub(crate) fn saw_tooth(values: &[u64], marks: &[usize], limit: u64) -> String {
    if values.is_empty() {
        return String::new();
    }
    let columns = WIDTH.min(values.len());
    let first = |column: usize| column * values.len() / columns;
    // The largest value of a column: what did not fit must not be smoothed away.
    let tops: Vec<u64> = (0..columns)
        .map(|column| values.get(first(column)..first(column + 1)).unwrap_or_default())
        .map(|column| column.iter().max().copied().unwrap_or(0))
        .collect();
    let top = tops.iter().max().copied().unwrap_or(0).max(limit).max(1);
    let height = |value: u64| (value * HEIGHT as u64 * 8).div_ceil(top);

    let mut chart = String::new();
    for row in (0..HEIGHT as u64).rev() {
        let label = top * (row + 1) / HEIGHT as u64;
        let _ = write!(chart, "{label:>7} |");
        for value in &tops {
            chart.push(block(height(*value).saturating_sub(row * 8)));
        }
        chart.truncate(chart.trim_end().len());
        chart.push('\n');
    }
    let _ = writeln!(chart, "{:>7} +{}", 0, "-".repeat(columns));
    let marked =
        |column| marks.iter().any(|mark| (first(column)..first(column + 1)).contains(mark));
    let line: String = (0..columns).map(|column| if marked(column) { '^' } else { ' ' }).collect();
    let _ = writeln!(chart, "{:>8} {} ^ compacted", "", line.trim_end());
    chart
}

fn block(eighths: u64) -> char {
    match eighths {
        0 => ' ',
        1 => '▁',
        2 => '▂',
        3 => '▃',
        4 => '▄',
        5 => '▅',
        6 => '▆',
        7 => '▇',
        _ => '█',
    }
}
