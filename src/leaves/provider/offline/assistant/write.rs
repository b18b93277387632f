//! Recipes that write what the code itself says: a comment, a test of what a function returns today, a README.

use serde_json::json;

use super::code::{self, Item, Sort, indent};
use super::edit::written;
use super::{
    Part, Recipe, Situation, bash, capital, commands, facts, glob, listed, look, ls, read, repair, tell, tool,
    unnumbered,
};

/// A function or a type with its file.
struct Found {
    path: String,
    lines: Vec<String>,
    at: usize,
}

impl Found {
    fn of(situation: &Situation, names: &[String]) -> Result<Option<Found>, Vec<Part>> {
        let hits = look::mentions(situation, names)?;
        let Some((hit, _)) = look::declaration(&hits, names) else { return Ok(None) };
        let [file] = situation.need("", [read(&hit.file)])?;
        let lines = unnumbered(&file.text());
        Ok((hit.line <= lines.len()).then(|| Found { path: hit.file.clone(), lines, at: hit.line - 1 }))
    }

    fn item(&self) -> Option<Item<'_>> {
        code::items(&self.lines).into_iter().find(|item| item.at == self.at)
    }

    fn ends(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| self.path.ends_with(end))
    }
}

fn unknown(names: &[String]) -> Recipe {
    let name = names.join("`, `");
    tell(format!("Nothing in this folder declares `{name}`. Nothing was changed."))
}

/// Puts a comment on a declaration: what the user said, or what can be read off the code.
pub(super) fn comment(situation: &Situation, names: &[String], text: Option<&str>) -> Recipe {
    let Some(found) = Found::of(situation, names)? else { return unknown(names) };
    let Some(item) = found.item() else { return unknown(names) };
    let (path, lines, name) = (&found.path, &found.lines, item.name);
    if let (Some(doc), None) = (&item.doc, text) {
        let text = format!(
            "`{name}` in `{path}:{}` has one already: {doc}\n\nTo add another, give me its words: ``add the comment \"…\" to {name}``.",
            item.at + 1
        );
        return tell(text);
    }
    let told = code::reading(lines, &item);
    let leaves: Vec<&String> = told
        .iter()
        .filter(|told| told.starts_with("return") || told.starts_with("raise") || told.starts_with("throw"))
        .collect();
    let read_off = || {
        let spaced: String = name
            .chars()
            .flat_map(|c| {
                if c.is_uppercase() { vec![' ', c.to_ascii_lowercase()] } else { vec![if c == '_' { ' ' } else { c }] }
            })
            .collect();
        let spaced = spaced.trim();
        let title = capital(spaced);
        match leaves.as_slice() {
            [] if told.is_empty() => format!("{title}."),
            [] => format!(
                "{title}: {}.",
                told.iter().filter(|told| !told.starts_with("takes")).cloned().collect::<Vec<_>>().join("; ")
            ),
            [one] => format!("{}.", capital(one)),
            more => format!("{title}: {}.", more.iter().map(|told| told.as_str()).collect::<Vec<_>>().join("; ")),
        }
    };
    let text = text.map_or_else(read_off, str::to_owned);
    let pad = " ".repeat(indent(&lines[item.at]));
    let tabs: String = lines[item.at].chars().take_while(|c| *c == '\t').collect();
    let pad = if tabs.is_empty() { pad } else { tabs };
    let head = &lines[item.at];
    let (old, new) = match () {
        () if found.ends(&[".py"]) => {
            let last = (item.at..item.end).find(|at| lines[*at].trim_end().ends_with(':')).unwrap_or(item.at);
            let whole = lines[item.at..=last].join("\n");
            (whole.clone(), format!("{whole}\n{pad}    \"\"\"{}\"\"\"", text.replace('`', "``")))
        }
        () if found.ends(&[".rs"]) => (head.clone(), format!("{pad}/// {text}\n{head}")),
        () if found.ends(&[".go"]) => {
            let small = if text.starts_with(name) {
                text.clone()
            } else {
                format!(
                    "{name} {}{}",
                    text.chars().take(1).flat_map(char::to_lowercase).collect::<String>(),
                    text.chars().skip(1).collect::<String>()
                )
            };
            // Other comments above it, such as notes to do, would become part of it.
            (head.clone(), format!("{pad}// {}\n{head}", small.replace('`', "")))
        }
        () if found.ends(&[".sh", ".rb"]) => (head.clone(), format!("{pad}# {text}\n{head}")),
        () => (head.clone(), format!("{pad}/** {} */\n{head}", text.replace('`', ""))),
    };
    let edit = tool("Edit", json!({ "file_path": path, "old_string": old, "new_string": new }));
    let [done] = situation.need(&format!("`{name}` is in `{path}:{}`.", item.at + 1), [edit])?;
    if !done.ok() {
        return tell(format!("The edit did not work: {}", done.text()));
    }
    let language = path.rsplit_once('.').map_or("text", |(_, end)| end);
    tell(format!(
        "Added to `{path}`:\n\n```{language}\n{new}\n```\n\nIt says only what the code shows; what it is for is yours to add. I ran nothing, since a comment changes no behavior."
    ))
}

/// Arguments of one kind for all parameters: what a function may take is tried in this order.
fn guesses(language: &str, names: &[&str]) -> String {
    let texts =
        ["text", "name", "str", "title", "word", "path", "line", "key", "url", "message", "markdown", "sentence", "s"];
    let many = |name: &str| name.ends_with('s') && !["s", "is", "has"].contains(&name) || name.contains("list");
    let guess = |name: &&str| match () {
        () if texts.iter().any(|text| *name == *text || name.ends_with(text)) => "'one two'",
        () if many(name) => "[1, 2, 3]",
        () => "100",
    };
    let all = |of: &dyn Fn(&&str) -> &'static str| {
        let inner = names.iter().map(of).collect::<Vec<_>>().join(", ");
        if language == "py" {
            format!("({inner}{})", if names.is_empty() { "" } else { "," })
        } else {
            format!("[{inner}]")
        }
    };
    let rows = [all(&guess), all(&|_| "'one two'"), all(&|_| "100"), all(&|_| "[1, 2, 3]"), all(&|_| "['a', 'b']")];
    format!("[{}]", rows.join(", "))
}

/// Writes a test of what a function returns today: it is called with values that fit, and its answer becomes the expectation.
pub(super) fn test(situation: &Situation, names: &[String]) -> Recipe {
    let Some(found) = Found::of(situation, names)? else { return unknown(names) };
    let Some(item) = found.item().filter(|item| item.sort == Sort::Function) else {
        return tell(format!("`{}` in `{}` is not a function, and those are what I can test.", names[0], found.path));
    };
    let name = item.name;
    let language = found.path.rsplit_once('.').map_or("", |(_, end)| end);
    let stem = found.path.rsplit_once('.').map_or(found.path.as_str(), |(stem, _)| stem);
    let head = &found.lines[item.at];
    let taken =
        head.split_once(&format!("{name}(")).and_then(|(_, rest)| rest.rsplit_once(')')).map_or("", |(taken, _)| taken);
    let optional = |one: &&str| !one.contains('=') && !one.trim().is_empty();
    let names: Vec<&str> = taken.split(',').filter(optional).filter_map(|one| code::words(one).next()).collect();
    let method = names.first().is_some_and(|name| ["self", "this"].contains(name)) || indent(head) > 0;
    let [top, tests] = situation.need("", [ls(), glob("**/{test_*.py,*_test.py,*.test.*,*.spec.*}")])?;
    let (top, tests) = (listed(&top.text()), situation.paths_of(tests));
    let folder =
        tests.first().and_then(|path| path.rsplit_once('/')).map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let up = "../".repeat(folder.matches('/').count());
    let up = if up.is_empty() { "./" } else { &up };
    let tries = guesses(language, &names);
    let (path, command) = match language {
        "py" if !method => (
            format!("{folder}test_{name}.py"),
            format!(
                "python3 -c \"from {} import {name} as f\nfor a in {tries}:\n    try: print(repr(a).strip('()').rstrip(','), '=>', repr(f(*a))); break\n    except Exception: pass\"",
                stem.replace('/', ".")
            ),
        ),
        "js" | "mjs" | "cjs" if !method => (
            format!("{folder}{name}.test.{language}"),
            format!(
                "node -e \"import('./{}').then(async (m) => {{ const f = m.{name} ?? m.default?.{name}; for (const a of {tries}) try {{ const v = await f(...a); if (v === undefined) continue; console.log(JSON.stringify(a).slice(1, -1), '=>', JSON.stringify(v)); break; }} catch {{}} }})\"",
                found.path
            ),
        ),
        "rs" if !method && head.contains("pub fn") && top.iter().any(|name| name == "Cargo.toml") => {
            return rust(situation, &found, name, stem, taken);
        }
        _ => {
            let what = if method { "methods, which need an object first" } else { "functions of this language" };
            let text = format!(
                "`{name}` is declared in `{}:{}`. I cannot write tests for {what}: I can for plain functions in Python, JavaScript, and `pub fn` in Rust. This one needs a real model.",
                found.path,
                item.at + 1
            );
            return tell(text);
        }
    };
    let [ran] =
        situation.need(&format!("Calling `{name}` to see what it returns."), [bash(&command, "Call the function")])?;
    let text = ran.text();
    let Some((arguments, value)) =
        text.lines().find_map(|line| line.split_once(" => ")).filter(|(_, value)| !value.starts_with('<'))
    else {
        let text = format!(
            "I called `{name}` with numbers, texts and lists, and it answered none of them with a plain value. Such a test needs a real model. Nothing was written."
        );
        return tell(text);
    };
    let text = match language {
        "py" => format!(
            "import unittest\n\nfrom {} import {name}\n\n\nclass Test{}(unittest.TestCase):\n    def test_{name}(self):\n        self.assertEqual({name}({arguments}), {value})\n",
            stem.replace('/', "."),
            name.split('_').map(capital).collect::<String>()
        ),
        _ => {
            let module = found.lines.iter().any(|line| line.starts_with("export "));
            let from = format!("{up}{}", found.path);
            let (test, assert, own) = match module {
                true => (
                    "import test from 'node:test';",
                    "import assert from 'node:assert';",
                    format!("import {{ {name} }} from '{from}';"),
                ),
                false => (
                    "const test = require('node:test');",
                    "const assert = require('node:assert');",
                    format!("const {{ {name} }} = require('{from}');"),
                ),
            };
            let awaits = if head.contains("async ") { ("async ", "await ") } else { ("", "") };
            format!(
                "{test}\n{assert}\n{own}\n\ntest('{name}', {}() => {{\n  assert.deepStrictEqual({}{name}({arguments}), {value});\n}});\n",
                awaits.0, awaits.1
            )
        }
    };
    finished(situation, &path, &text, name)
}

fn finished(situation: &Situation, path: &str, text: &str, name: &str) -> Recipe {
    written(situation, path, text, "").map(|_| ())?;
    let failed = situation.of_tool("Write").last().is_some_and(|step| !step.ok());
    if failed {
        return written(situation, path, text, "");
    }
    let language = path.rsplit_once('.').map_or("", |(_, end)| end);
    let verdict = repair::verdict(situation)?;
    tell(format!(
        "Wrote `{path}`:\n\n```{language}\n{text}```\n\nThe input is a guess, and the expected value is what `{name}` returns today: check that it is right.\n\n{verdict}"
    ))
}

/// As the others, with the compiler's own words for what came back.
fn rust(situation: &Situation, found: &Found, name: &str, stem: &str, taken: &str) -> Recipe {
    let value = |one: &str| {
        let kind = one.split_once(':').map_or("", |(_, kind)| kind.trim());
        let integer =
            ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "u128", "i128"].contains(&kind);
        Some(match kind {
            _ if integer => "10".to_owned(),
            "f32" | "f64" => "10.0".into(),
            "bool" => "true".into(),
            "char" => "'a'".into(),
            "&str" => "\"one two\"".into(),
            "String" => "\"one two\".to_string()".into(),
            "&[&str]" => "&[\"one\", \"two\"]".into(),
            _ if kind.starts_with("&[") => "&[1, 2, 3]".into(),
            _ if kind.starts_with("Vec<") && !kind.contains(['&', 'S']) => "vec![1, 2, 3]".into(),
            _ => return None,
        })
    };
    let given: Option<Vec<String>> = taken.split(',').filter(|one| !one.trim().is_empty()).map(value).collect();
    let [manifest] = situation.need("", [read("Cargo.toml")])?;
    let package =
        facts::known(situation).remove("name").filter(|_| manifest.ok()).unwrap_or_default().replace('-', "_");
    let module = stem.trim_start_matches("src/").trim_end_matches("/mod").replace('/', "::");
    let module = if ["lib", "main"].contains(&module.as_str()) { String::new() } else { format!("{module}::") };
    let Some(given) = given.filter(|_| stem != "src/main" && found.path.starts_with("src/") && !package.is_empty())
    else {
        let text = format!(
            "`{name}` in `{}` takes `{taken}`. I can only make up plain values (numbers, texts, lists), so this test needs a real model. Nothing was written.",
            found.path
        );
        return tell(text);
    };
    let call = format!("{name}({})", given.join(", "));
    let text = |value: &str| {
        format!(
            "use {package}::{module}{name};\n\n#[test]\nfn {name}_returns() {{\n    assert_eq!(format!(\"{{:?}}\", {call}), {value});\n}}\n"
        )
    };
    let path = format!("tests/{name}.rs");
    let command = format!("cargo test --test {name}");
    let calls = [
        tool("Write", json!({ "file_path": path, "content": text("\"\"") })),
        bash(&command, "Call the function from a test"),
    ];
    let [wrote, ran] =
        situation.need(&format!("Writing `{path}` with no expectation yet, to see what `{name}` returns."), calls)?;
    if !wrote.ok() {
        return tell(format!("The write failed: {}", wrote.text()));
    }
    let output = ran.text();
    let Some(value) = output.lines().find_map(|line| line.trim().strip_prefix("left: ")) else {
        let [_] = situation
            .need("That did not compile. Removing it.", [bash(&format!("rm -- '{path}'"), "Remove the test again")])?;
        return tell(format!(
            "I could not call `{name}` from a test, so I removed it again:\n\n{}",
            super::tail(&output, 12)
        ));
    };
    finished(situation, &path, &text(value), name)
}

/// Writes a README of what manifest and folder say.
pub(super) fn readme(situation: &Situation) -> Recipe {
    let [top] = situation.need("Looking at what the project says of itself.", [ls()])?;
    let names = listed(&top.text());
    if let Some(file) = names
        .iter()
        .find(|name| name.to_lowercase().starts_with("readme") && situation.of_tool("Write").next().is_none())
    {
        return tell(format!(
            "There is a `{file}` already. `explain {file}` shows it; rewriting it takes a real model. Nothing was changed."
        ));
    }
    let text = commands::readme(situation, &names)?;
    let done = format!(
        "Wrote `README.md`:\n\n```markdown\n{text}```\n\nIt has only what manifest and folder say; what the project is for is yours to add."
    );
    written(situation, "README.md", &text, &done)
}
