//! What a check is: its level, the revisions it belongs to, and how firmly a failure of it is told.
//! The checks themselves are in the tables.

use super::id::CheckId;
use super::status::Status;
use crate::mcp;
use crate::names::names;

names! {
    /// How strongly the specification demands it.
    pub enum Level {
        /// Demanded, or forbidden.
        Must = "MUST",
        /// Demanded of who uses the feature, which nobody has to use.
        Conditional = "cond-MUST",
        /// Recommended, or recommended against.
        Should = "SHOULD",
        /// Left open.
        May = "MAY",
        /// Not demanded: told because it is good to know.
        Info = "INFO",
    }
}

impl Level {
    /// Whether it counts in a server's score.
    #[must_use]
    pub const fn is_demanded(self) -> bool {
        matches!(self, Self::Must | Self::Conditional)
    }

    /// What it means not to hold to it.
    #[must_use]
    pub const fn broken(self) -> Status {
        match self {
            Self::Must | Self::Conditional => Status::Fail,
            Self::Should | Self::May | Self::Info => Status::Warn,
        }
    }
}

names! {
    /// A dated revision of the specification.
    pub enum Revision {
        /// The first, with HTTP+SSE.
        V2024_11 = "2024-11-05",
        /// Streamable HTTP, authorization, batches.
        V2025_03 = "2025-03-26",
        /// Resource metadata, the revision header, no batches.
        V2025_06 = "2025-06-18",
        /// Resumable streams, OpenID discovery.
        V2025_11 = "2025-11-25",
        /// No `initialize`, no session.
        V2026_07 = "2026-07-28",
    }
}

impl Revision {
    /// The newest that has `initialize`.
    pub const NEWEST_LEGACY: Self = Self::V2025_11;

    /// Whether requests describe themselves, and no handshake comes first.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self.name() >= mcp::MODERN_VERSION
    }
}

names! {
    /// What has to be asked for a check.
    pub enum Part {
        /// Nothing further: the `initialize` exchange shows it.
        Opening = "initialize",
        /// `server/discover`.
        Discovery = "discover",
        /// A request that ordinary clients make too.
        FollowUp = "follow-up",
        /// A request that is wrong on purpose. Never sent to servers that are not one's own.
        Intrusive = "intrusive",
    }
}

/// A check of the catalogue, described. What is demanded is the id's own [`CheckId::about`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its number. Two checks may share one.
    pub number: u8,
    /// Its name.
    pub id: CheckId,
    /// What has to be asked for it.
    pub part: Part,
    /// How strongly it is demanded.
    pub level: Level,
    /// The first revision it belongs to.
    pub first: Revision,
    /// The last revision it belongs to.
    pub last: Revision,
    /// Where the specification has it, in its own headings.
    pub section: &'static str,
    /// Requests it takes at most, beyond those of the checks before it.
    pub cost: u8,
    /// How it is seen.
    pub seen: &'static str,
    /// What an operator can do about a failure.
    pub remedy: &'static str,
    /// Where the specification contradicts itself or is not plain: how it is read here.
    pub position: Option<&'static str>,
}

impl Rule {
    /// Whether it belongs to a revision.
    #[must_use]
    pub fn covers(&self, revision: Revision) -> bool {
        (self.first..=self.last).contains(&revision)
    }

    /// The revisions it belongs to, in words.
    #[must_use]
    pub fn revisions(&self) -> String {
        match (self.first, self.last) {
            (first, last) if first == last => first.name().to_owned(),
            (Revision::V2024_11, Revision::V2026_07) => "all".to_owned(),
            (first, last) => format!("{first} to {last}"),
        }
    }

    /// Whether it is only for servers of one's own.
    #[must_use]
    pub fn is_intrusive(&self) -> bool {
        self.part == Part::Intrusive
    }
}
