//! What can go wrong between a store and its database.

use sqlx::migrate::MigrateError;

use crate::error::Error;

/// Why a store could not do something. Mapped once, by [`Failure::at`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What is stored cannot be read.
    #[error("column {column} cannot be read: {problem}; was it changed by another program?")]
    Column { column: &'static str, problem: String },
    #[error("the database reported an error")]
    Database(#[from] sqlx::Error),
    #[error("the tables could not be created or brought up to date")]
    Migrate(#[from] MigrateError),
    /// A number that a column cannot hold.
    #[error("{column} is {value}, and a column holds at most {max}", max = i64::MAX)]
    Range { column: &'static str, value: u64 },
    /// An answer rather than a failure: the call is not allowed.
    #[error(transparent)]
    Refused(#[from] Error),
}

impl Failure {
    /// Returns the crate's error: which store could not do what.
    pub(crate) fn at(self, backend: &'static str, action: impl Into<String>) -> Error {
        match self {
            Self::Refused(error) => error,
            other => Error::store(backend, action, other),
        }
    }
}
