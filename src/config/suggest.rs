//! What someone may have meant by a name that does not exist.

const FAR: usize = 4;

/// Says that a name is unknown, which known names are near, and all that are
/// known.
pub(super) fn unknown(what: &str, name: &str, known: &[String]) -> String {
    let mut near: Vec<_> = known
        .iter()
        .map(|candidate| (distance(name, candidate), candidate.as_str()))
        .filter(|(distance, _)| *distance < FAR)
        .collect();
    near.sort_unstable();
    let near: Vec<_> = near.into_iter().map(|(_, candidate)| candidate).take(3).collect();
    let hint = if near.is_empty() {
        String::new()
    } else {
        format!(", did you mean {}", near.join(" or "))
    };
    format!("unknown {what}{hint}; allowed are {}", known.join(", "))
}

/// Counts the letters to insert, remove or replace, up to a bound: names that
/// differ much in length are not compared.
fn distance(left: &str, right: &str) -> usize {
    if left.len().abs_diff(right.len()) >= FAR {
        return FAR;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.bytes().enumerate() {
        let mut corner = line;
        let mut before = line + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(right.bytes()) {
            let replaced = corner + usize::from(from != to);
            corner = *cell;
            *cell = replaced.min(before + 1).min(*cell + 1);
            before = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or(FAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("timeout", "timeout"), 0);
        assert_eq!(distance("timeot", "timeout"), 1);
        assert_eq!(distance("tiemout", "timeout"), 2);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("a", "timeout"), FAR);
    }
}
