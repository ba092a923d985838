//! The table of checks, in four parts by what has to be asked.

mod discovery;
mod follow_up;
mod intrusive;
mod opening;

use super::id::CheckId;
use super::rule::Rule;

/// Every rule, by number.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        opening::RULES,
        discovery::RULES,
        follow_up::RULES,
        intrusive::RULES,
    ]
    .into_iter()
    .flatten()
}

impl CheckId {
    /// What there is to say of this check.
    ///
    /// # Panics
    /// Never: the tables have every check, and a test reads them.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        rules()
            .nth(self as usize)
            .expect("the tables have the checks in the order of their names, and a test reads them")
    }
}
