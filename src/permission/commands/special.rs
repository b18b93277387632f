//! Commands whose arguments are a language of their own: `echo`, `test`, `date`, `sed`, `jq`.

use super::super::shell::Word;
use super::{Reads, may_be_option, plain};

/// Names that [`reads`] answers for.
pub(super) const NAMES: &[&str] = &[
    "echo", "printf", "true", "false", ":", "test", "[", "[[", "date", "sed", "jq", "hostname", "exit", "return", "break",
    "continue", "wait",
];

/// What the command reads; None when it is not one of these.
pub(super) fn reads(name: &str, arguments: &[Word]) -> Option<Result<Reads, String>> {
    let data = || Ok(Reads { paths: arguments.iter().filter(|word| word.has_glob()).cloned().collect(), deep: false });
    Some(match name {
        "echo" | "true" | "false" | ":" => data(),
        "printf" => printf(arguments).and_then(|()| data()),
        "test" | "[" | "[[" => test(name, arguments),
        "date" => date(arguments),
        "sed" => sed(arguments),
        "jq" => jq(arguments),
        "hostname" => match arguments.iter().all(|word| matches!(word.literal().as_deref(), Some("-f" | "-s" | "-i" | "-I" | "-d"))) {
            true => Ok(Reads::default()),
            false => Err("hostname with operands sets the name".into()),
        },
        "exit" | "return" | "break" | "continue" | "wait" => {
            match arguments.iter().all(|word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()))) {
                true => Ok(Reads::default()),
                false => Err(format!("{name} with something else than numbers")),
            }
        }
        _ => return None,
    })
}

/// `-v` and `%n` assign to variables, whose subscripts are evaluated.
fn printf(arguments: &[Word]) -> Result<(), String> {
    let format = match arguments.first() {
        Some(word) if word.literal().as_deref() == Some("--") => arguments.get(1),
        other => other,
    };
    let Some(format) = format else { return Ok(()) };
    let Some(text) = format.literal().filter(|text| !text.starts_with('-')) else {
        return Err("printf with options assigns variables".into());
    };
    let assigns = text.split('%').skip(1).any(|part| part.trim_start_matches(|c: char| !c.is_ascii_alphabetic() || "hlLjzt".contains(c)).starts_with('n'));
    if assigns { Err("%n assigns a variable".into()) } else { Ok(()) }
}

/// Only operators that evaluate nothing; file operators read their operand.
fn test(name: &str, arguments: &[Word]) -> Result<Reads, String> {
    let mut texts = Vec::new();
    for word in arguments {
        match word.literal() {
            Some(text) => texts.push(text),
            None if name == "[[" => texts.push(word.known()),
            None => return Err("a glob in a test".into()),
        }
    }
    match (name, texts.pop()) {
        ("test", Some(last)) => texts.push(last),
        ("test", None) => {}
        ("[", Some(last)) if last == "]" => {}
        ("[[", Some(last)) if last == "]]" => {}
        _ => return Err("a test without an end".into()),
    }
    let mut reads = Reads::default();
    for (at, text) in texts.iter().enumerate() {
        let next = texts.get(at + 1);
        match text.as_str() {
            "-e" | "-f" | "-d" | "-s" | "-r" | "-w" | "-x" | "-L" | "-h" | "-b" | "-c" | "-p" | "-S" | "-u" | "-g" | "-k" | "-O" | "-G" | "-N" => {
                reads.paths.extend(next.map(|path| plain(path)));
            }
            "-nt" | "-ot" | "-ef" => {
                reads.paths.extend(at.checked_sub(1).and_then(|at| texts.get(at)).into_iter().chain(next).map(|path| plain(path)));
            }
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let number = |text: Option<&String>| {
                    text.is_some_and(|text| !text.is_empty() && text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()))
                };
                if !number(next) || !number(at.checked_sub(1).and_then(|at| texts.get(at))) {
                    return Err("arithmetic with something else than numbers".into());
                }
            }
            "-z" | "-n" | "-a" | "-o" | "-t" => {}
            text if text.starts_with('-') && text.len() > 1 => return Err(format!("{text} is not a known harmless test")),
            _ => {}
        }
    }
    Ok(reads)
}

/// Anything but a format sets the clock.
fn date(arguments: &[Word]) -> Result<Reads, String> {
    let mut reads = Reads::default();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.literal() else { return Err("a glob in date".into()) };
        match text.as_str() {
            "-u" | "-R" | "-I" | "--utc" | "--universal" | "--rfc-email" | "--iso-8601" | "--help" | "--version" => {}
            "-d" | "--date" => {
                rest.next().ok_or("date -d without a date")?;
            }
            "-r" | "--reference" => reads.paths.extend(rest.next().cloned()),
            text if text.starts_with('+') || text.starts_with("--date=") || text.starts_with("--iso-8601=") => {}
            text if text.starts_with("--rfc-3339=") || (text.starts_with("-I") && !text.contains('s')) || text == "-Iseconds" => {}
            text => return Err(format!("date {text} may set the clock")),
        }
    }
    Ok(reads)
}

fn sed(arguments: &[Word]) -> Result<Reads, String> {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if word.has_glob() && may_be_option(word) {
            return Err("a glob that may become an option".into());
        }
        let text = word.known();
        match text.as_str() {
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "--quiet" | "--silent" | "--regexp-extended" | "--null-data" => {}
            "-e" | "--expression" | "-ne" => scripts.push(rest.next().and_then(Word::literal).ok_or("sed -e without a script")?),
            "--" => {
                operands.extend(rest.by_ref().cloned());
            }
            text if text.starts_with('-') && text != "-" => return Err(format!("{text} is not a known harmless option of sed")),
            _ => operands.push(word.clone()),
        }
    }
    if scripts.is_empty() {
        if operands.is_empty() {
            return Err("sed without a script".into());
        }
        scripts.push(operands.remove(0).literal().ok_or("sed's script is a glob")?);
    }
    match scripts.iter().find(|script| !sed_only_prints(script)) {
        Some(script) => Err(format!("sed {script:?} may write or execute")),
        None => Ok(Reads { paths: operands, deep: false }),
    }
}

/// `p d q =` with plain addresses, and `s` with harmless flags: nothing with `w`, `e`, `r` or labels.
pub(super) fn sed_only_prints(script: &str) -> bool {
    if let Some(rest) = script.strip_prefix('s') {
        return substitution(rest);
    }
    script.split(';').all(|command| {
        let command = command.trim();
        let Some(address) = command.strip_suffix(['p', 'd', 'q', '=']) else { return false };
        let address = address.trim().trim_end_matches('!');
        let number = |text: &str| text == "$" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        let pattern = |text: &str| {
            text.strip_prefix('/').and_then(|text| text.strip_suffix('/')).is_some_and(|text| !text.is_empty() && !text.contains(['/', '\\', '\n', '[']))
        };
        let part = |text: &str| number(text) || pattern(text) || text.strip_prefix('+').is_some_and(number);
        address.is_empty() || address.split(',').count() <= 2 && address.split(',').all(part)
    })
}

fn substitution(rest: &str) -> bool {
    let mut chars = rest.chars();
    let Some(delimiter) = chars.next().filter(|c| "/|#,:@!".contains(*c)) else { return false };
    let (mut found, mut escaped, mut flags) = (0, false, String::new());
    for c in chars {
        match c {
            // A bracket may hold a delimiter for some seds and not for others.
            '\n' | '[' if found < 2 => return false,
            _ if escaped => escaped = false,
            '\\' if found < 2 => escaped = true,
            c if c == delimiter && found < 2 => found += 1,
            c if found == 2 => flags.push(c),
            _ => {}
        }
    }
    found == 2 && flags.chars().all(|c| "gpiI0123456789".contains(c))
}

fn jq(arguments: &[Word]) -> Result<Reads, String> {
    let mut operands = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if word.has_glob() && may_be_option(word) {
            return Err("a glob that may become an option".into());
        }
        let text = word.known();
        match text.as_str() {
            "--compact-output" | "--raw-output" | "--raw-input" | "--slurp" | "--null-input" | "--sort-keys" | "--tab"
            | "--color-output" | "--monochrome-output" | "--join-output" | "--exit-status" => {}
            "--arg" | "--argjson" => {
                rest.next();
                rest.next();
            }
            text if text.starts_with("--") => return Err(format!("{text} is not a known harmless option of jq")),
            text if text.starts_with('-') && text.len() > 1 => {
                if !text[1..].chars().all(|c| "aceCjMnrRsS".contains(c)) {
                    return Err(format!("{text} is not a known harmless option of jq"));
                }
            }
            _ => operands.push(word.clone()),
        }
    }
    if operands.is_empty() {
        return Err("jq without a filter".into());
    }
    let filter = operands.remove(0).literal().ok_or("jq's filter is a glob")?;
    // Modules are read from anywhere, and the environment may hold keys.
    if ["import", "include", "env", "ENV", "modulemeta", "get_search_list", "input_filename"].iter().any(|word| filter.contains(word)) {
        return Err("jq's filter reads more than its input".into());
    }
    Ok(Reads { paths: operands, deep: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts() {
        for (script, want) in [
            ("1,10p", true),
            ("$p", true),
            ("/foo/p", true),
            ("/foo/,/bar/p", true),
            ("5q", true),
            ("1p;3p", true),
            ("s/a/b/g", true),
            ("s|a|b|", true),
            ("s/a/b/w out", false),
            ("s/a/id/e", false),
            ("s/a/b/;w out", false),
            ("s/a/b/\nw out", false),
            ("s/[/]/x/w y/", false),
            ("w out", false),
            ("1e id", false),
            ("1!d", true),
            ("r /etc/passwd", false),
            ("1,2w x;p", false),
            ("p;e", false),
            ("/a/w x/p", false),
        ] {
            assert_eq!(sed_only_prints(script), want, "{script:?}");
        }
    }
}
