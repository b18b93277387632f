//! Notes of the session, kept up to date beside the conversation, as a summary that is there when room is needed.
//!
//! `metadata.json` is the truth about what the notes cover; a mark in it that no longer holds makes them unusable until
//! they are brought up to date again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Candidate, Driver, Limits, Meter, Rejected, Settings, Thresholds, candidate, rounds};
use crate::message::tokens::{self, Load};
use crate::provider::catalog::Prices;
use crate::session::Context;
use crate::session::entry::Seq;
use crate::stdx::fs::replace_private;

/// Name of the tier.
pub const TIER: &str = "session_memory";

/// What the notes begin as.
pub const TEMPLATE: &str = include_str!("../../../assets/prompts/notes.md");

/// An update waits until one part in so many of the conversation is not covered.
const UPDATES: u64 = 3;

/// What asks for an update of the notes.
const INSTRUCTION: &str = include_str!("../../../assets/prompts/memory.md");

/// The notes of one session, as files.
#[derive(Debug, Clone)]
pub struct Notes {
    dir: PathBuf,
}

/// Up to where the notes go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Id of the entry of the last message that they cover.
    pub id: String,
    /// Its place in the log.
    pub seq: Seq,
}

/// `metadata.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// None: what the notes cover has left the conversation in another way.
    pub last_summarized_id: Option<String>,
    #[serde(default)]
    pub last_summarized_seq: Option<Seq>,
    /// RFC 3339.
    pub last_extraction: String,
    /// By estimate.
    pub summary_token_count: u64,
    pub messages_summarized: u64,
}

/// Why the notes cannot stand for what they cover.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unusable {
    #[error("no notes yet")]
    Missing,
    #[error("the notes or their metadata cannot be read")]
    Unreadable,
    #[error("the notes are still empty")]
    Empty,
    #[error("the messages the notes cover are gone")]
    Unmarked,
    #[error("the notes have {tokens} tokens; the limit is {most}")]
    TooLong { tokens: u64, most: u64 },
    #[error("they would save {saved} tokens; the minimum is {least}")]
    LittleSaved { saved: u64, least: u64 },
    #[error("{after} tokens would be left; the target is {target}")]
    StillLarge { after: u64, target: u64 },
    #[error("{tokens} tokens that came after them would be carried along; the limit is {most}")]
    Outdated { tokens: u64, most: u64 },
    #[error("{0}")]
    Rejected(#[from] Rejected),
}

impl Notes {
    /// The notes of the session with this folder.
    pub fn of(session: &Path) -> Notes {
        Notes { dir: session.join("session-memory") }
    }

    pub fn file(&self) -> PathBuf {
        self.dir.join("summary.md")
    }

    fn metadata_file(&self) -> PathBuf {
        self.dir.join("metadata.json")
    }

    /// The notes as they are, or the template.
    ///
    /// # Errors
    /// What the file system says.
    pub fn begin(&self) -> io::Result<String> {
        match fs::read_to_string(self.file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.write(TEMPLATE)?;
                Ok(TEMPLATE.to_owned())
            }
            read => read,
        }
    }

    /// Replaces the notes.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, text: &str) -> io::Result<()> {
        replace_private(&self.file(), text.as_bytes())
    }

    /// What is known of the notes; none when nothing is, or it cannot be read.
    pub fn metadata(&self) -> Option<Metadata> {
        serde_json::from_slice(&fs::read(self.metadata_file()).ok()?).ok()
    }

    /// Says what the notes cover now; the id also in a file of its own, for scripts.
    ///
    /// # Errors
    /// What the file system says.
    pub fn save(&self, metadata: &Metadata) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(metadata).map_err(io::Error::from)?;
        replace_private(&self.metadata_file(), &text)?;
        let id = metadata.last_summarized_id.as_deref().unwrap_or_default();
        replace_private(&self.dir.join(".lastSummarizedId"), id.as_bytes())
    }

    /// What the notes cover left the conversation without them: they are of no use until they are brought up to date.
    ///
    /// # Errors
    /// What the file system says.
    pub fn unmark(&self) -> io::Result<()> {
        match self.metadata() {
            Some(metadata) if metadata.last_summarized_id.is_some() => {
                self.save(&Metadata { last_summarized_id: None, last_summarized_seq: None, ..metadata })
            }
            _ => Ok(()),
        }
    }

    /// The notes and up to where they go.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub fn load(&self, limits: &Limits) -> Result<(String, Mark), Unusable> {
        let text = match fs::read_to_string(self.file()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unusable::Missing),
            Err(_) => return Err(Unusable::Unreadable),
        };
        let metadata = self.metadata().ok_or(Unusable::Unreadable)?;
        if is_empty(&text) {
            return Err(Unusable::Empty);
        }
        let (Some(id), Some(seq)) = (metadata.last_summarized_id, metadata.last_summarized_seq) else {
            return Err(Unusable::Unmarked);
        };
        let (tokens, most) = (tokens::text(&text), limits.memory_summary);
        if tokens > most {
            return Err(Unusable::TooLong { tokens, most });
        }
        Ok((text, Mark { id, seq }))
    }
}

/// Whether the notes contain nothing but the template.
fn is_empty(text: &str) -> bool {
    let given = |line: &str| line.is_empty() || TEMPLATE.lines().any(|of| of.trim() == line);
    text.lines().map(str::trim).all(given)
}

/// The notes as a summary, without the template's hints to the writer.
pub fn summary(text: &str) -> String {
    let hint = |line: &&str| line.starts_with('_') && TEMPLATE.lines().any(|of| of == line.trim_end());
    text.trim().lines().filter(|line| !hint(line)).collect::<Vec<_>>().join("\n")
}

/// The message that asks for an update.
pub fn instruction(file: &Path, notes: &str, limit: u64) -> String {
    // The notes come last: they may hold what looks like a place to fill.
    INSTRUCTION
        .trim_end()
        .replace("{file}", &file.to_string_lossy())
        .replace("{limit}", &limit.to_string())
        .replace("{notes}", notes.trim_end())
}

/// Most tokens that the notes may have in this window.
pub fn limit(settings: &Settings, marks: &Thresholds) -> u64 {
    share(settings.session_memory.max_tokens, marks)
}

/// No budget of the notes takes more than a quarter of what there is.
fn share(constant: u64, marks: &Thresholds) -> u64 {
    constant.min(marks.available / 4)
}

/// Where the conversation pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// A round of calls is answered.
    Round,
    /// The model called nothing.
    Reply,
}

/// What came since the notes were brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    pub tokens: u64,
    pub calls: u64,
}

/// Measures what came after an entry. Costs what came after it.
pub fn since(context: &Context, meter: &Meter, seq: Seq) -> Since {
    let later = || context.shown().rev().take_while(|shown| !shown.lead && shown.seq > seq);
    let load: Load = later().map(|shown| shown.load).sum();
    let calls = later().map(|shown| shown.message.calls().count() as u64).sum();
    Since { tokens: meter.of(load), calls }
}

/// Whether to update the notes now; `since` is `None` if they cover nothing yet. Not where a summary is the cheaper way by
/// these prices; unknown ones tell nothing.
pub fn due(used: u64, since: Option<Since>, pause: Pause, driver: &Driver, prices: Option<Prices>) -> bool {
    let memory = &driver.settings().session_memory;
    let enough = match since {
        None => used >= first(driver),
        Some(Since { tokens, calls }) => {
            tokens >= apart(used, driver) && (pause == Pause::Reply || calls >= memory.update_tool_calls)
        }
    };
    let too_dear = |prices| {
        let Costs { notes, summary } = costs(driver, prices);
        notes > summary
    };
    enough && !(memory.weigh_cost && prices.is_some_and(too_dear))
}

/// Tokens of context at which the notes begin.
fn first(driver: &Driver) -> u64 {
    let (memory, marks) = (&driver.settings().session_memory, driver.marks());
    let part = (marks.target as f64 * memory.extraction_start_fraction.clamp(0.0, 1.0)) as u64;
    share(memory.first_tokens, marks).max(part.min(memory.start_tokens))
}

/// Tokens between two updates. Each reads the whole conversation, so they come further apart as it grows.
fn apart(used: u64, driver: &Driver) -> u64 {
    share(driver.settings().session_memory.update_tokens, driver.marks()).max(used / UPDATES)
}

/// Dollars for what makes room once: the notes up to then, or one summary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    pub notes: f64,
    pub summary: f64,
}

/// What notes and a summary cost in a window that fills up. Both read the conversation from the provider's cache.
pub fn costs(driver: &Driver, prices: Prices) -> Costs {
    let of = |read: u64, written: u64| (read as f64 * prices.cache_read + written as f64 * prices.output) / 1e6;
    let (marks, limit) = (driver.marks(), limit(driver.settings(), driver.marks()));
    let (mut used, mut notes) = (first(driver), 0.0);
    while used < marks.target {
        notes += of(used, limit);
        used += apart(used, driver).max(1);
    }
    Costs { notes, summary: of(marks.target, driver.limits().summary) }
}

/// The last message that an extraction would cover, and how many there are; none while a call waits for its result.
pub fn covered(context: &Context) -> Option<(Seq, u64)> {
    if !context.open_calls().is_empty() {
        return None;
    }
    let last = context.shown().next_back().filter(|shown| !shown.lead)?;
    Some((last.seq, context.len() as u64))
}

/// From which entry on a boundary keeps what the notes do not cover, never between a call and its result; with what
/// is `recent` in any case. None: what the mark names is no longer in the conversation. `noted`: the last boundary came from
/// these notes.
pub fn keep_from(context: &Context, mark: Seq, noted: bool, recent: Seq) -> Option<Seq> {
    let lead = context.shown().take_while(|shown| shown.lead).count();
    let start = match context.shown().rposition(|shown| !shown.lead && shown.seq == mark) {
        Some(at) => at + 1,
        // The mark's message has left with the boundary that these notes stand in.
        None if noted && context.shown().nth(lead).is_none_or(|first| first.seq > mark) => lead,
        None => return None,
    };
    let cut = rounds::cuts(context).into_iter().rev().find(|cut| *cut <= start)?;
    Some(rounds::keep_from(context, cut).min(recent))
}

/// Checks what the notes would do for the window; `candidate` is complete.
///
/// # Errors
/// Why another tier has to be asked.
pub fn check(context: &Context, driver: &Driver, candidate: Candidate) -> Result<Candidate, Unusable> {
    let meter = &driver.meter;
    let (before, after) = (meter.used(context), meter.request(candidate::load_after(context, &candidate.boundary)));
    let (saved, least) = (before.saturating_sub(after), driver.limits().memory_net_saving);
    if saved < least {
        return Err(Unusable::LittleSaved { saved, least });
    }
    // What hooks will add to it is not known yet.
    let (after, target) = (after + driver.limits().hooks, driver.marks().target);
    if after >= target {
        return Err(Unusable::StillLarge { after, target });
    }
    let (tokens, most) = (candidate::carries(context, &candidate.boundary), driver.limits().carry);
    let candidate = driver.judge(context, candidate)?;
    if tokens > most { Err(Unusable::Outdated { tokens, most }) } else { Ok(candidate) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::{Talk, driver, text};
    use crate::message::{Message, Usage};
    use crate::session::entry::{Boundary, EntryKind};

    #[test]
    fn when_notes_are_brought_up_to_date() {
        fn check(window: u64, used: u64, since: Option<(u64, u64)>, pause: Pause, want: bool) {
            let driver = driver(window, |_| {});
            let since = since.map(|(tokens, calls)| Since { tokens, calls });
            assert_eq!(due(used, since, pause, &driver, None), want, "{window} {used} {since:?}");
        }
        use Pause::{Reply, Round};
        // The smaller of 20,000 and a quarter of the target.
        check(200_000, 19_999, None, Reply, false);
        check(200_000, 20_000, None, Round, true);
        check(60_000, 9_374, None, Reply, false);
        check(60_000, 9_375, None, Reply, true);
        // The windows of small models: a quarter of all that is available is enough.
        check(8_192, 1_500, None, Reply, false);
        check(8_192, 1_600, None, Reply, true);
        check(200_000, 15_000, Some((4_999, 30)), Reply, false);
        check(200_000, 15_000, Some((5_000, 0)), Reply, true);
        check(200_000, 60_000, Some((19_999, 30)), Reply, false);
        check(200_000, 60_000, Some((20_000, 0)), Reply, true);
        check(200_000, 60_000, Some((20_000, 9)), Round, false);
        check(200_000, 60_000, Some((20_000, 10)), Round, true);
        // 190 of them would be written until a window of a million is full, and cost a hundred summaries.
        let large = driver(1_000_000, |_| {});
        let (mut updates, mut noted, mut read) = (0, None, 0);
        for used in (0..large.marks().target).step_by(1_000) {
            let since = noted.map(|noted| Since { tokens: used - noted, calls: 10 });
            if due(used, since, Reply, &large, None) {
                (updates, noted, read) = (updates + 1, Some(used), read + used);
            }
        }
        assert!(updates <= 12 && read <= 3 * large.marks().target, "{updates} {read}");
        let early = driver(200_000, |settings| settings.session_memory.extraction_start_fraction = 0.0);
        assert!(due(5_000, None, Reply, &early, None));
        assert!(!due(4_999, None, Reply, &early, None));
    }

    #[test]
    fn notes_are_kept_where_a_summary_would_cost_more() {
        let prices = |cache_read, output| Prices { input: 3.0, output, cache_read, cache_write: 3.75 };
        let late = |settings: &mut Settings| {
            let memory = &mut settings.session_memory;
            (memory.extraction_start_fraction, memory.start_tokens, memory.max_tokens) = (0.9, u64::MAX, 2_000);
        };
        let check = |driver: &Driver, prices, want| {
            let used = driver.marks().target - 1;
            assert_eq!(due(used, None, Pause::Reply, driver, prices), want, "{:?}", prices.map(|it| costs(driver, it)));
        };
        for window in [8_192, 32_000, 128_000, 200_000, 1_000_000] {
            let (usual, late) = (driver(window, |_| {}), driver(window, late));
            // A dozen updates read three times as much as one summary does.
            check(&usual, Some(prices(0.3, 15.0)), false);
            check(
                &driver(window, |settings| settings.session_memory.weigh_cost = false),
                Some(prices(0.3, 15.0)),
                true,
            );
            // A model on this machine costs nothing; of one without a price nothing is known.
            check(&usual, Some(prices(0.0, 0.0)), true);
            check(&usual, None, true);
            // One update that reads less, and writes less, than a summary would.
            check(&late, Some(prices(0.3, 15.0)), true);
        }
    }

    #[test]
    fn what_came_since_and_what_is_covered() {
        let mut talk = Talk::new();
        talk.prompt(10).reply(1);
        let (seq, messages) = covered(talk.context()).unwrap();
        assert_eq!(messages, 2);
        talk.prompt(100).round("Read", &[1_000, 1_000]).reply(1);
        let Since { tokens, calls } = since(talk.context(), &driver(200_000, |_| {}).meter, seq);
        assert!((2_800..3_000).contains(&tokens), "{tokens}");
        assert_eq!(calls, 2);
        let (last, _) = covered(talk.context()).unwrap();
        assert_eq!(since(talk.context(), &driver(200_000, |_| {}).meter, last), Since { tokens: 0, calls: 0 });
        // An open call would be cut from its result.
        let mut open = Talk::new();
        open.prompt(1).round("Read", &[1]);
        let calls = open.context().messages()[1].clone();
        let mut talk = Talk::new();
        talk.prompt(1).push(Message::clone(&calls));
        assert_eq!(covered(talk.context()), None);
        assert_eq!(covered(Talk::new().context()), None);
    }

    /// Positions of what stays, among the messages of `talk`.
    fn kept(talk: &Talk, mark: Seq, noted: bool, recent: u64) -> Option<usize> {
        let driver = driver(200_000, |settings| settings.keep_recent_tokens = recent);
        let recent = candidate::cut(talk.context(), &driver, 0, candidate::Ration::WHOLE);
        let from = keep_from(talk.context(), mark, noted, recent)?;
        Some(talk.context().shown().filter(|shown| !shown.lead && shown.seq >= from).count())
    }

    #[test]
    fn what_the_notes_do_not_cover_stays() {
        let mut talk = Talk::new();
        talk.prompt(10).round("Read", &[10]).reply(1).prompt(10).reply(1);
        let seqs: Vec<Seq> = talk.context().shown().map(|shown| shown.seq).collect();
        assert_eq!(kept(&talk, seqs[3], false, 0), Some(2));
        assert_eq!(kept(&talk, seqs[5], false, 0), Some(0));
        // Moved back before the call whose result is not covered.
        assert_eq!(kept(&talk, seqs[1], false, 0), Some(5));
        // The newest rounds stay although they are covered: at most half of the conversation.
        assert_eq!(kept(&talk, seqs[5], false, 11), Some(2));
        // Rewound, of another session, or gone with another boundary.
        assert_eq!(kept(&talk, 99, false, 0), None);
        let before = |talk: &Talk| talk.context().shown().next_back().map(|shown| shown.seq).unwrap();
        let mark = before(&talk);
        let boundary = |keep_from| {
            let summary = Some(std::sync::Arc::new(Message::reminder("notes")));
            EntryKind::CompactBoundary(Boundary { tier: TIER.into(), keep_from, summary, ..Boundary::default() })
        };
        talk.session.append(boundary(mark + 1)).unwrap();
        talk.prompt(10).reply(1);
        assert_eq!(kept(&talk, mark, false, 0), None);
        assert_eq!(kept(&talk, mark, true, 0), Some(2));
        assert_eq!(kept(&talk, 99, true, 0), None);
    }

    #[test]
    fn notes_that_are_no_summary() {
        fn check(write: impl FnOnce(&Notes), want: Result<&str, Unusable>) {
            let home = tempfile::tempdir().unwrap();
            let notes = Notes::of(home.path());
            write(&notes);
            let limits = *driver(200_000, |_| {}).limits();
            let got = notes.load(&limits).map(|(text, mark)| format!("{text} {} {}", mark.id, mark.seq));
            assert_eq!(got.as_ref().map(String::as_str), want.as_ref().map(|text| *text));
        }
        let marked =
            || Metadata { last_summarized_id: Some("id".into()), last_summarized_seq: Some(7), ..Metadata::default() };
        let put = |text: &'static str, metadata: Metadata| {
            move |notes: &Notes| {
                notes.write(text).unwrap();
                notes.save(&metadata).unwrap();
            }
        };
        check(|_| {}, Err(Unusable::Missing));
        check(|notes| notes.write("x").unwrap(), Err(Unusable::Unreadable));
        check(
            |notes| {
                notes.write("x").unwrap();
                replace_private(&notes.metadata_file(), b"{\"last").unwrap();
            },
            Err(Unusable::Unreadable),
        );
        check(put(TEMPLATE, marked()), Err(Unusable::Empty));
        check(put("x", Metadata::default()), Err(Unusable::Unmarked));
        check(
            |notes| {
                put("x", marked())(notes);
                notes.unmark().unwrap();
            },
            Err(Unusable::Unmarked),
        );
        let long = |notes: &Notes| {
            notes.write(&text(40_001)).unwrap();
            notes.save(&marked()).unwrap();
        };
        check(long, Err(Unusable::TooLong { tokens: 40_001, most: 40_000 }));
        check(put("x", marked()), Ok("x id 7"));
        let home = tempfile::tempdir().unwrap();
        let notes = Notes::of(home.path());
        assert_eq!(notes.begin().unwrap(), TEMPLATE);
        notes.save(&marked()).unwrap();
        assert_eq!(std::fs::read_to_string(home.path().join("session-memory/.lastSummarizedId")).unwrap(), "id");
    }

    #[test]
    fn notes_have_to_save_enough() {
        fn check(window: u64, covered: u64, later: u64, want: &str) {
            let mut talk = Talk::new();
            talk.prompt(covered).reply(1);
            let mark = talk.session.next_seq();
            talk.prompt(later).reply(1);
            let driver = driver(window, |_| {});
            let summary = std::sync::Arc::new(Message::prompt(text(1_000)));
            let boundary =
                Boundary { tier: TIER.into(), keep_from: mark, summary: Some(summary), ..Boundary::default() };
            let candidate = Candidate { boundary, spent: Usage::default(), restored: Default::default() };
            let got =
                super::check(talk.context(), &driver, candidate).map_or_else(|why| why.to_string(), |_| "used".into());
            assert_eq!(got, want, "{window} {covered} {later}");
        }
        check(200_000, 20_000, 100, "used");
        check(200_000, 8_500, 100, "they would save 9976 tokens; the minimum is 10000");
        check(200_000, 20_000, 130_000, "176732 tokens would be left; the target is 167000");
        check(
            200_000,
            20_000,
            100_000,
            "the summary would not free enough space: 120,002 tokens before, 101,001 after",
        );
        check(8_192, 2_000, 100, "used");
        check(8_192, 1_100, 100, "they would save 134 tokens; the minimum is 614");
    }

    #[test]
    fn the_summary_leaves_the_hints_out() {
        let notes = TEMPLATE.replacen("next step._\n", "next step._\n- the parser\n", 1);
        let summary = summary(&notes);
        assert!(summary.starts_with("# Current task\n- the parser\n") && !summary.contains('_'), "{summary}");
        let asked = instruction(Path::new("/s/summary.md"), &notes, 4_000);
        assert!(asked.contains("in /s/summary.md, which") && asked.contains("below 4000 tokens"), "{asked}");
        assert_eq!(TEMPLATE.lines().filter(|line| line.starts_with("# ")).count(), 5);
    }
}
