//! Commands and variables that stand before a command and change nothing about what it does.

use super::commands::covered::remote_line;
use super::commands::starters::{self, Inner, Kind};
use super::shell::{Assignment, Word};

/// Whether setting the variable to the value, for a command or for the rest of the line, can run or redirect nothing.
/// The value is None when only bash knows it. Make expands variables that it is given, and bash evaluates some as arithmetic.
pub(super) fn sets_harmlessly(name: &str, value: Option<&str>) -> bool {
    let plain = |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || "_.,:=/*+-".contains(c));
    is_harmless(name) && value.is_some_and(|value| if is_locale(name) { keeps_ascii(value) } else { plain(value) })
}

fn is_locale(name: &str) -> bool {
    let category = |rest: &str| rest.bytes().all(|b| b.is_ascii_uppercase());
    matches!(name, "LANG" | "LANGUAGE") || name.strip_prefix("LC_").is_some_and(category)
}

/// Whether the locale is one in which no ASCII character is part of another: in others, as in Big5, bash finds other ends
/// of words and quotes in the next line than we do.
fn keeps_ascii(locale: &str) -> bool {
    let Some((language, charset)) = locale.split_once('.') else { return matches!(locale, "C" | "POSIX") };
    !language.is_empty()
        && language.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
        && matches!(charset, "UTF-8" | "utf-8" | "UTF8" | "utf8")
}

/// Whether what the variable holds can neither run nor redirect anything, nor is a secret.
pub(super) fn is_harmless(name: &str) -> bool {
    is_locale(name)
        || [
            "TZ",
            "NO_COLOR",
            "FORCE_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "NODE_ENV",
            "CI",
            "TERM",
            "COLUMNS",
            "LINES",
            "RUST_BACKTRACE",
            "RUST_LOG",
            "DEBUG",
            "PYTHONUNBUFFERED",
            "PYTHONDONTWRITEBYTECODE",
            "COLORTERM",
            "PY_COLORS",
            "RUST_LIB_BACKTRACE",
            "RUST_LOG_STYLE",
            "RUST_MIN_STACK",
            "RUST_TEST_THREADS",
            "PROPTEST_CASES",
            "CARGO_TERM_COLOR",
            "CARGO_INCREMENTAL",
            "CARGO_BUILD_JOBS",
            "RAYON_NUM_THREADS",
            "TOKIO_WORKER_THREADS",
            "OMP_NUM_THREADS",
            "PYTHONHASHSEED",
            "PYTHONUTF8",
            "PYTHONFAULTHANDLER",
            "GOMAXPROCS",
            "GOOS",
            "GOARCH",
            "CGO_ENABLED",
            "SOURCE_DATE_EPOCH",
            "GIT_TERMINAL_PROMPT",
            "DO_NOT_TRACK",
        ]
        .contains(&name)
}

/// Whether a variable of the line's own is no more than that.
pub(super) fn is_local(name: &str) -> bool {
    !matches!(name, "histchars" | "path") && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// The command behind a plain wrapper: `timeout 5`, `nice`, `nohup`, `time`, `stdbuf`, `command`, `env A=1`.
///
/// # Errors
/// When the wrapper is not in its plain form. None when it is not a wrapper.
pub(super) fn unwrap(words: &[Word]) -> Option<Result<&[Word], String>> {
    let name = words.first()?.literal()?;
    let known = |text: &str, options: &[&str]| options.contains(&text);
    let mut at = 1;
    let text = |at: usize| words.get(at).map(|word| word.literal().unwrap_or_else(|| "-?".to_owned()));
    match name.as_str() {
        "timeout" => {
            while let Some(option) = text(at).filter(|text| text.starts_with('-')) {
                let valued = known(&option, &["-s", "--signal", "-k", "--kill-after"]);
                let inline = option.starts_with("--signal=") || option.starts_with("--kill-after=");
                if !valued && !inline && !known(&option, &["--preserve-status", "--foreground", "-v", "--verbose"]) {
                    return Some(Err(format!("{option} is not a known option of timeout")));
                }
                at += if valued { 2 } else { 1 };
            }
            let duration = text(at).unwrap_or_default();
            let number = duration.trim_end_matches(['s', 'm', 'h', 'd']);
            if number.is_empty() || !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
                return Some(Err("timeout without a plain duration".into()));
            }
            at += 1;
        }
        "nice" => match text(at) {
            Some(option) if known(&option, &["-n", "--adjustment"]) => at += 2,
            Some(option) if option.starts_with("--adjustment=") => at += 1,
            Some(option)
                if option.strip_prefix('-').is_some_and(|rest| {
                    !rest.is_empty() && rest.trim_start_matches('n').bytes().all(|b| b.is_ascii_digit())
                }) =>
            {
                at += 1
            }
            _ => {}
        },
        "nohup" => {}
        "time" => at += usize::from(text(at).as_deref() == Some("-p")),
        "stdbuf" => {
            while text(at).is_some_and(|option| {
                option.len() > 2
                    && option.starts_with(['-'])
                    && "ioe".contains(&option[1..2])
                    && option[2..].chars().all(|c| c.is_ascii_digit() || c == 'L')
            }) {
                at += 1;
            }
        }
        "command" if matches!(text(1).as_deref(), Some("-v" | "-V")) => return None,
        "command" => {}
        "env" => {
            while let Some((name, value)) =
                text(at).as_deref().and_then(|text| text.split_once('=')).map(|(a, b)| (a.to_owned(), b.to_owned()))
            {
                if !sets_harmlessly(&name, Some(&value)) {
                    return Some(Err(format!("it sets {name} for the command")));
                }
                at += 1;
            }
        }
        _ => return None,
    }
    match words.get(at) {
        None => Some(Err(format!("{name} without a command"))),
        Some(word) if word.prefix().starts_with('-') || word.literal().is_none() => {
            Some(Err(format!("{name} is not in its plain form")))
        }
        Some(_) => Some(Ok(&words[at..])),
    }
}

/// Programs that run the words behind them, or text among these.
const CARRIERS: &str = "timeout nice nohup time stdbuf command env sudo doas su xargs parallel watch setsid ionice chroot \
    unshare nsenter taskset chrt flock script strace ltrace unbuffer busybox sh bash dash ash zsh ksh fish ssh eval exec \
    builtin source . trap coproc";

/// Whether the program runs what it is given, whatever that is.
pub(super) fn carries(name: &str) -> bool {
    CARRIERS.split_ascii_whitespace().any(|known| known == name) || starters::carries(name)
}

/// Where the command starts that the words run beside their own, so that a rule has to name it; past the end when it is
/// not told. None when they run none.
pub(super) fn carried(words: &[Word]) -> Option<usize> {
    let name = words.first()?.literal()?;
    let name = name.rsplit('/').next().unwrap_or_default();
    if name == "find" {
        let executes = |word: &Word| matches!(word.literal().as_deref(), Some("-exec" | "-execdir" | "-ok" | "-okdir"));
        return words.iter().rposition(executes).map(|at| at + 1);
    }
    let texts: Vec<String> = words[1..].iter().map(Word::possible).collect();
    match starters::inner(name, &texts) {
        Some((Kind::Any, Inner::At(at))) => return Some(at + 1),
        Some((Kind::Any, Inner::Behind(_))) => return Some(usize::MAX),
        Some((Kind::Any, Inner::Missing)) => return None,
        _ => {}
    }
    if !carries(name) {
        return None;
    }
    match unwrap(words) {
        Some(Ok(inner)) => return Some(words.len() - inner.len()),
        Some(Err(_)) => return Some(usize::MAX),
        None if name == "command" => return None,
        None => {}
    }
    if name == "ssh" {
        return Some(remote(words).unwrap_or(usize::MAX));
    }
    let plain = |word: &Word| word.literal().is_some_and(|text| !text.starts_with('-') && !text.contains('='));
    // The others take words of their own first, or read what they are given as a line.
    let direct = matches!(name, "sudo" | "doas" | "xargs" | "setsid" | "busybox" | "exec" | "builtin" | "source" | ".")
        || name.ends_with("sh");
    Some(if direct && words.get(1).is_some_and(plain) { 1 } else { usize::MAX })
}

/// Where the line of ssh's for the other machine starts; None without one, or where its shell may make more of it.
fn remote(words: &[Word]) -> Option<usize> {
    let texts: Vec<String> = words.iter().map(Word::literal).collect::<Option<_>>()?;
    let at = 1 + remote_line(&texts[1..]);
    let plain = |text: &String| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c));
    (at < texts.len() && texts[at..].iter().all(plain)).then_some(at)
}

/// The first assignment that could make a command do something else.
pub(super) fn harmful(assignments: &[Assignment]) -> Option<&Assignment> {
    assignments.iter().find(|assignment| {
        !sets_harmlessly(&assignment.name, assignment.value.literal().as_deref()) || assignment.value.is_dynamic()
    })
}
