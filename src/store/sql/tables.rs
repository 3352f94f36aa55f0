//! The names of tables, and the scripts that create them.

use std::{borrow::Cow, fmt};

use sqlx::{
    AssertSqlSafe, SqlSafeStr as _,
    migrate::{Migration, Migrator},
};

use crate::error::{Error, Result};

/// What the names of a store's tables begin with: letters, digits and
/// underscores, so that it can stand in a statement as it is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Prefix(String);

impl Prefix {
    /// The longest: `usage_of_sessions` and the names of indexes come after
    /// it, and PostgreSQL's names end at 63 bytes.
    pub(crate) const MAX_LEN: usize = 32;

    pub(crate) fn new(text: &str) -> Result<Self> {
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let first = text.chars().next().is_none_or(|c| !c.is_ascii_digit());
        // SQLite keeps these names for itself.
        let reserved = text.starts_with("sqlite_") || text.starts_with("pg_");
        if text.len() > Self::MAX_LEN || !first || reserved || !text.chars().all(letters) {
            return Err(Error::config(
                "store",
                "table_prefix",
                format!(
                    "{text:?} is not allowed; use at most {} lower-case letters, digits and \
                     underscores, no digit first, and neither sqlite_ nor pg_",
                    Self::MAX_LEN
                ),
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Returns scripts with the prefix in place of `{prefix}`, to be run once a
/// prefix.
pub(crate) fn migrator(scripts: &Migrator, prefix: &Prefix) -> Migrator {
    let prefixed = scripts.iter().map(|script| {
        // The prefix is of letters that need no quotes.
        let sql = AssertSqlSafe(script.sql.as_str().replace("{prefix}", &prefix.0)).into_sql_str();
        let Migration { version, ref description, migration_type, no_tx, .. } = *script;
        Migration::new(version, description.clone(), migration_type, sql, no_tx)
    });
    let mut migrator = Migrator::with_migrations(prefixed.collect());
    migrator.dangerous_set_table_name(Cow::Owned(format!("{prefix}migrations")));
    migrator
}
