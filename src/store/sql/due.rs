//! Which sessions are due, as a condition.

/// The condition of a row of `sessions` whose compaction is due: `$1` is the
/// time; `$2`, `$3` and `$4` the limits for messages, characters and tokens,
/// each of which may be null.
///
/// A comparison with null is neither true nor false, so that what has no limit
/// is never above it.
pub(crate) const DUE: &str = "\
    NOT dormant \
    AND (lease_until IS NULL OR lease_until <= $1) \
    AND (pause_millis IS NULL OR pause_millis <= $1) \
    AND (pause_tokens IS NULL OR pause_tokens <= (window_tokens + carried_tokens) / 1024) \
    AND (marked OR CASE WHEN own_limits \
        THEN window_messages > limit_messages OR window_chars > limit_chars \
            OR (window_tokens + carried_tokens) / 1024 > limit_tokens \
        ELSE window_messages > $2 OR window_chars > $3 \
            OR (window_tokens + carried_tokens) / 1024 > $4 END)";
