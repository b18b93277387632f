//! The words by which a command may execute or write what a rule for its program did not mean. A rule covers them only when
//! it names them.

use super::super::shell::{MANY, ONE, Word};
use super::super::wrapper;
use super::script::sed_only_prints;
use super::starters::{self, Inner, Kind};
use super::{commit, compiler, covered, find, git, readers, special};

/// Options of git's before the subcommand that choose nothing but the folder and how the output looks.
const GLOBAL: [&str; 6] =
    ["--no-pager", "-P", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs", "--no-lazy-fetch"];

/// What of a git command no rule for git covers.
fn of_git(mut arguments: &[String]) -> Vec<String> {
    let mut elsewhere = Vec::new();
    loop {
        match arguments {
            [option, rest @ ..] if GLOBAL.contains(&option.as_str()) => arguments = rest,
            [option, folder, rest @ ..] if option == "-C" => {
                if covered::leads_out(folder) || folder.contains([ONE, MANY]) {
                    elsewhere = vec![option.clone()];
                }
                arguments = rest;
            }
            _ => break,
        }
    }
    let Some(first) = arguments.first() else { return Vec::new() };
    // What changes something changes it there.
    if let Some(acting) = commit::acts(arguments).or_else(|| covered::acts("git", arguments)) {
        return [acting, elsewhere].concat();
    }
    if let Some(mut acting) = unlisted("git", arguments) {
        // With this option, and outside of the repository, it compares any files of the machine.
        let apart = |word: &String| word == "--no-index";
        let out = |word: &String| !word.starts_with('-') && covered::leads_out(word);
        if first == "diff" {
            let open = arguments.iter().any(apart);
            acting.extend(arguments.iter().filter(|word| if open { apart(word) } else { out(word) }).cloned());
        }
        return acting;
    }
    // A subcommand without a table may run what it is given, read commands or write where it is told.
    let acts = |word: &&String| word.starts_with('-') || word.contains([ONE, MANY]) || covered::leads_out(word);
    std::iter::once(first).chain(arguments[1..].iter().filter(acts)).cloned().collect()
}

/// The options by which the command may execute or write; empty if it has none, or none are known.
pub(in crate::permission) fn dangers(words: &[String]) -> Vec<String> {
    let Some((name, arguments)) = words.split_first() else { return Vec::new() };
    let name = name.rsplit('/').next().unwrap_or_default();
    let one = |text: &str| vec![text.to_owned()];
    if name == "sed" && !sed_is_plain(arguments) {
        return one("a script that may write or execute");
    }
    if name == "ssh" {
        let (own, line) = arguments.split_at(covered::remote_line(arguments));
        return [covered::acts(name, own).unwrap_or_default(), dangers(line)].concat();
    }
    if name == "git" {
        return of_git(arguments);
    }
    let edited = if name == "sed" { edited(arguments) } else { Vec::new() };
    let elsewhere: Vec<String> = edited.into_iter().filter(|word| covered::is_elsewhere(word)).collect();
    let mut started = Vec::new();
    match starters::inner(name, arguments) {
        Some((_, Inner::Behind(word))) => return vec![word],
        Some((Kind::Tool | Kind::Package, Inner::Missing)) => return covered::acts_otherwise(name, arguments),
        Some((Kind::Inside, Inner::At(at))) => {
            started.extend(starts_more(&arguments[at]).then(|| arguments[at].clone()))
        }
        Some((kind @ (Kind::Tool | Kind::Package), Inner::At(at))) => return of_tool(kind, &arguments[at..]),
        // A rule for it has to name what it starts, which is judged by itself.
        Some((Kind::Any, _)) => return Vec::new(),
        _ => {}
    }
    // What is known of these programs is what is harmless: a rule covers nothing else of them that it does not name.
    let listed = covered::acts(name, arguments).or_else(|| compiler::acts(name, arguments));
    if let Some(acting) = listed.or_else(|| unlisted(name, arguments)) {
        return [acting, elsewhere, started].concat();
    }
    if super::takes_data(name) || super::super::dynamic::is_inert(name) {
        return Vec::new();
    }
    let own = &arguments[..contained(name, arguments)];
    // A folder in the container.
    let inner = |at: usize| {
        let option = |word: &str| matches!(word, "-w" | "--workdir");
        matches!(name, "docker" | "podman")
            && (at > 0 && option(&own[at - 1]) || own[at].split_once('=').is_some_and(|(name, _)| option(name)))
    };
    let elsewhere = (0..own.len()).filter(|at| names_elsewhere(&own[*at]) && !inner(*at)).map(|at| own[at].clone());
    let mut acting: Vec<String> =
        keeps_setting(name, arguments).map(str::to_owned).into_iter().chain(elsewhere).chain(started).collect();
    // What a wrapper starts is judged by itself.
    if !wrapper::carries(name) && !covered::is_script(&words[0]) {
        acting.extend(covered::acts_otherwise(name, own));
    }
    acting
}

/// What a rule for the program that starts it does not cover: it must be the project's or a package, and not start more, nor be a
/// program of the system.
fn of_tool(kind: Kind, words: &[String]) -> Vec<String> {
    let program = &words[0];
    // Who allowed it meant packages by their names in a registry.
    let fetched = kind == Kind::Package && !is_package(program);
    let odd = fetched || names_elsewhere(program) || program == "-" || program.contains(':');
    if odd || is_foreign(program) { vec![program.clone()] } else { dangers(words) }
}

/// Whether the program is one of the system that changes files or talks to others, or starts another one.
fn is_foreign(program: &str) -> bool {
    const OTHERS: &str = "git gh docker podman nerdctl kubectl oc helm terraform tofu aws gcloud az systemctl brew pkill kill ssh scp \
        rsync apt apt-get crontab at";
    let name = program.rsplit('/').next().unwrap_or_default();
    starts_more(program) || covered::writes_inside(name) || OTHERS.split_ascii_whitespace().any(|known| known == name)
}

/// Whether the program is a shell, starts another one or changes files whatever else it is for.
fn starts_more(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    super::takes_data(name) && !super::is_known(name) || wrapper::carries(name)
}

/// Whether nobody described what the program makes of its words: it may run them, as wrappers do of which we know nothing.
pub(in crate::permission) fn is_undescribed(words: &[String]) -> bool {
    let Some((path, arguments)) = words.split_first() else { return false };
    let name = path.rsplit('/').next().unwrap_or_default();
    let listed = covered::acts(name, arguments).or_else(|| compiler::acts(name, arguments));
    let described = name == "ssh"
        || listed.or_else(|| unlisted(name, arguments)).is_some()
        || starters::inner(name, arguments).is_some()
        || covered::is_plainly_known(name)
        || covered::is_script(path)
        || wrapper::carries(name);
    !described && !super::is_known(name) && !super::takes_data(name) && !super::super::dynamic::is_inert(name)
}

/// Whether the word is a package by its name, with a version at most, or a script of the folder: no archive, no address, and no
/// shell or interpreter, which runs what the words behind it say.
fn is_package(word: &str) -> bool {
    let plain = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-^*+".contains(c))
            && !text.contains("..")
    };
    let script = word.strip_prefix("./").filter(|path| path.split('/').all(plain));
    let (scope, rest) = match word.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
        Some((scope, rest)) => (plain(scope), rest),
        None => (true, word),
    };
    let (name, version) = rest.split_once('@').unwrap_or((rest, "latest"));
    let archive = [".tgz", ".gz", ".tar", ".whl", ".zip", ".git", ".bz2", ".xz"].iter().any(|end| word.ends_with(end));
    !archive
        && (script.is_some() || scope && plain(name) && plain(version))
        && !super::super::matching::is_interpreter(name)
        && !wrapper::carries(name)
}

/// Whether a word of a program that nobody described names a place outside of the workspace: who allowed the program did so
/// for the project. A list such as `a:b` is named by its first part.
fn names_elsewhere(word: &str) -> bool {
    let file = word.split('=').any(|part| part.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:")));
    if file || word.contains("://") {
        return file;
    }
    // The value of an option, or of a few letters, in one word with it.
    let glued = word.strip_prefix('-').and_then(|rest| {
        let at = rest.find(['/', '~']).into_iter().chain(rest.find("..")).min()?;
        (at <= 3 && rest[..at].bytes().all(|b| b.is_ascii_alphabetic())).then(|| &rest[at..])
    });
    let first = |part: &str| covered::leads_out(part.split(':').next().unwrap_or_default());
    word.split(['=', ',', ';', '@', '<']).chain(glued).any(first)
}

/// Where the words of a command start that runs in a container: its paths are those in there.
fn contained(name: &str, arguments: &[String]) -> usize {
    let runs = matches!(name, "docker" | "podman" | "nerdctl" | "kubectl");
    let plain =
        |word: &str| matches!(word, "exec" | "-it" | "-ti" | "-i" | "-t" | "-d" | "-T" | "--") || word.contains('=');
    let exec = arguments.iter().take(2).position(|word| word == "exec").filter(|_| runs);
    let host = exec.and_then(|exec| {
        // Behind an option it may be the value.
        let operand = |at: &usize| {
            !arguments[*at].starts_with('-') && (plain(&arguments[at - 1]) || !arguments[at - 1].starts_with('-'))
        };
        (exec + 1..arguments.len()).find(operand)
    });
    host.map_or(arguments.len(), |at| at + 1)
}

/// Options of find that look elsewhere, but neither write nor run anything.
const ELSEWHERE: [&str; 4] = ["-L", "-H", "-follow", "-samefile"];

/// The words by which a command does what is not known to only look; None for a program that none of its options makes act,
/// or of which too little is known.
fn unlisted(name: &str, arguments: &[String]) -> Option<Vec<String>> {
    let subcommand = arguments.first().filter(|_| name == "git").map(String::as_str);
    // What one awk knows beside the others is not listed.
    let name = if matches!(name, "gawk" | "mawk" | "nawk") { "awk" } else { name };
    let acts = matches!(name, "find" | "sed" | "awk" | "date" | "xxd" | "jq" | "ps")
        || subcommand.is_some_and(git::is_listed)
        || readers::READERS.iter().any(|reader| reader.name == name && reader.acts);
    if !acts {
        return None;
    }
    let looks = |words: &[&str]| {
        let words: Vec<Word> = subcommand.iter().chain(words).map(|word| super::plain(word)).collect();
        match readers::READERS.iter().find(|reader| reader.name == name) {
            Some(reader) => reader.reads(&words).is_ok(),
            None if name == "find" => find::reads(&words).is_ok(),
            None if name == "git" => git::reads(&words).is_ok(),
            None => special::reads(name, &words).is_some_and(|reads| reads.is_ok()),
        }
    };
    let words: Vec<&str> = arguments[usize::from(subcommand.is_some())..]
        .iter()
        .map(String::as_str)
        .filter(|word| name != "find" || !ELSEWHERE.contains(word))
        .collect();
    if looks(&words) {
        return Some(Vec::new());
    }
    let (acting, rest): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| {
        word.starts_with('-') && !looks(&[**word]) && !looks(&[**word, "1"]) && !looks(&[**word, "p"])
    });
    let mut found: Vec<String> = acting.into_iter().map(str::to_owned).collect();
    if found.is_empty() || !looks(&rest) {
        found.push("what is not known of it".to_owned());
    }
    Some(found)
}

/// Programs with settings of their own that later lines obey.
const CONFIGURED: &str = "pnpm yarn bun pip pip3 pipx uv poetry conda composer bundle gem kubectl helm gcloud az aws docker \
    podman rustup dotnet";

/// The subcommand by which such a program keeps a setting.
fn keeps_setting<'a>(name: &str, arguments: &'a [String]) -> Option<&'a str> {
    if !CONFIGURED.split_whitespace().any(|known| known == name) {
        return None;
    }
    let option = |at: usize| arguments[at].starts_with('-');
    for at in (0..arguments.len()).filter(|at| !option(*at)) {
        let shows = |next: &String| ["get", "list", "ls", "view", "show", "debug", "get-contexts"].contains(&&**next);
        if matches!(&*arguments[at], "config" | "configure" | "conf" | "c" | "set" | "alias" | "plugin")
            && !arguments.get(at + 1).is_some_and(shows)
        {
            return Some(&arguments[at]);
        }
        // Behind an option it may be the value, and the subcommand comes later.
        if at == 0 || !option(at - 1) {
            return None;
        }
    }
    None
}

/// The files that sed changes in their place.
pub(super) fn edited(arguments: &[String]) -> Vec<String> {
    let short = |word: &str, letter| word.starts_with('-') && !word.starts_with("--") && word.contains(letter);
    if !arguments.iter().any(|word| short(word, 'i') || word.starts_with("--i")) {
        return Vec::new();
    }
    let valued =
        |word: &str| word == "--expression" || word.starts_with('-') && !word.starts_with("--") && word.ends_with('e');
    let given = arguments.iter().any(|word| valued(word) || word.starts_with("--e") || short(word, 'e'));
    let operand = |at: &usize| !arguments[*at].starts_with('-') && (*at == 0 || !valued(&arguments[at - 1]));
    let operands = (0..arguments.len()).filter(operand).skip(usize::from(!given));
    operands.map(|at| arguments[at].clone()).collect()
}

/// Whether every word that may be sed's script only prints.
fn sed_is_plain(arguments: &[String]) -> bool {
    let mut rest = arguments.iter();
    let mut given = false;
    let mut operands = Vec::new();
    while let Some(word) = rest.next() {
        if let Some(script) =
            word.strip_prefix("--expression=").or_else(|| word.strip_prefix("-e").filter(|script| !script.is_empty()))
        {
            given = true;
            if !sed_only_prints(script) {
                return false;
            }
        } else if word.starts_with('-') && word.len() > 1 && (word.ends_with('e') || word.starts_with("--exp")) {
            given = true;
            if !rest.next().is_some_and(|script| sed_only_prints(script)) {
                return false;
            }
        } else if !word.starts_with('-') {
            operands.push(word);
        }
    }
    given || operands.first().is_none_or(|script| sed_only_prints(script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_act() {
        for (line, want) in [
            ("find . -name x", false),
            ("find . -delete", true),
            ("git -c a=b log", true),
            ("git -cfoo.bar=x log", true),
            ("git log --outp=x", true),
            ("git log --oneline", false),
            ("git log -p", false),
            ("sort --compress-prog=sh x", true),
            ("sort -k2 x", false),
            ("sort -ro x y", true),
            ("sed -i s/a/b/ x", true),
            ("sed -ni p x", true),
            ("sed s/a/b/ x", false),
            ("sed s/a/b/e x", true),
            ("sed -e p -e w x", true),
            ("tar --to-comm=sh -xf x", true),
            ("tar czf a b", false),
            ("awk {print} x", false),
            ("awk BEGIN{system(1)}", true),
            ("uniq a b", true),
            ("go test -exec=x", true),
            ("/usr/bin/find . -delete", true),
            ("find -L . -name x", false),
            ("find . -size -10k", false),
            ("find . -odd", true),
            ("sed -nf x y", true),
            ("sed -fx y", true),
            ("sed --file=x y", true),
            ("sed -nE p x", false),
            ("sort -T x y", true),
            ("sort -S1 -k2 y", false),
            ("sort --random-source=x y", true),
            ("date 0101", true),
            ("date -d now +%s", false),
            ("date -us now", true),
            ("file -m x y", true),
            ("file -bz x", true),
            ("file -b x", false),
            ("rg --hostname-bin x y", true),
            ("rg -n x y", false),
            ("diff --to-file x y", true),
            ("diff -u x y", false),
            ("tree -ao x", true),
            ("tree -aL 2", false),
            ("uniq -c x", false),
            ("xxd x y", true),
            ("xxd -l 8 x", false),
            ("strings @x", true),
            ("base64 -o x y", true),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(!dangers(&words).is_empty(), want, "{line}");
        }
    }
}
