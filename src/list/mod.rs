//! Whatever list someone has -> listings: one row in, one row out. Bytes in, rows out; nothing is opened
//! here, and nothing is dropped without being counted. Whether a listing can be asked is `target`'s affair.

mod client;
mod codex;
mod detect;
mod docker;
mod document;
mod input;
mod markdown;
pub mod page;
mod records;
mod registry;
mod rows;
mod scan;
mod table;
mod text;
mod version;

use std::fmt;
use std::io::{self, BufRead};

use crate::names::names;
use crate::outcome::Transport;
use crate::target;
use rows::Rows;

names! {
    /// What a list is written in.
    pub enum Format {
        /// A table with a header: `url` (or `endpoint`, `remote_url`, `server_url`), and any other columns.
        Csv = "csv",
        /// One address a line, a name and a tab in front where wanted; `#` starts a comment.
        Text = "text",
        /// One JSON value a line: an address, an object that has one, a registry entry or a page of them.
        Ndjson = "ndjson",
        /// Pages of the MCP registry, or a dump of them of any age.
        Registry = "registry",
        /// A JSON array of addresses, or of objects that have one.
        Json = "json",
        /// The `server.json` of one server.
        ServerJson = "server-json",
        /// The JSON configuration of an MCP client.
        ClientConfig = "client-config",
        /// The `config.toml` of Codex.
        Codex = "codex",
        /// The registry of `ToolHive`.
        ToolHive = "toolhive",
        /// A `server.yaml` of Docker's MCP registry, or its catalogue.
        Docker = "docker",
        /// The tables of a Markdown page; an endpoint stands in backticks, or is the row's first link.
        Markdown = "markdown",
    }
}

impl Format {
    /// What the `line` of a row counts in this format: `line`, or `entry` where lines mean nothing.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Csv | Self::Text | Self::Ndjson | Self::Codex | Self::Docker | Self::Markdown => {
                "line"
            }
            Self::Registry
            | Self::Json
            | Self::ServerJson
            | Self::ClientConfig
            | Self::ToolHive => "entry",
        }
    }
}

names! {
    /// The credentials that a list declares an endpoint to want.
    pub enum DeclaredAuth {
        /// No header to fill in.
        None = "none",
        /// Headers that may be left out.
        Optional = "optional",
        /// A header that must be filled in.
        Required = "required",
    }
}

names! {
    /// How a registry has a server's entry.
    pub enum Status {
        /// In use.
        Active = "active",
        /// Superseded.
        Deprecated = "deprecated",
        /// Taken down, mostly for spam or malware: not to be asked.
        Deleted = "deleted",
    }
}

/// The transport that a list declares, under any of the names in use.
#[must_use]
pub fn transport(declared: &str) -> Option<Transport> {
    match declared.trim().to_ascii_lowercase().as_str() {
        "streamable-http" | "streamable_http" | "streamablehttp" | "streamable" | "http" => {
            Some(Transport::StreamableHttp)
        }
        "sse" | "http+sse" => Some(Transport::HttpSse),
        _ => None,
    }
}

/// One input row.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The list it came from: [`Source::number`].
    pub source: u32,
    /// Where in it, from 1, in the [unit](Format::unit) of its format.
    pub line: u64,
    /// The server's name; may be empty.
    pub name: String,
    /// The address as listed.
    pub url: String,
    /// The address with its placeholders filled from the listing's own defaults, where that fills them all.
    pub filled: Option<String>,
    /// The transport it declares.
    pub transport: Option<Transport>,
    /// The credentials it declares.
    pub declared_auth: Option<DeclaredAuth>,
    /// How the registry has it.
    pub status: Option<Status>,
    /// The cells of the input's own further columns, in the order of [`Contents::extra_columns`].
    pub extra: Vec<String>,
    /// The headers that a client is configured to send. They are secrets: never written.
    pub headers: Vec<(String, String)>,
}

/// What may be a secret is left out.
impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            source,
            line,
            name,
            url,
            filled,
            transport,
            declared_auth,
            status,
            extra,
            headers,
        } = self;
        let headers: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Listing")
            .field("source", source)
            .field("line", line)
            .field("name", name)
            .field("url", &target::redacted_raw(url))
            .field("filled", &filled.as_deref().map(target::redacted_raw))
            .field("transport", transport)
            .field("declared_auth", declared_auth)
            .field("status", status)
            .field("extra", extra)
            .field("headers", &headers)
            .finish()
    }
}

/// A row that cannot be read. It is a row all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// Where in the list, from 1, in the [unit](Format::unit) of its format.
    pub line: u64,
    /// What is wrong with it and what to do, its place in front.
    pub why: String,
}

/// What a list holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A row.
    Listing(Listing),
    /// What should have been one.
    Bad(BadRow),
}

/// What was read, when all of it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The format it was in.
    pub format: Format,
    /// The names of the input's own further columns.
    pub extra_columns: Vec<String>,
    /// How many listings there were.
    pub listings: u64,
    /// How many rows could not be read.
    pub bad_rows: u64,
    /// How many servers, where one entry can list several addresses or none.
    pub servers: u64,
    /// How many of those list no remote address: packages, local commands.
    pub servers_without_remotes: u64,
    /// How many entries were left out for being older versions of a server in the list.
    pub older_versions: u64,
    /// How many servers do not say whether they are the latest version. Of several in a row under one
    /// name the latest was kept: by semantic version, or else by date of publication.
    pub latest_unknown: u64,
    /// Rows of Markdown tables that give no address.
    pub rows_without_address: u64,
    /// Where the registry's next page starts: the list is a part of one.
    pub next_cursor: Option<String>,
}

/// Why a list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The bytes could not be had.
    #[error("{name} cannot be read past line {line}: {source}; fetch or copy the file again")]
    Read {
        /// The list.
        name: String,
        /// The last line that was read.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// It breaks the grammar of its format.
    #[error("{name}, line {line}: {why}; mend the file, or name its format with --list-format")]
    Syntax {
        /// The list.
        name: String,
        /// Where.
        line: u64,
        /// How.
        why: String,
    },
    /// It is something else than a list, or than the list it was said to be.
    #[error("{name}, line {line}: found {found}; expected {expected}")]
    Shape {
        /// The list.
        name: String,
        /// Where.
        line: u64,
        /// What it is.
        found: String,
        /// What would do.
        expected: String,
    },
    /// A table without a column of addresses.
    #[error(
        "{name}, line {line}: no column holds the address; the columns are {}; call one of them {}",
        .found.join(", "),
        table::URL.join(", ")
    )]
    NoUrlColumn {
        /// The list.
        name: String,
        /// The line of the header.
        line: u64,
        /// The columns there are.
        found: Vec<String>,
    },
    /// Most entries are no servers: the list has a shape that we do not know.
    #[error(
        "{name}, {place}: {empty} of {entries} entries give no server; found {found}; expected {}",
        registry::EXPECTED
    )]
    MostlyEmpty {
        /// The list.
        name: String,
        /// Where the first such entry stands.
        place: String,
        /// How many there are.
        empty: u64,
        /// Of how many.
        entries: u64,
        /// What the first one is.
        found: String,
    },
    /// It is of a kind that is read in one piece, and too large for that.
    #[error(
        "{name} has more than {} MiB in one piece past line {line}; split it, or turn it into CSV or NDJSON",
        input::WHOLE >> 20
    )]
    TooLarge {
        /// The list.
        name: String,
        /// The last line that was read.
        line: u64,
    },
}

impl ListError {
    fn reading(name: &str, line: u64, source: io::Error) -> Self {
        let name = name.to_owned();
        if source.kind() == io::ErrorKind::FileTooLarge {
            Self::TooLarge { name, line }
        } else {
            Self::Read { name, line, source }
        }
    }
}

/// A list to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// What errors call it: a path, or `-`.
    pub name: &'a str,
    /// Its index among the lists of the run.
    pub number: u32,
    /// Its format, where someone said so; else the content tells.
    pub format: Option<Format>,
}

impl Source<'_> {
    /// Reads the list and gives its rows, in order. Tables, text, NDJSON and registry dumps of any length
    /// are read in bounded memory; gzip is undone, and a byte order mark read over.
    ///
    /// # Errors
    /// When it is no list. Rows given before that are no list either.
    pub fn read(
        &self,
        input: impl BufRead,
        each: &mut dyn FnMut(Item),
    ) -> Result<Contents, ListError> {
        let fail = |line, error| ListError::reading(self.name, line, error);
        let input = input::Input::open(input).map_err(|error| fail(0, error))?;
        let format = match self.format {
            Some(format) => format,
            None => detect::detect(&input).map_err(|found| ListError::Shape {
                name: self.name.to_owned(),
                line: 1,
                found: found.to_owned(),
                expected: "a list; save it as CSV, JSON or text".to_owned(),
            })?,
        };
        let mut rows = Rows::new(*self, format, each);
        match format {
            Format::Csv => table::read(input, &mut rows)?,
            Format::Text => text::read(input, &mut rows)?,
            Format::Markdown => markdown::read(input, &mut rows)?,
            Format::Docker => docker::read(input, &mut rows)?,
            Format::Codex => codex::read(input, &mut rows)?,
            Format::Ndjson => document::lines(input, &mut rows)?,
            Format::Registry
            | Format::Json
            | Format::ServerJson
            | Format::ClientConfig
            | Format::ToolHive => document::read(input, &mut rows)?,
        }
        rows.finish()
    }
}

#[cfg(test)]
mod tests;
