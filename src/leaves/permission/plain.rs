//! The short list of commands that pass unasked where nothing confines them: plain programs with plain words.
//!
//! What is not listed asks. The list is a condition of its own behind everything else that is judged: it reads the text with
//! a reader of its own, which knows words, quotes and four ways of joining commands, and nothing else of a shell.

mod table;

use std::path::Path;

use self::table::{Operands, PROGRAMS, Plain, SUBCOMMANDS};
use super::files::Files;
use super::paths::Cwd;
use super::places::Places;
use super::shell::Word;

/// What a redirection may be: output that nobody wants, and both outputs in one.
const REDIRECTS: [&str; 6] = ["2>/dev/null", "2> /dev/null", ">/dev/null", "> /dev/null", "&>/dev/null", "2>&1"];

/// How the last command ended: digits, whatever they are.
const STATUS: &str = "$?";

/// The commands of a line that has only one reading, in their order; None where anything in it could mean more than it says.
pub(super) fn commands(line: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = vec![Vec::new()];
    let mut rest = line.trim_matches(' ');
    while !rest.is_empty() {
        let open: &mut Vec<String> = commands.last_mut()?;
        if let Some(after) = rest.strip_prefix(' ') {
            rest = after;
        } else if let Some(after) = redirected(rest) {
            (!open.is_empty()).then_some(())?;
            rest = after;
        } else if let Some(after) = ["&&", ";", "|"].iter().find_map(|join| rest.strip_prefix(join)) {
            (!open.is_empty() && !after.starts_with(['|', '&', ';'])).then_some(())?;
            commands.push(Vec::new());
            rest = after;
        } else {
            let (word, after) = word(rest).filter(|(_, after)| after.len() < rest.len())?;
            open.push(word);
            rest = after;
        }
    }
    commands.iter().all(|words| !words.is_empty()).then_some(commands)
}

fn redirected(text: &str) -> Option<&str> {
    let after = REDIRECTS.iter().find_map(|redirect| text.strip_prefix(redirect))?;
    (after.is_empty() || after.starts_with([' ', ';', '|', '&'])).then_some(after)
}

/// The first word, and what follows it.
fn word(text: &str) -> Option<(String, &str)> {
    let (mut word, mut chars) = (String::new(), text.char_indices());
    // Of a word in quotes nothing is special, so that only what is not quoted says what a sign behind it means.
    let mut before = None;
    while let Some((at, c)) = chars.next() {
        match c {
            ' ' | ';' | '|' | '&' => return Some((word, &text[at..])),
            '\'' | '"' => {
                loop {
                    let (at, inner) = chars.next()?;
                    match inner {
                        inner if inner == c => break,
                        inner if inner.is_control() => return None,
                        '$' if c == '"' && text[at..].starts_with(STATUS) => {
                            chars.next()?;
                            word.push('0');
                        }
                        '$' | '`' | '\\' if c == '"' => return None,
                        inner => word.push(inner),
                    }
                }
                before = None;
                continue;
            }
            '$' if text[at..].starts_with(STATUS) => {
                chars.next()?;
                word.push('0');
                before = None;
                continue;
            }
            '~' | '^' => before.filter(|c: &char| c.is_ascii_alphanumeric() || matches!(c, '~' | '^')).map(drop)?,
            c if c.is_alphanumeric() || "_./,:=@%+-".contains(c) => {}
            _ => return None,
        }
        word.push(c);
        before = Some(c);
    }
    Some((word, ""))
}

/// The words as such a line has them, by their text alone; None where one of them could mean more than it says.
pub(super) fn texts(words: &[Word]) -> Option<Vec<String>> {
    let one = |word: &Word| {
        let mut commands = commands(&word.source)?;
        let mut words = (commands.len() == 1).then(|| commands.remove(0))?;
        (words.len() == 1).then(|| words.remove(0))
    };
    words.iter().map(one).collect()
}

/// Whether the command is on the list, with options and operands that are. Its words have one reading each, wherever the
/// shell may be.
pub(super) fn is_plain(words: &[Word], cwd: &Cwd, places: &Places, files: &dyn Files) -> bool {
    let Some(folders) = &cwd.0 else { return false };
    let Some(words) = texts(words) else { return false };
    let Some((name, rest)) = words.split_first() else { return false };
    folders.iter().all(|cwd| {
        let here = Here { cwd, places, files };
        let arguments = match rest {
            [pager, rest @ ..] if name == "git" && pager == "--no-pager" => rest,
            rest => rest,
        };
        match arguments.split_first().filter(|_| name == "git") {
            Some((subcommand, rest)) => here.passes(SUBCOMMANDS, subcommand, rest),
            None => here.passes(PROGRAMS, name, arguments),
        }
    })
}

/// Where operands lead.
struct Here<'a> {
    cwd: &'a Path,
    places: &'a Places,
    files: &'a dyn Files,
}

impl Here<'_> {
    fn passes(&self, table: &[Plain], name: &str, arguments: &[String]) -> bool {
        let known = table.iter().find(|plain| plain.names.split(' ').any(|known| known == name));
        let operands = known.and_then(|plain| Some((plain, plain.operands_of(arguments)?)));
        operands.is_some_and(|(plain, (operands, patterned))| self.takes(plain, &operands, patterned))
    }

    fn takes(&self, plain: &Plain, operands: &[&String], patterned: bool) -> bool {
        let all_paths = |operands: &[&String]| operands.iter().all(|text| self.is_path(text));
        match plain.operands {
            Operands::None => operands.is_empty(),
            Operands::Words => true,
            Operands::Paths(most) => operands.len() <= most && all_paths(operands),
            Operands::Pattern => all_paths(operands.get(usize::from(!patterned)..).unwrap_or_default()),
            Operands::Revisions => operands.iter().all(|text| is_revision(text) || self.is_path(text)),
            Operands::Searched => {
                let rest = operands.get(usize::from(!patterned)..).unwrap_or_default();
                rest.iter().all(|text| is_revision(text) || self.is_path(text))
            }
            Operands::Format => operands.iter().all(|text| text.starts_with('+')),
            Operands::Script(known) => {
                operands.split_first().is_some_and(|(script, rest)| known(script) && all_paths(rest))
            }
            Operands::Tests => {
                let tests = operands.iter().position(|text| text.starts_with('-')).unwrap_or(operands.len());
                all_paths(&operands[..tests]) && are_tests(&operands[tests..])
            }
            Operands::Unary => match operands {
                [test, word] => {
                    let known = ["-f", "-d", "-e", "-s", "-r", "-w", "-x", "-L", "-h", "-n", "-z"];
                    known.contains(&test.as_str()) && !word.starts_with('-')
                }
                _ => false,
            },
            Operands::Looked => matches!(operands, [option, name] if *option == "-v" && !name.starts_with('-')),
        }
    }

    /// Whether it names something in the workspace that is there and holds no secrets.
    fn is_path(&self, text: &str) -> bool {
        let path = self.cwd.join(text);
        let real = self.files.resolve(&path);
        let listed = || {
            let name = real.file_name().and_then(|name| name.to_str());
            let names = real.parent().map(|folder| self.files.names(folder)).unwrap_or_default();
            name.is_some_and(|name| names.iter().any(|known| known == name))
        };
        let roots = || self.places.workspace().any(|root| self.files.resolve(root) == real);
        let exists = || self.files.is_file(&real) || !self.files.names(&real).is_empty() || roots() || listed();
        self.places.inside(&path, self.files) && exists() && self.places.private(&path, self.files).is_none()
    }
}

/// Whether it can be nothing but a revision, a range of them, or a path below the folder.
fn is_revision(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_./~^@+:-".contains(c))
        && !text.starts_with(['-', '/', ':'])
        && !text.split(['/', ':']).any(|part| part == "..")
}

/// Whether these are tests of find's that look at names and sizes alone.
fn are_tests(words: &[&String]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-print" | "-print0" | "-empty" | "-not" | "-o" | "-a" | "-or" | "-and" => {}
            "-name" | "-iname" | "-path" | "-ipath" | "-type" | "-maxdepth" | "-mindepth" | "-mtime" | "-mmin"
            | "-size" => match words.next() {
                Some(value) if !value.starts_with("--") => {}
                _ => return false,
            },
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_one_reading() {
        for (line, want) in [
            ("ls", "ls"),
            (" ls  -la ", "ls -la"),
            ("ls|wc -l", "ls / wc -l"),
            ("cd a && ls; pwd", "cd a / ls / pwd"),
            ("grep -rn 'a b' \"c d\" 2>/dev/null | head", "grep -rn a b c d / head"),
            ("ls x'y'\"z\" 2>&1", "ls xyz"),
            ("git diff HEAD~3 a^", "git diff HEAD~3 a^"),
            ("echo 'a$(x)`y`\\'", "echo a$(x)`y`\\"),
            ("echo ''", "echo "),
            ("echo $? \"exit: $?.\"", "echo 0 exit: 0."),
        ] {
            let read = commands(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(read.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(" / "), want, "{line}");
        }
        for line in [
            "",
            "ls &",
            "ls & x",
            "ls || x",
            "ls |& x",
            "ls ;; x",
            "ls &&& x",
            "; ls",
            "ls;",
            "| ls",
            "ls | | x",
            "ls\nx",
            "ls\tx",
            "ls\rx",
            "ls $x",
            "ls $?x$",
            "ls \"$?$\"",
            "ls $? ~",
            "ls \"$x\"",
            "ls `x`",
            "ls \"`x`\"",
            "ls \\x",
            "ls \"a\\\"\"",
            "ls *",
            "ls ?",
            "ls [a]",
            "ls {a,b}",
            "ls ~",
            "ls ~x",
            "ls a:~",
            "ls a=~",
            "ls '~",
            "ls \"a",
            "(ls)",
            "{ ls",
            "! ls",
            "ls # x",
            "ls < a",
            "ls > a",
            "ls >a",
            "ls >> a",
            "ls 2>/dev/nullx",
            "ls 2>/dev/null/../a",
            "2>/dev/null",
            "ls 3>&1",
            "ls >&2",
            "ls <<E",
            "ls 'a\nb'",
            "ls ''~",
            "ls '^'^",
            "^ls",
            "ls $'x'",
            "ls\u{a0}x",
        ] {
            assert_eq!(commands(line), None, "{line:?}");
        }
    }
}
