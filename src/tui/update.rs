//! One step of the view: a message in, effects out. Pure; the time comes in with the message.

use std::time::Instant;

use ratatui::crossterm::event::{KeyEvent, KeyEventKind};

use super::app::{App, TWICE};
use super::asks;
use super::clipboard;
use super::composer::chip::Picture;
use super::composer::vim::Outcome;
use super::composer::{self, Reaction};
use super::dialog::picker::Picker;
use super::keymap::Action;
use super::leaving;
use super::lists;
use super::msg::{Effect, Msg};
use super::notes;
use super::pager::{self, Page, Pager};
use super::thinking;
use super::viewer::{open_page, open_transcript, show_review, show_transcript, want_log};
use super::{fullscreen, viewer};
use crate::commands::{Builtin, Parsed, Screen, Server};
use crate::protocol::{Answer, Delivery, Fold, ListKind, Op, Typed};

/// Takes one message and returns the effects to run, in order.
pub fn update(app: &mut App, msg: Msg, now: Instant) -> Vec<Effect> {
    app.outlive(matches!(msg, Msg::Key(key) if key.kind != KeyEventKind::Release), now);
    let mut effects = match msg {
        Msg::Key(key) if key.kind == KeyEventKind::Release => return Vec::new(),
        Msg::Key(key) => key_pressed(app, key, now),
        Msg::Written(key) => {
            let mut effects = asks::written(app, now);
            let below = app.pager.is_none() && app.asks.open().is_none() && app.picker.is_none();
            if below && app.composer.written(key) {
                app.asks.pressed(now);
            } else {
                effects.extend(key_pressed(app, key, now));
            }
            effects
        }
        Msg::Paste { text, image } => paste(app, &text, image, now),
        Msg::Resize(columns, rows) => {
            app.size = (columns, rows);
            // Somebody is at it; the screen below comes to rest before another one covers it; and what was read of an
            // open question may have left the screen.
            app.asks.pressed(now);
            app.asks.hidden();
            if let Some(page) = app.pager.as_ref().and_then(Pager::page).cloned() {
                open_page(app, page);
            }
            show_transcript(app, now)
        }
        Msg::Torn => {
            app.asks.hidden();
            Vec::new()
        }
        Msg::Focus(focused) => {
            app.focused = focused;
            Vec::new()
        }
        Msg::Background { light } => {
            app.light = light;
            Vec::new()
        }
        Msg::Theme(Ok(theme)) => {
            app.options.theme = *theme;
            if !app.options.highlight {
                app.options.theme.syntax = None;
            }
            // What was wrong with the theme before it in the list.
            if app.picker.is_some() {
                app.hint = None;
            }
            Vec::new()
        }
        Msg::Eof => app.quit(),
        Msg::Engine(event) => app.apply(event, now),
        Msg::Mouse(mouse) => fullscreen::mouse(app, mouse, now),
        Msg::Tick => {
            let mut effects = if app.pager.is_none() { asks::tick(app, now) } else { Vec::new() };
            effects.extend(viewer::refresh(app, now));
            effects.extend(app.panel.as_mut().and_then(|panel| panel.ask(Some(now))));
            effects
        }
        Msg::Files { query, paths } => {
            app.composer.listed(&query, paths);
            Vec::new()
        }
        Msg::Edited(Ok(text)) => {
            app.composer.edited(&text);
            Vec::new()
        }
        Msg::Theme(Err(text))
        | Msg::Edited(Err(text))
        | Msg::PlanEdited { text: Err(text), .. }
        | Msg::Rewritten { text: Err(text), .. }
        | Msg::Told(text) => {
            app.tell(text, now);
            Vec::new()
        }
        Msg::PlanEdited { id, text: Ok(text) } => {
            if let Some(dialog) = app.asks.find(id) {
                dialog.edited(text);
            }
            Vec::new()
        }
        // Cancelled: it is not wanted later.
        Msg::Picture(_) if !std::mem::take(&mut app.fetching) => Vec::new(),
        Msg::Picture(Ok(picture)) => {
            app.hint = None;
            paste(app, "", Some(picture), now)
        }
        Msg::Picture(Err(why)) => {
            app.tell(why, now);
            Vec::new()
        }
        Msg::StatusLine(text) => {
            if let Some(own) = &mut app.status.own {
                own.printed(text, now);
            }
            Vec::new()
        }
        Msg::Rewritten { id, text: Ok(text) } => match text {
            Some(text) => {
                app.asks.close(id, now);
                vec![Effect::Send(Op::Answer { id, answer: Answer::Rewrite { text } })]
            }
            None => Vec::new(),
        },
        Msg::Branch(branch) => {
            app.status.branch = branch;
            Vec::new()
        }
    };
    app.settle();
    effects.extend(app.follow());
    effects.extend(leaving::follow(app, now));
    effects.extend(app.run_status_line(now));
    effects
}

fn key_pressed(app: &mut App, key: KeyEvent, now: Instant) -> Vec<Effect> {
    let keymap = &app.options.keymap;
    let action = match app.pressed.chord.take() {
        Some(first) => keymap.action_after(first, key).or_else(|| keymap.action(key)),
        None => keymap.action(key),
    };
    if action.is_none() {
        app.pressed.chord = keymap.begins(key);
        if app.pressed.chord.is_some() {
            return Vec::new();
        }
    }
    app.asks.pressed(now);
    leaving::pressed(app, now);
    match action {
        Some(Action::Redraw) => return vec![Effect::Redraw],
        Some(Action::Suspend) => {
            app.asks.hidden();
            return vec![Effect::Suspend];
        }
        _ => {}
    }
    if let Some(pager) = &mut app.pager {
        let closes = matches!(action, Some(Action::Transcript | Action::Interrupt));
        let outcome = if closes { pager::Outcome::Closed } else { pager.key(key, app.size.1) };
        match outcome {
            pager::Outcome::Closed => {
                app.asks.hidden();
                return app.close_pager().into_iter().collect();
            }
            pager::Outcome::Apply => {
                let Some(Page::Changes(review)) = pager.page() else { return Vec::new() };
                let op = review.op();
                app.asks.hidden();
                app.close_pager();
                return vec![Effect::Send(op)];
            }
            pager::Outcome::Redraw => {
                show_review(app);
                return Vec::new();
            }
            pager::Outcome::Open | pager::Outcome::Ignored => return want_log(app).into_iter().collect(),
        }
    }
    let mut effects = asks::let_go(app, key, now);
    effects.extend(asks::key(app, key, action, now).unwrap_or_else(|| key_below(app, key, action, now)));
    effects
}

/// A key that is not a question's.
pub(super) fn key_below(app: &mut App, key: KeyEvent, action: Option<Action>, now: Instant) -> Vec<Effect> {
    if app.picker.is_some() {
        return lists::key(app, key, action, now);
    }
    key_in_composer(app, key, action, now)
}

fn key_in_composer(app: &mut App, key: KeyEvent, action: Option<Action>, now: Instant) -> Vec<Effect> {
    let open = app.composer.search.is_some() || app.composer.popup().is_some();
    let empty = app.composer.is_empty() && !open;
    if action != Some(Action::Cancel) {
        app.pressed.cancel = None;
    }
    let action = match action {
        Some(Action::Background) if app.transcript.waits_for_command() => return vec![Effect::Send(Op::Background)],
        Some(Action::Background) => Some(Action::Left),
        action => action,
    };
    if empty && let Some(effects) = lists::task(app, key, now) {
        return effects;
    }
    if !open && let Some(effects) = fullscreen::key(app, key, action, now) {
        return effects;
    }
    let action = match app.composer.vim_key(key, action, app.column()) {
        Outcome::Passed => action,
        Outcome::Handled => return Vec::new(),
        Outcome::As(action) => Some(action),
    };
    let action = match action {
        Some(Action::Cancel | Action::Interrupt) if std::mem::take(&mut app.fetching) => {
            app.tell_briefly("the clipboard is left alone", now);
            return vec![Effect::LeaveImage];
        }
        Some(Action::Interrupt) if !open => return interrupt(app, now),
        Some(Action::Interrupt) => Action::Cancel,
        Some(Action::Exit) if empty => return leaving::leave(app),
        Some(Action::CycleMode) => {
            let mode = app.status.next_mode();
            app.status.mode = mode;
            // What was said before would cover the rest of the line that says what the mode is.
            app.hint = None;
            return vec![Effect::Send(Op::SetMode { mode })];
        }
        Some(Action::ThinkMore) => return thinking::step(app, thinking::Way::More, now),
        Some(Action::ThinkLess) => return thinking::step(app, thinking::Way::Less, now),
        Some(Action::Transcript) => return open_transcript(app, now),
        Some(Action::Todos) => {
            app.show_todos = !app.show_todos;
            if app.todos.is_empty() {
                app.tell("no open todos", now);
            }
            return Vec::new();
        }
        // Without the picture it would be another prompt.
        Some(Action::Send | Action::SendAfter | Action::PasteImage) if app.fetching => return Vec::new(),
        Some(Action::PasteImage) => {
            app.fetching = true;
            let key = app.options.keymap.hint(Action::Cancel);
            app.tell(format!("reading the clipboard · {key} cancels"), now);
            return vec![Effect::PasteImage];
        }
        Some(Action::Editor) => return vec![Effect::OpenEditor(app.composer.editor.draft().expanded())],
        Some(Action::Help) if empty => {
            open_page(app, Page::Keys);
            return Vec::new();
        }
        Some(Action::PageUp | Action::PageDown) if app.panel.is_some() => {
            let by = if action == Some(Action::PageUp) { -1 } else { 1 };
            if let Some(panel) = &mut app.panel {
                panel.page(by, app.size, &app.options.theme);
            }
            return Vec::new();
        }
        Some(Action::SendAfter) if app.spinner.in_turn() => return submit(app, Delivery::AfterTurn, now),
        Some(Action::SendAfter) => Action::Newline,
        Some(Action::Up) if empty && !app.queue.is_empty() => return take_back(app),
        Some(action) => action,
        None => {
            let reaction = app.composer.type_key(key, &app.options.commands);
            return react(app, reaction, now);
        }
    };
    let width = app.column();
    let reaction = app.composer.act(action, width, &app.options.commands);
    match (reaction, action) {
        (Reaction::Ignored, Action::Cancel) => cancel(app, now),
        (Reaction::Ignored, Action::Complete) if app.composer.completes_nothing() => {
            thinking::step(app, thinking::Way::More, now)
        }
        // Bound to something that means nothing here, but it is a character: `?` in a text.
        (Reaction::Ignored, _) => {
            let reaction = app.composer.type_key(key, &app.options.commands);
            react(app, reaction, now)
        }
        (reaction, Action::Stash) => {
            let word = if app.composer.has_stash() { "stashed; the same key restores it" } else { "restored" };
            app.tell_briefly(word, now);
            react(app, reaction, now)
        }
        (reaction, _) => react(app, reaction, now),
    }
}

fn react(app: &mut App, reaction: Reaction, now: Instant) -> Vec<Effect> {
    match reaction {
        Reaction::Send => {
            let mut effects: Vec<Effect> = app.close_back().into_iter().collect();
            effects.extend(submit(app, Delivery::Steer, now));
            effects
        }
        Reaction::ListFiles(query) => vec![Effect::ListFiles(query)],
        Reaction::ListCommands => vec![Effect::Send(Op::Commands)],
        Reaction::Handled | Reaction::Ignored => Vec::new(),
    }
}

fn paste(app: &mut App, text: &str, image: Option<Picture>, now: Instant) -> Vec<Effect> {
    if let Some(pager) = &mut app.pager {
        pager.paste(text);
        return Vec::new();
    }
    app.asks.pressed(now);
    let mut effects = asks::written(app, now);
    if asks::paste(app, text) {
        return effects;
    }
    if let Some(picker) = &mut app.picker {
        picker.paste(text);
        effects.extend(picker.sought().map(|words| Effect::Send(Op::Find { words })));
        return effects;
    }
    let reaction = app.composer.paste(text, image, &app.options.commands);
    effects.extend(react(app, reaction, now));
    effects
}

/// Esc with nothing open: interrupts, or opens the rewind list when pressed twice on an empty prompt.
fn cancel(app: &mut App, now: Instant) -> Vec<Effect> {
    if app.close_panel() {
        return Vec::new();
    }
    if app.spinner.busy() {
        return stop(app, now);
    }
    if !app.composer.is_empty() {
        return Vec::new();
    }
    // What has ended there may be about to wake the agent.
    let effects = if app.status.background > 0 { vec![Effect::Send(Op::Interrupt)] } else { Vec::new() };
    if app.prompts.is_empty() {
        return effects;
    }
    let again = app.pressed.cancel.replace(now).is_some_and(|at| now.duration_since(at) <= TWICE);
    if again {
        app.pressed.cancel = None;
        app.hint = None;
        app.picker = Some(Picker::prompts(&app.prompts));
    } else {
        let key = app.options.keymap.hint(Action::Cancel);
        app.tell_briefly(format!("{key} again to go back to an earlier prompt"), now);
    }
    effects
}

/// Ctrl+C with nothing open: interrupts, or clears; twice exits.
fn interrupt(app: &mut App, now: Instant) -> Vec<Effect> {
    let again = app.pressed.interrupt.replace(now).is_some_and(|at| now.duration_since(at) <= TWICE);
    if again && app.composer.is_empty() {
        return leaving::leave(app);
    }
    if app.spinner.busy() && !again {
        return stop(app, now);
    }
    app.composer.clear();
    let key = app.options.keymap.hint(Action::Interrupt);
    app.tell_briefly(format!("{key} again to exit"), now);
    Vec::new()
}

/// Interrupts what runs. What waits must not begin now: prompts come back to the composer, commands are named.
pub(super) fn stop(app: &mut App, now: Instant) -> Vec<Effect> {
    let (mut effects, mut dropped) = (Vec::new(), Vec::new());
    while let Some(queued) = app.queue.pop() {
        effects.push(Effect::Send(Op::Unqueue { id: queued.id }));
        match queued.text.starts_with('/') {
            true => dropped.insert(0, queued.text),
            false => app.composer.restore(&queued.text),
        }
    }
    if !dropped.is_empty() {
        app.tell(format!("interrupted, so not done: {}", dropped.join(", ")), now);
    }
    effects.push(Effect::Send(Op::Interrupt));
    effects
}

/// Takes the newest waiting prompt back into the composer.
fn take_back(app: &mut App) -> Vec<Effect> {
    let Some(queued) = app.queue.pop() else { return Vec::new() };
    app.composer.restore(&queued.text);
    vec![Effect::Send(Op::Unqueue { id: queued.id })]
}

/// Sends what is in the composer: a prompt, a shell line or a command.
fn submit(app: &mut App, delivery: Delivery, now: Instant) -> Vec<Effect> {
    if let Some(effects) = notes::written(app) {
        return effects;
    }
    if app.composer.editor.text().trim().is_empty() {
        return Vec::new();
    }
    app.close_panel();
    let text = app.composer.editor.text().trim();
    // Where the text came in one go the composer did not see the `!` alone.
    let marked = text.strip_prefix('!').is_some_and(|line| !line.trim().is_empty());
    if app.composer.mode == composer::Mode::Shell || marked {
        let typed = app.composer.take().0.typed();
        let command =
            if marked { typed.text.trim().trim_start_matches('!').trim().to_owned() } else { typed.text.clone() };
        let line = if marked { format!("!{command}").as_str().into() } else { typed.behind("!") };
        let mut effects = remember(app, line);
        effects.push(Effect::Send(Op::Shell { command }));
        return effects;
    }
    let known = match known(app, text) {
        Ok(known) => known,
        Err(unknown) => {
            app.tell(unknown, now);
            return Vec::new();
        }
    };
    if let Some((name, builtin, _)) = known {
        let typed = app.composer.take().0.typed().trimmed();
        // What was pasted replaces its chip now.
        let args = typed.text.split_once(char::is_whitespace).map_or("", |(_, args)| args.trim()).to_owned();
        let mut effects = remember(app, typed);
        effects.extend(command(app, name, builtin, args, now));
        return effects;
    }
    let (draft, _) = app.composer.take();
    let typed = draft.typed().trimmed();
    let text = typed.text.clone();
    let data = typed.folds.iter().filter(|fold| fold.picture.is_none()).map(Fold::range).collect();
    let mut effects = remember(app, typed);
    effects.push(Effect::Send(Op::Prompt { text, attachments: draft.attachments(), delivery, thinking: None, data }));
    effects
}

/// The command that a line names, with what follows it; none for a message.
///
/// # Errors
/// What to say of a name that no command has.
pub(super) fn known(app: &App, line: &str) -> Result<Option<(String, Option<Builtin>, String)>, String> {
    match app.options.commands.parse_line(line) {
        Parsed::Message => Ok(None),
        Parsed::Unknown { name } => Err(app.options.commands.unknown(name)),
        Parsed::Served { name, args } => Ok(Some((name.to_owned(), None, args.to_owned()))),
        Parsed::Command { command, args } => Ok(Some((command.name.clone(), command.builtin(), args.to_owned()))),
    }
}

/// Commands that open something run here, the rest in the engine.
pub(super) fn command(
    app: &mut App,
    name: String,
    builtin: Option<Builtin>,
    args: String,
    now: Instant,
) -> Vec<Effect> {
    if let (Some(Builtin::Thinking), true, Some(effects)) =
        (builtin, app.spinner.in_turn(), thinking::chosen(app, &args))
    {
        return effects;
    }
    let list = |app: &mut App, kind| {
        if !app.asks.is_empty() {
            app.tell("the question comes first, then this list again", now);
        }
        app.picker = Some(Picker::opened(kind, builtin));
        vec![Effect::Send(Op::List { what: kind })]
    };
    let server = builtin.map_or(Server::Engine, |builtin| builtin.row().server);
    match (server, args.as_str()) {
        (Server::Screen(Screen::Exit), _) => leaving::leave(app),
        (Server::Screen(Screen::Copy), which) => clipboard::copy(app, which, now),
        (Server::Screen(Screen::Vim), _) => vec![Effect::Send(app.switch_vim(now))],
        (Server::List(ListKind::Changes), _) => vec![Effect::Send(Op::List { what: ListKind::Changes })],
        (Server::List(ListKind::Memory), number) => {
            app.wanted = number.parse().ok();
            list(app, ListKind::Memory)
        }
        (Server::List(ListKind::Found), words) => {
            app.picker = Some(Picker::finding(words));
            vec![Effect::Send(Op::Find { words: words.to_owned() })]
        }
        (Server::List(ListKind::Prompts), "") => {
            app.picker = Some(Picker::prompts(&app.prompts));
            Vec::new()
        }
        (Server::List(kind), "") => list(app, kind),
        (Server::List(_) | Server::Engine, _) => vec![Effect::Send(Op::Command { name, args })],
    }
}

pub(super) fn remember(app: &mut App, typed: Typed) -> Vec<Effect> {
    if app.composer.history.push(&typed) { vec![Effect::Send(Op::Remember(typed))] } else { Vec::new() }
}
