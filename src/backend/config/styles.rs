//! Output styles: instructions that change how the model replies, in Claude Code's format. Three ship; files add others.

use std::path::Path;

use super::paths::Paths;
use crate::stdx::frontmatter::{Frontmatter, Taken};
use crate::stdx::nearest::nearest;
use crate::stdx::regular;

/// Most bytes of a style.
const MOST: u64 = 40_000;
/// Where styles are, in `<home>` and in a project's `.claude`.
const FOLDER: &str = "output-styles";
/// The style that adds nothing.
pub const DEFAULT: &str = "default";
/// Those that ship and add something.
const SHIPPED: [&str; 2] = [
    include_str!("../../../assets/prompts/styles/explanatory.md"),
    include_str!("../../../assets/prompts/styles/learning.md"),
];

/// A style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    pub name: String,
    pub description: String,
    /// Whether the instructions for coding stay beside it.
    pub keeps_coding: bool,
    pub text: String,
    /// `shipped`, `user` or `project`.
    pub source: &'static str,
}

impl Style {
    fn read(text: &str, stem: &str, source: &'static str) -> Style {
        let head = Frontmatter::read(text);
        let field = |key: &str| Taken::Leniently.text(&head.get(key)?.value).filter(|text| !text.trim().is_empty());
        let keeps_coding = field("keep_coding_instructions").is_some_and(|word| word.eq_ignore_ascii_case("true"));
        Style {
            name: field("name").unwrap_or_else(|| stem.to_owned()),
            description: field("description").unwrap_or_default(),
            keeps_coding,
            text: text[head.body.clone()].trim().to_owned(),
            source,
        }
    }
}

/// Every style that adds something: those that ship, the user's, the project's. Of a name the first counts.
pub fn all(paths: &Paths, project: &Path) -> Vec<Style> {
    let mut styles: Vec<Style> = SHIPPED.iter().map(|text| Style::read(text, "", "shipped")).collect();
    let own = paths.home.join(FOLDER);
    let theirs = project.join(".claude").join(FOLDER);
    for (folder, source) in [(&own, "user"), (&theirs, "project")] {
        if source == "project" && theirs == own {
            continue;
        }
        for style in of(folder, source, project) {
            if !style.name.eq_ignore_ascii_case(DEFAULT) && named(&styles, &style.name).is_none() {
                styles.push(style);
            }
        }
    }
    styles
}

/// The styles of a folder, by the names of their files. A project's file must not lead out of the project.
fn of(folder: &Path, source: &'static str, project: &Path) -> Vec<Style> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    files.sort();
    let inside = |file: &Path| {
        let within = || Some(file.canonicalize().ok()?.starts_with(project.canonicalize().ok()?));
        source != "project" || within() == Some(true)
    };
    files.retain(|file| inside(file));
    let read = |file: &std::path::PathBuf| {
        let bytes = regular::read(file, MOST).ok()?;
        Some(Style::read(&String::from_utf8_lossy(&bytes), &file.file_stem()?.to_string_lossy(), source))
    };
    files.iter().filter_map(read).filter(|style| !style.text.is_empty()).collect()
}

fn named<'a>(styles: &'a [Style], name: &str) -> Option<&'a Style> {
    styles.iter().find(|style| style.name.eq_ignore_ascii_case(name.trim()))
}

/// The style of a name; None: the one that adds nothing.
///
/// # Errors
/// No style has that name; names those there are.
pub fn find(paths: &Paths, project: &Path, name: &str) -> Result<Option<Style>, String> {
    if name.trim().eq_ignore_ascii_case(DEFAULT) {
        return Ok(None);
    }
    let styles = all(paths, project);
    if let Some(style) = named(&styles, name) {
        return Ok(Some(style.clone()));
    }
    let names: Vec<&str> = [DEFAULT].into_iter().chain(styles.iter().map(|style| style.name.as_str())).collect();
    let near = nearest(name, names.iter().copied()).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    Err(format!("there is not an output style {name:?}: choose one of {}.{near}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::paths::Env;
    use super::*;

    #[test]
    fn styles_ship_and_come_from_files() {
        let root = tempfile::tempdir().unwrap();
        let env = Env::fake(root.path(), &[]);
        let paths = Paths::new(&env).unwrap();
        let project = root.path().join("project");
        let (own, theirs) = (paths.home.join(FOLDER), project.join(".claude").join(FOLDER));
        for folder in [&own, &theirs] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(own.join("brief.md"), "---\nname: Brief\ndescription: Short\n---\nOne sentence.").unwrap();
        std::fs::write(theirs.join("brief.md"), "Ours.").unwrap();
        std::fs::write(theirs.join("pirate.md"), "---\nkeep-coding-instructions: true\n---\nArr.").unwrap();
        std::fs::write(theirs.join("learning.md"), "Shadow.").unwrap();
        std::fs::write(theirs.join("empty.md"), "---\nname: e\n---\n").unwrap();
        std::fs::write(root.path().join("secret.md"), "SECRET").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path().join("secret.md"), theirs.join("link.md")).unwrap();
        let shown =
            |style: Style| format!("{} {} {} {}", style.name, style.source, style.keeps_coding, style.text.len());
        let all: Vec<String> = all(&paths, &project).into_iter().map(shown).collect();
        assert!(
            all[0].starts_with("explanatory shipped true ") && all[1].starts_with("learning shipped true "),
            "{all:?}"
        );
        assert_eq!(all[2..], ["Brief user false 13", "pirate project true 4"]);
        let find = |name: &str| find(&paths, &project, name);
        assert_eq!(find("Default"), Ok(None));
        assert_eq!(find("Explanatory").unwrap().unwrap().name, "explanatory");
        assert_eq!(find("brief").unwrap().unwrap().text, "One sentence.");
        let wrong = find("pirat").unwrap_err();
        assert!(
            wrong.contains("choose one of default, explanatory, learning, Brief, pirate. Did you mean pirate?"),
            "{wrong}"
        );
    }
}
