//! What keys do in an open list.

use std::time::Instant;

use ratatui::crossterm::event::KeyEvent;

use super::app::App;
use super::dialog::picker::{self, Choice, Picker};
use super::keymap::Action;
use super::leaving::{self, Leaving};
use super::msg::Effect;
use super::panel::Wish;
use super::viewer;
use crate::commands::Builtin;
use crate::protocol::Op;

/// Takes a key while a list is open.
pub(super) fn key(app: &mut App, key: KeyEvent, action: Option<Action>, now: Instant) -> Vec<Effect> {
    if action == Some(Action::Interrupt) {
        app.picker = None;
        if app.leaving == Leaving::Asked {
            return app.quit();
        }
        return Vec::new();
    }
    let Some(picker) = &mut app.picker else { return Vec::new() };
    let keyed = picker.keyed();
    let choice = match picker.key(key) {
        picker::Outcome::Open | picker::Outcome::Ignored => return Vec::new(),
        picker::Outcome::Closed => {
            if keyed {
                app.tell("key stored, same model as before: /model switches", now);
            }
            Choice::Nothing
        }
        picker::Outcome::Test(line) => {
            app.picker = None;
            return vec![Effect::Send(Op::builtin(Builtin::Permissions, format!("test {line}")))];
        }
        picker::Outcome::StoreKey { provider, key } => return vec![Effect::Send(Op::StoreKey { provider, key })],
        picker::Outcome::Find(words) => return vec![Effect::Send(Op::Find { words })],
        picker::Outcome::FindServer => return vec![Effect::Send(Op::FindServer)],
        picker::Outcome::Set { key, value, place } => return vec![Effect::Send(Op::Set { key, value, place })],
        picker::Outcome::Chosen(choice) => choice,
    };
    chosen(app, choice, now)
}

/// Takes a key for the list of what runs in the background, where that is open.
pub(super) fn task(app: &mut App, key: KeyEvent, now: Instant) -> Option<Vec<Effect>> {
    let wish = app.panel.as_mut()?.key(key, app.size, &app.options.theme)?;
    Some(match wish {
        Wish::Look => Vec::new(),
        Wish::Transcript => viewer::open_transcript(app, now),
        Wish::Open(output) => vec![Effect::EditFile(output)],
        Wish::Stop(task) => vec![Effect::Send(Op::builtin(Builtin::Tasks, format!("stop {task}")))],
        Wish::Tell(task) => {
            app.composer.editor.insert(&format!("/tasks tell {task} "));
            Vec::new()
        }
    })
}

/// Does what a row of a list stands for.
pub(super) fn chosen(app: &mut App, choice: Choice, now: Instant) -> Vec<Effect> {
    app.leaving = Leaving::No;
    app.picker = match &choice {
        Choice::Prompt(seq) => Some(Picker::rewind(*seq)),
        Choice::Rule(rule) => Some(Picker::revoke(rule)),
        _ => None,
    };
    match choice {
        Choice::Session(session) => vec![Effect::Send(Op::builtin(Builtin::Resume, session))],
        Choice::Quote(text) => {
            app.composer.quote(&text);
            Vec::new()
        }
        Choice::Model(model) => vec![Effect::Send(Op::builtin(Builtin::Model, model))],
        Choice::Rewind(to, what) => vec![Effect::Send(Op::Rewind { to, what })],
        Choice::File(path) => vec![Effect::EditFile(path)],
        Choice::Leave(how) => leaving::chosen(app, how, now),
        Choice::Revoke(rule) => {
            vec![Effect::Send(Op::builtin(Builtin::Permissions, format!("revoke {rule}")))]
        }
        // The list itself does these.
        Choice::Found(_)
        | Choice::Key { .. }
        | Choice::FindServer
        | Choice::Setting(_)
        | Choice::Value { .. }
        | Choice::Stay(_) => Vec::new(),
        Choice::Prompt(_) | Choice::Rule(_) | Choice::Nothing => Vec::new(),
    }
}
