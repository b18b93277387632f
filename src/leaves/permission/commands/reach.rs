//! What a command that only reads shows of what lies below the folders it is given.

use super::super::shell::Word;

/// How far a command looks, each further than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::permission) enum Reach {
    /// At its paths alone.
    #[default]
    Paths,
    /// At its paths; of one that is a folder, at the contents of everything below.
    Entered,
    /// At everything below, of which it shows names, kinds and sizes.
    Names,
    /// As far, and it shows contents, but of nothing that is hidden or lies in a hidden folder.
    Visible,
    /// As far, and it shows the contents of all files.
    Everything,
}

/// Which tracked files a git command shows the contents of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::permission) enum Tracked {
    #[default]
    No,
    /// Those of the index.
    Index,
    /// Those of any commit.
    Ever,
}

/// What a word of a git command that shows contents means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::permission) enum Named {
    /// A path, and no more of any commit.
    Path(Word),
    /// A path where there is such a file, and otherwise whatever has that name.
    Either(Word),
    /// The same, but then it is a commit.
    Revision(Word),
    /// What a commit has at that path.
    At(Word),
    /// A commit.
    Commit,
    /// Anything, also a file's contents by their name among git's objects.
    Object,
}

/// File types of ripgrep, and the names that each stands for. A type that is not here may stand for any name: `sh` is
/// for `.env`.
const TYPES: &[(&str, &[&str])] = &[
    ("c", &["*.c", "*.h", "*.c.in", "*.h.in", "*.cats"]),
    ("cpp", &["*.c*", "*.h*", "*.inl"]),
    ("css", &["*.css", "*.scss"]),
    ("go", &["*.go"]),
    ("html", &["*.htm", "*.html", "*.ejs"]),
    ("java", &["*.java", "*.jsp", "*.jspx", "*.properties"]),
    ("js", &["*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"]),
    ("json", &["*.json", "*.sarif", "composer.lock"]),
    ("kotlin", &["*.kt", "*.kts"]),
    ("md", &["*.md", "*.mdown", "*.mdwn", "*.mdx", "*.mkd", "*.mkdn", "*.markdown"]),
    ("php", &["*.ph*"]),
    ("py", &["*.py", "*.pyi"]),
    ("python", &["*.py", "*.pyi"]),
    ("rust", &["*.rs"]),
    ("sql", &["*.sql", "*.psql"]),
    ("swift", &["*.swift"]),
    ("toml", &["*.toml", "Cargo.lock"]),
    ("ts", &["*.ts", "*.tsx", "*.cts", "*.mts"]),
    ("typescript", &["*.ts", "*.tsx", "*.cts", "*.mts"]),
    ("yaml", &["*.yaml", "*.yml"]),
];

/// Adds the names that an option's value lets through; false when the value only keeps names out.
pub(super) fn name(option: &str, value: &str, only: &mut Option<Vec<String>>) -> bool {
    let any = || vec!["*".to_owned()];
    let more = match option {
        // What the first of grep's options keeps out, all names but those pass.
        "exclude" | "exclude-from" if only.is_none() => any(),
        "exclude" | "exclude-from" => return false,
        "t" | "type" => match TYPES.iter().find(|(name, _)| *name == value) {
            Some((_, globs)) => globs.iter().map(|glob| (*glob).to_owned()).collect(),
            None => any(),
        },
        "g" | "glob" | "iglob" if value.starts_with('!') => return false,
        _ => spread(value).filter(|globs| globs.iter().all(|glob| is_plain(glob))).unwrap_or_else(any),
    };
    only.get_or_insert_default().extend(more);
    true
}

/// The globs for a file's name that a glob for its path means, without braces; None where braces lie in braces.
fn spread(glob: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = glob.split_once('{') else {
        let last = glob.rsplit('/').next().filter(|last| !last.is_empty())?;
        return Some(vec![last.to_owned()]);
    };
    let (inside, after) = rest.split_once('}')?;
    if inside.contains('{') || inside.split(',').count() > 32 || after.contains('{') {
        return None;
    }
    inside
        .split(',')
        .map(|one| spread(&format!("{before}{one}{after}")))
        .collect::<Option<Vec<_>>>()
        .map(|all| all.concat())
}

/// Whether every program reads the glob as we do.
fn is_plain(glob: &str) -> bool {
    glob.chars().all(|c| c.is_ascii_alphanumeric() || "._-*".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_name_files() {
        for (option, value, want) in [
            ("include", "*.rs", Some("*.rs")),
            ("include", "*.[ch]", Some("*")),
            ("g", "src/**/*.{ts,tsx}", Some("*.ts *.tsx")),
            ("g", "*.{a,{b,c}}", Some("*")),
            ("g", "{a,b}{c,d}", Some("*")),
            ("glob", "sub/", Some("*")),
            ("iglob", "!*.lock", None),
            ("t", "rust", Some("*.rs")),
            ("type", "sh", Some("*")),
            ("exclude", "*.rs", Some("*")),
        ] {
            let mut only = None;
            assert_eq!(name(option, value, &mut only), want.is_some(), "{option} {value}");
            assert_eq!(only.map(|only| only.join(" ")).as_deref(), want, "{option} {value}");
        }
        let mut only = Some(vec!["*.rs".to_owned()]);
        assert!(!name("exclude", "a.rs", &mut only));
        assert_eq!(only.unwrap(), ["*.rs"]);
    }

    /// Every secret that ripgrep shows for a type is a name that we say it shows.
    #[test]
    fn types_stand_for_their_names() {
        use super::super::super::glob::{Case, may_fit};
        let mut builder = ignore::types::TypesBuilder::new();
        builder.add_defaults();
        let ends: Vec<String> = builder
            .definitions()
            .iter()
            .flat_map(|known| known.globs().to_vec())
            .filter_map(|glob| glob.strip_prefix('*').map(|end| format!(".env{end}")))
            .chain([".env".to_owned(), ".env.local".to_owned()])
            .collect();
        for (kind, globs) in TYPES {
            let types = builder.select(kind).build().unwrap();
            for name in &ends {
                let shown = types.matched(name, false).is_whitelist();
                let told = globs.iter().any(|glob| may_fit(glob, name, Case::Ignored));
                assert!(told || !shown, "{kind} {name}");
            }
            builder = ignore::types::TypesBuilder::new();
            builder.add_defaults();
        }
    }
}
