//! Which of two versions of a server is the later one, for lists that do not mark the latest
//! (MCP registry, versioning).

use std::cmp::Ordering;

use jiff::Timestamp;

/// What an entry tells of its version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Release {
    /// Whether it is marked as the latest.
    pub(super) is_latest: Option<bool>,
    /// Its version, of whatever form.
    pub(super) version: String,
    /// When it was published, RFC 3339.
    pub(super) published: String,
}

/// Whether a version takes the place of one that came before it in the list. The same version again
/// does: it is the newer record of it.
pub(super) fn supersedes(it: &Release, before: &Release) -> bool {
    let marked = |release: &Release| release.is_latest == Some(true);
    let order = marked(it).cmp(&marked(before)).then_with(|| {
        match (semantic(&it.version), semantic(&before.version)) {
            (Some(it), Some(before)) => it.cmp(&before),
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (None, None) => {
                let published = |release: &Release| release.published.parse::<Timestamp>().ok();
                published(it).cmp(&published(before))
            }
        }
    });
    order != Ordering::Less
}

/// A semantic version's rank: its numbers, then its pre-release, where none ranks highest (semver 2.0.0 §11).
type Rank<'a> = ([u64; 3], bool, Vec<Identifier<'a>>);

/// An identifier of a pre-release. Numbers rank below words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier<'a> {
    Number(u64),
    Word(&'a str),
}

fn semantic(version: &str) -> Option<Rank<'_>> {
    let version = version.trim();
    let version = version.strip_prefix('v').unwrap_or(version);
    let version = version.split('+').next().unwrap_or(version);
    let (numbers, pre) = version
        .split_once('-')
        .map_or((version, None), |(numbers, pre)| (numbers, Some(pre)));
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    if parts.next().is_some() {
        return None;
    }
    let identifiers = pre.map_or_else(Vec::new, |pre| {
        pre.split('.')
            .map(|it| it.parse().map_or(Identifier::Word(it), Identifier::Number))
            .collect()
    });
    Some((numbers, pre.is_none(), identifiers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn later(it: (Option<bool>, &str, &str), before: (Option<bool>, &str, &str)) {
        let release = |(is_latest, version, published): (Option<bool>, &str, &str)| Release {
            is_latest,
            version: version.to_owned(),
            published: published.to_owned(),
        };
        assert!(
            supersedes(&release(it), &release(before)),
            "{it:?} {before:?}"
        );
        assert!(
            !supersedes(&release(before), &release(it)),
            "{it:?} {before:?}"
        );
    }

    #[test]
    fn the_later_version_is_told_by_mark_then_semver_then_date() {
        later((None, "1.10.0", ""), (None, "1.9.0", ""));
        later((None, "1.0.0", ""), (None, "1.0.0-rc.2", ""));
        later((None, "1.0.0-rc.10", ""), (None, "1.0.0-rc.2", ""));
        later((None, "1.0.0-rc.1", ""), (None, "1.0.0-rc", ""));
        later((None, "1.0.0-beta", ""), (None, "1.0.0-1", ""));
        later((None, "v2.0.0", ""), (None, "1.0.0+build", ""));
        later((Some(true), "1.0.0", ""), (None, "2.0.0", ""));
        later(
            (None, "0.0.1", ""),
            (None, "latest", "2026-01-01T00:00:00Z"),
        );
        later(
            (None, "snapshot", "2026-01-02T03:04:05.5Z"),
            (None, "nightly", "2026-01-02T03:04:05Z"),
        );
        later((None, "b", "2026-01-02T00:00:00Z"), (None, "a", ""));
    }
}
