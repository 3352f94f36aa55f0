//! What model calls and compactions use: tokens, money, and the events and
//! totals that are kept of them. Arithmetic saturates everywhere.

mod cost;
mod event;
mod prices;
mod tokens;
mod totals;

pub use self::{
    cost::Cost,
    event::{UsageEvent, UsageKind, UsageOutcome},
    prices::{Price, Prices},
    tokens::TokenUsage,
    totals::{Counter, UsageTotals},
};
