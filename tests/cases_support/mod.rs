//! Plays one case on the crate and checks what came of it.

mod assertion;
mod bench;
mod case;
mod check;
mod compact;
mod config;
mod crate_api;
mod damage;
mod life;
mod model;
mod play;
mod record;
mod sent;
mod server;
#[path = "../common/wire.rs"]
mod wire;

use std::fmt;

pub(crate) use self::bench::watch_panics;
use self::{assertion::Assertion, case::Case, check::Check, play::Run};

/// Why a case did not pass.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    Failed(String),
    /// The file holds what the runner does not know: the run fails.
    Malformed(String),
    NotBuilt(&'static str),
    Skipped(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Malformed(why) => write!(f, "malformed: {why}"),
            Self::NotBuilt(what) => write!(f, "not built yet: {what}"),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

impl From<session_compaction::Error> for Stop {
    fn from(error: session_compaction::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A case file that was read.
#[derive(Clone, Debug)]
pub(crate) struct Loaded(Case);

impl Loaded {
    pub(crate) fn parse(text: &str) -> Result<Self, Stop> {
        Case::parse(text).map(Self).map_err(Stop::Malformed)
    }

    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    pub(crate) fn title(&self) -> &str {
        &self.0.title
    }

    /// Plays the case on every store that it asks for.
    pub(crate) fn run(&self) -> Result<(), Stop> {
        for store in bench::stores(&self.0) {
            bench::on_runtime(&self.0, store, play_and_check)?;
        }
        Ok(())
    }
}

async fn play_and_check(run: Run) -> Result<(), Stop> {
    let mut ended = run.play().await?;
    if ended.is_empty() {
        ended.push(run);
    }
    let mut problems = Vec::new();
    for run in ended {
        let check = Check::of(&run).await?;
        for assertion in &run.case.asserts {
            match check.holds(assertion).await {
                Ok(()) => {}
                Err(Stop::Failed(why)) => {
                    problems.push(format!("{}{assertion:?}: {why}", run.label()));
                }
                Err(other) => return Err(other),
            }
        }
        problems.extend(check.always());
    }
    if problems.is_empty() { Ok(()) } else { Err(Stop::Failed(problems.join("; "))) }
}

/// What a case asks of the requests to the model, so that they must be real ones.
fn looks_at_requests(case: &Case) -> bool {
    case.asserts.iter().any(|assertion| {
        matches!(
            assertion,
            Assertion::LlmRequestContains(_)
                | Assertion::LlmRequestContainsRegex(_)
                | Assertion::LlmRequestFenced(_)
                | Assertion::LlmRequestFieldAbsent(_)
                | Assertion::LlmRequestNoToolRoles(_)
                | Assertion::LlmRequestTokensMax(_)
                | Assertion::LlmRequestValidFor(_)
        )
    })
}
