//! Options that make a command execute or write. A rule covers them only when it names them.

use super::super::shell::{MANY, ONE};
use super::script::sed_only_prints;
use super::{commit, compiler, covered};

struct Danger {
    name: &'static str,
    /// Letters that are dangerous in a cluster of short options.
    short: &'static str,
    /// Long options; what they may be abbreviated to counts as well.
    long: &'static str,
    /// Whole words: subcommands, and options with one dash.
    words: &'static str,
}

const fn danger(name: &'static str, short: &'static str, long: &'static str, words: &'static str) -> Danger {
    Danger { name, short, long, words }
}

const TABLE: &[Danger] = &[
    danger("fd", "xX", "exec exec-batch", ""),
    danger(
        "git",
        "",
        "config-env exec-path upload-pack receive-pack exec output output-directory ext-diff textconv open-files-in-pager \
         extcmd git-dir work-tree template upload-archive index-output separate-git-dir",
        "-c -O -x -u foreach run",
    ),
    danger("man", "PH", "pager html", ""),
    danger("less", "oO", "log-file LOG-FILE", ""),
    danger(
        "wget",
        "OoaeiP",
        "output-document output-file append-output execute input-file directory-prefix use-askpass post-file body-file config",
        "",
    ),
    danger("rsync", "e", "rsh rsync-path", ""),
    danger("ssh", "oF", "", ""),
    danger("scp", "oSF", "", ""),
    danger("zip", "T", "unzip-command test", "-TT"),
    danger("split", "", "filter", ""),
    danger("yq", "i", "inplace in-place", ""),
    danger("perl", "ieE", "", ""),
    danger("awk", "filE", "file include load exec", ""),
    danger("gawk", "filE", "file include load exec", ""),
    danger("env", "S", "split-string", ""),
    danger("vim", "cS", "cmd", ""),
    danger("node", "", "require import loader experimental-loader eval print run env-file", "-r -e -p -pe -i"),
    danger("ps", "", "", ""),
];

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
    if let Some(acting) = super::unlisted("git", arguments) {
        return acting;
    }
    let table = TABLE.iter().find(|danger| danger.name == "git");
    // A subcommand without a table may run what it is given, read commands or write where it is told.
    let other = arguments.iter().filter(|word| table.is_some_and(|danger| danger.holds(word)));
    std::iter::once(first).chain(other).cloned().collect()
}

/// The options by which the command may execute or write; empty if it has none, or none are known.
pub(in crate::permission) fn dangers(words: &[String]) -> Vec<String> {
    let Some((name, arguments)) = words.split_first() else { return Vec::new() };
    let name = name.rsplit('/').next().unwrap_or_default();
    let one = |text: &str| vec![text.to_owned()];
    if name == "sed" && !sed_is_plain(arguments) {
        return one("a script that may write or execute");
    }
    if matches!(name, "awk" | "gawk" | "mawk" | "nawk") && arguments.iter().any(|word| awk_may_act(word)) {
        return one("a program that may write or execute");
    }
    if name == "git" {
        return of_git(arguments);
    }
    // What is known of these programs is what is harmless: a rule covers nothing else of them that it does not name.
    let listed = covered::acts(name, arguments).or_else(|| compiler::acts(name, arguments));
    if let Some(acting) = listed.or_else(|| super::unlisted(name, arguments)) {
        return acting;
    }
    if let Some(subcommand) = keeps_setting(name, arguments) {
        return one(subcommand);
    }
    // Programs that show something and take commands by the way.
    let shows = matches!(name, "less" | "more" | "vim" | "vi" | "view" | "nvim" | "man");
    if shows && arguments.iter().any(|word| word.starts_with('+')) {
        return one("a command behind +");
    }
    let table = TABLE.iter().find(|danger| danger.name == name);
    arguments.iter().filter(|word| table.is_some_and(|danger| danger.holds(word))).cloned().collect()
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

impl Danger {
    fn holds(&self, word: &str) -> bool {
        if self.words.split(' ').any(|known| {
            !known.is_empty()
                && (known == word
                    || (known.starts_with('-')
                        && known.len() > 2
                        && word.strip_prefix(known).is_some_and(|rest| rest.starts_with('='))))
        }) {
            return true;
        }
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            return !name.is_empty() && self.long.split(' ').any(|known| known.starts_with(name));
        }
        let Some(cluster) = word.strip_prefix('-') else { return false };
        // git's short options with their value in the same word.
        if self.name == "git"
            && (cluster.starts_with('c') && cluster.contains(['=', '.'])
                || cluster.starts_with('O')
                || cluster.starts_with('x'))
        {
            return true;
        }
        cluster.chars().any(|letter| self.short.contains(letter))
    }
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

fn awk_may_act(word: &str) -> bool {
    word.contains(['|', '>', '@']) || word.contains("system") || word.contains("getline") || word.contains("close")
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
