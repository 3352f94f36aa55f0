//! Log lines that are safe to print and name no one.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A session's name in log lines: the first 8 characters of a key that is an
/// identifier without separators, else 8 hex digits of its hash. So a line
/// holds neither a person's address nor a terminal escape.
pub(super) fn label(key: &str) -> String {
    if key.chars().all(|c| c.is_ascii_alphanumeric()) {
        return key.chars().take(8).collect();
    }
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    format!("{:08x}", hasher.finish() & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn labels_tell_sessions_apart_and_nothing_else() {
        assert_eq!(label("abc12345def"), "abc12345");
        let hashed = label("telegram:alice@example.org\u{1b}[2J\n");
        assert_eq!(hashed.len(), 8);
        assert!(hashed.chars().all(|c| c.is_ascii_hexdigit()));
        assert_ne!(hashed, label("telegram:bob@example.org"));
    }
}
