//! Small talk, questions about cocode, and questions that the project's own files, declarations or git answer.

use super::super::{declarations::Things, facts::Topic, git::Past};
use super::{Intent, Is, Words};

/// Words to and fro that ask for nothing in the folder.
pub(super) fn chat(words: &Words) -> Option<Intent> {
    let say = |text: &str| Some(Intent::Say(text.into()));
    let first = words.all.first().map_or("", |(word, _)| word.as_str());
    const GO_ON: [&str; 12] =
        ["yes", "no", "ok", "okay", "sure", "yeah", "nope", "continue", "ja", "nein", "go", "please"];
    match () {
        () if words.says(
            "who are you|what are you|what can you|what can i ask|what do you do|was kannst du|how can you help",
        ) || words.has("help hilfe") && words.len() <= 3 =>
        {
            Some(Intent::Abilities)
        }
        () if words.len() > 4 => None,
        () if words.has("thanks thank thx danke great cool nice") => say("You are welcome. What next?"),
        () if words.len() <= 3 && GO_ON.contains(&first) => say(
            "I handle one prompt at a time and keep no plan. Tell me what to do, such as `explain this repository` or `run the tests`.",
        ),
        () if words.has("hi hello hey hallo moin servus yo") => Some(Intent::Abilities),
        () => None,
    }
}

/// What cocode itself does, for those who ask the model for it.
pub(super) fn program(words: &Words) -> Option<&'static str> {
    // A command to run is not a question about it.
    if words.first(&[Is::Run]) && !words.quoted.is_empty() {
        return None;
    }
    let short = words.len() <= 9 && words.names().is_empty() && words.paths.is_empty();
    let asks = words.any(&[Is::How, Is::What, Is::Change, Is::Show, Is::Run, Is::Where]) || words.says("can i|do i");
    Some(match () {
        () if short && words.any(&[Is::Model, Is::Key]) && asks && !words.has("file function class") => {
            "This is the offline model. `/model` lists every provider and what it needs: a key (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`), pasted there or set in the environment, or a local server (Ollama, llama.cpp, LM Studio)."
        }
        () if short && (words.is(Is::Undo) || words.says("take that back|roll back|undo")) => {
            "`/undo` restores the files that the last turn changed, `/redo` takes that back, and `/rewind` goes to an earlier prompt."
        }
        () if words.has("quit exit") && short && (words.len() <= 2 || words.is(Is::How)) => {
            "`/exit` ends the session, and so does Ctrl+C twice. `cocode -c` continues it later."
        }
        () if short
            && words.has("commit")
            && !words.any(&[Is::Recent, Is::Show, Is::What, Is::How, Is::List, Is::Who, Is::When]) =>
        {
            "`/commit` commits what is staged, and `/commit everything` stages all changes first. I commit nothing without that."
        }
        () if short && words.is(Is::Push) => "I do not push. Type `!git push` to run it yourself.",
        () if short && (words.has("cost expensive price") && words.any(&[Is::How, Is::What]) && words.len() < 8) => {
            "The offline model costs nothing. `/cost` shows what a session has cost."
        }
        () if short && words.has("permission permissions approve approval") => {
            "`/permissions` shows the rules. Shift+Tab changes the mode: ask for everything, accept edits, plan first."
        }
        () => return None,
    })
}

/// Questions about the project that its files, its declarations or git answer, and commands to run.
pub(super) fn question(words: &Words) -> Option<Intent> {
    let is = |class| words.is(class);
    let mut names = words.names();
    names.extend(words.paths.iter().cloned());
    let topics = |topics: &[Topic]| Some(Intent::About(topics.to_vec()));
    let how = is(Is::How) || words.says("do i |can i |do you |do we |can this be");
    let steps =
        [(Topic::Install, Is::Install), (Topic::Build, Is::Build), (Topic::Test, Is::Test), (Topic::Run, Is::Run)];
    let asked: Vec<Topic> = steps.iter().filter(|(_, class)| is(*class)).map(|(topic, _)| *topic).collect();
    let asked: Vec<Topic> = match asked.as_slice() {
        // "Run the tests", "set up and run".
        [others @ .., Topic::Test, Topic::Run] => [others, &[Topic::Test]].concat(),
        all => all.to_vec(),
    };
    let builds = is(Is::Build) && words.len() <= 5 && !words.first(&[Is::Build, Is::Run]);
    if !asked.is_empty()
        && names.is_empty()
        && words.len() <= 12
        && (how || builds)
        && !words.any(&[Is::Where, Is::Count])
    {
        return topics(&asked);
    }
    if words.first(&[Is::Run, Is::Build, Is::Install, Is::Test]) && !words.any(&[Is::Where, Is::Explain]) {
        if let Some(command) = words.quoted.first() {
            return Some(Intent::Run(command.clone()));
        }
        if is(Is::Test) {
            return Some(Intent::Test);
        }
        let verb = ["run ", "execute "].iter().find_map(|verb| Some(words.lower.find(verb)? + verb.len()));
        let command = verb.and_then(|at| words.prompt.get(at..)).map(|rest| rest.trim().trim_end_matches(['.', '!']));
        return match command.filter(|command| !command.is_empty()) {
            Some(command)
                if !["it", "this", "the", "that"].contains(&command.split(' ').next().unwrap_or_default()) =>
            {
                Some(Intent::Run(command.to_owned()))
            }
            _ => topics(&asked),
        };
    }
    if is(Is::Lines) && words.any(&[Is::Count, Is::How, Is::What]) && names.is_empty()
        || names.is_empty() && is(Is::Large) && words.len() < 9 && words.any(&[Is::How, Is::Files, Is::What])
    {
        return Some(Intent::Size);
    }
    if is(Is::Todo) {
        return Some(Intent::List(Things::Todos));
    }
    if is(Is::Branch) && names.is_empty() {
        return Some(Intent::Past(Past::Branch));
    }
    let all = words.len() <= 5 && words.has("files") && names.is_empty();
    if all && words.first(&[Is::List, Is::Show]) && words.all.iter().all(|(_, class)| *class != Some(Is::Recent)) {
        return Some(Intent::Run("ls -p".into()));
    }
    const NOW: &str = "git status|git diff|uncommitted|changes since|changed since the last commit|my changes|the diff|what changed?|\
        did i change|have i changed";
    if words.says(NOW) || words.lower.trim_end_matches('?') == "what changed" {
        return Some(Intent::Changes);
    }
    let changed = words.has("changed happened touch touched worked modified edited changes");
    let person = words.any(&[Is::Authors]) || is(Is::Who) && changed;
    let past = words.any(&[Is::Commit, Is::History])
        && words.any(&[Is::Recent, Is::Show, Is::What, Is::Explain, Is::List, Is::Who, Is::When])
        || changed && words.any(&[Is::Recent, Is::When, Is::Who])
        || is(Is::When) && person
        || words.says("git log|what's new|whats new")
        || is(Is::History) && words.len() <= 3;
    if past && !(words.any(&[Is::Where, Is::Uses]) && names.is_empty() && !is(Is::Commit)) {
        if let Some(path) = words.paths.first() {
            return Some(Intent::Past(Past::File(path.clone())));
        }
        let last = is(Is::Recent) && words.has("commit") && !words.has("commits");
        return Some(Intent::Past(if last { Past::Last } else { Past::Log }));
    }
    if !names.is_empty() || words.any(&[Is::Uses]) && !is(Is::Dependencies) {
        return None;
    }
    let many = words.any(&[Is::List, Is::How, Is::What, Is::Show, Is::Count]) && !is(Is::Where);
    if is(Is::Test) && (words.any(&[Is::List, Is::Count, Is::What]) || words.has("have has does")) && !is(Is::Fails) {
        return Some(Intent::List(Things::Tests));
    }
    if many && is(Is::Functions) {
        let public = is(Is::Public) || words.has("exported api");
        return Some(Intent::List(if public { Things::PublicFunctions } else { Things::Functions }));
    }
    if many && is(Is::Types) {
        return Some(Intent::List(Things::Types));
    }
    if is(Is::Entry)
        || words.any(&[Is::Where, Is::What])
            && words.any(&[Is::Run, Is::Project])
            && words.has("start starts begin begins main")
    {
        return topics(&[Topic::Entry]);
    }
    if is(Is::Config)
        && !words.any(&[Is::Where, Is::Explain])
        && words.len() < 9
        && words.any(&[Is::What, Is::How, Is::List, Is::Show])
    {
        return topics(&[Topic::Config]);
    }
    let subjects = [
        (Topic::Name, Is::Name),
        (Topic::Version, Is::Version),
        (Topic::License, Is::License),
        (Topic::Language, Is::Language),
        (Topic::Dependencies, Is::Dependencies),
        (Topic::Authors, Is::Authors),
    ];
    let found: Vec<Topic> = subjects.iter().filter(|(_, class)| is(*class)).map(|(topic, _)| *topic).collect();
    // "The license", not "the license header": what is left would be the matter.
    if !found.is_empty() && words.left().is_empty() && !is(Is::Where) {
        return topics(&found);
    }
    let whole = words.left().is_empty() && !is(Is::Folder);
    let overview = words.has("overview summary introduction") && !is(Is::History);
    let started = overview
        || words.says("get started|where do i begin|start reading|tell me about|in here|was ist das|documentation");
    let files = is(Is::Files) || words.says("directory structure|folder structure|what is where");
    let project = is(Is::Project) && words.any(&[Is::Explain, Is::What, Is::Show, Is::Files, Is::Why]);
    let plain = words.any(&[Is::Explain]) && words.len() <= 3;
    let structure = files && (words.any(&[Is::Show, Is::What, Is::List, Is::Where, Is::Explain]) || words.len() <= 2);
    (structure || started || whole && (project || plain) && !words.any(&[Is::Where, Is::Why, Is::When]))
        .then_some(Intent::Explain)
}
