//! Statements, with the names of this store's tables.

use sqlx::AssertSqlSafe;

use crate::store::sql::Prefix;

/// Writes statements.
#[derive(Clone, Debug)]
pub(super) struct Sql(Prefix);

impl Sql {
    pub(super) const fn new(prefix: Prefix) -> Self {
        Self(prefix)
    }

    /// Returns a statement, with the prefix in place of `{p}`. What comes from
    /// outside is never part of a statement, but bound to it.
    pub(super) fn text(&self, statement: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(statement.replace("{p}", &self.0.to_string()))
    }
}

/// Returns `rows` times a row of so many bound values, numbered from 1 on.
pub(super) fn values(rows: usize, columns: usize) -> String {
    let mut text = String::new();
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ", (" });
        for column in 1..=columns {
            if column > 1 {
                text.push_str(", ");
            }
            text.push('$');
            text.push_str(&row.saturating_mul(columns).saturating_add(column).to_string());
        }
        text.push(')');
    }
    text
}

/// Splits rows into as few statements as their number allows, of few different
/// sizes, so that each stays prepared.
pub(super) fn batches<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    const SIZES: [usize; 4] = [64, 16, 4, 1];
    std::iter::from_fn(move || {
        let size = SIZES.into_iter().find(|size| *size <= rows.len())?;
        let (batch, rest) = rows.split_at_checked(size)?;
        rows = rest;
        Some(batch)
    })
}
