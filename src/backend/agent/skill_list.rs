//! The list of skills that the model is given: once, before the first prompt; later only what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::skill_runs::Runs;
use crate::commands::{Command, Registry};
use crate::message::{Attachment, Effect, Message};
use crate::session::Context;

const OPENING: &str = "# Skills\nInstructions for recurring tasks. If one matches the request, call it with the Skill tool before you begin; the user starts one as /name.";
const CHANGED: &str = "# New or changed skills";
const GONE: &str = "Removed: ";

/// How much of skills the model is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// Most characters of the list.
    pub budget: usize,
    /// Most characters of one description; None: as many as there is room for.
    pub description: Option<usize>,
    /// Skills of which only the name is told.
    pub bare: BTreeSet<String>,
}

/// A list that fits the budget, and what that cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// By name: the name, and the description as far as there was room.
    pub lines: BTreeMap<String, String>,
    /// Descriptions that were shortened.
    pub shortened: usize,
    /// Skills that found no room at all.
    pub left_out: usize,
}

/// What the model is told of each skill, as far as there is room: the least used ones are shortened first.
pub fn list(registry: &Registry, room: &Room) -> List {
    let Room { budget, description, bare } = room;
    let most = |command: &Command| if bare.contains(&command.name) { 0 } else { description.unwrap_or(usize::MAX) };
    let full = |command: &Command| line(command, most(command));
    let budget = *budget;
    let mut rows: Vec<(&Command, String)> =
        registry.model_invocable().map(|command| (command, full(command))).collect();
    // The most used first, and of those never used the stronger source.
    rows.sort_by_key(|(command, _)| std::cmp::Reverse(command.score));
    let chars = |text: &str| text.chars().count() + 1;
    let mut total: usize = rows.iter().map(|(_, text)| chars(text)).sum();
    let (mut shortened, mut left_out) = (0, 0);
    for most in [200, 80, 0] {
        for (command, text) in rows.iter_mut().rev() {
            if total <= budget {
                break;
            }
            let short = line(command, most);
            if short.len() < text.len() {
                shortened += usize::from(*text == full(command));
                total = total - chars(text) + chars(&short);
                *text = short;
            }
        }
    }
    while total > budget
        && let Some((_, text)) = rows.pop()
    {
        total -= chars(&text);
        left_out += 1;
    }
    let lines = rows.into_iter().map(|(command, text)| (command.name.clone(), text)).collect();
    List { lines, shortened, left_out }
}

/// `- name: description`, with at most so many characters of the description.
fn line(command: &Command, most: usize) -> String {
    let mut about = if command.has_description { command.description.clone() } else { String::new() };
    if let Some(when) = &command.when_to_use {
        let glue = match about.chars().next_back() {
            None => "",
            Some('.' | '!' | '?' | ':' | ';' | '。') => " ",
            Some(_) => ". ",
        };
        about = format!("{about}{glue}{when}");
    }
    if let Some((at, _)) = about.char_indices().nth(most) {
        about = if most == 0 { String::new() } else { format!("{}…", about[..at].trim_end()) };
    }
    let colon = if about.is_empty() { "" } else { ": " };
    format!("- {}{colon}{about}", command.name)
}

/// What the model was told, by what each list or change of it said; none when it was told nothing.
fn told<'a>(effects: impl Iterator<Item = &'a Effect>) -> Option<BTreeMap<&'a str, &'a str>> {
    let mut told: Option<BTreeMap<&str, &str>> = None;
    for effect in effects {
        let Effect::Skills { lines, gone } = effect else { continue };
        let known = told.get_or_insert_default();
        known.extend(lines.iter().map(|(name, line)| (name.as_str(), line.as_str())));
        known.retain(|name, _| !gone.iter().any(|gone| gone == name));
    }
    told
}

/// What tells the model of these skills: a whole list, or what changed in one.
fn message(lines: BTreeMap<String, String>, gone: Vec<String>, text: &str) -> Message {
    let effects = vec![Effect::Skills { lines, gone }];
    Message { effects, ..Message::attachment(Attachment::SkillList, text) }
}

impl Runs {
    /// What the model is to be told of skills before a prompt: all of them at first, then what changed.
    pub(super) fn news(&self, context: &Context) -> Option<Message> {
        let (now, _) = self.settings.catalog.refresh();
        let List { lines, left_out, .. } = list(&now.registry, &self.settings.room);
        let Some(known) = told(effects(context)) else { return (!lines.is_empty()).then(|| whole(lines, left_out)) };
        let (lines, gone) = changes(&now.registry, lines, &known);
        let mut parts = Vec::new();
        if !lines.is_empty() {
            parts.push(format!("{CHANGED}\n{}", rows(&lines)));
        }
        if !gone.is_empty() {
            parts.push(format!("{GONE}{}", gone.join(", ")));
        }
        (!parts.is_empty()).then(|| message(lines, gone, &parts.join("\n")))
    }

    /// The list as a boundary brings it along, where the model was told of skills.
    pub(super) fn list_again(&self, context: &Context) -> Option<Message> {
        told(effects(context))?;
        let List { lines, left_out, .. } = self.list();
        (!lines.is_empty()).then(|| whole(lines, left_out))
    }

    fn list(&self) -> List {
        let (now, _) = self.settings.catalog.refresh();
        list(&now.registry, &self.settings.room)
    }
}

/// What is new in a list since another one was told, and which skills of that one can no longer be called.
fn changes(
    registry: &Registry,
    mut lines: BTreeMap<String, String>,
    known: &BTreeMap<&str, &str>,
) -> (BTreeMap<String, String>, Vec<String>) {
    // One that the list has no more room for is still there.
    let offered = |name: &str| registry.find(name).is_some_and(|command| command.name == name && command.offered());
    let gone = known.keys().filter(|name| !offered(name)).map(|name| (*name).to_owned()).collect();
    // Use changes what is shortened; that alone is not news.
    lines.retain(|name, line| known.get(name.as_str()).is_none_or(|old| !same(old, line)));
    (lines, gone)
}

fn effects(context: &Context) -> impl Iterator<Item = &Effect> {
    context.entries().flat_map(|(_, message)| &message.effects)
}

fn whole(lines: BTreeMap<String, String>, left_out: usize) -> Message {
    let mut text = format!("{OPENING}\n{}", rows(&lines));
    if left_out > 0 {
        let _ = write!(text, "\n- … and {left_out} more that did not fit here: `/skills` lists them for the user.");
    }
    message(lines, Vec::new(), &text)
}

fn rows(lines: &BTreeMap<String, String>) -> String {
    lines.values().map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// Whether two lines say the same, one of them perhaps shortened.
fn same(old: &str, new: &str) -> bool {
    let plain = |line: &str| line.trim_end_matches('…').to_owned();
    let (old, new) = (plain(old), plain(new));
    old == new || (old.len() != new.len() && (old.starts_with(&new) || new.starts_with(&old)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Skill;

    fn registry(skills: &[(&'static str, &str)], used: &str) -> Registry {
        let skills: Vec<Skill> = skills
            .iter()
            .map(|(name, about)| Skill {
                description: (*about).into(),
                ..Skill::bundled(name, "---\ndescription: d\n---\nx")
            })
            .collect();
        Registry::with_skills(&skills, |name| if name == used { 1.0 } else { 0.0 }).0
    }

    fn room(budget: usize) -> Room {
        Room { budget, ..Room::default() }
    }

    #[test]
    fn a_skill_may_be_told_by_its_name_alone() {
        let registry = registry(&[("a", "about a"), ("b", "about b")], "");
        let room = Room { description: Some(6), bare: BTreeSet::from(["b".to_owned()]), ..room(1_000) };
        let List { lines, shortened, .. } = list(&registry, &room);
        assert_eq!((lines["a"].as_str(), lines["b"].as_str(), shortened), ("- a: about…", "- b", 0));
    }

    #[test]
    fn the_least_used_are_shortened_first() {
        let long = "x".repeat(300);
        let registry = registry(&[("a", &long), ("b", &long), ("c", &long)], "c");
        let check = |budget: usize, want: [usize; 3], shortened: usize, left_out: usize| {
            let list = list(&registry, &room(budget));
            let sizes = ["a", "b", "c"].map(|name| list.lines.get(name).map_or(0, |line| line.chars().count()));
            assert_eq!((sizes, list.shortened, list.left_out), (want, shortened, left_out), "{budget}");
            assert!(list.lines.values().map(|line| line.chars().count() + 1).sum::<usize>() <= budget);
        };
        check(1_000, [305, 305, 305], 0, 0);
        check(900, [305, 206, 305], 1, 0);
        check(620, [206, 86, 206], 3, 0);
        check(320, [86, 86, 86], 3, 0);
        check(12, [3, 3, 3], 3, 0);
        check(9, [3, 0, 3], 3, 1);
        check(0, [0, 0, 0], 3, 3);
    }

    #[test]
    fn a_skill_without_room_is_not_removed() {
        let skills = [("a", "d"), ("b", "d"), ("c", "d")];
        let told = list(&registry(&skills, "a"), &room(8)).lines;
        let known: BTreeMap<&str, &str> =
            told.iter().map(|(name, line)| (name.as_str(), line.as_str())).chain([("z", "- z")]).collect();
        let now = registry(&skills, "c");
        let (new, gone) = changes(&now, list(&now, &room(8)).lines, &known);
        assert_eq!(
            (told.len(), new.into_keys().collect::<Vec<_>>(), gone),
            (2, vec!["c".to_owned()], vec!["z".to_owned()])
        );
    }

    #[test]
    fn what_was_told_adds_up() {
        let lines = |rows: &[(&str, &str)]| -> BTreeMap<String, String> {
            rows.iter().map(|(name, line)| ((*name).to_owned(), (*line).to_owned())).collect()
        };
        let first = whole(lines(&[("a", "- a: one"), ("b", "- b")]), 0);
        let later = message(lines(&[("c", "- c: three: 3")]), vec!["a".into(), "b".into()], "in any words");
        assert_eq!(told([].iter()), None);
        assert!(!first.text().contains("… and"), "{}", first.text());
        let part = whole(lines(&[("a", "- a")]), 1_234).text();
        assert!(
            part.contains("\n- a\n- … and 1234 more that did not fit here: `/skills` lists them for the user."),
            "{part}"
        );
        let known = told(first.effects.iter().chain(&later.effects)).unwrap();
        assert_eq!(known, BTreeMap::from([("c", "- c: three: 3")]));
        assert!(same("- a: one…", "- a: one two") && same("- a", "- a: one") && !same("- a: one", "- a: two"));
    }
}
