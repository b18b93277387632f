//! Recall: finds again what was said in this session and has left the context; with consent in earlier ones, too.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::tokens;
use crate::permission::Access;
use crate::session::recall::{self, Kind, Piece, Place, Terms, Wrong};
use crate::session::{LOG_FILE, index};
use crate::stdx::ansi;

use super::call::Typed;
use super::{Call, Context, Dirs, Manners, Output, file, search};

/// Tokens of one answer.
const BUDGET: u64 = 460;
/// Places that are looked for; each page shows some of them.
const PLACES: usize = 60;
/// Earlier sessions that are searched, the newest.
const SESSIONS: usize = 300;
/// Characters of a session's id that name it: its time, in milliseconds.
const SHORT: usize = 13;

pub(super) struct Recall;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    query: String,
    /// In earlier sessions of this project
    #[serde(default)]
    earlier: bool,
    #[serde(default)]
    kind: Option<Kind>,
    #[serde(default)]
    page: Option<usize>,
}

impl Typed for Recall {
    type Input = Input;

    const NAME: &'static str = recall::TOOL;
    const ABOUT: &'static str = include_str!("../../../assets/tools/recall.md");
    const MANNERS: Manners = Manners { spare: &["earlier", "kind"], ..Manners::READS };

    fn call(&self, input: Input, dirs: &Dirs) -> Result<Call, String> {
        let wanted = Wanted::of(&input)?;
        let elsewhere = input.earlier || matches!(&wanted, Wanted::Entry { of: Of::Session(_), .. });
        let access = if elsewhere { Access::Sessions } else { Access::Free };
        let page = input.page.unwrap_or(1).max(1);
        let query = file::one_line(&input.query);
        let title = if elsewhere { format!("earlier sessions of this project: {query}") } else { query };
        let project = dirs.project.clone();
        Ok(Call::new(access, title, move |context: Context| async move {
            let logs = Logs { own: context.log.clone(), session: context.store.dir().to_owned(), project };
            search::run(context, move |_, _| wanted.found(&logs, input.earlier, page)).await
        }))
    }
}

/// What a query asks for.
enum Wanted {
    Words(Terms),
    Entry { of: Of, seq: u64 },
}

/// Whose log an entry is in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Of {
    Own,
    /// The session's own, for one of its sub-agents.
    Main,
    Session(String),
}

struct Logs {
    own: PathBuf,
    /// The folder of the session.
    session: PathBuf,
    project: PathBuf,
}

impl Wanted {
    fn words(query: &str, kind: Option<Kind>) -> Result<Wanted, String> {
        Terms::new(query, kind).map(Wanted::Words).map_err(|wrong| match wrong {
            Wrong::Empty => "The query is empty: give one to three words that were used.".to_owned(),
            Wrong::Pattern(why) => format!("The regular expression is invalid: {why}."),
        })
    }

    fn of(input: &Input) -> Result<Wanted, String> {
        let query = input.query.trim();
        let Some(entry) = query.strip_prefix('#') else { return Wanted::words(query, input.kind) };
        let (of, seq) = match entry.split_once(':') {
            None => (Of::Own, entry),
            Some(("main", seq)) => (Of::Main, seq),
            Some((session, seq)) => (Of::Session(session.to_owned()), seq),
        };
        match seq.parse() {
            Ok(seq) => Ok(Wanted::Entry { of, seq }),
            Err(_) => Wanted::words(query, input.kind),
        }
    }

    fn found(&self, logs: &Logs, earlier: bool, page: usize) -> Result<Output, String> {
        match self {
            Wanted::Words(query) => {
                let home = logs.home().to_owned();
                let logs = if earlier { logs.earlier()? } else { logs.own() };
                let output = Output::ok(places(&home, &logs, query, earlier, page));
                recall::remember_beside(home, |_| logs.into_iter().map(|log| log.path).collect());
                Ok(output)
            }
            Wanted::Entry { of, seq } => entry(&logs.of(of)?, *seq, page),
        }
    }
}

/// A log that is searched.
struct Log {
    of: Of,
    path: PathBuf,
    /// What places in it are introduced by.
    about: String,
}

impl Logs {
    fn main(&self) -> PathBuf {
        self.session.join(LOG_FILE)
    }

    /// The folder of all sessions.
    fn home(&self) -> &Path {
        self.session.parent().unwrap_or(Path::new("."))
    }

    fn own(&self) -> Vec<Log> {
        let own = Log { of: Of::Own, path: self.own.clone(), about: String::new() };
        if self.own == self.main() {
            return vec![own];
        }
        vec![own, Log { of: Of::Main, path: self.main(), about: "main conversation, ".to_owned() }]
    }

    fn earlier(&self) -> Result<Vec<Log>, String> {
        let home = self.home();
        let sessions = index::list(home, Some(&self.project)).map_err(|error| format!("{error}."))?;
        let others = sessions.into_iter().filter(|session| !self.session.ends_with(&session.id)).take(SESSIONS);
        let log = |session: index::Summary| {
            let day = jiff::Timestamp::from_millisecond(session.changed_ms as i64).unwrap_or_default();
            let title: String = session.title.unwrap_or_default().chars().take(50).collect();
            let about = format!("{} \"{title}\", ", day.strftime("%Y-%m-%d"));
            let path = home.join(&session.id).join(LOG_FILE);
            Log { of: Of::Session(session.id.chars().take(SHORT).collect()), path, about }
        };
        Ok(others.map(log).collect())
    }

    fn of(&self, of: &Of) -> Result<PathBuf, String> {
        let found = match of {
            Of::Own => Some(self.own.clone()),
            Of::Main => Some(self.main()),
            Of::Session(_) => self.earlier()?.into_iter().find(|log| log.of == *of).map(|log| log.path),
        };
        found.ok_or_else(|| "No earlier session of this project has that id.".to_owned())
    }
}

/// The places of a page, the best first, and how to get at more.
fn places(home: &Path, logs: &[Log], query: &Terms, earlier: bool, page: usize) -> String {
    let paths: Vec<PathBuf> = logs.iter().map(|log| log.path.clone()).collect();
    let found = recall::search(home, &paths, query, PLACES);
    let found = if earlier { found } else { found.newest_turn_last() };
    let told: Vec<String> = found.places.iter().map(|place| told(&logs[place.log], place)).collect();
    let pages = pages(&told);
    let Some(shown) = pages.get(page - 1) else {
        let why = match (told.is_empty(), earlier) {
            (false, _) => format!("There {}.", only(pages.len())),
            (true, false) => "Not found in this session. Try one word, another word for it, or a /regex/; `earlier` \
                              searches earlier sessions of this project."
                .to_owned(),
            (true, true) => "Not found in the earlier sessions of this project.".to_owned(),
        };
        return why;
    };
    let more = if page < pages.len() { format!(" More: page {}.", page + 1) } else { String::new() };
    let first = pages[..page - 1].iter().map(Vec::len).sum::<usize>() + 1;
    let head = format!("{first}-{} of {}.{more}", first + shown.len() - 1, told.len());
    format!("{head}\n{}", shown.join("\n"))
}

fn told(log: &Log, place: &Place) -> String {
    let tool = place.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
    let reference = match &log.of {
        Of::Own => format!("#{}", place.seq),
        Of::Main => format!("#main:{}", place.seq),
        Of::Session(id) => format!("#{id}:{}", place.seq),
    };
    let excerpt = ansi::clean(&place.excerpt);
    format!("{reference} {}turn {} {}{tool}: {excerpt}", log.about, place.turn, place.kind.name())
}

/// Lines in pages that keep to the budget.
fn pages(lines: &[String]) -> Vec<Vec<&str>> {
    let mut pages: Vec<Vec<&str>> = Vec::new();
    let mut left = 0;
    for line in lines {
        let cost = tokens::text(line) + 1;
        if cost > left || pages.is_empty() {
            pages.push(Vec::new());
            left = BUDGET;
        }
        left = left.saturating_sub(cost);
        if let Some(page) = pages.last_mut() {
            page.push(line);
        }
    }
    pages
}

/// One page of what an entry says.
fn entry(log: &Path, seq: u64, page: usize) -> Result<Output, String> {
    let read = recall::read(log, seq).map_err(|error| format!("The session's log cannot be read: {error}."))?;
    let pieces = read.ok_or_else(|| format!("Entry #{seq} does not exist, or says nothing."))?;
    let text = |piece: &Piece| {
        let tool = piece.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
        format!("{}{tool}:\n{}", piece.kind.name(), piece.text)
    };
    let text = ansi::clean(&pieces.iter().map(text).collect::<Vec<_>>().join("\n\n"));
    // Lines that are longer than a page are cut, so that no page is empty and none too long.
    let lines: Vec<String> = text.lines().flat_map(parts).collect();
    let pages = pages(&lines);
    let Some(shown) = pages.get(page - 1) else {
        return Err(format!("Of entry #{seq} there {}.", only(pages.len())));
    };
    let more = if page < pages.len() { format!("\n[page {page} of {}]", pages.len()) } else { String::new() };
    Ok(Output::ok(format!("{}{more}", shown.join("\n"))))
}

fn only(pages: usize) -> String {
    if pages == 1 { "is only one page".to_owned() } else { format!("are only {pages} pages") }
}

/// A line in parts of at most 400 characters.
fn parts(line: &str) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    match chars.is_empty() {
        true => vec![String::new()],
        false => chars.chunks(400).map(|part| part.iter().collect()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use serde_json::{Value, json};

    use super::*;
    use crate::message::Message;
    use crate::permission::{Behavior, Disk, Mode, Places, RuleSet, decide};
    use crate::session::Session;
    use crate::session::entry::EntryKind;
    use crate::tools::fixture::Fixture;
    use crate::tools::{RULES, Toolbox};

    fn session(home: &Path, project: &Path, prompts: &[&str]) -> Session {
        let mut session = Session::create(home, project, "1", SystemTime::now);
        for prompt in prompts {
            session.append(EntryKind::Message { message: Arc::new(Message::prompt(*prompt)) }).unwrap();
        }
        session
    }

    #[test]
    fn its_definition_is_small() {
        let toolbox = Toolbox::builtin();
        let spec = toolbox.get(Recall::NAME).unwrap().spec();
        let parts = [&spec.name, &spec.description, &spec.schema.to_string()];
        let tokens: u64 = parts.iter().map(|part| tokens::text(part)).sum();
        assert!(tokens <= 120, "{tokens} tokens: {parts:?}");
    }

    #[tokio::test]
    async fn answers_are_bounded_and_say_where_more_is() {
        let mut fixture = Fixture::new();
        let long = format!("the heron {}", "is a bird of many words ".repeat(300));
        let mut prompts: Vec<String> = (0..40).map(|n| format!("note {n}: heron {}", "word ".repeat(n))).collect();
        prompts.push(long);
        let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
        let home = fixture.store.dir().parent().unwrap().to_owned();
        let open = session(&home, &fixture.root, &prompts);
        fixture.store = open.store().clone();
        let first = fixture.ok(&Recall, json!({"query": "heron"})).await;
        assert!(first.starts_with("1-") && first.lines().next().unwrap().ends_with(" More: page 2."), "{first}");
        let second = fixture.ok(&Recall, json!({"query": "heron", "page": 2})).await;
        let entry = fixture.ok(&Recall, json!({"query": "#41"})).await;
        assert!(entry.starts_with("prompt:\nthe heron") && entry.contains("[page 1 of "), "{entry}");
        for answer in [first, second, entry] {
            assert!((100..=500).contains(&tokens::text(&answer)), "{} tokens", tokens::text(&answer));
        }
        for (input, want) in [
            (json!({"query": "walrus"}), "Not found in this session."),
            (json!({"query": "heron", "page": 99}), "There are only "),
            (json!({"query": "\"a bird of many\"", "page": 2}), "There is only one page."),
        ] {
            let got = fixture.ok(&Recall, input).await;
            assert!(got.starts_with(want), "{got}");
        }
        // The question itself is found last.
        let ranks =
            |text: &str| text.find("heron word").zip(text.find("which heron")).map(|(fact, asked)| fact < asked);
        drop(open);
        let open = session(&home, &fixture.root, &["the heron word is blue", "which heron word was it?"]);
        fixture.store = open.store().clone();
        let answer = fixture.ok(&Recall, json!({"query": "heron word"})).await;
        assert_eq!(ranks(&answer), Some(true), "{answer}");
        for (input, want) in [
            (json!({"query": "#999"}), "Entry #999 does not exist"),
            (json!({"query": " "}), "The query is empty"),
            (json!({"query": "/(/"}), "The regular expression is invalid"),
        ] {
            let got = fixture.error(&Recall, input).await;
            assert!(got.starts_with(want), "{got}");
        }
    }

    #[tokio::test]
    async fn earlier_sessions_of_the_project_are_asked_for() {
        let mut fixture = Fixture::new();
        let home = fixture.store.dir().parent().unwrap().to_owned();
        let earlier = session(&home, &fixture.root, &["an old otter"]);
        drop(session(&home, Path::new("/elsewhere"), &["a foreign otter"]));
        let open = session(&home, &fixture.root, &["a new otter"]);
        fixture.store = open.store().clone();
        let found = fixture.ok(&Recall, json!({"query": "otter", "earlier": true})).await;
        let reference = format!("#{}:1", &earlier.id()[..SHORT]);
        assert!(found.contains(&reference) && found.ends_with("turn 1 prompt: an old otter"), "{found}");
        assert!(found.starts_with("1-1 of 1.\n"), "{found}");
        let whole = fixture.ok(&Recall, json!({"query": reference})).await;
        assert_eq!(whole, "prompt:\nan old otter");

        let decided = |input: Value| {
            let call = fixture.call(&Recall, input).unwrap();
            let places = Places { project: fixture.root.clone(), cwd: fixture.root.clone(), ..Places::default() };
            let (mode, rules) = (Mode::Default, &RuleSet::default());
            let query = crate::permission::Query {
                tool: Recall::NAME,
                access: call.access(),
                mode,
                rules,
                places: &places,
                vocabulary: RULES,
                level: crate::sandbox::Level::None,
            };
            let decision = decide(&query, &Disk);
            let rules: Vec<String> = decision.suggestions.iter().map(ToString::to_string).collect();
            (decision.behavior, call.title().to_owned(), decision.reasons.join(", "), rules.join(", "))
        };
        let own = decided(json!({"query": "otter"}));
        assert_eq!((own.0, own.1.as_str()), (Behavior::Allow, "otter"));
        for query in ["otter", &reference] {
            let (behavior, title, why, rules) = decided(json!({"query": query, "earlier": query == "otter"}));
            assert_eq!((behavior, rules.as_str()), (Behavior::Ask, "Recall(earlier)"));
            assert_eq!(title, format!("earlier sessions of this project: {query}"));
            assert_eq!(why, "it gives the model what was said in earlier sessions of this project");
        }
    }
}
