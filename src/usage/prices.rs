//! What models cost.

use std::collections::BTreeMap;

use super::{Cost, TokenUsage};

/// What a model costs, for a million tokens each.
///
/// # Example
///
/// ```
/// use session_compaction::{Cost, Price, TokenUsage};
///
/// let price = Price::new(Cost::from_dollars(0.25), Cost::from_dollars(2.0))
///     .with_cached(Cost::from_dollars(0.025));
/// let usage = TokenUsage::new(10_000, 500).with_cached(8_000);
/// assert_eq!(price.of(usage).to_string(), "$0.001700");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// Of prompts, but for what the provider had cached.
    pub input: Cost,
    /// Of answers.
    pub output: Cost,
    /// Of what the provider had cached of prompts.
    pub cached: Cost,
}

impl Price {
    /// Creates a price, where cached tokens cost as much as others.
    #[must_use]
    pub const fn new(input: Cost, output: Cost) -> Self {
        Self { input, output, cached: input }
    }

    /// Sets what cached tokens cost.
    #[must_use]
    pub const fn with_cached(mut self, cached: Cost) -> Self {
        self.cached = cached;
        self
    }

    /// Returns what a call costs.
    #[must_use]
    pub fn of(self, usage: TokenUsage) -> Cost {
        let cached = usage.cached.min(usage.input);
        Cost::per_million(usage.input - cached, self.input)
            + Cost::per_million(cached, self.cached)
            + Cost::per_million(usage.output, self.output)
    }
}

/// What the host pays for its models. None are built in: they change, and a
/// wrong price is worse than none.
///
/// Names are those that usage events carry, letter by letter: a dated name of
/// a model takes an entry of its own.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Cost, Price, Prices, SessionManager, TokenUsage};
///
/// let prices = Prices::new()
///     .with("gpt-5-mini", Price::new(Cost::from_dollars(0.25), Cost::from_dollars(2.0)));
/// assert_eq!(prices.cost("gpt-5", TokenUsage::new(1, 1)), None);
/// let sessions = SessionManager::builder().prices(prices).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a model, or changes its price.
    #[must_use]
    pub fn with(mut self, model: impl Into<String>, price: Price) -> Self {
        self.0.insert(model.into(), price);
        self
    }

    /// Returns what a call of a model costs, where its price is known.
    #[must_use]
    pub fn cost(&self, model: &str, usage: TokenUsage) -> Option<Cost> {
        Some(self.0.get(model)?.of(usage))
    }
}
