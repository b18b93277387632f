//! Commands whose arguments are a language of their own: `echo`, `test`, `date`, `sed`, `jq`.

use super::super::shell::{MANY, ONE, Word};
use super::script::{awk_only_prints, sed_only_prints};
use super::{Reads, may_be_option, plain};

/// Names that [`reads`] answers for.
pub(super) const NAMES: &[&str] = &[
    "echo", "printf", "true", "false", ":", "test", "[", "[[", "date", "sed", "awk", "jq", "ps", "tar", "hostname",
    "command", "exit", "return", "break", "continue", "wait", "xxd", "tee", "unzip", "less", "more",
];

/// What the command reads; None when it is not one of these.
pub(super) fn reads(name: &str, arguments: &[Word]) -> Option<Result<Reads, String>> {
    let data =
        || Ok(Reads { paths: arguments.iter().filter(|word| word.has_glob()).cloned().collect(), ..Reads::default() });
    Some(match name {
        "echo" | "true" | "false" | ":" => data(),
        "printf" => printf(arguments).and_then(|()| data()),
        "test" | "[" | "[[" => test(name, arguments),
        "date" => date(arguments),
        "sed" => sed(arguments),
        "awk" => awk(arguments),
        "jq" => jq(arguments),
        "ps" => ps(arguments),
        "tar" => tar(arguments),
        "xxd" => xxd(arguments),
        "tee" => match arguments
            .iter()
            .all(|word| matches!(word.literal().as_deref(), Some("-a" | "/dev/null" | "/dev/stdout" | "/dev/stderr")))
        {
            true => Ok(Reads::default()),
            false => Err("tee is not on the read-only list".into()),
        },
        "unzip" => unzip(arguments),
        "less" | "more" => pager(name, arguments),
        // Where a command is; `command` before one is a wrapper.
        "command" => match arguments.split_first() {
            Some((option, _)) if matches!(option.literal().as_deref(), Some("-v" | "-V")) => data(),
            _ => Err("command is not in its plain form".into()),
        },
        "hostname" => match arguments
            .iter()
            .all(|word| matches!(word.literal().as_deref(), Some("-f" | "-s" | "-i" | "-I" | "-d")))
        {
            true => Ok(Reads::default()),
            false => Err("hostname with operands sets the name".into()),
        },
        "exit" | "return" | "break" | "continue" | "wait" => {
            match arguments
                .iter()
                .all(|word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit())))
            {
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
    let assigns = text.split('%').skip(1).any(|part| {
        part.trim_start_matches(|c: char| !c.is_ascii_alphabetic() || "hlLjzt".contains(c)).starts_with('n')
    });
    if assigns { Err("%n assigns a variable".into()) } else { Ok(()) }
}

/// Options are whole words, and end at the first operand: a second one, whatever it looks like, is written.
fn xxd(arguments: &[Word]) -> Result<Reads, String> {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.known();
        match text.as_str() {
            "-a" | "-b" | "-e" | "-E" | "-i" | "-p" | "-u" => {}
            "-c" | "-g" | "-l" | "-o" | "-s" => {
                rest.next().and_then(Word::literal).ok_or("an option of xxd without a plain value")?;
            }
            text if text.starts_with('-') && text != "-" => {
                let number = text[1..].strip_prefix(['c', 'g', 'l', 'o', 's']);
                if !number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit())) {
                    return Err(format!("{text} is not a known harmless option of xxd"));
                }
            }
            _ if word.has_glob() => return Err("a glob may be two files, and xxd writes the second".into()),
            _ if rest.next().is_some() => return Err("xxd writes its second operand".into()),
            _ => return Ok(Reads { paths: vec![word.clone()], ..Reads::default() }),
        }
    }
    Ok(Reads::default())
}

/// What is written to a pipe is shown as `cat` does. A word with a plus is a command to the pager.
fn pager(name: &str, arguments: &[Word]) -> Result<Reads, String> {
    let flag = |text: &str| text.strip_prefix('-').is_some_and(|flags| flags.chars().all(|c| "NRSFXnisEM".contains(c)));
    let (flags, paths): (Vec<&Word>, Vec<&Word>) = arguments.iter().partition(|word| may_be_option(word));
    let odd = |word: &&&Word| !word.literal().is_some_and(|text| name == "less" && text.len() > 1 && flag(&text));
    let plus = |word: &&&Word| word.has_glob() || word.known().starts_with('+');
    match flags.iter().find(odd).or_else(|| paths.iter().find(plus)) {
        Some(word) => Err(format!("{} may be a command to {name}", word.source)),
        None => Ok(Reads { paths: paths.into_iter().cloned().collect(), ..Reads::default() }),
    }
}

/// `unzip -l x`: the names in an archive. Nothing else of unzip only reads.
fn unzip(arguments: &[Word]) -> Result<Reads, String> {
    match arguments {
        [option, archive] if option.literal().as_deref() == Some("-l") && !may_be_option(archive) => {
            Ok(Reads { paths: vec![archive.clone()], ..Reads::default() })
        }
        _ => Err("unzip is not known to be read-only: write unzip -l ARCHIVE".into()),
    }
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
            "-e" | "-f" | "-d" | "-s" | "-r" | "-w" | "-x" | "-L" | "-h" | "-b" | "-c" | "-p" | "-S" | "-u" | "-g"
            | "-k" | "-O" | "-G" | "-N" => {
                reads.paths.extend(next.map(|path| plain(path)));
            }
            "-nt" | "-ot" | "-ef" => {
                reads.paths.extend(
                    at.checked_sub(1).and_then(|at| texts.get(at)).into_iter().chain(next).map(|path| plain(path)),
                );
            }
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let number = |text: Option<&String>| {
                    text.is_some_and(|text| {
                        !text.is_empty() && text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
                    })
                };
                if !number(next) || !number(at.checked_sub(1).and_then(|at| texts.get(at))) {
                    return Err("arithmetic with something else than numbers".into());
                }
            }
            // Before an operand alone it asks whether the file is there.
            "-a" if at == 0 || matches!(texts[at - 1].as_str(), "!" | "(" | "&&" | "||" | "-a" | "-o") => {
                reads.paths.extend(next.map(|path| plain(path)));
            }
            "-z" | "-n" | "-a" | "-o" | "-t" => {}
            text if text.starts_with('-') && text.len() > 1 => {
                return Err(format!("{text} is not a known harmless test"));
            }
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
                rest.next().and_then(Word::literal).ok_or("date -d without a plain date")?;
            }
            "-r" | "--reference" => reads.paths.extend(rest.next().cloned()),
            text if text.starts_with('+') || text.starts_with("--date=") || text.starts_with("--iso-8601=") => {}
            text if text.starts_with("--rfc-3339=")
                || (text.starts_with("-I") && !text.contains('s'))
                || text == "-Iseconds" => {}
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
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "--quiet" | "--silent"
            | "--regexp-extended" | "--null-data" => {}
            // Where options end at the first operand, that operand is the script.
            "-e" | "--expression" | "-ne" if !operands.is_empty() => {
                return Err("sed -e behind an operand: write it before".into());
            }
            "-e" | "--expression" | "-ne" => {
                scripts.push(rest.next().and_then(Word::literal).ok_or("sed -e without a script")?)
            }
            "--" => {
                operands.extend(rest.by_ref().cloned());
            }
            text if text.starts_with('-') && text != "-" => {
                return Err(format!("{text} is not a known harmless option of sed"));
            }
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
        None => Ok(Reads { paths: operands, ..Reads::default() }),
    }
}

/// A program of awk's that only prints, with `-F` and `-v`, and the files it reads.
fn awk(arguments: &[Word]) -> Result<Reads, String> {
    let mut rest = arguments.iter();
    let mut program = None;
    let mut reads = Reads::default();
    while let Some(word) = rest.next() {
        if word.has_glob() && may_be_option(word) {
            return Err("a glob that may become an option".into());
        }
        let text = word.known();
        match (text.as_str(), &program) {
            ("-F" | "-v", None) => {
                rest.next().and_then(Word::literal).ok_or("an option of awk without a plain value")?;
            }
            ("--", None) => {}
            (option, None) if option.len() > 2 && (option.starts_with("-F") || option.starts_with("-v")) => {}
            (option, _) if option.starts_with('-') && option != "-" => {
                return Err(format!("{option} is not a known harmless option of awk"));
            }
            (_, None) => program = Some(word.literal().ok_or("awk's program is a glob")?),
            // `a=b` sets a variable for the files behind it.
            (operand, Some(_)) if operand.contains('=') => return Err("awk sets a variable between its files".into()),
            (_, Some(_)) => reads.paths.push(word.clone()),
        }
    }
    match program {
        Some(program) if awk_only_prints(&program) => Ok(reads),
        Some(_) => Err("awk's program may write, execute or read more than its input".into()),
        None => Err("awk without a program".into()),
    }
}

/// Columns of ps that show nothing of a process's environment.
const COLUMNS: &str = "%cpu %mem args bsdtime c cmd comm command cputime egid egroup etime etimes euid euser fname gid group \
    lstart lwp majflt minflt ni nice nlwp pcpu pgid pgrp pid pmem ppid pri psr rgid rgroup rss rssize ruid ruser s sess sid size \
    spid start start_time stat state stime sz thcount tid time times tname tpgid tt tty ucmd ucomm uid uname user vsize vsz wchan";

/// Columns that every ps can sort by.
const SORTED: &str = "pid ppid pcpu %cpu pmem %mem rss vsz time start_time user comm etime uid size cputime args cmd nice \
    tty stat lstart";

/// Which processes there are, but not their environment, which may hold keys. Where ps cannot use its options together, it
/// reads the whole line again without the dashes, and `e` shows the environment.
fn ps(arguments: &[Word]) -> Result<Reads, String> {
    let mut rest = arguments.iter();
    // What is asked for with a dash, and whether anything else is asked for that not every ps takes together with `-e`.
    let (mut asked, mut odd) = (String::new(), false);
    let (mut columns, mut sorted, mut forest) = (false, false, false);
    let within = |known: &str, text: &str| known.split_ascii_whitespace().any(|known| known == text);
    while let Some(word) = rest.next() {
        let text = word.literal().ok_or("a glob in ps")?;
        let (option, mut value) = match text.split_once('=') {
            Some((option, value)) if text.starts_with("--") => (option, Some(value.to_owned())),
            _ => (text.as_str(), None),
        };
        let letters = |text: &str, known: &str| !text.is_empty() && text.chars().all(|c| known.contains(c));
        let valued = match option {
            "--sort" | "--pid" | "--ppid" => Some(option),
            _ if option.starts_with("--") => None,
            _ => option.strip_prefix('-').and_then(|letters| letters.get(letters.len().checked_sub(1)?..)),
        };
        let valued = valued.filter(|last| last.starts_with("--") || "opCut".contains(last));
        if valued.is_some() && value.is_none() {
            value = rest.next().and_then(Word::literal);
        }
        let value = value.unwrap_or_default();
        let known = match valued {
            None => true,
            Some("o") => {
                columns = true;
                value
                    .split([',', ' '])
                    .all(|column| within(COLUMNS, column.split(['=', ':']).next().unwrap_or_default()))
            }
            Some("--sort") => {
                sorted = true;
                value.split(',').all(|key| within(SORTED, key.strip_prefix(['-', '+']).unwrap_or(key)))
            }
            Some("p" | "--pid" | "--ppid") => letters(&value, "0123456789,"),
            // Read again, its letters are options.
            Some(_) => {
                odd = true;
                let plain = |c: char| c.is_ascii_alphanumeric() && !matches!(c, 'e' | 'E') || ",/_.".contains(c);
                value.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.chars().all(plain)
            }
        };
        if !known {
            return Err(format!("{value:?} after {option} is not known to be harmless to ps"));
        }
        match option {
            "--sort" | "--pid" | "--ppid" | "--no-headers" | "--no-heading" => {}
            "--forest" => forest = true,
            _ if option != text => return Err(format!("{text} is not a known harmless option of ps")),
            _ => match text.strip_prefix('-') {
                Some(cluster) => {
                    let flags = if valued.is_some() { &cluster[..cluster.len() - 1] } else { cluster };
                    if !flags.chars().all(|c| "eAafFlwyjHL".contains(c)) || cluster.is_empty() {
                        return Err(format!("{text} is not a known harmless option of ps"));
                    }
                    asked.push_str(flags);
                }
                None if letters(&text, "auxwfjlr") => odd = true,
                None => return Err(format!("{text} is not a known harmless option of ps")),
            },
        }
    }
    let format: String = asked.chars().filter(|c| !matches!(c, 'e' | 'A' | 'w' | 'H' | 'L')).collect();
    let formatted = matches!(format.as_str(), "f" | "F" | "l" | "j" | "fl") && !columns || format.is_empty();
    forest |= asked.contains('H');
    let together = [sorted, forest, asked.contains('L')].into_iter().filter(|one| *one).count();
    if asked.contains('e') && (odd || !formatted || together > 1) {
        return Err("ps may not take these options together, and then e shows the environment".into());
    }
    Ok(Reads::default())
}

/// `tar tf x`: the names in an archive. Nothing else of tar only reads.
fn tar(arguments: &[Word]) -> Result<Reads, String> {
    let texts: Option<Vec<String>> = arguments.iter().map(Word::literal).collect();
    let texts = texts.ok_or("a glob in tar")?;
    let [mode, archive, members @ ..] = texts.as_slice() else { return Err("tar is not known to be read-only".into()) };
    let letters = mode.strip_prefix('-').unwrap_or(mode);
    let lists =
        letters.strip_suffix('f').is_some_and(|rest| rest.contains('t') && rest.chars().all(|c| "tvzjJ".contains(c)));
    // A colon names another host.
    if !lists || archive.contains(':') || members.iter().chain([archive]).any(|text| text.starts_with('-')) {
        return Err("tar is not known to be read-only: write tar tf ARCHIVE".into());
    }
    Ok(Reads { paths: vec![arguments[1].clone()], ..Reads::default() })
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
            "--compact-output"
            | "--raw-output"
            | "--raw-input"
            | "--slurp"
            | "--null-input"
            | "--sort-keys"
            | "--tab"
            | "--color-output"
            | "--monochrome-output"
            | "--join-output"
            | "--exit-status"
            | "--stream"
            | "--seq"
            | "--version" => {}
            "--arg" | "--argjson" => {
                for _ in 0..2 {
                    rest.next().and_then(Word::literal).ok_or("jq's arguments are not plain")?;
                }
            }
            "--indent" => {
                rest.next().and_then(Word::literal).ok_or("jq --indent without a number")?;
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
        let told = arguments.iter().any(|word| word.literal().as_deref() == Some("--version"));
        return if told { Ok(Reads::default()) } else { Err("jq without a filter".into()) };
    }
    let filter = operands.remove(0).literal().ok_or("jq's filter is a glob")?;
    if !filters_input(&filter) {
        return Err("jq's filter reads more than its input".into());
    }
    Ok(Reads { paths: operands, ..Reads::default() })
}

/// Whether a filter of jq's or yq's reads nothing but its input: modules are read from anywhere, and the environment may hold
/// keys. Right behind a dot a name is one of the input's.
pub(super) fn filters_input(filter: &str) -> bool {
    const OTHERS: &str = "import include env ENV modulemeta get_search_list input_filename strenv envsubst load load_str load_xml \
        load_props load_base64 system eval";
    if filter.contains([ONE, MANY]) {
        return false;
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_other = |name: &str| OTHERS.split(' ').any(|other| other == name);
    let mut start = None;
    for (at, c) in filter.char_indices().chain([(filter.len(), ' ')]) {
        match (part(c), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                let before = &filter[..from];
                let field = before.ends_with('.') && !before.ends_with("..");
                if !field && is_other(&filter[from..at]) {
                    return false;
                }
                start = None;
            }
            _ => {}
        }
    }
    true
}
