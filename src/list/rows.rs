//! What every reader of a list writes to: rows on their way out, and the counts of them.
//! Which version of a server is its latest is told by `version`.

use super::version::{Release, supersedes};
use super::{BadRow, Contents, Format, Item, ListError, Listing, Source};

/// Rows on their way out.
pub(super) struct Rows<'a> {
    source: Source<'a>,
    each: &'a mut dyn FnMut(Item),
    /// What will be told of the list when it has been read.
    pub(super) contents: Contents,
    /// The format is known: from the caller, or by the first thing that tells.
    is_settled: bool,
    /// Where entries are to say they stand, in formats whose lines mean something.
    place: Option<u64>,
    entries: u64,
    empty: u64,
    first_empty: Option<(u64, String)>,
    /// The best so far of the versions of one server.
    pending: Option<(String, Release, Vec<Item>)>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(source: Source<'a>, format: Format, each: &'a mut dyn FnMut(Item)) -> Self {
        Self {
            source,
            each,
            contents: Contents {
                format,
                extra_columns: Vec::new(),
                listings: 0,
                bad_rows: 0,
                servers: 0,
                servers_without_remotes: 0,
                older_versions: 0,
                latest_unknown: 0,
                rows_without_address: 0,
                next_cursor: None,
            },
            is_settled: false,
            place: None,
            entries: 0,
            empty: 0,
            first_empty: None,
            pending: None,
        }
    }

    /// The name of the list, for errors.
    pub(super) fn list(&self) -> String {
        self.source.name.to_owned()
    }

    /// The bytes could not be had.
    pub(super) fn unread(&self, line: u64, error: std::io::Error) -> ListError {
        ListError::reading(self.source.name, line, error)
    }

    /// The list breaks the grammar of its format.
    pub(super) fn broken(&self, line: u64, why: String) -> ListError {
        let name = self.list();
        ListError::Syntax { name, line, why }
    }

    /// The format is probably this one: there is nothing in the list that tells.
    pub(super) fn suppose(&mut self, format: Format) {
        if !self.is_settled {
            self.contents.format = self.source.format.unwrap_or(format);
        }
    }

    /// The format turns out to be this one, unless something before has told.
    pub(super) fn settle(&mut self, format: Format) {
        if !self.is_settled {
            self.contents.format = format;
            self.is_settled = true;
        }
    }

    /// Counts an entry and says where it stands.
    pub(super) fn entry(&mut self) -> u64 {
        self.entries += 1;
        self.place.unwrap_or(self.entries)
    }

    /// The entries to come stand here.
    pub(super) fn stand_at(&mut self, line: u64) {
        self.place = Some(line);
    }

    /// Gives a row.
    pub(super) fn listing(&mut self, listing: Listing) {
        self.flush();
        self.give(Item::Listing(listing));
    }

    /// Gives a row that cannot be read. `why`: what is wrong with it and what to do.
    pub(super) fn bad(&mut self, line: u64, why: &str) {
        self.flush();
        let item = self.bad_row(line, why);
        self.give(item);
    }

    /// A row that cannot be read.
    pub(super) fn bad_row(&self, line: u64, why: &str) -> Item {
        Item::Bad(BadRow {
            line,
            why: format!("{} {line}: {why}", self.contents.format.unit()),
        })
    }

    /// An entry that gives no server at all. `found`: what it is instead.
    pub(super) fn empty(&mut self, line: u64, found: String) {
        self.bad(
            line,
            &format!(
                "gives no address and no server, but {found}; give it a \"url\" or take it out"
            ),
        );
        self.empty += 1;
        self.first_empty.get_or_insert((line, found));
    }

    /// A server, and the rows it gives.
    pub(super) fn server(&mut self, items: Vec<Item>) {
        self.flush();
        self.give_server(items);
    }

    /// One version of a server, and the rows it gives.
    pub(super) fn version(&mut self, name: &str, release: Release, items: Vec<Item>) {
        if release.is_latest == Some(false) {
            self.contents.older_versions += 1;
            return;
        }
        if release.is_latest.is_none() {
            self.contents.latest_unknown += 1;
        }
        if let Some((before, kept, _)) = &self.pending
            && before == name
            && [name, &release.version, &kept.version]
                .iter()
                .all(|it| !it.is_empty())
            && !(kept.is_latest == Some(true) && release.is_latest == Some(true))
        {
            self.contents.older_versions += 1;
            if !supersedes(&release, kept) {
                return;
            }
        } else {
            self.flush();
        }
        self.pending = Some((name.to_owned(), release, items));
    }

    fn flush(&mut self) {
        if let Some((_, _, items)) = self.pending.take() {
            self.give_server(items);
        }
    }

    fn give_server(&mut self, items: Vec<Item>) {
        self.contents.servers += 1;
        self.contents.servers_without_remotes += u64::from(items.is_empty());
        for item in items {
            self.give(item);
        }
    }

    fn give(&mut self, mut item: Item) {
        match &mut item {
            Item::Listing(listing) => {
                listing.source = self.source.number;
                self.contents.listings += 1;
            }
            Item::Bad(_) => self.contents.bad_rows += 1,
        }
        (self.each)(item);
    }

    /// What was read, when it is what it was said to be.
    pub(super) fn finish(mut self) -> Result<Contents, ListError> {
        self.flush();
        let name = self.list();
        if let Some((entry, found)) = self.first_empty
            && self.empty * 2 > self.entries
        {
            return Err(ListError::MostlyEmpty {
                name,
                place: format!("{} {entry}", self.contents.format.unit()),
                empty: self.empty,
                entries: self.entries,
                found,
            });
        }
        if let Some(said) = self.source.format
            && said != self.contents.format
        {
            return Err(ListError::Shape {
                name,
                line: 1,
                found: format!("the format {}", self.contents.format),
                expected: format!("{said}, as it was said to be; leave --list-format out"),
            });
        }
        Ok(self.contents)
    }
}
