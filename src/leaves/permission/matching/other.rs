//! The same program, subcommand, option or script by another name: a rule that forbids one means them all.

use std::path::{Component, Path, PathBuf};

use super::super::files::lexical;
use super::super::glob::Case;
use super::super::rule::{Rule, ShellPattern, Specifier};
use super::super::shell::MANY;
use super::{MAX_OPTIONS, base, is_open, may_be};

/// A program, a word behind it, and what else its makers call that word.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "npm",
        "install",
        "i in ins inst insta instal isnt isnta isntal isntall add ci clean-install ic install-clean isntall-clean it cit \
         install-test install-ci-test",
    ),
    ("npm", "uninstall", "un r rm remove unlink"),
    ("npm", "publish", "pub publ publi publis"),
    ("npm", "run", "run-script rum urn"),
    ("npm", "update", "up upgrade udpate"),
    ("npm", "exec", "x"),
    ("npm", "test", "t tst"),
    ("pnpm", "install", "i add"),
    ("pnpm", "remove", "rm un uninstall"),
    ("pnpm", "test", "t tst"),
    ("yarn", "run", ""),
    ("node", "run", ""),
    ("bun", "install", "i a add"),
    ("bun", "remove", "rm"),
    ("cargo", "build", "b"),
    ("cargo", "test", "t"),
    ("cargo", "run", "r"),
    ("cargo", "check", "c"),
    ("cargo", "remove", "rm"),
    ("uv", "pip", ""),
    ("docker", "container", ""),
    ("docker", "image", ""),
];

/// What docker's commands about images are called without that word; those about containers are called the same.
const OF_IMAGES: [(&str, &str); 2] = [("rm", "rmi"), ("ls", "images")];

/// Programs that run scripts of a package, `node` only with `--run`.
const RUNNERS: &str = "npm pnpm yarn bun node";

/// Scripts that need no `run`.
const BARE: &str = "test start stop restart";

/// What npm calls an installation with the tests behind it.
const INSTALLING: &str = "it install-test cit install-ci-test sit clean-install-test";

/// What runners other than npm do themselves; any other word is a script.
const OWN: &str = "install i add a remove rm un uninstall update upgrade up link unlink import rebuild prune fetch why list ls outdated \
    publish pack exec x dlx create init store config cache audit licenses patch env setup info workspaces global set plugin npm \
    node dedupe version login logout whoami pm repl help";

/// Most refspecs that are looked at one by one.
const MAX_REFSPECS: usize = 32;

/// Programs that do everything they are told, in any order.
const BUILDERS: &str = "make gmake just rake gradle gradlew mvn mvnw ant ninja task";

fn listed(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// The program by the name that it is best known by, without a version.
fn program(name: &str) -> &str {
    let plain = |name: &str, program: &str| {
        let rest = name.strip_prefix(program).and_then(|rest| rest.strip_prefix('3'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    match name {
        "gmake" | "bmake" => "make",
        "nodejs" => "node",
        "apt-get" => "apt",
        "docker-compose" | "podman-compose" => "docker compose",
        "podman" | "nerdctl" => "docker",
        "oc" => "kubectl",
        "tofu" => "terraform",
        _ if plain(name, "python") => "python",
        _ if plain(name, "pip") => "pip",
        name => name,
    }
}

/// The words by other names of the same; none where they are called so.
pub(super) fn names(words: &[String]) -> Vec<Vec<String>> {
    let named = best_known(words);
    let script = script(named.as_deref().unwrap_or(words));
    [named, script, tested(words), moded(words)].into_iter().flatten().chain(pushed(words)).collect()
}

/// A mode in octal digits without the zeros before it.
fn moded(words: &[String]) -> Option<Vec<String>> {
    let at = words.iter().position(|word| base(word) == "chmod")?;
    let digits = |word: &String| word.len() > 1 && word.starts_with('0') && word.bytes().all(|b| b.is_ascii_digit());
    let place = operands(words, at + 1).into_iter().find(|at| digits(&words[*at]))?;
    let mut all = words.to_vec();
    all[place] = all[place].trim_start_matches('0').to_owned();
    Some(all)
}

/// The tests that npm runs behind an installation: `npm test` for `npm cit`.
fn tested(words: &[String]) -> Option<Vec<String>> {
    let at = words.iter().position(|word| base(word) == "npm")?;
    let place = operands(words, at + 1).into_iter().find(|at| listed(INSTALLING, &words[*at]))?;
    let mut all = words.to_vec();
    all[place] = "test".to_owned();
    Some(all)
}

/// The first words behind a program's name, options apart; behind an option the first may be its value.
fn operands(words: &[String], at: usize) -> Vec<usize> {
    let mut places = (at..words.len().min(at + MAX_OPTIONS)).filter(|at| !words[*at].starts_with(['-', '+']));
    let first = places.next();
    let second = places.next().filter(|_| first.is_some_and(|first| first > at));
    first.into_iter().chain(second).collect()
}

/// The words by the names that their programs are best known by.
fn best_known(words: &[String]) -> Option<Vec<String>> {
    let named = |word: &String| {
        let name = base(word);
        program(name) != name || WORDS.iter().any(|(known, ..)| *known == name)
    };
    let mut at = words.iter().position(named)?;
    let mut all = words.to_vec();
    while at < all.len() {
        if program(base(&all[at])) != base(&all[at]) {
            let name: Vec<String> = program(base(&all[at])).split(' ').map(str::to_owned).collect();
            all.splice(at..=at, name);
        }
        let name = base(&all[at]).to_owned();
        at += 1;
        if !WORDS.iter().any(|(known, ..)| *known == name) {
            continue;
        }
        if name == "uv" && all.get(at).is_some_and(|word| word == "pip") {
            at -= 1;
            all.remove(at);
            continue;
        }
        let mut places = operands(&all, at);
        // A group says what the word behind it is about; a rule about the group alone stays one.
        let group = places.iter().copied().find(|at| name == "docker" && listed("container image", &all[*at]));
        if let Some(place) = group.filter(|place| all.len() > place + 1) {
            let group = all.remove(place);
            let own = &all[place];
            let own = if own == "remove" { "rm" } else { own };
            let image = OF_IMAGES.iter().find(|(word, _)| group == "image" && own == *word);
            all[place] = image.map_or(own, |(_, own)| own).to_owned();
            places.clear();
        }
        for place in places {
            let alike = |(known, _, others): &&(&str, &str, &str)| *known == name && listed(others, &all[place]);
            if let Some((_, word, _)) = WORDS.iter().find(alike) {
                all[place] = (*word).to_owned();
            }
        }
    }
    (all != words).then_some(all)
}

/// The script of a package that the words run, as npm is told to: `npm run deploy` for `yarn deploy`, `npm test` for `npm run test`.
fn script(words: &[String]) -> Option<Vec<String>> {
    let at = words.iter().position(|word| listed(RUNNERS, base(word)))?;
    let (before, all) = words.split_at(at);
    let name = base(&all[0]);
    let mut rest = all[1..].to_vec();
    if name == "yarn" && rest.len() > 2 && rest[0] == "workspace" {
        rest.drain(..2);
    }
    let own = |word: &str| listed(OWN, word) || name == "bun" && listed("test build", word);
    let places = operands(&rest, 0);
    let run = places.iter().copied().find(|at| rest[*at] == "run");
    let run = run.or_else(|| rest.iter().take(MAX_OPTIONS).position(|word| name == "node" && word == "--run"));
    match run {
        Some(run) => drop(rest.remove(run)),
        None if name == "node" => {
            let run = rest.iter().take(MAX_OPTIONS).position(|word| word.starts_with("--run="))?;
            rest[run].drain(.."--run=".len());
        }
        None if name == "npm" || places.iter().any(|at| own(&rest[*at])) => return None,
        None => {}
    }
    let script = operands(&rest, run.unwrap_or(0)).first().copied()?;
    let runs = (!listed(BARE, &rest[script])).then(|| "run".to_owned());
    let all = before.iter().cloned().chain(["npm".to_owned()]).chain(runs).chain(rest).collect::<Vec<_>>();
    (all != words).then_some(all)
}

/// A push by where it goes, once for each branch: `git push origin main` for `git push origin HEAD:refs/heads/main`.
fn pushed(words: &[String]) -> Vec<Vec<String>> {
    let push = |git: usize| operands(words, git + 1).into_iter().find(|at| words[*at] == "push");
    let git = (0..words.len()).filter(|at| base(&words[*at]) == "git");
    let Some(at) = git.filter_map(push).next().map(|at| at + 1) else { return Vec::new() };
    let (mut options, mut operands) = (words[..at].to_vec(), Vec::new());
    let (mut all, mut valued) = (false, false);
    for word in &words[at..] {
        let option = word.starts_with('-') || valued;
        valued = !valued && matches!(word.as_str(), "-o" | "--push-option" | "--receive-pack" | "--exec" | "--repo");
        all |= word.len() > 3 && ["--all", "--mirror", "--branches"].iter().any(|option| option.starts_with(word));
        if option { &mut options } else { &mut operands }.push(word.clone());
    }
    let many = MANY.to_string();
    let (remote, refspecs) = operands.split_at(operands.len().min(1));
    let whole = all || refspecs.len() > MAX_REFSPECS;
    let refspecs = if whole { std::slice::from_ref(&many) } else { refspecs };
    let pushes = refspecs.iter().map(|refspec| {
        let (plain, forced) = (refspec.trim_start_matches('+'), refspec.starts_with('+'));
        let (source, target) = plain.rsplit_once(':').unwrap_or((plain, plain));
        let name = target.strip_prefix("refs/").unwrap_or(target);
        let name = name.strip_prefix("heads/").unwrap_or(name);
        let mut push = options.clone();
        push.extend(forced.then(|| "--force".to_owned()));
        push.extend((source.is_empty() && !target.is_empty()).then(|| "--delete".to_owned()));
        push.extend(remote.iter().cloned());
        // A colon alone takes every branch that both sides have.
        push.push(if name.is_empty() { many.clone() } else { name.to_owned() });
        push
    });
    pushes.filter(|push| push != words).collect()
}

/// The rule with its words by these names; none where they are called so.
pub(super) fn rules(rule: &Rule) -> Vec<Rule> {
    let Specifier::Shell(pattern) = rule.specifier() else { return Vec::new() };
    let text = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let words = match pattern {
        ShellPattern::Prefix(prefix) => prefix.clone(),
        ShellPattern::Exact(words) | ShellPattern::Wildcard(words) => text(words),
    };
    // A rule about every branch is not one about each.
    let alike = names(&words).into_iter().filter(|words| !words.iter().any(|word| is_open(word)));
    let named = alike.map(|words| match pattern {
        ShellPattern::Prefix(_) => ShellPattern::Prefix(words),
        ShellPattern::Exact(_) => ShellPattern::Exact(words.join(" ")),
        ShellPattern::Wildcard(_) => ShellPattern::Wildcard(words.join(" ")),
    });
    named.map(|pattern| rule.with_pattern(pattern)).collect()
}

/// Whether the program does everything it is told, and these words are among that.
pub(super) fn is_told(name: &str, want: &[String], words: &[String]) -> bool {
    let told =
        |want: &String| words.iter().any(|word| word == want || is_open(word) && may_be(word, want, Case::Exact));
    listed(BUILDERS, base(name)) && !want.is_empty() && want.iter().all(|word| !word.starts_with('-') && told(word))
}

/// Whether both may name the same file by its path. Where a line is by then, only its paths tell.
pub(super) fn same_file(want: &str, name: &str) -> bool {
    let plain = |text: &str| lexical(Path::new(text));
    let normal =
        |path: PathBuf| -> PathBuf { path.components().filter(|part| matches!(part, Component::Normal(_))).collect() };
    want.contains('/') && name.contains('/') && {
        let leads = name.starts_with('/') || name.split('/').any(|part| part == "..");
        let (wanted, named) = (plain(want), plain(name));
        wanted == named || leads && named.ends_with(normal(wanted))
    }
}
