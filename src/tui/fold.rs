//! Folds events into the view: the one place that reads them. What one tells is passed to its owners as values.

use std::path::Path;
use std::time::{Duration, Instant};

use super::app::App;
use super::cell::compaction;
use super::cell::note::{Note, Retry};
use super::cell::words;
use super::dialog::Dialog;
use super::dialog::picker::Picker;
use super::keymap::Keymap;
use super::lists;
use super::msg::Effect;
use super::pager::Page;
use super::panel::Panel;
use super::review::Review;
use super::transcript::GrowKind;
use super::viewer;
use crate::message::{Block, Display, Kind, Message, TodoStatus};
use crate::protocol::report::{Ended, Freed, Report};
use crate::protocol::{
    Ask, Compaction, Delta, Event, HistoryItem, Interface, Item, ListKind, Listed, ModeChange, Question, SessionInfo,
    Thinking, Turn, TurnEnd,
};
use crate::report;
use crate::session::entry::Seq;

/// Where the text in the composer comes from.
const DRAFTED: &str = "the prompt below was left unsent when cocode last ended here · Ctrl+C clears it";

impl App {
    /// Folds one event of the engine.
    pub(super) fn apply(&mut self, event: Event, now: Instant) -> Vec<Effect> {
        match event {
            Event::Session(info) => return self.begin(info, now),
            Event::Turn(Turn::Started) => {
                self.spinner.turn_started(now);
                self.status.api.asked(now);
                self.transcript.turn_started();
            }
            // A person asks for what it cost, and no terminal answers for another program.
            Event::Turn(Turn::Spent { .. }) | Event::Call { .. } => {}
            Event::Turn(Turn::Ended { end, millis, .. }) => {
                return self.turn_ended(end, Duration::from_millis(millis), now);
            }
            Event::Delta(delta) => self.delta(delta, now),
            Event::Item(item) => self.item(item, now),
            Event::Ask(ask) => return self.ask(ask, now),
            Event::AskClosed { id } => self.asks.close(id, now),
            Event::Mode(ModeChange::Changed { mode }) => self.status.mode = mode,
            Event::Mode(ModeChange::PlanEntered { .. } | ModeChange::PlanExited { .. }) => {}
            Event::Thinking(Thinking::Level(info)) => self.status.thinking.set(info),
            Event::Thinking(Thinking::Complete { tokens }) => self.transcript.thought(tokens, now),
            Event::Usage(mut usage) => {
                self.breaks.extend(usage.cache.take().map(|broke| *broke));
                self.status.usage = Some(usage);
            }
            Event::Compaction(step) => self.compaction(step, now),
            Event::Retrying { attempt, of, delay_ms, reason } => {
                let due = now + Duration::from_millis(delay_ms);
                self.spinner.retrying(attempt, of, due);
                self.transcript.retrying(Retry { attempt, of, reason, due, over: false }, now);
            }
            // A list that is done has nothing more to say.
            Event::Background { running, .. } => {
                self.status.background = running.len();
                return self.panel.as_mut().and_then(|panel| panel.ask(None)).into_iter().collect();
            }
            Event::Todos { items } => {
                let open = items.iter().any(|item| item.status != TodoStatus::Completed);
                self.todos = if open { items } else { Vec::new() };
            }
            Event::Queue { items } => self.queue = items,
            Event::Notice { text } => self.transcript.tell(Note::Notice(text)),
            Event::Report(Report::Ended(ended)) => {
                let ended = Ended { commands: self.commands, ..ended };
                self.receipt = Some(report::markdown(&Report::Ended(ended)));
            }
            // Its receipt is drawn.
            Event::Report(Report::Freed(Freed::Summarized { .. })) => {
                self.transcript.tell(Note::Notice(report::compaction::SUMMARIZED.to_owned()));
            }
            // While the agent writes, what comes between would be far up by the time that it is read.
            Event::Report(found) if self.has_panel(&found) => {
                let (open, live) = (self.panel.take(), !self.linear);
                self.panel = Panel::of(&found).map(|panel| panel.renewed(open, live, now));
            }
            // It was asked for before the panel was closed.
            Event::Report(Report::Tasks(_)) if std::mem::take(&mut self.closed_panel) => {}
            Event::Report(report) => self.transcript.tell(Note::Notice(report::markdown(&report))),
            Event::Error { text, restore } => {
                self.transcript.tell(Note::Error(text));
                restore.into_iter().for_each(|text| self.composer.restore(&text));
            }
            Event::Hook { ran } => ran.word().into_iter().for_each(|word| self.transcript.tell(Note::Aside(word))),
            Event::Model(model) => {
                self.transcript.found(&model);
                self.status.model = Some(model);
            }
            Event::Commands { registry } => {
                self.options.commands = registry;
                self.composer.renew(&self.options.commands);
                return super::first::first(self, now);
            }
            Event::Task(task) => self.transcript.history.task(task, now),
            Event::Listed(listed) => return self.listed(listed, now),
            Event::Interface(interface) => self.looks_like(interface, now),
            Event::Done { .. } => {}
            Event::Closed => {
                self.spinner.stop();
                return vec![Effect::Exit];
            }
        }
        Vec::new()
    }

    /// Whether what was found is shown above the composer: while the agent works, and what changes by itself.
    fn has_panel(&self, found: &Report) -> bool {
        match found {
            Report::Tasks(_) if self.closed_panel => false,
            Report::Tasks(_) if !self.linear => true,
            found => self.spinner.in_turn() && Panel::of(found).is_some(),
        }
    }

    fn begin(&mut self, info: SessionInfo, now: Instant) -> Vec<Effect> {
        self.spinner.stop();
        self.status.begin(&info);
        self.back = None;
        if self.fullscreen {
            self.transcript.clear_screen(self.name.is_empty());
        }
        self.transcript.begin(&info, now);
        if std::mem::take(&mut self.drafted) {
            self.transcript.tell(Note::Aside(DRAFTED.to_owned()));
        }
        self.transcript.fold_prompts(|text| self.composer.folded(text));
        let folder = info.cwd.file_name().map(|name| name.to_string_lossy().into_owned());
        self.name = super::paint::cut(&info.title.or(folder).unwrap_or_default(), 60);
        self.cwd = info.cwd;
        self.queue.clear();
        self.todos.clear();
        self.prompts.clear();
        self.panel = None;
        self.commands = 0;
        // A list that is still being gathered, as at the start, will be of this session.
        self.picker = self.picker.take().filter(Picker::waits);
        for item in info.history {
            match item {
                HistoryItem::Message { seq, message } => {
                    self.commands += commands(&message);
                    self.note_prompt(seq, &message);
                }
                HistoryItem::Shell { .. } => self.commands += 1,
                _ => {}
            }
        }
        vec![Effect::FindBranch]
    }

    fn turn_ended(&mut self, end: TurnEnd, took: Duration, now: Instant) -> Vec<Effect> {
        self.spinner.stop();
        self.transcript.turn_ended(end, took, now);
        self.tell_breaks();
        self.status.turns += 1;
        self.status.api.answered(now);
        self.failed = end == TurnEnd::Failed;
        let mut effects = vec![Effect::FindBranch];
        if self.calls_back() && end != TurnEnd::Interrupted {
            effects.push(Effect::Notify(format!("{}: the turn has ended", self.name)));
        }
        effects
    }

    /// Says what the turn paid for twice, the dearest first.
    fn tell_breaks(&mut self) {
        let breaks = std::mem::take(&mut self.breaks);
        if let Some(most) = breaks.iter().max_by_key(|broke| broke.again) {
            self.transcript.tell(Note::Aside(report::cache::line(most, breaks.len() - 1)));
        }
    }

    fn delta(&mut self, delta: Delta, now: Instant) {
        match delta {
            Delta::Text { text } => {
                self.spinner.received(text.len() as u64, "Writing");
                self.transcript.grow(&text, GrowKind::Reply, now);
            }
            Delta::Thinking { text } => {
                self.spinner.received(text.len() as u64, "Thinking");
                self.transcript.grow(&text, GrowKind::Thinking, now);
            }
            Delta::ToolArgs { name, bytes } => {
                self.spinner.received(bytes, words::preparing(&name));
                self.transcript.answered();
            }
            Delta::ToolOutput { call, text } => self.transcript.output(&call, &text),
            Delta::Discarded { reason } => self.transcript.discarded(Some(&reason), now),
        }
    }

    fn item(&mut self, item: Item, now: Instant) {
        match item {
            Item::Message { seq, message } => {
                self.spinner.say(self.status.waits());
                self.note_prompt(seq, &message);
                for block in &message.blocks {
                    if let Block::ToolResult(result) = block
                        && let Some(Display::Diff(diff)) = &result.display
                    {
                        self.status.lines.0 += u64::from(diff.added);
                        self.status.lines.1 += u64::from(diff.removed);
                    }
                }
                match message.kind {
                    Kind::Reply => self.status.api.answered(now),
                    Kind::ToolResult => self.status.api.asked(now),
                    _ => {}
                }
                self.transcript.message(seq, &message, now);
                self.commands += commands(&message);
                if message.kind == Kind::Prompt
                    && let Some(folded) = self.composer.folded(&message.text())
                {
                    self.transcript.fold_prompt(folded);
                }
            }
            Item::CallStarted { call, tool, title } => {
                self.spinner.say(words::doing(&tool));
                self.transcript.call_started(call, tool, &title, now);
            }
            Item::ShellStarted { command } => {
                self.spinner.shell_started(command.clone(), now);
                self.transcript.shell_started(command, now);
            }
            Item::ShellDone { command, output, code } => {
                self.commands += 1;
                self.spinner.shell_done();
                self.transcript.shell_done(command, (output, code), now);
            }
            Item::FilesRestored { how, turn, restored, merged, refused, by, unseen } => {
                self.transcript.restored(how, turn, (&restored, &by), &merged, &refused, &unseen);
            }
            Item::Rewound { to, prompt } => {
                self.prompts.retain(|(seq, _)| *seq < to);
                self.transcript.aside(format!("rewound to before: {}", prompt.lines().next().unwrap_or_default()));
                self.composer.restore(&prompt);
            }
            Item::Note { text } => self.transcript.aside(text),
        }
    }

    fn compaction(&mut self, step: Compaction, now: Instant) {
        compaction::note(&step).into_iter().for_each(|note| self.transcript.tell(note));
        match step {
            Compaction::Started { .. } => self.spinner.compacting(now),
            Compaction::Progress { phase, received } => self.spinner.compacted_so_far(phase, received),
            Compaction::Completed { receipt, summary } => {
                self.spinner.compacted();
                self.transcript.history.compacted(receipt, summary);
            }
            Compaction::Failed { .. } => self.spinner.compacted(),
            Compaction::MicroApplied { .. }
            | Compaction::SessionMemoryApplied { .. }
            | Compaction::ThresholdExceeded { .. } => {}
        }
    }

    fn looks_like(&mut self, interface: Interface, now: Instant) {
        let Interface { theme, notifications, highlight, reduced_motion, vim, rebuild, keys, status_line } = interface;
        self.use_vim(vim);
        *self.transcript.rebuilds() = rebuild;
        self.use_status_line(status_line, now);
        match Keymap::new(&keys) {
            Ok(keymap) => self.options.keymap = keymap,
            Err(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                self.tell(format!("[keys]: {}", errors.join("; ")), now);
            }
        }
        if self.options.highlight != highlight {
            // The theme is read again with its colors for code, or without.
            self.forget_looks();
        }
        self.options.theme_name = theme;
        self.options.notifications = notifications;
        self.options.highlight = highlight;
        self.options.reduced_motion = reduced_motion;
    }

    fn listed(&mut self, listed: Listed, now: Instant) -> Vec<Effect> {
        match listed {
            Listed::History(prompts) => self.set_history(prompts),
            Listed::Changes(changes) => viewer::open_page(self, Page::Changes(Review::new(changes))),
            Listed::Resources(rows) => self.composer.resources = rows,
            Listed::Agent(log) => self.transcript.agent_read(&log, now),
            Listed::Earlier(read) => {
                self.transcript.earlier_read(&read, now);
                return viewer::show_transcript(self, now);
            }
            listed => {
                // `--resume` without a value asks for the sessions before there is a picker.
                if matches!(listed, Listed::Sessions(_)) && self.picker.is_none() {
                    self.picker = Some(Picker::waiting(ListKind::Sessions));
                }
                let searched = self.searched.take_if(|_| matches!(listed, Listed::Sessions(_)));
                let wanted = self.wanted.take();
                let choice = self.picker.as_mut().and_then(|picker| {
                    picker.listed(listed);
                    searched.into_iter().for_each(|words| picker.paste(&words));
                    picker.row(wanted?)
                });
                return choice.map_or_else(Vec::new, |choice| lists::chosen(self, choice, now));
            }
        }
        Vec::new()
    }

    fn ask(&mut self, mut ask: Ask, now: Instant) -> Vec<Effect> {
        if let Question::Permission { title, diff: Some(_), .. } = &mut ask.question
            && let Ok(inside) = Path::new(title.as_str()).strip_prefix(&self.cwd)
            && !inside.as_os_str().is_empty()
        {
            *title = inside.display().to_string();
        }
        let dialog = Dialog::new(ask);
        let headline = dialog.headline().to_owned();
        self.asks.push(dialog, now);
        if self.calls_back() { vec![Effect::Notify(headline)] } else { Vec::new() }
    }

    /// Whether the user looks elsewhere, and wants to be told.
    fn calls_back(&self) -> bool {
        !self.focused && self.options.notifications
    }

    fn note_prompt(&mut self, seq: Seq, message: &Message) {
        if message.kind == Kind::Prompt && message.user_visible {
            // As much as a row of the list shows.
            self.prompts.push((seq, super::paint::cut(&message.text(), 300)));
        }
    }
}

/// Commands that a message has results of.
fn commands(message: &Message) -> u64 {
    message.results().filter(|result| matches!(result.display, Some(Display::Command { .. }))).count() as u64
}
