//! Reads the tables of an SQLite file that another program writes, its write-ahead log included. Never writes or locks.
//!
//! The format is fixed (sqlite.org/fileformat2.html), and whole tables are all that is read: a library for the rest of
//! SQLite would be a hundred times as much code. The caller checks whether the file changed meanwhile.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::regular;

/// Bytes of a row that are believed; larger ones are damage, or nothing that is wanted.
const LONGEST: u64 = 64 << 20;

/// Pages below pages, at most.
const DEPTH: usize = 24;

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl Value {
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub fn integer(&self) -> Option<i64> {
        if let Value::Integer(number) = self { Some(*number) } else { None }
    }
}

/// Where a row is, to read it again while the stamp stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    page: u32,
    cell: usize,
}

/// What a file and its log were, as far as the file system tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp([Option<(u64, SystemTime)>; 2]);

/// A table of the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    root: u32,
    columns: Vec<String>,
}

/// An open database.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    stamp: Stamp,
    file: File,
    page_size: usize,
    /// Bytes of a page that hold content.
    usable: usize,
    /// Bytes of a row that can be true.
    longest: u64,
    wal: Option<File>,
    /// Where the newest version of a page is in the log.
    newer: HashMap<u32, u64>,
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the database is damaged: {what}"))
}

fn u16_at(bytes: &[u8], at: usize) -> io::Result<usize> {
    let pair = bytes.get(at..at + 2).ok_or_else(|| broken("a page is too short"))?;
    Ok(usize::from(pair[0]) << 8 | usize::from(pair[1]))
}

fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_be_bytes).ok_or_else(|| broken("a page is too short"))
}

/// A number of one to nine bytes, and how many.
fn varint(bytes: &[u8]) -> io::Result<(u64, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        if at == 8 {
            return Ok((value << 8 | u64::from(*byte), 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    Err(broken("a number is cut off"))
}

fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

impl Stamp {
    pub fn of(path: &Path) -> Stamp {
        let one = |path: &Path| std::fs::metadata(path).ok().map(|meta| (meta.len(), meta.modified().ok()));
        let each = |path: &Path| one(path).and_then(|(len, time)| Some((len, time?)));
        Stamp([each(path), each(&log_of(path))])
    }
}

impl Database {
    /// # Errors
    /// What the file system says; `InvalidData` for what is not a database in UTF-8.
    pub fn open(path: &Path) -> io::Result<Database> {
        let stamp = Stamp::of(path);
        let mut file = regular::open(path)?;
        let mut head = [0; 100];
        file.read_exact(&mut head).map_err(|_| broken("it has no header"))?;
        if !head.starts_with(b"SQLite format 3\0") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not an SQLite database"));
        }
        let page_size = match u16_at(&head, 16)? {
            1 => 65_536,
            size if size.is_power_of_two() && size >= 512 => size,
            _ => return Err(broken("its page size is unknown")),
        };
        if !matches!(u32_at(&head, 56)?, 0 | 1) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the database is not in UTF-8"));
        }
        let usable = page_size - usize::from(head[20]);
        let longest = stamp.0.iter().flatten().map(|(len, _)| len).sum::<u64>().min(LONGEST);
        let (path, wal, newer) = (path.to_owned(), None, HashMap::new());
        let mut database = Database { path, stamp, file, page_size, usable, longest, wal, newer };
        if let Ok(wal) = regular::open(&log_of(&database.path)) {
            database.read_log(wal)?;
        }
        Ok(database)
    }

    /// Whether nobody has written since it was opened.
    pub fn is_current(&self) -> bool {
        Stamp::of(&self.path) == self.stamp
    }

    /// Finds the pages of all transactions that were completed in the log.
    fn read_log(&mut self, wal: File) -> io::Result<()> {
        let mut reader = io::BufReader::with_capacity(1 << 18, wal);
        let mut head = [0; 32];
        // A log of a few bytes was reset; one with another page size belongs to nothing here.
        if reader.read_exact(&mut head).is_err() || u32_at(&head, 8)? as usize != self.page_size {
            return Ok(());
        }
        let big = match u32_at(&head, 0)? {
            0x377f_0682 => false,
            0x377f_0683 => true,
            _ => return Ok(()),
        };
        let mut sum = checksum((0, 0), &head[..24], big);
        if (u32_at(&head, 24)?, u32_at(&head, 28)?) != sum {
            return Ok(());
        }
        let (mut at, mut frame) = (32, vec![0; 24 + self.page_size]);
        let mut open: Vec<(u32, u64)> = Vec::new();
        while reader.read_exact(&mut frame).is_ok() {
            sum = checksum(checksum(sum, &frame[..8], big), &frame[24..], big);
            if frame[8..16] != head[16..24] || (u32_at(&frame, 16)?, u32_at(&frame, 20)?) != sum {
                break;
            }
            open.push((u32_at(&frame, 0)?, at + 24));
            if u32_at(&frame, 4)? > 0 {
                self.newer.extend(open.drain(..));
            }
            at += frame.len() as u64;
        }
        self.wal = Some(reader.into_inner());
        Ok(())
    }

    fn page(&mut self, number: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.page_size];
        let (file, at) = match (self.newer.get(&number), &mut self.wal) {
            (Some(at), Some(wal)) => (wal, *at),
            _ => {
                let before = number.checked_sub(1).ok_or_else(|| broken("there is no page 0"))?;
                (&mut self.file, u64::from(before) * self.page_size as u64)
            }
        };
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes).map_err(|_| broken("a page is missing"))?;
        Ok(bytes)
    }

    /// A table by its name.
    ///
    /// # Errors
    /// What reading says.
    pub fn table(&mut self, name: &str) -> io::Result<Option<Table>> {
        let columns = ["type", "name", "tbl_name", "rootpage", "sql"].map(str::to_owned).to_vec();
        let schema = Table { root: 1, columns };
        let mut found = None;
        self.rows(&schema, &["type", "name", "rootpage", "sql"], |_, row| {
            if let [Value::Text(kind), Value::Text(of), Value::Integer(root), Value::Text(sql)] = row.as_slice()
                && kind == "table"
                && of.eq_ignore_ascii_case(name)
                && let Ok(root) = u32::try_from(*root)
            {
                found = Some(Table { root, columns: columns_of(sql) });
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Hands each row to `visit`, in the order of the table: where it is, and the values of the columns that are wanted.
    /// A column that the table lacks is null.
    ///
    /// # Errors
    /// What reading says, and `visit`.
    pub fn rows(
        &mut self,
        table: &Table,
        wanted: &[&str],
        mut visit: impl FnMut(Place, Vec<Value>) -> io::Result<()>,
    ) -> io::Result<()> {
        let wanted = table.places(wanted);
        let (mut left, mut seen) = (vec![(table.root, 0)], HashSet::new());
        while let Some((number, depth)) = left.pop() {
            if depth > DEPTH || !seen.insert(number) {
                return Err(broken("its pages go in circles"));
            }
            let page = self.page(number)?;
            let head = if number == 1 { 100 } else { 0 };
            let cells = u16_at(&page, head + 3)?;
            match page[head] {
                0x05 => {
                    let below = (0..cells).map(|cell| u32_at(&page, u16_at(&page, head + 12 + 2 * cell)?));
                    let mut below = below.collect::<io::Result<Vec<u32>>>()?;
                    below.push(u32_at(&page, head + 8)?);
                    left.extend(below.into_iter().rev().map(|page| (page, depth + 1)));
                }
                0x0d => {
                    for cell in 0..cells {
                        if let Some(row) = self.cell(&page, head, cell, &wanted)? {
                            visit(Place { page: number, cell }, row)?;
                        }
                    }
                }
                _ => return Err(broken("a page of a table is something else")),
            }
        }
        Ok(())
    }

    /// A row whose place is known.
    ///
    /// # Errors
    /// As `rows`.
    pub fn row(&mut self, table: &Table, place: Place, wanted: &[&str]) -> io::Result<Option<Vec<Value>>> {
        let page = self.page(place.page)?;
        let head = if place.page == 1 { 100 } else { 0 };
        self.cell(&page, head, place.cell, &table.places(wanted))
    }

    /// The wanted values of a row. None: it is longer than what is believed.
    fn cell(
        &mut self,
        page: &[u8],
        head: usize,
        cell: usize,
        wanted: &[Option<usize>],
    ) -> io::Result<Option<Vec<Value>>> {
        let bytes =
            page.get(u16_at(page, head + 8 + 2 * cell)?..).ok_or_else(|| broken("a row is outside its page"))?;
        let (len, first) = varint(bytes)?;
        let (_, second) = varint(&bytes[first..])?;
        if len > self.longest {
            return Ok(None);
        }
        let (len, bytes) = (len as usize, &bytes[first + second..]);
        let most = self.usable - 35;
        let local = if len <= most {
            len
        } else {
            let least = (self.usable - 12) * 32 / 255 - 23;
            let fit = least + (len - least) % (self.usable - 4);
            if fit <= most { fit } else { least }
        };
        let mut payload = bytes.get(..local).ok_or_else(|| broken("a row is outside its page"))?.to_vec();
        if let Some(row) = values(&payload, wanted)? {
            return Ok(Some(row));
        }
        if local < len {
            let mut next = u32_at(bytes, local)?;
            while payload.len() < len {
                let more = self.page(next)?;
                next = u32_at(&more, 0)?;
                let take = (len - payload.len()).min(self.usable - 4);
                payload.extend_from_slice(&more[4..4 + take]);
            }
        }
        values(&payload, wanted)?.map(Some).ok_or_else(|| broken("a row is cut off"))
    }
}

impl Table {
    fn places(&self, wanted: &[&str]) -> Vec<Option<usize>> {
        let place = |name: &&str| self.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
        wanted.iter().map(place).collect()
    }
}

/// Values of a record. None: one of them lies behind the end of what was given.
fn values(record: &[u8], wanted: &[Option<usize>]) -> io::Result<Option<Vec<Value>>> {
    let (header, mut at) = varint(record)?;
    let mut body = usize::try_from(header).map_err(|_| broken("a row is too long"))?;
    if body > record.len() {
        return Ok(None);
    }
    let mut columns = Vec::new();
    while at < header as usize {
        let (kind, read) = varint(&record[at..])?;
        at += read;
        let len = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind as usize,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return Err(broken("a value has no type")),
            _ => usize::try_from((kind - 12) / 2).map_err(|_| broken("a value is too long"))?,
        };
        columns.push((kind, body, len));
        body = body.checked_add(len).ok_or_else(|| broken("a value is too long"))?;
    }
    let mut row = Vec::with_capacity(wanted.len());
    for place in wanted {
        let Some((kind, from, len)) = place.and_then(|place| columns.get(place).copied()) else {
            row.push(Value::Null);
            continue;
        };
        let Some(bytes) = record.get(from..from + len) else { return Ok(None) };
        let number = || {
            let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
            bytes.iter().fold(if negative { -1 } else { 0 }, |all: i64, byte| all << 8 | i64::from(*byte))
        };
        row.push(match kind {
            0 => Value::Null,
            1..=6 => Value::Integer(number()),
            7 => Value::Real(f64::from_bits(number().cast_unsigned())),
            8 | 9 => Value::Integer((kind - 8).cast_signed()),
            _ if kind % 2 == 1 => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            _ => Value::Blob(bytes.to_vec()),
        });
    }
    Ok(Some(row))
}

/// The names of the columns, by the statement that made the table.
fn columns_of(sql: &str) -> Vec<String> {
    const CONSTRAINTS: [&str; 5] = ["constraint", "primary", "foreign", "unique", "check"];
    let inside = sql.split_once('(').map_or("", |(_, rest)| rest);
    let (mut depth, mut columns, mut part) = (0, Vec::new(), String::new());
    let mut quote = None;
    for c in inside.chars() {
        match (quote, c) {
            (Some(end), _) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '[') => quote = Some(']'),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if quote.is_none() && (depth < 0 || depth == 0 && c == ',') {
            columns.push(std::mem::take(&mut part));
            if depth < 0 {
                break;
            }
        } else {
            part.push(c);
        }
    }
    let name = |column: &String| {
        let column = column.trim_start();
        let end = match column.chars().next()? {
            open @ ('"' | '\'' | '`') => return Some(column[1..].split(open).next()?.to_owned()),
            '[' => return Some(column[1..].split(']').next()?.to_owned()),
            _ => column.find(char::is_whitespace).unwrap_or(column.len()),
        };
        let word = &column[..end];
        (!CONSTRAINTS.contains(&word.to_lowercase().as_str())).then(|| word.to_owned())
    };
    columns.iter().filter_map(name).collect()
}

/// Continues the sum over a log, eight bytes at a time.
fn checksum((mut one, mut two): (u32, u32), bytes: &[u8], big: bool) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| {
            let four = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
            if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        };
        one = one.wrapping_add(word(0)).wrapping_add(two);
        two = two.wrapping_add(word(4)).wrapping_add(one);
    }
    (one, two)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(name: &str) -> Vec<u8> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/sqlite").join(name)).unwrap()
    }

    /// All rows of `birds` in a database of these bytes: id, name, the start of its long text and its length.
    fn rows(file: &[u8], log: &[u8]) -> io::Result<Vec<String>> {
        let temp = tempfile::tempdir()?;
        let path = temp.path().join("a.db");
        std::fs::write(&path, file)?;
        std::fs::write(log_of(&path), log)?;
        let mut database = Database::open(&path)?;
        let table = database.table("Birds")?.ok_or_else(|| broken("no table"))?;
        let (mut rows, mut places) = (Vec::new(), Vec::new());
        let wanted = ["weight", "name", "seen, or not", "missing"];
        database.rows(&table, &wanted, |place, row| {
            places.push(place);
            rows.push(format!("{row:?}"));
            Ok(())
        })?;
        for (row, place) in rows.iter_mut().zip(places) {
            let text = database.row(&table, place, &["song"])?.unwrap_or_default();
            let text = text.first().and_then(Value::text).unwrap_or_default();
            *row = format!("{row} {} {}", text.chars().take(8).collect::<String>(), text.len());
        }
        Ok(rows)
    }

    #[test]
    fn all_rows_are_read() {
        let got = rows(&data("birds.db"), &[]).unwrap();
        assert_eq!(got.len(), 60);
        assert_eq!(got[0], "[Real(1.5), Text(\"heron 1\"), Integer(-1), Null] la la 1  700");
        assert_eq!(got[59], "[Integer(0), Text(\"heron 60\"), Integer(-10000000000), Null] la la 60 42000");
        // Transactions of the log count once they are complete: one changes a row, adds one and deletes one.
        let log = data("birds.db-wal");
        let got = rows(&data("birds.db"), &log).unwrap();
        assert_eq!((got.len(), got[0].contains("goose"), got[59].contains("plover")), (60, true, true), "{got:?}");
        let (cut, whole) = (&log[..log.len() - 1], rows(&data("birds.db"), &[]).unwrap());
        assert_eq!(rows(&data("birds.db"), cut).unwrap(), whole);
        let mut flipped = log.clone();
        flipped[100] ^= 1;
        assert_eq!(rows(&data("birds.db"), &flipped).unwrap(), whole);
    }

    #[test]
    fn columns_are_read_off_the_statement() {
        for (sql, want) in [
            ("CREATE TABLE a (b, c TEXT)", vec!["b", "c"]),
            ("CREATE TABLE `a` (\n\t`b` text PRIMARY KEY NOT NULL,\n\t`c d` integer DEFAULT (1, 2))", vec!["b", "c d"]),
            (
                "CREATE TABLE a (\"b,c\" int, [d] decimal(1,2), UNIQUE (d), CONSTRAINT x CHECK (d > 0))",
                vec!["b,c", "d"],
            ),
            ("CREATE TABLE a (b text, FOREIGN KEY (b) REFERENCES c(d)) STRICT", vec!["b"]),
            ("nothing", vec![]),
        ] {
            assert_eq!(columns_of(sql), want, "{sql}");
        }
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let whole = data("birds.db");
        for at in (0..whole.len().min(9_000)).step_by(7) {
            for value in [0, 0x05, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = rows(&bytes, &[]);
            }
            let _ = rows(&whole[..at], &[]);
        }
        let problem = |bytes: &[u8]| rows(bytes, &[]).unwrap_err().to_string();
        assert_eq!(problem(b""), "the database is damaged: it has no header");
        assert_eq!(problem(&[b'x'; 200]), "not an SQLite database");
    }
}
