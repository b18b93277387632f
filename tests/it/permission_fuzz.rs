//! Differential: what plan mode lets run must change nothing. Tricky lines are made up from a seed; each one that is
//! allowed is run by a real bash in a folder that is looked at before and after.
//!
//! Then the same from the other side: lines of the table of verdicts, torn and joined with what shells are known to be
//! attacked with, in plan mode and under sample rules. A program that no rule names leaves a mark when it runs, and a file of
//! secrets is there to be shown.
//!
//! `COCODE_FUZZ="<seed> <count>" cargo test --test it permission_fuzz -- --nocapture` tries others.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use cocode::permission::{Access, Behavior, Disk, Mode, Places, QUIET_GIT, Query, RuleSet, Source, decide};
use cocode::sandbox::Level;

use super::plan_enforced::{git, snapshot};

/// Numbers that look like chance: xorshift.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % most
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn one_in(&mut self, most: usize) -> bool {
        self.below(most) == 0
    }
}

/// A program with words that mean something to it: options that read, and some that write or run.
#[rustfmt::skip]
const PROGRAMS: &[(&str, &[&str])] = &[
    ("ls", &["-la", "-R", "--color=always", "--hyperlink", "-d"]),
    ("cat", &["-n", "-A", "--", "-"]),
    ("head", &["-n1", "-c", "3", "-q"]),
    ("tail", &["-n1", "-c+1", "-2"]),
    ("wc", &["-l", "--files0-from=-", "--files0-from=names"]),
    ("sort", &["-u", "-o", "-onew.txt", "-uo", "--output=new.txt", "--outp=new.txt", "-T.", "-k1,1", "-to", "--compress-program=./run.sh", "--comp=./run.sh", "-S1", "-m", "-c"]),
    ("uniq", &["-c", "-d", "new.txt", "--", "-f1"]),
    ("cut", &["-d:", "-f1", "-c1", "--output-delimiter=x"]),
    ("tr", &["a-z", "A-Z", "-d", "x"]),
    ("grep", &["-rn", "-f", "a.txt", "-e", "one", "--include=*.txt", "-l", "--exclude-from=a.txt", "-q", "-O"]),
    ("rg", &["one", "--pre", "./run.sh", "--pre=./run.sh", "-z", "--hostname-bin=./run.sh", "--files", "-g", "*.txt", "-f", "--hyperlink-format=x{host}"]),
    ("find", &[".", "-name", "*.txt", "-delete", "-exec", "touch", "{}", ";", "\\;", "+", "-fprint", "new.txt", "-fls", "-print", "-ok", "-execdir", "-okdir", "-fprintf", "-printf", "%p", "-files0-from", "-newer", "a.txt", "-quit", "-prune", "-o", "-not", "-type", "f", "(", "\\(", "\\)", "-D", "help"]),
    ("sed", &["-n", "p", "1p", "-i", "-i.bak", "--in-place", "--in-pl", "-e", "w new.txt", "s/one/two/w new.txt", "s/one/touch new.txt/e", "1e touch new.txt", "-f", "run.sed", "-s", "-E", "s/o/p/g", "s,a,b,;w new.txt", "s/[/]w new.txt/x/", "y/abc/xyz/", "$!N;P;D", "1{p}", "1{w new.txt", "}", "a\\", "i w new.txt", "/one/w new.txt", "s/x/y/;# w new.txt", "b;w new.txt", "s/one/\\nw new.txt/p", "--posix", "-ni", "-En", "--debug", "1!G;h;$!d", "r a.txt", "W new.txt", "/a/,/b/p", "s/a/b/Iw new.txt", "s/a/b/gpe", "\\,one,p", "l;w new.txt", "c\\\nw new.txt", ": a;w new.txt", "e", "F", "z", "Q3"]),
    ("awk", &["{ print }", "{ print $1 }", "{ print > \"new.txt\" }", "BEGIN { system(\"touch new.txt\") }", "{ print | \"cat > new.txt\" }", "-f", "run.awk", "-F:", "-v", "x=1", "x>1", "$1 > 1", "{ print ($1 > \"new.txt\") }", "{ print $1 > \"new.txt\" }", "{ printf \"%s\", $1 >> \"new.txt\" }", "BEGIN { \"touch new.txt\" | getline }", "BEGIN { while ((getline line < \"a.txt\") > 0) print line }", "/a>b/", "{ print \"a > b\" }", "{ print /x/ > \"new.txt\" }", "-i", "inplace", "BEGIN { ARGV[1] = \"b.txt\" }", "END { print NR }", "{ x = $1 / 2; print x > \"new.txt\" }", "@load \"x\"", "{ print a = \"/\" ; print /\"/ > \"new.txt\" }", "-E", "{ close(\"x\") }", "{ print 1>2 }", "{ print (1>2) }", "--source", "-e", "-o", "-onew.txt", "-dnew.txt", "--dump-variables=new.txt", "--profile=new.txt", "-pnew.txt", "{ print;system (\"touch new.txt\") }", "function f() { return system(\"touch new.txt\") } { f() }", "{ @f() }", "BEGIN { f = \"system\"; @f(\"touch new.txt\") }", "-l", "filefuncs"]),
    ("diff", &["-u", "-r", "-l", "--paginate", "b.txt", "-", "--to-file=a.txt", "--output=new.txt"]),
    ("cmp", &["b.txt", "-l"]),
    ("stat", &["-c", "%n", "--printf=%n", "-L"]),
    ("file", &["-b", "-C", "-m", "a.txt", "-z", "-p", "-f", "--compile", "-s"]),
    ("tree", &["-a", "-o", "new.txt", "-onew.txt", "-R", "-H.", "-L", "1", "--output=new.txt", "-J"]),
    ("xxd", &["-r", "-p", "a.txt", "new.txt", "-l4", "-", "-i", "-revert", "-c", "4"]),
    ("od", &["-c", "-An"]),
    ("base64", &["-d", "-w0", "-o", "new.txt"]),
    ("date", &["+%s", "-s", "now", "-r", "a.txt", "-d", "tomorrow", "01010101", "-Isec"]),
    ("tar", &["tf", "a.tar", "-tf", "xf", "-xf", "-tvf", "-O", "--to-command=./run.sh", "--checkpoint=1", "--checkpoint-action=exec=./run.sh", "-I./run.sh", "--use-compress-program=./run.sh", "cf", "-c", "-t", "-f", "--list", "x:a.tar", "--rsh-command=./run.sh", "--force-local", "-M", "-F./run.sh", "--index-file=new.txt", "-tzf", "--remove-files", "-g", "new.txt", "--rmt-command=./run.sh", "-C", "src"]),
    ("jq", &[".", "-n", "-f", "a.json", "--args", "env", "input", "-r", ".a", "a.json"]),
    ("tee", &["new.txt", "-a", "/dev/null"]),
    ("echo", &["x", "-e", "\\x41", "-n", "*"]),
    ("printf", &["%s\\n", "-v", "x", "%n", "%d", "a[$(touch new.txt)]", "'a[$(touch new.txt)]'", "%b", "%q", "--", "%(%F)T", "%1$n"]),
    ("test", &["-f", "a.txt", "-v", "'a[$(touch new.txt)]'", "-nt", "b.txt", "x", "=", "y", "-eq", "1", "-a", "-o", "!", "-t", "-R"]),
    ("[[", &["-f", "a.txt", "]]", "-v", "'a[$(touch new.txt)]'", "-eq", "0", "x", "==", "x*", "=~", "&&", "||", "-t", "a[$(touch$IFS'new.txt')]", "!", "<", "new.txt", ">"]),
    ("[", &["-f", "a.txt", "]", "-eq", "1", "<", ">", "new.txt", "-v", "'a[$(touch new.txt)]'"]),
    ("git", &["status", "diff", "log", "show", "branch", "tag", "-C", "src", "--output=new.txt", "--output", "new.txt", "--outp=new.txt", "-p", "--stat", "--ext-diff", "--textconv", "-c", "core.pager=./run.sh", "grep", "-O./run.sh", "one", "stash", "list", "reflog", "expire", "--all", "remote", "-v", "add", "x", "y", "config", "--get", "user.name", "--list", "blame", "a.txt", "ls-files", "rev-parse", "HEAD", "--", "--no-index", "b.txt", "--paginate", "--git-dir=.git", "--exec-path=.", "worktree", "bisect", "log", "describe", "--dirty", "cat-file", "-e", "--filters", "--batch", "for-each-ref", "symbolic-ref", "notes", "show-ref", "shortlog", "-D", "-d", "new", "-m", "--list", "-a", "--edit-description", "--set-upstream-to=x", "--unset-upstream", "-u", "--contains", "-n1", "--oneline", "submodule", "status", "foreach", "fsck", "--lost-found", "archive", "bundle", "verify", "--open-files-in-pager", "rev-list", "-1", "merge-base", "hash-object", "-w", "update-index", "--refresh", "count-objects", "var", "GIT_EDITOR", "help", "--show-toplevel", "-ls", "diff-index", "diff-files", "ls-tree", "whatchanged", "--word-diff", "-S", "-G", "--author=x", "-L1,1:a.txt"]),
    ("xargs", &["cat", "sort", "-I{}", "{}", "touch", "-a", "names", "-n1", "sed", "p", "-0", "rm", "grep", "one", "-P2", "find", "-o", "-d,", "wc", "head", "git", "log", "sh", "-c", "-t", "-p", "--arg-file=names", "-i"]),
    ("timeout", &["5", "ls", "touch", "new.txt", "-k", "1", "sort", "-s", "9", "--foreground"]),
    ("env", &["ls", "-i", "touch", "new.txt", "A=1", "-S", "touch new.txt", "-u", "PATH", "-C", "src", "sort", "-0"]),
    ("nice", &["ls", "-n", "5", "touch", "new.txt", "-5"]),
    ("command", &["-v", "ls", "touch", "new.txt", "-p", "cat", "-V"]),
    ("nohup", &["ls", "touch", "new.txt", "cat", "a.txt"]),
    ("exec", &["3<a.txt", "ls", ">new.txt", "-a", "x"]),
    ("cd", &["src", "..", "-", "-P", "."]),
    ("eval", &["ls", "'touch new.txt'", "'l''s'"]),
    ("touch", &["new.txt", "a.txt"]),
    ("rm", &["a.txt", "-f"]),
    ("wait", &["-p", "'a[$(touch new.txt)]'", "1", "-n"]),
    ("read", &["x", "-r", "'a[$(touch new.txt)]'"]),
    ("mapfile", &["-C", "'touch new.txt'", "-c", "1", "x"]),
    ("compgen", &["-C", "'touch new.txt'", "-c", "-W", "'$(touch new.txt)'"]),
    ("unset", &["'a[$(touch new.txt)]'", "-v", "x"]),
    ("declare", &["'a[$(touch new.txt)]=1'", "-n", "x=1", "-p", "-i", "x='a[$(touch new.txt)]'"]),
    ("export", &["x=1", "PATH=.", "-p", "x='$(touch new.txt)'"]),
    ("set", &["-x", "--", "-u", "+e", "-o", "pipefail", "-k"]),
    ("trap", &["'touch new.txt'", "EXIT", "-p", "DEBUG"]),
    ("type", &["ls", "-a"]),
    ("which", &["ls", "-a"]),
    ("hostname", &["-f", "-s", "-F", "a.txt"]),
    ("seq", &["1", "3", "-f", "%n", "-w"]),
    ("du", &["-sh", "--files0-from=names", "-a"]),
    ("basename", &["a.txt", ".txt"]),
    ("realpath", &[".", "-m"]),
    ("column", &["-t", "-s,", "-o", "x"]),
    ("md5sum", &["-c", "names", "-b"]),
    ("nl", &["-ba"]),
    ("comm", &["b.txt", "-1"]),
    ("join", &["b.txt", "-o", "1.1"]),
    ("paste", &["-s", "-d,", "-"]),
    ("strings", &["-n", "4", "-T", "x"]),
    ("hexdump", &["-C", "-n", "8"]),
    ("tac", &["-s", "x"]),
    ("rev", &[]),
    ("fold", &["-w", "10"]),
    ("true", &["$(touch new.txt)", "x"]),
    (":", &["${x:=1}", "${x:-$(touch new.txt)}", "x"]),
];

/// Files by name, by glob, and in disguise.
#[rustfmt::skip]
const OPERANDS: &[&str] = &[
    "a.txt", "b.txt", "src/c.txt", "*", "*.txt", "./*", "?.txt", "-", "new.txt", "$PWD/a.txt", "~/x", "\"a.txt\"",
    "'b.txt'", "{a,b}.txt", "{-i,a.txt}", "$x", "\"$x\"", "${x}", "$(echo a.txt)", "$(echo -i)", "`echo a.txt`",
    "<(cat a.txt)", ">(cat)", "[ab].txt", "-*", "src", ".", "$((1+1))", "$((a[$(touch new.txt)0]))", "${x@P}",
    "${!x}", "a\\.txt", "$'a.txt'", "$'\\x2di'", "--", "[-]*", "[!a]*", "link", "x=1", "~+/a.txt", "!(a.txt)",
    "@(a.txt)", "{1..3}", "../project/a.txt", "{x},-onew.txt}", "{-i}.x,}", "{a},b.txt}", "{x},-delete}", "x{},-i}", "$!-i",
    "$!-onew.txt", "$(git merge-base HEAD nosuch)-onew.txt", "$(git merge-base HEAD nosuch)-delete", "$?", "{a,$}x", "$x{a,b}", "[-]i",
];

/// What comes after a command.
#[rustfmt::skip]
const REDIRECTS: &[&str] = &[
    "", "", "", "", "", "", "", "", "", "> /dev/null", "2>&1", "2>/dev/null", "< a.txt", "> new.txt", ">> a.txt", ">| new.txt",
    "&> new.txt", "&>> new.txt", ">& new.txt", "<> new.txt", "{fd}> new.txt", "<<< x", "2>&1 > new.txt", ">&2",
    "3< a.txt", "> /dev/stderr", "> ~/new.txt", "> $x", "> \"$(echo new.txt)\"", ">&-", "<&0", "> /dev/../new.txt",
    ">/dev/fd/1", "> /dev/null/../new.txt", "<<E\n$(touch new.txt)\nE", "<<'E'\n$(touch new.txt)\nE",
    "<<-E\n\tx\n\tE\n", "< a.txt > /dev/stdin", "2< a.txt > /dev/stderr", "> /dev/stdin < b.txt", ">> /dev/fd/0 < a.txt",
    "2< a.txt 1>&2 > /dev/stdout", "> src/../../dev/null",
];

const JOINS: &[&str] = &[" | ", " | ", " | ", "; ", " && ", " || ", "\n", " & ", " |& ", ";", "|", " &&\n", " \\\n | "];

fn word(dice: &mut Dice, text: &str) -> String {
    // Words with blanks are scripts; the rest may be written in another way.
    if text.contains([' ', '\n', '{', '$', ';', '*', '(', '>', '<', '&', '|', '"', '\'', '\\', '!', '#']) {
        let shell = text.starts_with(['\'', '"']) || !text.contains(' ') && dice.one_in(3);
        return if shell { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) };
    }
    match dice.below(14) {
        0 => format!("\"{text}\""),
        1 if text.len() > 1 => format!("{}''{}", &text[..1], &text[1..]),
        2 if text.len() > 1 => format!("{}\\{}", &text[..1], &text[1..]),
        3 => format!("$'{text}'"),
        _ => text.to_owned(),
    }
}

fn simple(dice: &mut Dice) -> String {
    // Half of all commands are the ones with a language of their own.
    let (name, words) = match dice.below(2) {
        0 => {
            let name = dice.pick(&["sed", "awk", "find", "git", "git", "sort", "tar", "xargs", "[[", "printf"]);
            *PROGRAMS.iter().find(|(program, _)| *program == name).unwrap()
        }
        _ => PROGRAMS[dice.below(PROGRAMS.len())],
    };
    let mut line = String::new();
    if dice.one_in(20) {
        let set = [
            "x=1",
            "x=-i",
            "x='touch new.txt'",
            "PATH=.:$PATH",
            "LC_ALL=C",
            "GIT_PAGER=./run.sh",
            "x=$(touch new.txt)",
        ];
        let _ = write!(line, "{} ", dice.pick(&set));
    }
    line.push_str(&word(dice, name));
    for _ in 0..dice.below(4) {
        if !words.is_empty() {
            let text = dice.pick(words);
            let _ = write!(line, " {}", word(dice, text));
        }
    }
    if !dice.one_in(3) {
        let _ = write!(line, " {}", dice.pick(OPERANDS));
    }
    if name == "[[" && !line.contains("]]") {
        line.push_str(" ]]");
    }
    let redirect = dice.pick(REDIRECTS);
    if !redirect.is_empty() {
        let _ = write!(line, " {redirect}");
    }
    line
}

/// A line that is known to be allowed somewhere, with something put in, left out or added.
fn varied(dice: &mut Dice, known: &[&str]) -> String {
    let mut words: Vec<String> = dice.pick(known).split(' ').map(str::to_owned).collect();
    for _ in 0..dice.below(3) {
        let at = dice.below(words.len() + 1);
        match dice.below(5) {
            0 if words.len() > 1 => drop(words.remove(at.min(words.len() - 1))),
            1 => words.insert(at, dice.pick(OPERANDS).to_owned()),
            2 => words.push(dice.pick(REDIRECTS).to_owned()),
            3 => words.push(format!("{}{}", dice.pick(JOINS), dice.pick(known))),
            _ => {
                let name = words[0].clone();
                let of_name = PROGRAMS.iter().find(|(program, words)| *program == name && !words.is_empty());
                let (_, from) = of_name.unwrap_or(&PROGRAMS[dice.below(9)]);
                let text = dice.pick(from);
                words.insert(at, word(dice, text));
            }
        }
    }
    words.join(" ")
}

fn line(dice: &mut Dice, known: &[&str]) -> String {
    let mut line = if dice.one_in(2) { simple(dice) } else { varied(dice, known) };
    while dice.one_in(3) {
        line.push_str(dice.pick(JOINS));
        line.push_str(&simple(dice));
    }
    match dice.below(24) {
        0 => format!("( {line} )"),
        1 => format!("{{ {line}\n}}"),
        2 => format!("for i in a.txt -i; do {line}\ndone"),
        3 => format!("if {line}\nthen echo $?; fi"),
        4 => format!("echo \"$({line}\n)\""),
        5 => format!("while {line}\ndo break; done"),
        6 => format!("ls() {{ {line}\n}}; ls"),
        7 => format!("case x in x) {line}\n;; esac"),
        8 => format!("! {line}"),
        9 => format!("time {line}"),
        10 => format!("x='a[$(touch new.txt)]'; {line}"),
        11 => format!("bash -c {}", word(dice, &format!("{line} "))),
        _ => line,
    }
}

/// A folder in which there is something to destroy, and names that are options.
fn victim(root: &Path) -> Places {
    let project = root.join("project");
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::create_dir_all(root.join("home")).unwrap();
    for (name, text) in [
        ("a.txt", "one two\nthree\n"),
        ("b.txt", "one\n"),
        ("src/c.txt", "c\n"),
        ("a.json", "{\"a\": 1}\n"),
        ("names", "a.txt\n-i\n"),
        ("run.sh", "#!/bin/sh\ntouch \"$PWD/new.txt\"\ncat\n"),
        ("run.sed", "w new.txt\n"),
        ("run.awk", "{ print > \"new.txt\" }\n"),
        ("-i", "x\n"),
        ("-onew.txt", "x\n"),
        ("-delete", "x\n"),
        ("--output=new.txt", "x\n"),
    ] {
        std::fs::write(project.join(name), text).unwrap();
    }
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(project.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("a.txt", project.join("link")).unwrap();
    git(&project, &["init", "-q"]);
    git(&project, &["add", "a.txt", "src"]);
    git(&project, &["commit", "-qm", "first"]);
    // Newer than the index, so that git would like to refresh it.
    std::fs::write(project.join("a.txt"), "one two\nthree\n").unwrap();
    let tar = Command::new("tar").args(["cf", "a.tar", "a.txt"]).current_dir(&project).status();
    assert!(tar.unwrap().success());
    let home = root.join("home");
    Places { cwd: project.clone(), project, cocode_home: home.join(".claude"), home: Some(home), ..Places::default() }
}

/// The seed, how many lines to make, and the dice.
fn given(most: u64) -> (u64, u64, Dice) {
    let given = std::env::var("COCODE_FUZZ").unwrap_or_default();
    let mut given = given.split_whitespace().map(|word| word.parse::<u64>().unwrap());
    let (seed, count) = (given.next().unwrap_or(20_261_122), given.next().unwrap_or(most));
    (seed, count, Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1))
}

#[test]
fn what_plan_mode_allows_changes_nothing() {
    let (seed, count, mut dice) = given(2_000);
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let mut places = victim(&root);
    let mut before = snapshot(&root);
    // Rules lift nothing in plan mode.
    let mut rules = RuleSet::default();
    for rule in ["Bash", "Edit", "Read"] {
        rules.add(Behavior::Allow, cocode::tools::RULES.rule(rule).unwrap(), Source::User);
    }
    let table = include_str!("../data/permission/lines.txt");
    let escaped = |line: &&str| {
        line.contains(['⏎', '␍', '␀', '⇥', '\u{202e}'])
            || line.contains("sleep")
            || line.contains("cargo")
            || line.contains("/dev/")
    };
    let known: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("allow ")).filter(|line| !escaped(line)).collect();
    let (mut ran, mut wrong) = (0, Vec::new());
    for _ in 0..count {
        let command = line(&mut dice, &known);
        let access = Access::Shell { command: command.as_str().into(), cwd: places.project.clone() };
        let query = Query {
            tool: "Bash",
            access: &access,
            mode: Mode::Plan,
            rules: &rules,
            places: &places,
            vocabulary: cocode::tools::RULES,
            level: Level::Kernel,
        };
        if decide(&query, &Disk).behavior != Behavior::Allow {
            continue;
        }
        ran += 1;
        let mut bash = Command::new("timeout");
        bash.args(["-k", "1", "5", "bash", "--norc", "--noprofile", "-c", &command])
            .current_dir(&places.project)
            .env("HOME", root.join("home"))
            .envs(QUIET_GIT.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        bash.status().unwrap();
        let after = snapshot(&root);
        if after != before {
            let of = |path| before.get(path) != after.get(path);
            let changed: Vec<_> = after.keys().chain(before.keys()).filter(|path| of(*path)).collect();
            wrong.push(format!("{command:?} changed {changed:?}"));
            std::fs::remove_dir_all(root.join("project")).unwrap();
            std::fs::remove_dir_all(root.join("home")).unwrap();
            places = victim(&root);
            before = snapshot(&root);
        }
    }
    assert_eq!(wrong, [] as [String; 0], "seed {seed}, {} of {ran} that ran:\n{}", wrong.len(), wrong.join("\n"));
    // Lines that are never allowed prove nothing.
    assert!(ran * 16 >= count, "only {ran} of {count} were allowed");
}

/// What the file holds that no allowed line may show.
const SECRET: &[u8] = b"KEY=5ecret";

/// What is put into a line; `mark` is the program that no rule names.
#[rustfmt::skip]
const FRAGMENTS: &[&str] = &[
    "\n", "\n", "\n", "\nmark\n", "\r", "\\\n", "\t", "\u{b}", "\u{a0}", " ", ";", "; mark", ";;", "&", "&&", "& mark", "| mark",
    "||", "|&", "$(mark)", "\"$(mark)\"", "`mark`", "<(mark)", ">(mark)", "(mark)", "{ mark; }", "$(", ")", "(", "((", "))", "$((",
    "[ ", " ]", "[[ ", " ]]", "[", "]", "a=(", "a[$(mark)]=1", "'a[$(mark)]'", "a[$(mark)]", "'", "\"", "$'", "$\"", "\\", "`",
    "${", "}", "{", "${x:-$(mark)}", "${x@P}", "${!x}", "${a[$(mark)]}", "$((a[$(mark)]))", "$x", "\"$x\"", "$@", "x=mark; ",
    "x='a[$(mark)]'; ", "x=-v; ", "x='-exec mark ;'; ", "-v", "-v 'a[$(mark)]'", "-eq", "-eq 1", "-nt", "-a", "-o", "!", "! ", "time ",
    "time -p ", "command ", "builtin ", "exec ", "eval ", "nice ", "env ", "env A=1 ", "timeout 5 ", "nohup ", "stdbuf -oL ", "xargs ",
    "| xargs ", "xargs -I{} ", "bash -c ", "mark", " mark ", "mark;", "printf -v ", "printf ", "test ", "test -v ", "let ", "declare ",
    "declare -i ", "read ", "unset ", "wait -p ", "mapfile -C mark -c 1 a < a.txt", "trap mark EXIT; ", "trap mark DEBUG; ",
    "PS4='$(mark)' ", "set -x; ", "BASH_ENV=mark ", "IFS=a; ", "PATH=. ", "GIT_PAGER=mark ", "PROMPT_COMMAND=mark ", "export ",
    "alias ls=mark\n", "shopt -s expand_aliases\n", "f() { mark; }; f", "f()", "function f { mark; }\n", "ls() {", "}; ls",
    "for i in ", "for i in mark; do $i; done", "; do ", "; done", "while ", "until ", "if ", "; then ", "else ", "; fi", "case x in ",
    "x) mark;; esac", "esac", "x)", "in", "select ", "coproc ", "<<E\n", "<<'E'\n", "<<-E\n", "\nE\n", "\nE", "<<<", "<", ">", ">>",
    "2>&1", "&>", ">&", "<>", "{fd}>", "2>/dev/stdout ", "> /dev/stdin ", "#", " # ", "#\n", "~", "*", "?", "*(mark)", "@(a|b)", "!(a)", "{a,b}", "{mark,}", "{mark,a}",
    "--", " -- ", "-", "=", ",", "-exec mark {} \\;", "-exec mark {} +", "-ok mark \\;", "--pre=mark", "--compress-program=mark",
    "-c core.pager=mark ", "--ext-diff", "-O mark", "'BEGIN{system(\"mark\")}'", "'1e mark'", "s/o/mark/e", "a.txt", "src",
    "{x},", ",-e'1e mark'}", "{x},-e'1e mark'}", "{x},-exec\\ mark}", "{a,$}", "$!", "$!-e'1e mark'", "$(git merge-base HEAD nosuch)",
    "$(git merge-base HEAD nosuch)-e'1e mark'", "x={a,mark}; ", "touch ./-x; ", "?x ",
    ".env", " .env", "\"$(echo .env)\"", "${x:-.env}", "x=.env; ", "x=$(echo .env); ", "x='a .env b'; ", ".e", "nv", "$(echo nv)",
    "echo .env | xargs cat; ", "for x in .e*; do cat ", "for x in a .env; do cat $x; ", "HEAD:", "$x.env", "cat ", "cat \"$x\"; ",
];

fn torn(dice: &mut Dice, seeds: &[String]) -> String {
    let mut line: Vec<char> = seeds[dice.below(seeds.len())].chars().collect();
    for _ in 0..=dice.below(2) {
        let at = dice.below(line.len() + 1);
        match dice.below(8) {
            0..=3 => drop(line.splice(at..at, dice.pick(FRAGMENTS).chars())),
            4 => {
                // At a blank, where it is most likely to be read as something.
                let blanks: Vec<usize> = (0..line.len()).filter(|at| line[*at] == ' ').collect();
                if !blanks.is_empty() {
                    let at = blanks[dice.below(blanks.len())];
                    line.splice(at..=at, dice.pick(FRAGMENTS).chars());
                }
            }
            5 => drop(line.drain(at..(at + 1 + dice.below(4)).min(line.len()))),
            6 => {
                let other: Vec<char> = seeds[dice.below(seeds.len())].chars().collect();
                let from = dice.below(other.len() + 1);
                line.truncate(at);
                line.extend(&other[from..]);
            }
            _ => line.extend(format!("{}{}", dice.pick(JOINS), seeds[dice.below(seeds.len())]).chars()),
        }
    }
    line.into_iter().collect()
}

/// A folder with a program that leaves marks, and what bash ran in it.
struct Marked {
    temp: tempfile::TempDir,
    places: Places,
}

impl Marked {
    fn new() -> Marked {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let places = victim(&root);
        std::fs::create_dir(root.join("bin")).unwrap();
        for name in ["bin/mark", "project/mark"] {
            use std::os::unix::fs::PermissionsExt;
            let marks = root.join("marks");
            std::fs::write(root.join(name), format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", marks.display())).unwrap();
            std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::write(root.join("project/.env"), SECRET).unwrap();
        Marked { temp, places }
    }

    fn allows(&self, command: &str, mode: Mode, rules: &RuleSet, level: Level) -> bool {
        let access = Access::Shell { command: command.into(), cwd: self.places.project.clone() };
        let (places, vocabulary) = (&self.places, cocode::tools::RULES);
        let query = Query { tool: "Bash", access: &access, mode, rules, places, vocabulary, level };
        decide(&query, &Disk).behavior == Behavior::Allow
    }

    /// Runs an allowed line; what it must not have done.
    fn run(&self, command: &str) -> Vec<String> {
        let root = self.temp.path().canonicalize().unwrap();
        let path = format!("{}:{}", root.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut bash = Command::new("timeout");
        bash.args(["-k", "1", "2", "bash", "--norc", "--noprofile", "-c", command])
            .current_dir(&self.places.project)
            .env("HOME", root.join("home"))
            .env("PATH", path)
            .envs(QUIET_GIT.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let shown = bash.output().unwrap().stdout;
        let mut wrong = Vec::new();
        if shown.windows(SECRET.len()).any(|part| part == SECRET) && !keeps_closed(command, &self.places) {
            wrong.push(format!("{command:?} showed a secret"));
        }
        if let Ok(mark) = std::fs::read_to_string(root.join("marks")) {
            wrong.push(format!("{command:?} ran {mark}"));
            std::fs::remove_file(root.join("marks")).unwrap();
        }
        wrong
    }
}

/// Whether the line passes because the kernel keeps secrets closed to it, which nothing does here: it asks where nothing can.
pub(super) fn keeps_closed(command: &str, places: &Places) -> bool {
    let access = Access::Shell { command: command.into(), cwd: places.project.clone() };
    let rules = RuleSet::default();
    let (rules, vocabulary, level) = (&rules, cocode::tools::RULES, Level::None);
    let query = Query { tool: "Bash", access: &access, mode: Mode::Default, rules, places, vocabulary, level };
    let decision = decide(&query, &Disk);
    decision.behavior == Behavior::Ask && decision.reasons.iter().any(|reason| reason.contains("may hold secrets"))
}

fn is_slow(line: &str) -> bool {
    ["sleep", "tail -f", "cargo", "/dev/"].iter().any(|word| line.contains(word))
}

/// The lines of a table, those that are allowed and begin with one of the names more often. What they must not run becomes
/// what leaves a mark.
fn seeds(table: &str, names: &[&str]) -> Vec<String> {
    let word = |text: &str| if matches!(text, "rm" | "touch" | "id") { "mark".to_owned() } else { text.to_owned() };
    table
        .lines()
        .filter(|line| !line.starts_with(['#', '[']))
        .filter_map(|line| line.split_once(' '))
        // Most of what asks keeps asking, and so does what only other rules allow.
        .flat_map(|(want, line)| {
            let known = names.iter().any(|name| line.starts_with(name));
            std::iter::repeat_n(line, if want == "allow" && known { 8 } else { 1 })
        })
        .map(|line| line.replace('⏎', "\n").replace('␍', "\r").replace('⇥', "\t").replace('␀', ""))
        .filter(|line| !is_slow(line))
        .map(|line| {
            let line = line.replace("rm x", "mark x").replace("touch x", "mark x");
            line.split(' ').map(word).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

fn told((seed, count): (u64, u64), ran: u64, least: u64, wrong: &[String]) {
    let _ = writeln!(std::io::stderr(), "seed {seed}: {count} lines made, {ran} run, {} marks", wrong.len());
    assert_eq!(wrong, [] as [String; 0], "seed {seed}, {} of {ran} that ran:\n{}", wrong.len(), wrong.join("\n"));
    // Lines that are never allowed prove nothing.
    assert!(ran * least >= count, "only {ran} of {count} were allowed");
}

#[test]
fn what_is_allowed_runs_nothing_else() {
    let (seed, count, mut dice) = given(5_000);
    let marked = Marked::new();
    let mut rules = RuleSet::default();
    let names =
        "git log, git diff, git status, cat, printf, test, [, [[, timeout, nice, env, nohup, command, xargs, find, \
                 sort, echo, export, unset, read, declare, let, bash, sed, awk, time, stdbuf, wait, x=1"
            .split(", ")
            .collect::<Vec<_>>();
    for name in &names {
        rules.add(Behavior::Allow, cocode::tools::RULES.rule(&format!("Bash({name}:*)")).unwrap(), Source::User);
    }
    let seeds = seeds(include_str!("../data/permission/lines.txt"), &names);
    let none = RuleSet::default();
    let (mut ran, mut wrong) = (0, Vec::new());
    for _ in 0..count {
        let command = torn(&mut dice, &seeds);
        let plan = marked.allows(&command, Mode::Plan, &none, Level::Kernel);
        if is_slow(&command) || !plan && !marked.allows(&command, Mode::Default, &rules, Level::Kernel) {
            continue;
        }
        ran += 1;
        let by = if plan { "plan" } else { "rules" };
        wrong.extend(marked.run(&command).into_iter().map(|what| format!("{by} {what}")));
    }
    told((seed, count), ran, 20, &wrong);
}

#[test]
fn what_passes_unconfined_runs_nothing_and_changes_nothing() {
    let (seed, count, mut dice) = given(6_000);
    let mut marked = Marked::new();
    let root = |marked: &Marked| marked.temp.path().canonicalize().unwrap();
    let mut before = snapshot(&root(&marked));
    let none = RuleSet::default();
    // Of both tables, in files that are here.
    let here = |line: String| {
        let line =
            line.replace("/p/README.md", "a.txt").replace("README.md", "a.txt").replace("src/main.rs", "src/c.txt");
        line.replace("/p ", ". ")
    };
    let table = seeds(include_str!("../data/permission/unconfined.txt"), &[""]);
    let table = table.into_iter().chain(seeds(include_str!("../data/permission/lines.txt"), &[]));
    let seeds: Vec<String> = table.map(here).collect();
    let passes = |line: &&str| marked.allows(line, Mode::Plan, &none, Level::None);
    let plain: Vec<&str> = seeds.iter().map(String::as_str).filter(passes).collect();
    let (mut ran, mut wrong) = (0, Vec::new());
    for _ in 0..count {
        let command = match dice.below(3) {
            0 => varied(&mut dice, &plain),
            1 => simple(&mut dice),
            _ => torn(&mut dice, &seeds),
        };
        if is_slow(&command) || !marked.allows(&command, Mode::Default, &none, Level::None) {
            continue;
        }
        ran += 1;
        wrong.extend(marked.run(&command));
        if snapshot(&root(&marked)) != before {
            wrong.push(format!("{command:?} changed something"));
            marked = Marked::new();
            before = snapshot(&root(&marked));
        }
    }
    told((seed, count), ran, 40, &wrong);
}
