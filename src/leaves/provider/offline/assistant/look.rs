//! Recipes that look something up: they resolve what a prompt names to what the folder has, then tell about it.

use serde_json::json;

use super::code::{self, Sort};
use super::intent::{Aspect, Look};
use super::{Recipe, Situation, explain, glob, grep, read, rows, s, say, tell, tool, unnumbered};

/// Words for one thing in the code: any of them is meant by any of them.
const CONCEPTS: [(&[&str], &[&str]); 9] = [
    (&["argument", "option", "flag", "cli"], &["arg", "argv", "flag", "option", "command line"]),
    (&["config", "setting"], &["config", "setting", "conf"]),
    (&["database", "sql"], &["database", "db", "sql"]),
    (&["login", "auth"], &["auth", "login", "password", "token"]),
    (&["network", "request"], &["http", "request", "fetch", "url", "socket"]),
    (&["log"], &["log", "trace"]),
    (&["error", "exception"], &["error", "except", "catch", "err"]),
    (&["save", "store", "persist", "stor", "sav"], &["save", "store", "write", "dump"]),
    (&["output", "print", "display"], &["print", "output", "render", "display"]),
];

/// What is looked for, in the ways in which code may have it.
struct Term {
    shown: String,
    any: Vec<String>,
}

impl Term {
    fn of(word: &str) -> Term {
        let lower = word.to_lowercase();
        let cut = ["ing", "ed", "es", "s"].iter().find_map(|ending| lower.strip_suffix(ending));
        let stem =
            cut.filter(|stem| stem.chars().count() > 2 && !word.contains(['_', ' '])).unwrap_or(&lower).to_owned();
        let meant = CONCEPTS.iter().find(|(words, _)| words.contains(&stem.as_str()));
        let any = meant.map_or_else(|| vec![stem.clone()], |(_, any)| any.iter().map(ToString::to_string).collect());
        Term { shown: word.to_owned(), any }
    }

    fn pattern(&self) -> String {
        format!("({})", self.any.iter().map(|word| escape(word)).collect::<Vec<_>>().join("|"))
    }

    fn within(&self, lower: &str) -> bool {
        self.any.iter().any(|word| lower.contains(word.as_str()))
    }
}

/// One line of the result of Grep in content mode: `file:line:code`.
pub(super) struct Hit {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) code: String,
}

impl Hit {
    fn of(situation: &Situation, line: &str) -> Option<Hit> {
        let mut parts = line.splitn(3, ':');
        let (file, number, code) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Hit { file: situation.short(file).to_owned(), line: number.parse().ok()?, code: code.to_owned() })
    }

    pub(super) fn shown(&self) -> String {
        let code: String = self.code.trim().chars().take(100).collect();
        format!("`{}:{}` — `{}`", self.file, self.line, code.replace('`', "'"))
    }

    /// How likely it is what was looked for: how much of it is there, then code before tests, prose and comments.
    fn rank(&self, terms: &[Term]) -> i32 {
        let (code, file) = (self.code.to_lowercase(), self.file.to_lowercase());
        let score: i32 =
            terms.iter().map(|term| 4 * i32::from(term.within(&code)) + 2 * i32::from(term.within(&file))).sum();
        let declared = code::declared(&self.code);
        let named = declared.is_some_and(|(_, name)| terms.iter().any(|term| term.within(&name.to_lowercase())));
        let kind = match () {
            () if !code::is_source(&self.file) => -5,
            () if code::is_test(&self.file) => -4,
            () if code::brings(&self.code) => -3,
            () if code::is_comment(&self.code) => -1,
            () if named => 4,
            () => i32::from(declared.is_some()),
        };
        score + kind
    }
}

fn hits(situation: &Situation, text: &str) -> Vec<Hit> {
    text.lines().filter_map(|line| Hit::of(situation, line)).collect()
}

pub(super) fn escape(term: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == ' ' || c == '_';
    term.chars().flat_map(|c| if plain(c) { vec![c] } else { vec!['\\', c] }).collect()
}

/// Every line with one of these names, as whole words, in files of this folder.
pub(super) fn mentions(situation: &Situation, names: &[String]) -> Result<Vec<Hit>, Vec<super::Part>> {
    let all = names.iter().map(|name| escape(name)).collect::<Vec<_>>().join("|");
    let input = json!({ "pattern": format!(r"\b({all})\b"), "output_mode": "content", "-n": true, "head_limit": 300 });
    let opening = format!("Looking for `{}`.", names.join("`, `"));
    let [found] = situation.need(&opening, [tool("Grep", input)])?;
    Ok(hits(situation, &found.text()))
}

/// Where one of these names is declared, in code before tests, functions and types before the rest.
pub(super) fn declaration<'h>(hits: &'h [Hit], names: &[String]) -> Option<(&'h Hit, &'h str)> {
    let found = hits.iter().filter_map(|hit| {
        let (sort, name) = code::declared(&hit.code).filter(|(_, name)| names.iter().any(|known| known == name))?;
        let at = names.iter().position(|known| known == name);
        let header = hit.code.trim_end().ends_with(';') && sort == Sort::Function;
        Some(((code::is_test(&hit.file), at, !code::is_source(&hit.file), header, sort as u8), hit, name))
    });
    found.min_by_key(|(rank, ..)| *rank).map(|(_, hit, name)| (hit, name))
}

/// Finds what was named and tells of it what was asked.
pub(super) fn look(situation: &Situation, what: &Look) -> Recipe {
    let mut parts = found(situation, what)?;
    // Reasons are not in the code; what it says is.
    if situation.prompt.to_lowercase().starts_with("why ") {
        parts.insert(
            0,
            say("I cannot tell why: that takes understanding, or the one who wrote it. What the code says:"),
        );
    }
    Ok(parts)
}

fn found(situation: &Situation, what: &Look) -> Recipe {
    if let Some(path) = &what.path
        && what.names.is_empty()
    {
        // "Where is X used in F" is about X.
        if what.terms.is_empty() || what.aspect == Aspect::Explain {
            return explain::place(situation, path);
        }
    }
    let mut names = what.names.clone();
    let plain = |term: &&String| term.chars().all(|c| c.is_alphanumeric() || c == '_') && names.len() < 4;
    let guessed: Vec<String> = what.terms.iter().filter(plain).cloned().collect();
    let few = what.terms.len() <= 2;
    names.extend(guessed.into_iter().filter(|word| few && !what.names.contains(word)));
    if !names.is_empty() {
        let hits = mentions(situation, &names)?;
        if let Some((hit, name)) = declaration(&hits, &names) {
            return match what.aspect {
                Aspect::Explain => symbol(situation, hit, name, &hits),
                Aspect::Uses => tell(uses(name, Some(hit), &hits)),
                Aspect::Where if !what.names.is_empty() => {
                    let text =
                        format!("`{name}` is declared here:\n\n- {}\n\n{}", hit.shown(), uses(name, Some(hit), &hits));
                    tell(text)
                }
                Aspect::Where => search(situation, &what.terms),
            };
        }
        if what.terms.is_empty() && !hits.is_empty() {
            let text = format!("No line I recognize declares `{}`.\n\n{}", names[0], uses(&names[0], None, &hits));
            return tell(text);
        }
        if !what.names.is_empty() && what.terms.is_empty() {
            // Spelled differently it may be there.
            return search(situation, &what.names);
        }
    }
    // One word may be the name of a file.
    if let ([word], Aspect::Explain) = (what.terms.as_slice(), what.aspect) {
        let [found] = situation.need("", [glob(&format!("**/{}*", plain_glob(word)))])?;
        let paths = situation.paths_of(found);
        let stem = |path: &&String| path.rsplit('/').next().unwrap_or(path).split('.').next() == Some(word.as_str());
        if let Some(path) = paths.iter().find(stem) {
            return explain::place(situation, path);
        }
    }
    let words = if what.terms.is_empty() { &what.names } else { &what.terms };
    // A question about behavior gets the places that it may be about, and no more is claimed.
    match what.aspect {
        Aspect::Explain if what.names.is_empty() => guess(situation, words),
        _ => search(situation, words),
    }
}

/// Where a name is used, by what the lines are.
fn uses(name: &str, declared: Option<&Hit>, hits: &[Hit]) -> String {
    let here = |hit: &&Hit| {
        code::words(&hit.code).any(|word| word == name)
            && declared.is_none_or(|at| (&at.file, at.line) != (&hit.file, hit.line))
            && code::declared(&hit.code).is_none_or(|(sort, found)| found != name || sort == Sort::Value)
    };
    let of = |kind: &dyn Fn(&Hit) -> bool| -> Vec<String> {
        hits.iter().filter(here).filter(|hit| kind(hit)).map(Hit::shown).collect()
    };
    let source = |hit: &Hit| code::is_source(&hit.file);
    let brings = |hit: &Hit| code::brings(&hit.code) || code::is_comment(&hit.code);
    let code = of(&|hit| source(hit) && !brings(hit) && !code::is_test(&hit.file));
    let groups = [
        ("Used in", code),
        ("In tests", of(&|hit| source(hit) && !brings(hit) && code::is_test(&hit.file))),
        ("Imported, exported or mentioned in comments", of(&|hit| source(hit) && brings(hit))),
        ("In other files", of(&|hit| !source(hit))),
    ];
    if groups.iter().all(|(_, found)| found.is_empty()) {
        return format!("Nothing else in this folder uses `{name}`.");
    }
    let texts = groups.iter().filter(|(_, found)| !found.is_empty());
    let texts: Vec<String> =
        texts.map(|(title, found)| format!("{title} ({}):\n\n{}", found.len(), rows(found, 15))).collect();
    let none = if groups[0].1.is_empty() { format!("No code outside tests uses `{name}`.\n\n") } else { String::new() };
    format!("{none}{}", texts.join("\n"))
}

/// Shows a declaration, and what can be read off it.
fn symbol(situation: &Situation, hit: &Hit, name: &str, hits: &[Hit]) -> Recipe {
    let [file] = situation.need("", [read(&hit.file)])?;
    let lines = unnumbered(&file.text());
    let items = code::items(&lines);
    let Some(item) = items.iter().find(|item| item.name == name && item.at + 1 == hit.line) else {
        return tell(format!("`{name}` is declared here:\n\n- {}\n\n{}", hit.shown(), uses(name, Some(hit), hits)));
    };
    let from = code::above(&lines, item.at);
    let code: Vec<&str> = lines[from..item.end].iter().map(String::as_str).take(60).collect();
    let cut = if item.end - from > 60 { "\n…" } else { "" };
    let language = hit.file.rsplit_once('.').map_or("text", |(_, extension)| extension);
    let mut text = format!("`{name}` is declared in `{}:{}`", hit.file, hit.line);
    text.push_str(&item.doc.as_ref().map_or(".".into(), |doc| format!(": {doc}")));
    text.push_str(&format!("\n\n```{language}\n{}{cut}\n```\n", code.join("\n").trim_end()));
    if item.sort == Sort::Function {
        let told = code::reading(&lines, item);
        if !told.is_empty() {
            text.push_str(&format!("\nIt {}.\n", told.join("; ")));
        }
    }
    text.push_str(&format!("\n{}", uses(name, Some(hit), hits)));
    tell(text.trim_end())
}

/// Searches the code: the lines that have most of the terms, declarations first, and files named for them.
fn search(situation: &Situation, words: &[String]) -> Recipe {
    let terms: Vec<Term> = words.iter().map(|word| Term::of(word)).collect();
    let shown = terms.iter().map(|term| term.shown.as_str()).collect::<Vec<_>>().join("`, `");
    let any = terms.iter().map(Term::pattern).collect::<Vec<_>>().join("|");
    let named: Vec<String> =
        terms.iter().flat_map(|term| &term.any).map(|word| format!("**/*{}*", plain_glob(word))).collect();
    let declares =
        format!(r"\b(fn|def|function|func|class|struct|enum|trait|interface|type|const|let|define)\s.*({any})");
    let mut calls = vec![grep(&declares, 200), glob(&format!("{{{}}}", named.join(",")))];
    if terms.len() > 1 {
        let pairs = terms.iter().enumerate().flat_map(|(at, one)| {
            terms
                .iter()
                .enumerate()
                .filter(move |(other, _)| *other != at)
                .map(move |(_, other)| format!("{}.*{}", one.pattern(), other.pattern()))
        });
        calls.push(grep(&pairs.collect::<Vec<_>>().join("|"), 200));
    }
    calls.push(grep(&any, 300));
    let found = situation.need_all(&format!("Searching for `{shown}`."), calls)?;
    let files: Vec<String> = situation.paths_of(found[1]).into_iter().take(6).map(|file| format!("`{file}`")).collect();
    let texts = found.iter().enumerate().filter(|(at, step)| *at != 1 && step.ok()).map(|(_, step)| step.text());
    let mut hits: Vec<Hit> = texts.flat_map(|text| hits(situation, &text)).collect();
    hits.sort_by(|a, b| b.rank(&terms).cmp(&a.rank(&terms)).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line))));
    hits.dedup_by(|a, b| (&a.file, a.line) == (&b.file, b.line));
    if hits.is_empty() && files.is_empty() {
        return tell(format!(
            "Nothing in this folder mentions `{shown}`: neither file contents nor file names. Ignored files were not searched."
        ));
    }
    let mut text = String::new();
    if let Some(best) = hits.first() {
        let mut in_files: Vec<&str> = hits.iter().map(|hit| hit.file.as_str()).collect();
        in_files.sort_unstable();
        in_files.dedup();
        let (lines, many) = (hits.len(), in_files.len());
        text.push_str(&format!(
            "`{shown}`: {lines} line{} in {many} file{}. Most likely `{}`:\n\n",
            s(lines),
            s(many),
            best.file
        ));
        text.push_str(&rows(&hits.iter().map(Hit::shown).collect::<Vec<_>>(), 8));
    }
    if !files.is_empty() {
        text.push_str(&format!("\nFiles with a similar name: {}.\n", files.join(", ")));
    }
    tell(text)
}

/// A term without what a glob reads as more than itself.
fn plain_glob(term: &str) -> String {
    term.replace(['*', '?', '[', ']', '{', '}', ' ', ',', '/', '\\'], "")
}

pub(super) fn fetch(situation: &Situation, url: &str) -> Recipe {
    let call = tool("WebFetch", json!({ "url": url, "prompt": "What does the page say?" }));
    let [page] = situation.need(&format!("Fetching {url}."), [call])?;
    let text = page.text();
    if !page.ok() {
        return tell(format!("Could not fetch the page: {text}"));
    }
    let opening: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(15).collect();
    tell(format!("The page starts with:\n\n> {}", opening.join("\n> ")))
}

/// No recipe fits: shows the places that the words of the prompt point to.
pub(super) fn guess(situation: &Situation, words: &[String]) -> Recipe {
    const NONE: &str = "That takes understanding, and this offline model only follows fixed recipes. What works: explaining the project, a file or a function, finding code, facts from manifest and git, running tests, fixing small slips, and exact edits (`what can you do?` lists them).";
    if words.is_empty() {
        return tell(NONE);
    }
    let terms: Vec<Term> = words.iter().map(|word| Term::of(word)).collect();
    let any = terms.iter().map(Term::pattern).collect::<Vec<_>>().join("|");
    let [found] = situation.need("Looking for what your words might refer to in this folder.", [grep(&any, 200)])?;
    let mut hits = hits(situation, &found.text());
    hits.sort_by(|a, b| b.rank(&terms).cmp(&a.rank(&terms)).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line))));
    if hits.is_empty() {
        return tell(NONE);
    }
    let shown = terms.iter().map(|term| term.shown.as_str()).collect::<Vec<_>>().join("`, `");
    let places = rows(&hits.iter().take(6).map(Hit::shown).collect::<Vec<_>>(), 6);
    tell(format!("{NONE}\n\nWhere the words `{shown}` appear, in case it helps:\n\n{places}"))
}
