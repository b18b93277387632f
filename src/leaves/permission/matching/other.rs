//! The same program, subcommand, option or script by another name: a rule that forbids one means them all.

use std::path::{Component, Path, PathBuf};

use super::super::files::lexical;
use super::super::glob::Case;
use super::super::rule::{Rule, ShellPattern, Specifier};
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
    ("pnpm", "install", "i add"),
    ("pnpm", "remove", "rm un uninstall"),
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
        "gmake" => "make",
        _ if plain(name, "python") => "python",
        _ if plain(name, "pip") => "pip",
        name => name,
    }
}

/// The words by the names that their programs are best known by; None where they are called so.
pub(super) fn best_known(words: &[String]) -> Option<Vec<String>> {
    let named = |word: &String| {
        let name = base(word);
        program(name) != name || WORDS.iter().any(|(known, ..)| *known == name)
    };
    let mut at = words.iter().position(named)?;
    let mut all = words.to_vec();
    while at < all.len() {
        let name = program(base(&all[at])).to_owned();
        if name != base(&all[at]) {
            all[at].clone_from(&name);
        }
        at += 1;
        if !WORDS.iter().any(|(known, ..)| *known == name) {
            continue;
        }
        if name == "uv" && all.get(at).is_some_and(|word| word == "pip") {
            at -= 1;
            all.remove(at);
            continue;
        }
        // Behind an option it may be the value.
        let operands = (at..all.len().min(at + MAX_OPTIONS)).filter(|at| !all[*at].starts_with('-'));
        for place in operands.take(2).collect::<Vec<_>>() {
            let alike = |(known, _, others): &&(&str, &str, &str)| *known == name && listed(others, &all[place]);
            if let Some((_, word, _)) = WORDS.iter().find(alike) {
                all[place] = (*word).to_owned();
            }
        }
        let group = all.get(at).filter(|word| name == "docker" && matches!(word.as_str(), "container" | "image"));
        if let Some(group) = group.cloned() {
            all.remove(at);
            let known =
                OF_IMAGES.iter().find(|(word, _)| group == "image" && all.get(at).is_some_and(|own| own == word));
            if let Some((_, own)) = known {
                all[at] = (*own).to_owned();
            }
        }
    }
    (all != words).then_some(all)
}

/// The rule with its words by these names; None where they are called so.
pub(super) fn rule(rule: &Rule) -> Option<Rule> {
    let Specifier::Shell(pattern) = rule.specifier() else { return None };
    let text = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let pattern = match pattern {
        ShellPattern::Prefix(prefix) => ShellPattern::Prefix(best_known(prefix)?),
        ShellPattern::Exact(words) => ShellPattern::Exact(best_known(&text(words))?.join(" ")),
        ShellPattern::Wildcard(words) => ShellPattern::Wildcard(best_known(&text(words))?.join(" ")),
    };
    Some(rule.with_pattern(pattern))
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
