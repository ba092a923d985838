//! What became of a check at one server: held to, not held to, not a matter of this server, or not seen.

use crate::names::names;

names! {
    /// Why a check is no matter of a server's.
    pub enum Outside {
        /// It belongs to other revisions than the one that was negotiated.
        Revision = "revision",
        /// It is for servers of the other era of the protocol.
        Era = "era",
        /// It is for another transport.
        Transport = "transport",
        /// It is for the other framing: one JSON object, or an event stream.
        Framing = "framing",
        /// It is for the other kind of response: a result, or an error.
        Response = "response",
        /// No session was given.
        Session = "session",
        /// The capability it is about is not declared.
        Capability = "capability",
        /// The member it is about does not stand there, and need not.
        Member = "member",
        /// The server is not gated.
        Gate = "gate",
        /// The server is gated by other means than OAuth.
        Scheme = "scheme",
        /// It is about versions, and there is no difference over one.
        Version = "version",
    }
}

names! {
    /// Why it is not known whether a server holds to a check.
    pub enum Missing {
        /// Credentials are wanted first.
        Gated = "gated",
        /// The answer did not come.
        TimedOut = "timed_out",
        /// The requests for one endpoint were used up.
        Budget = "budget",
        /// It was not asked.
        NotAsked = "not_asked",
        /// What came is no message of the protocol.
        NoMessage = "no_message",
        /// What it would be seen by failed, and has a check of its own.
        Basis = "basis",
    }
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The server holds to it.
    Pass,
    /// The server breaks a demand.
    Fail,
    /// The server leaves a recommendation, or the specification contradicts itself about it.
    Warn,
    /// It is no matter of this server's.
    NotApplicable(Outside),
    /// It is not known.
    NotObserved(Missing),
}

impl Status {
    /// The name as it is written in every output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::NotApplicable(_) => "not_applicable",
            Self::NotObserved(_) => "not_observed",
        }
    }

    /// Why it was not decided, where it was not.
    #[must_use]
    pub const fn why(self) -> Option<&'static str> {
        match self {
            Self::Pass | Self::Fail | Self::Warn => None,
            Self::NotApplicable(why) => Some(why.name()),
            Self::NotObserved(why) => Some(why.name()),
        }
    }

    /// Whether it says something of the server.
    #[must_use]
    pub const fn is_decided(self) -> bool {
        matches!(self, Self::Pass | Self::Fail | Self::Warn)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
