//! Differential: words made up from a seed, read by us and by a real bash. What we hold for text must be what bash passes on.
//!
//! `COCODE_FUZZ="<seed> <count>"` tries others.

use std::process::{Command, Stdio};

use super::{Node, Piece, Simple, Word, parse};

/// What a word is made of.
#[rustfmt::skip]
const FRAGMENTS: &[&str] = &[
    "{", "{", "{", "}", "}", "}", ",", ",", ",", "..", ".", "a", "b", "-", "1", "{}", "{a}", "{a,b}", "{,}", "{1..3}", "{a..c}", "{a..9}",
    "''", "\"\"", "' '", "\" \"", "\\ ", "\\{", "\\}", "\\,", "'{'", "'}'", "','", "\"{\"", "\"}\"", "\",\"", "'a,b'", "\"{a,b}\"", "\\\\",
    "$x", "\"$x\"", "${x}", "$e", "\"$e\"", "$v", "\"$v\"", "${x:-a,b}", "\"${x:-a,b}\"", "$!", "$?", "$#", "$-", "$1", "$*", "\"$*\"",
    "$@", "\"$@\"", "${#v}", "$((1+1))", "$((1-2))", "$(true)", "$(echo a b)", "\"$(echo a b)\"", "$(echo {a,b})", "~", "/", "=", ":",
    "$$", "$", "_", "*", "?", "[", "]", "!", "^", "+", "%", "é",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % most
    }
}

/// What may stand in the output.
enum Part {
    Char(char),
    /// Any text within one word.
    One,
    /// Any text, and any number of words.
    Many,
    /// The end of a word that may not be there.
    MayEnd,
}

const END: char = '\0';

fn parts(words: &[Word]) -> Vec<Part> {
    let mut parts = Vec::new();
    for word in words {
        let mut vanishes = true;
        for piece in &word.pieces {
            match piece {
                Piece::Text(text) => parts.extend(text.chars().map(Part::Char)),
                // There are files in the root, and none in the folder.
                Piece::Glob(_) if word.prefix().starts_with('/') => parts.push(Part::Many),
                Piece::Glob(c) => parts.push(Part::Char(*c)),
                Piece::Tilde => parts.extend("/h".chars().map(Part::Char)),
                Piece::Dynamic(one) if one.starts_with_digit() => parts.extend([Part::Char('#'), Part::One]),
                Piece::Dynamic(one) if one.is_one() => parts.push(Part::One),
                Piece::Dynamic(_) => parts.push(Part::Many),
            }
            vanishes &= matches!(piece, Piece::Dynamic(one) if !one.is_one());
        }
        parts.push(if vanishes { Part::MayEnd } else { Part::Char(END) });
    }
    parts
}

/// Whether the output is one of those that the parts allow: `#` is any digit.
fn fits(parts: &[Part], output: &str) -> bool {
    let output: Vec<char> = output.chars().collect();
    let mut reached = vec![false; output.len() + 1];
    reached[0] = true;
    for part in parts {
        let mut next = vec![false; output.len() + 1];
        let mut running = false;
        for at in 0..=output.len() {
            let before = at.checked_sub(1).map(|at| output[at]);
            let came = at > 0 && reached[at - 1];
            next[at] = match part {
                Part::Char('#') => came && before.is_some_and(|c| c == '#' || c.is_ascii_digit()),
                Part::Char(c) => came && before == Some(*c),
                Part::One => reached[at] || running && before != Some(END),
                Part::Many => reached[at] || running,
                Part::MayEnd => reached[at] || came && before == Some(END),
            };
            running = next[at];
        }
        reached = next;
    }
    reached[output.len()]
}

fn only_command(line: &str) -> Option<Simple> {
    let mut found = None;
    // The one that is meant comes behind those of its substitutions.
    parse(line).ok()?.node.for_each_simple(&mut |command: &Simple| found = Some(command.clone()));
    found
}

#[test]
fn words_are_read_as_bash_reads_them() {
    let given = std::env::var("COCODE_FUZZ").unwrap_or_default();
    let mut given = given.split_whitespace().map(|word| word.parse::<u64>().unwrap());
    let (seed, count) = (given.next().unwrap_or(20_261_123), given.next().unwrap_or(1_500));
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let folder = tempfile::tempdir().unwrap();
    let (mut read, mut wrong) = (0, Vec::new());
    let mut made: Vec<(String, Vec<Part>)> = Vec::new();
    for at in 0..count {
        let word: String = (0..=dice.below(9)).map(|_| FRAGMENTS[dice.below(FRAGMENTS.len())]).collect();
        let (line, words) = if dice.below(5) == 0 {
            let Some(Node::Sequence(nodes)) = parse(&format!("x={word}")).ok().map(|line| line.node) else { continue };
            let mut value = None;
            let mut find = |command: &Simple| value = command.assignments.first().map(|set| set.value.clone());
            nodes.iter().for_each(|node| node.for_each_simple(&mut find));
            // Kept in a variable, whatever it is stays one word.
            let Some(value) = value.filter(|value| !value.is_dynamic()) else { continue };
            (format!("x={word}; w \"$x\""), vec![value])
        } else {
            let Some(command) = only_command(&format!("w {word}")) else { continue };
            (format!("w {word}"), command.words[1..].to_vec())
        };
        read += 1;
        made.push((line, parts(&words)));
        if made.len() == 250 || at + 1 == count {
            wrong.extend(differences(&std::mem::take(&mut made), folder.path()));
        }
    }
    wrong.extend(differences(&made, folder.path()));
    assert_eq!(wrong, [] as [String; 0], "seed {seed}, {} of {read}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(read * 3 >= count, "only {read} of {count} were read");
}

fn differences(made: &[(String, Vec<Part>)], folder: &std::path::Path) -> Vec<String> {
    let mut script = "w() { [ $# = 0 ] || printf '%s\\0' \"$@\"; }\ne= v='a b'\n".to_owned();
    for (line, _) in made {
        script += &format!("( {line}\n)\nprintf '\\1'\n");
    }
    let bash = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &script])
        .current_dir(folder)
        .env("HOME", "/h")
        .env_remove("x")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&bash.stdout).into_owned();
    let outputs: Vec<&str> = output.split('\u{1}').collect();
    assert_eq!(outputs.len(), made.len() + 1, "{}", String::from_utf8_lossy(&bash.stderr));
    let differs = |((line, parts), output): (&(String, Vec<Part>), &str)| {
        (!fits(parts, output)).then(|| format!("{line}: bash {output:?}"))
    };
    made.iter().zip(outputs).filter_map(differs).collect()
}
