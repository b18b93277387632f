//! Questions of newcomers: about cocode, about the project, about a name in the code.

use super::super::{declarations::Things, facts::Topic, git::Past};
use super::{Intent, quoted, significant};

/// What cocode itself does, for those who ask the model for it.
pub(super) fn program(lower: &str, words: &[&str]) -> Option<&'static str> {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    let says = |options: &[&str]| options.iter().any(|option| lower.contains(option));
    let short = words.len() <= 8;
    Some(match () {
        () if says(&[
            "api key",
            "real model",
            "better model",
            "other model",
            "use claude",
            "use gpt",
            "use gemini",
        ]) || has(&["ollama", "openai", "anthropic"]) && has(&["how", "use", "connect", "set", "setup"])
            || has(&["model", "models"]) && has(&["which", "switch", "change", "choose", "other"]) =>
        {
            "This is the offline model. `/model` lists every provider and what it needs: a key (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`) or a local server (Ollama, llama.cpp, LM Studio)."
        }
        () if short && (has(&["undo", "revert"]) || says(&["take that back", "roll back"])) => {
            "`/undo` restores the files that the last turn changed, `/redo` takes that back, and `/rewind` goes to an earlier prompt."
        }
        () if short && says(&["how do i exit", "how do i quit", "how to exit", "how to quit"])
            || has(&["quit", "exit"]) && words.len() <= 2 =>
        {
            "`/exit` ends the session, and so does Ctrl+C twice. `cocode -c` continues it later."
        }
        () if has(&["commit"])
            && !has(&["commits", "last", "latest", "recent", "show", "what", "how", "git"])
            && short =>
        {
            "`/commit` commits what is staged, and `/commit everything` stages all changes first. I commit nothing without that."
        }
        () if has(&["push"]) && short => "I do not push. Type `!git push` to run it yourself.",
        () if says(&["cost", "how expensive"]) && short => {
            "The offline model costs nothing. `/cost` shows what a session has cost."
        }
        () if has(&["permission", "permissions", "approve", "approval"]) && short => {
            "`/permissions` shows the rules. Shift+Tab changes the mode: ask for everything, accept edits, plan first."
        }
        () => return None,
    })
}

/// Questions about the project that its files, its declarations or git answer.
pub(super) fn question(lower: &str, words: &[&str]) -> Option<Intent> {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    let says = |options: &[&str]| options.iter().any(|option| lower.contains(option));
    let mut topics = Vec::new();
    if has(&["does", "do", "is", "can", "will"])
        && has(&["compile", "compiles", "build", "builds"])
        && words.len() <= 5
        && !has(&["how"])
    {
        return Some(Intent::About { topics: vec![Topic::Build] });
    }
    let how =
        says(&["how do i", "how do you", "how to", "how can i", "how is", "how are", "what command", "which command"]);
    if how {
        let steps = [
            (Topic::Install, &["install", "installed", "set", "setup"][..]),
            (Topic::Build, &["build", "built", "compile", "compiled"]),
            (Topic::Test, &["test", "tests", "tested"]),
            (Topic::Run, &["run", "start", "started", "launch", "use"]),
        ];
        let found = steps.iter().find(|(_, options)| has(options)).map(|(topic, _)| *topic);
        // How something in the code is done is another question.
        topics.extend(found.filter(|_| words.len() <= 10));
    }
    if says(&["how many lines", "lines of code", "how big", "how large", "loc "])
        || has(&["largest", "biggest", "longest"]) && has(&["file", "files"])
    {
        return Some(Intent::Size);
    }
    let asks = has(&[
        "what", "which", "list", "show", "how", "who", "name", "tell", "are", "is", "give", "find", "where", "any",
        "count", "print",
    ]);
    if !asks {
        return None;
    }
    if has(&["todo", "todos", "fixme", "fixmes"]) {
        return Some(Intent::List(Things::Todos));
    }
    let many = has(&["list", "how", "which", "what", "show", "all", "count"]);
    if has(&["tests"])
        && (has(&["list", "count"]) || says(&["how many", "which tests", "what tests", "are there"]))
        && !has(&["run", "pass", "fail"])
    {
        return Some(Intent::List(Things::Tests));
    }
    if many && !has(&["where", "uses", "calls", "call"]) {
        if has(&["functions", "methods"]) || says(&["public api", "exported"]) {
            let public = has(&["public", "exported", "api"]);
            return Some(Intent::List(if public { Things::PublicFunctions } else { Things::Functions }));
        }
        if has(&["types", "structs", "classes", "enums", "traits", "interfaces"]) {
            return Some(Intent::List(Things::Types));
        }
    }
    if has(&["branch", "branches"]) {
        return Some(Intent::Past(Past::Branch));
    }
    if has(&["commits", "history"])
        || has(&["commit"]) && has(&["last", "latest", "recent"])
        || says(&["git log", "changed recently", "recent changes", "worked on"])
    {
        return Some(Intent::Past(Past::Log));
    }
    let subjects = [
        (Topic::Name, &["name"][..]),
        (Topic::Version, &["version"]),
        (Topic::License, &["license", "licence", "licensed"]),
        (Topic::Language, &["language", "languages", "written"]),
        (Topic::Dependencies, &["dependencies", "dependency", "libraries", "crates", "packages"]),
        (Topic::Authors, &["author", "authors", "maintainer", "maintainers", "contributors", "wrote", "maintains"]),
    ];
    // "The license", not "the license header": what follows would be the matter.
    let subject = |word: &str| word == "under" || subjects.iter().any(|(_, options)| options.contains(&word));
    let ends = |at: usize| words.get(at + 1).is_none_or(|next| !significant(next) || subject(next));
    let named = subjects
        .iter()
        .filter(|(_, options)| words.iter().enumerate().any(|(at, word)| options.contains(word) && ends(at)))
        .map(|(topic, _)| *topic);
    let about =
        has(&["this", "project", "package", "crate", "repo", "repository", "it", "there", "the"]) || words.len() <= 4;
    if about && !has(&["function", "variable", "where"]) {
        topics.extend(named);
    }
    (!topics.is_empty()).then_some(Intent::About { topics })
}

/// A name of the code: in backticks, with `()` behind it, or spelled as no word of a language is.
pub(super) fn name(prompt: &str, paths: &[String]) -> Option<String> {
    let plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !word.starts_with(|c: char| c.is_ascii_digit())
    };
    let in_ticks =
        quoted(prompt).into_iter().map(|word| word.trim_end_matches("()").to_owned()).find(|word| plain(word));
    let spelled = || {
        prompt.split(|c: char| c.is_whitespace() || matches!(c, ',' | '?' | '!' | ';')).find_map(|word| {
            let bare = word.trim_end_matches('.').trim_end_matches("()");
            let code = word.contains("()") || super::spelled(bare);
            (code && plain(bare) && !paths.iter().any(|path| path == bare)).then(|| bare.to_owned())
        })
    };
    let told = || {
        // "the function greet", "the greet function"
        let words: Vec<&str> =
            prompt.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        let kinds = ["function", "struct", "class", "method", "type", "enum", "trait", "macro"];
        let at = words.iter().position(|word| kinds.contains(&word.to_lowercase().as_str()))?;
        let common = |word: &&&str| {
            significant(&word.to_lowercase()) && !["main", "does"].contains(&word.to_lowercase().as_str())
        };
        let near = words.get(at + 1).filter(common).or_else(|| words.get(at.checked_sub(1)?).filter(common))?;
        Some((*near).to_owned())
    };
    in_ticks.or_else(spelled).or_else(told)
}

/// The folder that is asked about: `the src folder`, `in src`.
pub(super) fn folder(words: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| ["folder", "directory", "dir"].contains(word))?;
    let near = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| words.get(at));
    let found =
        near.into_iter().find(|word| !["this", "the", "a", "that", "current", "my", "structure"].contains(word))?;
    Some((*found).to_owned())
}
