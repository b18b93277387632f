//! What a rule for a compiler covers: options that say what is compiled and how. What passes an option on, loads code into
//! the compiler, names another program or writes elsewhere is not listed, and asks.

use super::super::shell::{MANY, ONE};
use super::covered::leads_out;

/// Without its version: of `c99` and `c89` that is `c`.
const NAMES: [&str; 9] = ["gcc", "cc", "g++", "c++", "clang", "clang++", "cpp", "gfortran", "c"];

const FLAGS: &str = "-c -S -E -v -w -s -g -P -C -CC -H -M -MM -MD -MMD -MG -MP -Q -ansi -pedantic -pedantic-errors -pipe \
    -pthread -shared -static -static-libgcc -static-libstdc++ -static-pie -pie -no-pie -rdynamic -nostdlib -nostdinc \
    -nostdinc++ -nodefaultlibs -nostartfiles -undef -dM -dD -dI -dN -dU -dumpversion -dumpfullversion -dumpmachine \
    -save-temps --version --help -gsplit-dwarf -gline-tables-only -";

/// Options whose value is in the same word or the next one. What is made is a path.
const VALUED: [&str; 13] =
    ["-I", "-D", "-U", "-L", "-l", "-x", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-MT", "-MQ"];
const MADE: [&str; 2] = ["-o", "-MF"];

/// Options of `-f` with a value.
const TUNED: &str = "-fsanitize -fno-sanitize -fsanitize-recover -fno-sanitize-recover -fvisibility -fmax-errors \
    -fmessage-length -fdiagnostics-color -ferror-limit -flto -ffp-contract -fpack-struct -ftemplate-depth \
    -fconstexpr-depth -ftabstop -fcf-protection -fopenmp -ftrivial-auto-var-init -fstrict-flex-arrays -fabi-version \
    -finline-limit -falign-functions -falign-loops -ftls-model -fexcess-precision";

/// Options that the linker gets behind `-Wl,`.
const LINKED: &str = "-rpath -z -soname --as-needed --no-as-needed --gc-sections --no-undefined --export-dynamic -E -s \
    --strip-all --start-group --end-group -Bstatic -Bdynamic --whole-archive --no-whole-archive --build-id -O1 -rpath-link";

/// The words that such a rule does not cover; None for a program that is not a compiler.
pub(super) fn acts(name: &str, arguments: &[String]) -> Option<Vec<String>> {
    // `x86_64-linux-gnu-gcc-12`
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    if !NAMES.iter().any(|known| name.strip_suffix(known).is_some_and(|start| start.is_empty() || start.ends_with('-')))
    {
        return None;
    }
    let mut acting = Vec::new();
    // In any place, a file behind `@` holds more options; what only bash knows may begin so.
    acting.extend(arguments.iter().filter(|word| word.starts_with(['@', ONE, MANY])).cloned());
    // The preprocessor writes what its second operand names.
    let mut written = name.ends_with("cpp").then_some(0);
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let made = MADE.iter().find_map(|option| word.strip_prefix(option));
        let covered = match (made, VALUED.contains(&word.as_str())) {
            (Some(""), _) => rest.next().is_some_and(|path| stays(path)),
            (Some(path), _) => stays(path),
            (None, true) => rest.next().is_some_and(|value| !value.contains(MANY)),
            (None, false) => match &mut written {
                Some(operands) if !word.starts_with('-') => {
                    *operands += 1;
                    *operands == 1 || stays(word)
                }
                _ => covers(word),
            },
        };
        if !covered {
            acting.push(word.clone());
        }
    }
    Some(acting)
}

fn stays(path: &str) -> bool {
    !path.contains([ONE, MANY]) && !leads_out(path)
}

/// Whether the word is an operand, or an option that only says how the same is compiled.
fn covers(word: &str) -> bool {
    let listed = |list: &str, word: &str| list.split_whitespace().any(|known| known == word);
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_+.".contains(c));
    if word.contains([ONE, MANY]) {
        return word.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.'))
            || ["-I", "-D", "-L"].iter().any(|option| word.starts_with(option)) && !word.contains(MANY);
    }
    if !word.starts_with('-') {
        return !word.starts_with('@');
    }
    if listed(FLAGS, word) || VALUED.iter().any(|option| word.starts_with(option)) {
        return true;
    }
    if let Some(linked) = word.strip_prefix("-Wl,") {
        let known = |part: &str| listed(LINKED, part.split('=').next().unwrap_or_default());
        return linked.split(',').all(|part| !part.starts_with(['-', '@']) || known(part));
    }
    let (option, value) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    match (option.get(..2).unwrap_or_default(), value) {
        ("-s", Some(value)) => option == "-std" && plain(value),
        ("-f", Some(value)) if option == "-fuse-ld" => matches!(value, "bfd" | "gold" | "lld" | "mold"),
        ("-f", Some(_)) if matches!(option, "-ffile-prefix-map" | "-fdebug-prefix-map" | "-fmacro-prefix-map") => true,
        ("-f", Some(value)) => listed(TUNED, option) && plain(&value.replace(',', "")),
        ("-f", None) => plain(option),
        ("-m", _) => option != "-mllvm" && plain(option) && value.is_none_or(plain),
        ("-W", _) => plain(option) && value.is_none_or(plain),
        ("-O", None) => plain(option),
        ("-g", None) => ["-ggdb", "-gdwarf", "-gz"].iter().any(|known| option.starts_with(known)) || option.len() == 3,
        _ => false,
    }
}
