//! What a rule such as `Bash(git push:*)` covers beside the words that it names: options that only say how the same is done.
//! What writes elsewhere, runs a program or takes another project or configuration is not listed, and asks.

mod files;
mod given;
mod plain;
mod table;

pub(in crate::permission) use self::given::{Given, given};
use self::table::{Covered, Operands};
use super::super::shell::{MANY, ONE, Word};
use super::commit::{Argument, Found, Subcommand};
use super::special::filters_input;

/// Programs that take the names of options as a whole, or shorten them in ways of their own.
const EXACT: &str = "npm gh cargo go ruff zip rsync scp ssh wget less more man vim vi view nvim fd fdfind yq perl node";

/// Subcommands of git's that speak to another repository.
const TRANSFERS: [&str; 6] = ["git push", "git fetch", "git pull", "git clone", "git ls-remote", "git remote"];

/// The words that name the other repository of a git command, should they do so.
pub(in crate::permission) fn repositories(words: &[Word]) -> Vec<&Word> {
    let texts: Vec<String> = words.iter().map(Word::known).collect();
    let spoken = |at: &usize| TRANSFERS.iter().any(|known| known.strip_prefix("git ") == Some(&texts[*at]));
    let Some(at) = (1..words.len()).find(spoken).filter(|_| texts[0] == "git") else { return Vec::new() };
    let operands = words[at + 1..].iter().filter(|word| !word.prefix().starts_with('-'));
    // Behind the repository come branches; of a remote's words any may be its address.
    let address = |word: &&Word| word.literal().is_some_and(|text| text.contains("://") || text.contains('@'));
    operands.take(if texts[at] == "remote" { usize::MAX } else { 1 }).filter(|word| !address(word)).collect()
}

/// What is known of the program, and of the subcommand where it has some.
fn known(name: &str, arguments: &[String]) -> Option<&'static Covered> {
    let speaks = |covered: &&Covered| {
        let mut words = covered.command.split(' ');
        words.next() == Some(name) && words.next().is_none_or(|sub| arguments.first().is_some_and(|word| word == sub))
    };
    table::TABLE.iter().chain(files::TABLE).find(speaks)
}

/// Whether there is a table for the program, or for each subcommand of its that is not one for reading.
pub(in crate::permission) fn describes(name: &str) -> bool {
    let own = |covered: &Covered| covered.command.split(' ').next() == Some(name);
    table::TABLE.iter().chain(files::TABLE).any(own)
}

/// Whether a rule for the program covers no more than what it writes in the folder.
pub(in crate::permission) fn writes_inside(name: &str) -> bool {
    let written = |covered: &Covered| {
        matches!(covered.operands, Operands::Files | Operands::Last | Operands::Remote | Operands::Saved)
            || matches!(covered.command, "tar" | "unzip")
    };
    known(name, &[]).is_some_and(written)
}

/// Whether the paths of the program start where it does, whatever its options say.
pub(in crate::permission) fn starts_here(name: &str) -> bool {
    writes_inside(name) && !matches!(name, "tar" | "unzip" | "patch")
}

/// Where among the arguments of ssh its line for the other machine starts.
pub(in crate::permission) fn remote_line(arguments: &[String]) -> usize {
    let Some(options) = known("ssh", &[]).map(|ssh| Subcommand { name: "", options: ssh.options }) else { return 0 };
    // Options may follow the machine, too.
    let host = options.first_operand(arguments);
    let behind = arguments.get(host + 1..).unwrap_or_default();
    (host + 1 + options.first_operand(behind)).min(arguments.len())
}

/// The words that such a rule does not cover; None for a program of which there is no table.
pub(super) fn acts(name: &str, arguments: &[String]) -> Option<Vec<String>> {
    Some(acting(known(name, arguments)?, name, arguments))
}

/// The same for a program that runs what is the project's, or that nobody described.
pub(super) fn acts_otherwise(name: &str, arguments: &[String]) -> Vec<String> {
    acting(plain::of(name, arguments), name, arguments)
}

/// Whether the harmless options of the program are known, which runs what is the project's.
pub(in crate::permission) fn is_plainly_known(name: &str) -> bool {
    plain::describes(name)
}

/// Whether it is a script of the project, by its path, which takes whatever it wants.
pub(super) fn is_script(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    let relative = program.contains('/') && !program.starts_with(['/', '~']);
    (relative || name.ends_with(".sh")) && !plain::describes(name)
}

fn acting(covered: &Covered, name: &str, arguments: &[String]) -> Vec<String> {
    let rest = &arguments[covered.command.split(' ').count() - 1..];
    let mut acting = Vec::new();
    let options = Subcommand { name: "", options: covered.options };
    let split = if name == "tar" { unbundled(rest, &options) } else { Vec::new() };
    let rest = match rest.split_first() {
        _ if name == "tar" => split.as_slice(),
        Some((first, after)) if name == "cargo" && is_channel(first) => after,
        _ => rest,
    };
    // The options of these have one dash.
    let one_dash = matches!(covered.command, "go" | "terraform" | "mvn");
    let of = |word: &String| match word.strip_prefix('-') {
        Some(option) if one_dash && !option.starts_with('-') => Argument::of(&format!("--{option}")),
        // How many commits.
        Some(count) if name == "git" && count.parse::<u32>().is_ok() => Argument::of(count),
        _ => Argument::of(word),
    };
    let rest = match covered.operands {
        // What follows the script is for the script; several that are tested are run.
        Operands::Script if !rest.iter().any(|word| word == "--test") => {
            let at = options.first_operand(rest);
            &rest[..rest.len().min(at + 1)]
        }
        Operands::Host => &rest[..remote_line(rest)],
        _ => rest,
    };
    // Behind `-args` come arguments of the tests.
    let end = rest.iter().position(|word| name == "go" && word == "-args").unwrap_or(rest.len());
    let (found, _) = options.found(rest[..end].iter().map(of).collect());
    let operands: Vec<&str> = found.iter().filter(|one| one.name == "--").map(|one| one.written.as_str()).collect();
    if let (Operands::First(known), Some(first)) = (covered.operands, operands.first())
        && !known.split_whitespace().any(|word| word == *first)
    {
        acting.push((*first).to_owned());
    }
    // Without a script, what comes in is one.
    let told = ["--test", "--version", "--help", "--list", "-v", "-V", "-h", "-l"]
        .iter()
        .any(|told| arguments.iter().any(|word| word == told));
    let fed = matches!(covered.operands, Operands::Script | Operands::First(""));
    if fed && !told && operands.first().is_none_or(|script| *script == "-") {
        acting.push("a script from its input".to_owned());
    }
    let judged = match covered.operands {
        // Without it each is made there.
        Operands::Last if found.iter().any(|one| one.name == "directory" && name == "install") => &operands[..],
        Operands::Last if operands.len() == 1 || found.iter().any(|one| one.name == "target-directory") => &[],
        Operands::Last => &operands[operands.len().saturating_sub(1)..],
        _ => &operands[..],
    };
    acting.extend(judged.iter().filter(|word| covered.leaves(word)).map(|word| (*word).to_owned()));
    // What a program passes on to another one.
    let passed = rest.iter().position(|word| word == "--").map_or(&[][..], |at| &rest[at + 1..]);
    acting.extend(passed.iter().filter(|word| covered.passes_on(operands.first(), word)).cloned());
    if name == "cargo" {
        // A target's file may name a linker.
        acting.extend(rest.iter().filter(|word| word.ends_with(".json")).cloned());
        let made = matches!(operands.first(), Some(&("new" | "init" | "vendor")));
        acting.extend(operands.iter().filter(|word| made && is_elsewhere(word)).map(|word| (*word).to_owned()));
    }
    let otherwise = !describes(name);
    if covered.command.is_empty() {
        acting.extend(passed.iter().filter(|word| word.starts_with('-')).cloned());
    }
    if otherwise || EXACT.split(' ').any(|known| known == name) {
        let named = |word: &str| {
            let name = word.split('=').next().unwrap_or_default();
            let mut options = covered.options.split_whitespace().filter_map(|option| option.split('/').next());
            options.any(|option| option.trim_end_matches(['=', '?', '!']) == name)
        };
        let long = |word: &&String| word.strip_prefix("--").is_some_and(|name| !name.is_empty() && !named(name));
        acting.extend(rest.iter().take_while(|word| *word != "--").filter(long).cloned());
    }
    let (found, unknown) = options.found(rest.iter().map(of).collect());
    // What the table takes for a value, the program may take for an option.
    let dashed = |one: &Found| otherwise && one.name != "--" && one.value.starts_with('-');
    let acts = |one: &&Found| one.acts || dashed(one) || covered.strays(one, &found);
    let all = unknown.into_iter().chain(found.iter().filter(acts).map(|one| one.written.clone()));
    // A word may be empty.
    let written = |word: String| if one_dash { word.get(1..).unwrap_or_default().to_owned() } else { word };
    acting.extend(all.map(written));
    acting
}

/// The arguments of tar with a dash before each option: a first word without one is a bundle of letters, whose values come
/// behind it in their order.
fn unbundled(arguments: &[String], options: &Subcommand) -> Vec<String> {
    let Some((bundle, rest)) = arguments.split_first().filter(|(first, _)| !first.starts_with('-')) else {
        return arguments.to_vec();
    };
    let mut rest = rest.iter();
    let mut all = Vec::new();
    for letter in bundle.chars() {
        all.push(format!("-{letter}"));
        if options.is_valued(letter) {
            all.extend(rest.next().cloned());
        }
    }
    all.extend(rest.cloned());
    all
}

/// Whether the word chooses a toolchain that rustup itself brings: any other may lie anywhere.
fn is_channel(word: &str) -> bool {
    let Some(name) = word.strip_prefix('+') else { return false };
    let version = ["stable", "beta", "nightly"].iter().find_map(|channel| name.strip_prefix(channel)).unwrap_or(name);
    version.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

/// Whether it is an option of the program that tests are compiled to, which writes nothing: not --logfile.
fn runs_tests(option: &str) -> bool {
    const KNOWN: &str = "--nocapture --no-capture --test-threads --include-ignored --ignored --skip --exact --show-output --list \
        --color --format --quiet -q --shuffle --shuffle-seed --report-time --help -h";
    let name = option.split('=').next().unwrap_or_default();
    KNOWN.split_ascii_whitespace().any(|known| known == name)
}

/// Whether the word does no more than choose lints.
fn is_lint(word: &str) -> bool {
    let name = ["-D", "-W", "-A", "-F"].iter().find_map(|level| word.strip_prefix(level)).unwrap_or(word);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':' | '-');
    word == "--no-deps" || !name.starts_with('-') && name.chars().all(plain)
}

impl Covered {
    /// Whether an operand leads to another project, or sets something. What only bash knows may do both.
    fn leaves(&self, word: &str) -> bool {
        let open = word.contains([ONE, MANY]);
        let leads = || word.starts_with('@') || leads_out(word.split("::").next().unwrap_or_default());
        match self.operands {
            Operands::Inside | Operands::Script => open || leads(),
            Operands::Files | Operands::Last => {
                open || leads_out(word) || word.split_once('=').is_some_and(|(_, value)| leads_out(value))
            }
            // What comes before the first colon, with no slash, is another machine.
            Operands::Remote => {
                let start = word.split(['/', ONE, MANY]).next().unwrap_or_default();
                word.starts_with('-') || !start.contains(':') && (open || leads_out(word))
            }
            // Behind two colons Maven names a plugin of anybody's.
            Operands::Words => !is_plain(word) || self.command == "mvn" && word.matches(':').count() > 1,
            Operands::Saved => open || is_saved_oddly(word),
            Operands::Host => open || word.starts_with('-'),
            // A command behind `+`.
            Operands::Any if SHOWING.contains(&self.command) => word.starts_with('+'),
            Operands::Targets => open || leads() || word.contains('=') && !switches(word),
            Operands::Any if self.command == "yq" => open || !filters_input(word),
            Operands::Any if self.command == "curl" => open || is_odd_address(word),
            // The file of another machine's, which tar starts a shell to reach.
            Operands::Any if self.command == "tar" => {
                open || word.split('/').next().is_some_and(|start| start.contains(':'))
            }
            // A transport that runs a command, such as `ext::`, or a repository whose hooks would run.
            Operands::Any if TRANSFERS.contains(&self.command) => {
                word.contains("::")
                    || word.starts_with('.')
                    || leads_out(word)
                    || word.to_ascii_lowercase().starts_with("file:")
            }
            // Where a copy of a repository is made, or which file goes to another machine.
            Operands::First(_) => matches!(self.command, "git submodule" | "gh" | "gh gist") && leads_out(word),
            Operands::Any => false,
        }
    }

    /// Whether a word behind `--` is an option of another program's, which does more than it is allowed to.
    fn passes_on(&self, first: Option<&&str>, word: &str) -> bool {
        match self.command {
            "gh" => true,
            "cargo" => first.is_some_and(|first| match *first {
                "clippy" | "rustc" | "rustdoc" => !is_lint(word),
                // Files that it writes, and options that name its settings.
                "test" | "t" | "bench" => word.starts_with('-') && !runs_tests(word),
                "fmt" => word != "--check" && (word.starts_with('-') || is_elsewhere(word)),
                _ => false,
            }),
            _ => false,
        }
    }

    /// Whether the value of an option is a path that leads out of the folder, or may be, or a folder that leaves it open
    /// what the operands mean.
    fn strays(&self, option: &Found, all: &[Found]) -> bool {
        let value = option.value.as_str();
        let open = value.contains([ONE, MANY]);
        match (self.command, option.name.as_str()) {
            ("tar", "directory") => {
                let out = |one: &Found| one.name == "--" && leads_out(&one.written);
                open || leads_out(value) || all.iter().any(out)
            }
            // The archive of another machine's, which tar starts a shell to reach; what is written stays.
            ("tar", "file") => {
                let reads = |one: &Found| matches!(one.name.as_str(), "extract" | "get" | "list" | "diff");
                let remote = value.split('/').next().is_some_and(|start| start.contains(':'));
                open || remote || !all.iter().any(reads) && leads_out(value)
            }
            // Its value may be left out, and what follows is an option.
            ("cargo", "invert") => value.starts_with('-'),
            ("go", "o" | "coverprofile") => is_elsewhere(value),
            // Where a report is written comes after its kind.
            ("pytest", "cov-report") => open || value.split_once(':').is_some_and(|(_, path)| leads_out(path)),
            ("pytest", "cov") => is_elsewhere(value),
            // A plugin is code; without one, less runs.
            ("pytest", "p") => open || !value.starts_with("no:"),
            ("unzip", "d") => open || leads_out(value),
            (_, "target-directory" | "directory-prefix") => open || leads_out(value),
            ("patch", "directory" | "output" | "reject-file") => open || leads_out(value),
            ("wget", "output-document") => value != "-",
            // Letters of wget's with a dash before them: what it does not do.
            ("wget", "n") => value.is_empty() || !value.chars().all(|c| "vcdHp".contains(c)),
            // Of a list the first is its value, and it ends with the next option.
            ("zip", "exclude") => open || value.starts_with(['-', '@']),
            ("git format-patch", "suffix") => open || value.contains('/'),
            ("split", "additional-suffix") => open || value.contains('/'),
            // Without a value it is that of the environment.
            (_, "env" | "build-arg") if self.command.starts_with("docker") => !value.contains('='),
            ("cmake", "D") => !SETTINGS.split(' ').any(|known| value.starts_with(known)),
            (command, "jq") if command.starts_with("gh") => open || !filters_input(value),
            ("curl", name) => sends(name, value),
            _ => false,
        }
    }
}

/// Whether the value of one of curl's options names a file that lies outside of the folder, or in a way that only curl reads.
fn sends(option: &str, value: &str) -> bool {
    // A value of the environment, to any machine.
    if value.contains([ONE, MANY]) {
        return true;
    }
    let odd = value.contains(['"', '\'', '\\']);
    let file = |path: &str| odd || leads_out(path);
    match option {
        "data" | "data-binary" | "json" | "header" => value.strip_prefix('@').is_some_and(file),
        // Before a `=` it is the name of what is sent.
        "data-urlencode" => {
            value.split('=').next().and_then(|name| name.split_once('@')).is_some_and(|(_, path)| file(path))
        }
        "cookie" => !value.contains('=') && file(value),
        "write-out" => value.starts_with('@') || value.contains("%output{"),
        // A list of files, and behind `;` more that may come from one.
        "form" => {
            let content = value.split_once('=').map_or(value, |(_, content)| content).trim_start();
            let reads = content.starts_with(['@', '<']) || content.contains(';');
            reads && (odd || content.split(['@', '<', '=', ';', ',']).any(|part| leads_out(part.trim())))
        }
        _ => false,
    }
}

/// Programs that show something, and take commands by the way.
const SHOWING: [&str; 7] = ["less", "more", "man", "vim", "vi", "view", "nvim"];

/// What may be set for CMake beside a program.
const SETTINGS: &str = "CMAKE_BUILD_TYPE= CMAKE_EXPORT_COMPILE_COMMANDS= BUILD_TESTING= BUILD_SHARED_LIBS=";

/// Whether the word names something and is no more than a name, a number, a path or a pattern.
fn is_plain(word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || "_./-:@,+%*?[]{}!#^~".contains(c);
    word.starts_with(|c: char| c.is_alphanumeric() || "_./:*".contains(c)) && word.chars().all(part)
}

/// Whether a variable of make's switches something on or off, or names a compiler that everybody has. Not those that choose
/// what make itself reads and starts.
fn switches(word: &str) -> bool {
    let own = |name: &str| ["MAKE", "GNUMAKE", "SHELL", "PATH", "LD_", "DYLD_"].iter().any(|own| name.starts_with(own));
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') && !own(name);
    let compiler = |value: &str| {
        matches!(
            value.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-'),
            "cc" | "gcc" | "clang" | "c++" | "g++" | "clang++"
        )
    };
    word.split_once('=').is_some_and(|(name, value)| match name {
        "CC" | "CXX" => compiler(value),
        _ => {
            plain(name) && matches!(value, "0" | "1" | "2" | "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false")
        }
    })
}

/// Whether a path is outside of the folder, or only bash knows.
pub(super) fn is_elsewhere(path: &str) -> bool {
    path.contains([ONE, MANY]) || leads_out(path)
}

/// Whether an address names a file that configures something, as far as one can tell: wget decodes its last part.
fn is_saved_oddly(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, path)| path);
    let name = path.rsplit_once('/').map_or("", |(_, name)| name);
    // Of a server of files it takes what fits a pattern, by the names that are there.
    name.starts_with('.')
        || name.contains(['%', '\\'])
        || address.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("ftp"))
}

/// Whether it is a device from which everybody reads and to which everybody writes.
pub(in crate::permission) fn is_device(path: &str) -> bool {
    let name = path.strip_prefix("/dev/");
    name.is_some_and(|name| matches!(name, "null" | "zero" | "urandom" | "stdin" | "stdout" | "stderr"))
}

/// Whether a path is outside of the folder, or may be.
pub(super) fn leads_out(path: &str) -> bool {
    let up = |part: &str| matches!(part, ".." | ".*" | ".?" | "..*");
    if is_device(path) {
        return false;
    }
    path.starts_with(['/', '~']) || path.split('/').any(up)
}

/// Whether the address is of something else than a web server, as far as one can tell without curl's globs.
fn is_odd_address(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let start = lower.split(['/', '?', '#']).next().unwrap_or_default();
    let scheme = start.split_once(':').filter(|(_, rest)| !rest.starts_with(|c: char| c.is_ascii_digit()));
    start.contains(['{', '}', '[', ']', '%']) || scheme.is_some_and(|(name, _)| !matches!(name, "http" | "https"))
}
