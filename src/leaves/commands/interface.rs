//! SKILL.toml: how a skill looks in lists. Optional; what is wrong in it is ignored, and the skill loads all the same.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::diagnostic::Diagnostic;
use crate::stdx::regular;

/// Largest file that is read: its texts have some 1,500 characters together.
const MOST_BYTES: u64 = 64 << 10;

/// `[interface]` of a SKILL.toml.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub display_name: Option<String>,
    pub short_description: Option<String>,
    /// Absolute, inside the skill's `assets/`.
    pub icon_small: Option<PathBuf>,
    pub icon_large: Option<PathBuf>,
    pub brand_color: Option<(u8, u8, u8)>,
    /// Offered in the empty composer once the skill is picked.
    pub default_prompt: Option<String>,
}

/// Reads the SKILL.toml of a skill's folder; `None` if it is missing or has nothing usable.
pub(super) fn read(folder: &Path, problems: &mut Vec<Diagnostic>) -> Option<Interface> {
    let file = folder.join("SKILL.toml");
    let bytes = match regular::read(&file, MOST_BYTES + 1) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => return None,
        Err(error) => {
            let what = format!("cannot be read: {error}");
            let words = [what.as_str(), "the skill is listed without it", "make it readable"];
            problems.push(Diagnostic::error(&file, None, words));
            return None;
        }
    };
    if bytes.len() as u64 > MOST_BYTES {
        let words = ["is larger than 64 KiB", "the skill is listed without it", "keep the keys of [interface] only"];
        problems.push(Diagnostic::error(&file, None, words));
        return None;
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => {
            let words = ["is not UTF-8", "the skill is listed without it", "save it as UTF-8 text"];
            problems.push(Diagnostic::error(&file, None, words));
            return None;
        }
    };
    let table: Table = match text.trim_start_matches('\u{feff}').parse() {
        Ok(table) => table,
        Err(error) => {
            let error: toml::de::Error = error;
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let what = format!("not valid TOML: {}", error.message());
            let words = [what.as_str(), "the skill is listed without it", "correct the line"];
            problems.push(Diagnostic::error(&file, line, words));
            return None;
        }
    };
    let line_of = |key: &str| {
        let starts =
            |line: &str| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='));
        text.lines().position(starts).map(|at| at + 1)
    };
    let mut interface = Interface::default();
    let Some(Value::Table(given)) = table.get("interface") else {
        let words = ["there is no [interface] table", "the file is ignored", "put the keys under `[interface]`"];
        problems.push(Diagnostic::warning(&file, None, words));
        return None;
    };
    for (key, value) in given {
        let read = match key.as_str() {
            "display_name" => short(value, 64).map(|text| interface.display_name = Some(text)),
            "short_description" => short(value, 1_024).map(|text| interface.short_description = Some(text)),
            "default_prompt" => short(value, 256).map(|text| interface.default_prompt = Some(text)),
            "brand_color" => color(value).map(|color| interface.brand_color = Some(color)),
            "icon_small" => icon(value, folder).map(|path| interface.icon_small = Some(path)),
            "icon_large" => icon(value, folder).map(|path| interface.icon_large = Some(path)),
            _ => Err(("is not a key of [interface]".to_owned(), "remove it")),
        };
        if let Err((what, fix)) = read {
            let what = format!("`{key}` {what}");
            let words = [what.as_str(), "it is ignored", fix];
            problems.push(Diagnostic::error(&file, line_of(key), words));
        }
    }
    (interface != Interface::default()).then_some(interface)
}

type Fault = (String, &'static str);

fn short(value: &Value, most: usize) -> Result<String, Fault> {
    let text = value.as_str().ok_or(("is not text".to_owned(), "put it in quotes"))?;
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.chars().count() {
        0 => Err(("is empty".into(), "give it a value, or remove the key")),
        count if count > most => Err((format!("has {count} characters; the limit is {most}"), "make it shorter")),
        _ => Ok(text),
    }
}

fn color(value: &Value) -> Result<(u8, u8, u8), Fault> {
    let hex = value.as_str().and_then(|text| text.strip_prefix('#')).filter(|hex| hex.len() == 6 && hex.is_ascii());
    let part = |at: usize| hex.and_then(|hex| u8::from_str_radix(&hex[at..at + 2], 16).ok());
    match (part(0), part(2), part(4)) {
        (Some(red), Some(green), Some(blue)) => Ok((red, green, blue)),
        _ => Err(("is not a color".into(), "write it as `#RRGGBB`")),
    }
}

fn icon(value: &Value, folder: &Path) -> Result<PathBuf, Fault> {
    let fix = "name a file inside the skill's assets folder, such as `icon.png`";
    let text = value.as_str().ok_or(("is not a path".to_owned(), fix))?;
    let path = Path::new(text.trim_start_matches("./"));
    let path = path.strip_prefix("assets").unwrap_or(path);
    if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err((format!("leads out of the assets folder: {text}"), fix));
    }
    let real = |path: &Path| path.canonicalize().map_err(|_| (format!("does not exist: {text}"), fix));
    let (own, assets) = (real(folder)?, real(&folder.join("assets"))?);
    let icon = real(&folder.join("assets").join(path))?;
    if !assets.starts_with(&own) || !icon.starts_with(&assets) {
        return Err((format!("leads out of the skill's folder: {text}"), fix));
    }
    if icon.is_file() { Ok(icon) } else { Err((format!("is not a file: {text}"), fix)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(toml: &str, want: &Interface, faults: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let skill = dir.path().join("skill");
        std::fs::create_dir_all(skill.join("assets")).unwrap();
        std::fs::write(skill.join("assets/icon.png"), "x").unwrap();
        std::fs::write(dir.path().join("secret.png"), "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("../../secret.png", skill.join("assets/link.png")).unwrap();
        std::fs::write(skill.join("SKILL.toml"), toml).unwrap();
        let mut problems = Vec::new();
        let mut got = read(&skill, &mut problems).unwrap_or_default();
        for icon in [&mut got.icon_small, &mut got.icon_large].into_iter().flatten() {
            *icon = icon.strip_prefix(skill.canonicalize().unwrap()).unwrap().to_owned();
        }
        let told: Vec<String> =
            problems.iter().map(|problem| format!("{} {}", problem.line.unwrap_or_default(), problem.what)).collect();
        assert_eq!((&got, told), (want, faults.iter().map(|fault| (*fault).to_owned()).collect()), "{toml}");
    }

    #[test]
    fn good_fields_are_kept_and_bad_ones_named() {
        let full = "[interface]\ndisplay_name = 'Write a commit'\nshort_description = 'a  b'\nbrand_color = '#ff8000'\n\
                    icon_small = 'icon.png'\nicon_large = './assets/icon.png'\ndefault_prompt = 'of what?'\n";
        check(
            full,
            &Interface {
                display_name: Some("Write a commit".into()),
                short_description: Some("a b".into()),
                icon_small: Some("assets/icon.png".into()),
                icon_large: Some("assets/icon.png".into()),
                brand_color: Some((255, 128, 0)),
                default_prompt: Some("of what?".into()),
            },
            &[],
        );
        let bad = format!("[interface]\ndisplay_name = '{}'\nbrand_color = 'red'\nfoo = 1\n", "x".repeat(65));
        let none = Interface::default();
        check(
            &bad,
            &none,
            &[
                "3 `brand_color` is not a color",
                "2 `display_name` has 65 characters; the limit is 64",
                "4 `foo` is not a key of [interface]",
            ],
        );
        check("interface = ", &none, &["1 not valid TOML: string values must be quoted, expected literal string"]);
        let large = format!("[interface]\ndisplay_name = 'x'\n# {}", "x".repeat(64 << 10));
        check(&large, &none, &["0 is larger than 64 KiB"]);
        check("name = 'x'", &none, &["0 there is no [interface] table"]);
    }

    #[cfg(unix)]
    #[test]
    fn icons_stay_inside() {
        let none = Interface::default();
        for (icon, want) in [
            ("link.png", "leads out of the skill's folder: link.png"),
            ("../SKILL.toml", "leads out of the assets folder: ../SKILL.toml"),
            ("/etc/passwd", "leads out of the assets folder: /etc/passwd"),
            ("assets/../../secret.png", "leads out of the assets folder: assets/../../secret.png"),
            ("none.png", "does not exist: none.png"),
            ("", "is not a file: "),
        ] {
            check(&format!("[interface]\nicon_small = '{icon}'"), &none, &[&format!("2 `icon_small` {want}")]);
        }
    }
}
