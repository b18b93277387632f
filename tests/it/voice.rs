//! The language of the product: no source, test, setting, prompt or page uses the phrases that read as translated.

use std::fs;
use std::path::Path;

use regex::Regex;

/// What nobody writes here, and what to write instead.
const PHRASES: &[(&str, &str)] = &[
    (r"(?:is|are|was|were)\s+none", "say what is missing, or `None`"),
    (r"(?:is|are|was|were)\s+no\s+\w+", "`is not a …`"),
    (r"shall", "`should`, `will`, or the imperative"),
    (r"(?:go|goes|went)\s+on", "`continue`"),
    (r"stands", "`is`"),
    (r"(?:bring|brings|brought)\s+(?:it\s+|them\s+)?forth", "`redo`, `restore`"),
    (r"[Ww]hoever", "name the one who does it"),
    (r"(?:un)?mend(?:s|ed|ing)?", "`fix`"),
    (r"anew", "`again`"),
    (r"(?:without|with) a word", "`silently`, or say what is said"),
    (r"for want of", "`without`, or name what is missing"),
    (r"(?:here|there|where)(?:of|in|upon|with)", "say of what, in what"),
    (r"[Tt](?:ake|akes|aken|ook)\s+back", "`undo`, `revert`, `withdraw`"),
    (r"[Ii]n\s+spite\s+of", "`despite`"),
    (r"(?:come|comes|came)\s+of\s+(?:a|an|the|those|commands|requests)", "`comes from`"),
    (r"counts?,\s+too", "`works too`"),
    (r"in\s+whichever", "`in any`"),
    (r"only\s+so\s+(?:may|can|does|is)", "say how it is done"),
];

/// What looks like one of them and is plain English.
const IDIOMS: &str = r"\b[Tt]here\s+(?:is|are|was|were)\s+no\b|\bno\s+(?:longer|more|less|better|worse|different|\w+er)\b|\bstands\s+for\b";

/// Files that hold such phrases for a reason: what earlier versions wrote into logs, word for word, and this one.
const EXEMPT: [&str; 2] = ["src/backend/session/untold.rs", "tests/it/voice.rs"];

/// The phrases in a text, with their lines. A sentence may run over several lines of a comment or a string.
fn faults(text: &str) -> Vec<(usize, String)> {
    let text: String = text.lines().map(|line| bare(line).to_owned() + "\n").collect();
    let lines = |idiom: &regex::Captures<'_>| "\n".repeat(idiom[0].matches('\n').count());
    let text = Regex::new(IDIOMS).unwrap().replace_all(&text, lines);
    let mut found = Vec::new();
    for (phrase, instead) in PHRASES {
        for place in Regex::new(&format!(r"\b(?:{phrase})\b")).unwrap().find_iter(&text) {
            let line = text[..place.start()].matches('\n').count() + 1;
            found.push((line, format!("`{}`: {instead}", place.as_str().replace('\n', " "))));
        }
    }
    found
}

/// The line without what begins a comment and what continues a string.
fn bare(line: &str) -> &str {
    let line = line.trim();
    let line = line.trim_start_matches(['/', '!', '#', '>', '-', '*']).trim_start();
    line.strip_suffix('\\').unwrap_or(line).trim_end()
}

#[test]
fn no_sentence_reads_as_translated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    ["src", "config", "assets", "docs", "examples", "benches", "tests/it"]
        .iter()
        .for_each(|folder| collect(&root.join(folder), &mut files));
    files.extend(["README.md", "ARCHITECTURE.md"].map(|name| root.join(name)));
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        if !EXEMPT.contains(&name.as_str()) {
            let faults = faults(&fs::read_to_string(&file).unwrap());
            found.extend(faults.into_iter().map(|(line, fault)| format!("{name}:{line}: {fault}")));
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

fn collect(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match path.is_dir() {
            true => collect(&path, found),
            false if ["rs", "toml", "md", "snap", "yaml"].contains(&extension) => found.push(path),
            false => {}
        }
    }
}

#[test]
fn phrases_are_found() {
    fn check(text: &str, want: &[(usize, &str)]) {
        let found = faults(text);
        let found: Vec<(usize, &str)> =
            found.iter().map(|(line, fault)| (*line, fault.split('`').nth(1).unwrap())).collect();
        assert_eq!(found, want, "{text}");
    }
    let (none, no) = (["is ", "none"].concat(), ["is ", "no note"].concat());
    check(&format!("/// One that {none}."), &[(1, &none)]);
    check("/// One that is\n    /// none of ours.", &[(1, "is none")]);
    check(&format!("it {no}"), &[(1, &no)]);
    check("\"it is \\\n   no note\"", &[(1, "is no note")]);
    check("There is no key, there are no\n// keys, it is no longer here and no newer.", &[]);
    check("the page is no better, an index stands for it", &[]);
    check("a rule that stands there", &[(1, "stands")]);
    check(
        "fine\nwhoever goes on shall mend it anew",
        &[(2, "shall"), (2, "goes on"), (2, "whoever"), (2, "mend"), (2, "anew")],
    );
    check("what was taken back was brought forth", &[(1, "brought forth"), (1, "taken back")]);
    check("it ends without a word, for want of room", &[(1, "without a word"), (1, "for want of")]);
    check("what is said therein", &[(1, "therein")]);
    check(
        "it comes of a rule\n// in spite of the mode, in whichever part",
        &[(2, "in spite of"), (1, "comes of a"), (2, "in whichever")],
    );
    check("only so may it run; `statusLine` counts, too", &[(1, "counts, too"), (1, "only so may")]);
    check("commends standing bystanders, shallow; what came of it counts", &[]);
}
