//! Two lists -> the rows of the newer one that are new, or that name another endpoint than before: what a change of a
//! list has to answer for.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::list::Format;
use crate::outcome::Transport;
use crate::roll::{Aim, Entry, Freezer};
use crate::row::inert;
use crate::story::{self, Known};
use crate::target::Target;
use crate::wrap::wrap;

use super::lists;
use super::options::Asking;

/// How wide what is told of a row is, in columns.
const WIDTH: usize = 80;

/// How a row differs from the older list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The older list has neither its endpoint nor its name.
    New,
    /// The older list has its name with another endpoint.
    Changed,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
        }
    }
}

/// A row that a change brings.
pub(super) struct Change {
    pub(super) kind: Kind,
    pub(super) entry: Entry,
}

/// What a change of a list brings.
pub(super) struct Changes {
    /// The rows, in the order of the newer list.
    pub(super) rows: Vec<Change>,
    /// Their endpoints.
    pub(super) targets: Vec<Target>,
    /// Rows of the newer list.
    of: usize,
}

impl Changes {
    /// What was compared, in a sentence.
    pub(super) fn told(&self) -> String {
        let count = |kind: Kind| self.rows.iter().filter(|it| it.kind == kind).count();
        format!(
            "{} rows: {} new, {} with another endpoint; the others were not asked",
            self.of,
            count(Kind::New),
            count(Kind::Changed)
        )
    }
}

/// What a row asks for: the same of two rows is the same request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Wanted {
    Endpoint(String, Option<Transport>),
    /// An address that cannot be asked, as it is listed; what cannot even be read, in words without its place.
    Nothing(String),
}

impl Wanted {
    fn of(entry: &Entry) -> Self {
        match &entry.aim {
            Aim::Endpoint { address, .. } | Aim::LeftOut { address, .. } => {
                Self::Endpoint(address.to_string(), entry.transport)
            }
            Aim::Unprobeable { .. } => Self::Nothing(entry.url.clone()),
        }
    }
}

/// Compares two lists.
///
/// # Errors
/// When there is not one newer list, or a list cannot be read or understood.
pub(super) fn changes(
    old: &Path,
    new: &[String],
    format: Option<Format>,
    asking: &Asking,
) -> Result<Changes> {
    let [new] = new else {
        bail!(
            "--changed-from compares with one newer list, and {} are named",
            new.len()
        );
    };
    if new.contains("://") {
        bail!(
            "--changed-from compares two lists, and {} is an address",
            crate::target::redacted_raw(new)
        );
    }
    let (before, _) = read(old, format, asking)?;
    let (after, targets) = read(Path::new(new), format, asking)?;
    let mut left: HashMap<Wanted, usize> = HashMap::new();
    for entry in &before {
        *left.entry(Wanted::of(entry)).or_default() += 1;
    }
    let names: HashSet<&str> = before.iter().map(|it| it.name.as_str()).collect();
    let of = after.len();
    let mut rows = Vec::new();
    for entry in after {
        let wanted = Wanted::of(&entry);
        let is_known = match (&wanted, left.get_mut(&wanted)) {
            (_, None | Some(0)) => false,
            (Wanted::Endpoint(..), Some(_)) => true,
            // Rows that name nothing are told apart by their number alone.
            (Wanted::Nothing(_), Some(count)) => {
                *count -= 1;
                true
            }
        };
        if !is_known {
            let is_named = !entry.name.is_empty() && names.contains(entry.name.as_str());
            let kind = if is_named { Kind::Changed } else { Kind::New };
            rows.push(Change { kind, entry });
        }
    }
    let asked: HashSet<u32> = rows
        .iter()
        .filter_map(|it| match it.entry.aim {
            Aim::Endpoint { number, .. } => Some(number),
            Aim::LeftOut { .. } | Aim::Unprobeable { .. } => None,
        })
        .collect();
    let targets = targets
        .into_iter()
        .filter(|it| asked.contains(&it.endpoint))
        .collect();
    Ok(Changes { rows, targets, of })
}

/// A list's rows and endpoints.
fn read(path: &Path, format: Option<Format>, asking: &Asking) -> Result<(Vec<Entry>, Vec<Target>)> {
    let mut freezer = Freezer::new(asking.policy());
    let mut entries = Vec::new();
    let paths = [PathBuf::from(path)];
    lists::freeze(&paths, format, None, &mut freezer, |entry| {
        entries.push(entry);
        Ok(())
    })?;
    Ok((entries, freezer.into_targets()))
}

/// What became of a row: a line, and where it is not good what there is to do about it.
pub(super) fn line(change: &Change, known: &Known<'_>, is_good: bool) -> String {
    let row = known.row;
    let name = if row.name.is_empty() {
        format!("line {}", change.entry.line)
    } else {
        row.name.clone()
    };
    let mut text = format!(
        "{}: {}, {} ({}): {name} {}\n",
        if is_good { "ok" } else { "FAILED" },
        change.kind.name(),
        row.outcome,
        row.detail,
        row.url,
    );
    text = inert(text.trim_end());
    text.push('\n');
    if !is_good {
        for said in [
            row.outcome.about(),
            &story::change_first(row, known.checked),
        ] {
            text.push_str(&wrap(&inert(said), WIDTH, "    "));
            text.push('\n');
        }
    }
    text
}
