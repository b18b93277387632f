//! What the loop draws: frames of the live region with the rows that became final, and the viewer over them.

use std::io;
use std::time::Instant;

use ratatui::layout::Size;

use super::{Frame, Front};
use crate::tui::app::App;
use crate::tui::render::highlight::beside::{Job, Painter};
use crate::tui::render::markdown::Share;
use crate::tui::terminal::{Hold, Output};
use crate::tui::view;

/// All that is shown while a window of tmux is dragged: one row, short enough for any screen, and nothing to be pushed out.
const MOVING: &str = "resizing…";
/// Rows of the shell's screen that are not the session's when it ends: a prompt, and what is said of the session.
const NOT_OURS: u16 = 6;

impl<O: Output> Front<O> {
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        (self.frame, self.framed, self.behind) = (Frame::Not, Some(now), false);
        let size = self.surface.measure();
        let Size { width, height } = size;
        if self.app.fullscreen {
            return self.draw_screen(size, now);
        }
        self.built.get_or_insert(width);
        // tmux wraps the rows again long before it tells of a size, and what is written for another size is then out of reach.
        let tmux = self.surface.traits().tmux;
        let busy = tmux && self.app.spinner.busy();
        let covered = self.app.covers();
        let moving = tmux && self.resized.is_some();
        let dragged = moving && self.surface.in_overlay();
        match (covered || dragged || self.list_covers(), self.surface.in_overlay()) {
            (true, false) => {
                self.surface.enter_overlay()?;
                if !self.surface.in_overlay() && self.app.pager.is_some() {
                    self.app.close_pager();
                    self.app.tell("this terminal has no alternate screen", now);
                }
            }
            (false, true) => self.surface.leave_overlay()?,
            _ => {}
        }
        if self.surface.in_overlay() {
            return self.draw_over(now);
        }
        // Not on another screen: when that comes up, tmux forgets which row of its history the first one here continues.
        self.waiting = moving && (busy || self.waiting);
        if self.waiting {
            self.app.asks.hidden();
            self.surface.hold(Hold::Low);
            let style = self.app.theme().dim;
            return self.surface.frame(&[], 1, |area, buf| {
                buf.set_string(area.x, area.y, MOVING, style);
                None
            });
        }
        let hold = match self.resized {
            Some(_) => Hold::Low,
            // A frame that nobody has asked for may come before the size is told.
            None if busy => Hold::Anchored,
            None => Hold::Loose,
        };
        self.surface.hold(hold);
        let App { transcript, options, .. } = &mut self.app;
        let rows = transcript.take_committed(width, &options.theme, Share::FRAME);
        self.behind = transcript.scrollback.behind();
        let jobs = transcript.scrollback.take_jobs();
        let app = &self.app;
        let live = app.transcript.live(width, view::live_room(app, width, height, hold), app.theme(), now);
        // A terminal without another screen shows what would cover it among the rest.
        let wanted = if covered { height } else { view::height(app, live.len() as u16, width, height) };
        self.surface.frame(&rows, wanted, |area, buf| match covered {
            true => view::draw_over(app, area, buf),
            false => view::draw(app, &live, area, buf, now),
        })?;
        self.shown();
        if let Some((stream, jobs)) = jobs {
            self.paint(stream, jobs);
        }
        Ok(())
    }

    /// Draws the whole session on the alternate screen. What is handed out is what was scrolled off its end.
    fn draw_screen(&mut self, size: Size, now: Instant) -> io::Result<()> {
        self.surface.enter_overlay()?;
        let App { transcript, options, back, pager, .. } = &mut self.app;
        // What is scrolled through stays in memory.
        if back.is_none() && pager.is_none() {
            transcript.scrollback.keep(size.height.into());
            let same = self.laid.as_ref().is_some_and(|(laid, theme)| *laid == size && **theme == options.theme);
            let again = !same && self.laid.replace((size, Box::new(options.theme.clone()))).is_some();
            if again {
                transcript.hand_out_end_again(size.width, size.height, &options.theme);
            }
            transcript.take_committed(size.width, &options.theme, if again { Share::ALL } else { Share::FRAME });
            self.behind = transcript.scrollback.behind();
            if let Some((stream, jobs)) = transcript.scrollback.take_jobs() {
                self.paint(stream, jobs);
            }
        }
        self.draw_over(now)
    }

    /// Draws the alternate screen.
    fn draw_over(&mut self, now: Instant) -> io::Result<()> {
        let (app, covered) = (&self.app, self.app.covers());
        self.surface.draw_overlay(|area, buf| match covered {
            true => view::draw_over(app, area, buf),
            false => {
                let rows = app.transcript.end(area.width, area.height, app.theme(), now);
                view::draw(app, &rows, area, buf, now)
            }
        })?;
        self.shown();
        Ok(())
    }

    /// Has the end of the session left on the shell's screen, where it was not there before.
    pub(super) fn leave_behind(&mut self) {
        if self.app.fullscreen {
            let Size { width, height } = self.surface.size();
            let rows = height.saturating_sub(NOT_OURS).max(1);
            let rows = self.app.transcript.end(width, rows, self.app.theme(), Instant::now());
            self.surface.leave_behind(rows);
        }
    }

    /// Has the scrollback drawn again for another width, where the user wants that.
    pub(super) fn rebuild(&mut self) {
        let width = self.surface.measure().width;
        let other = self.built.replace(width).is_some_and(|built| built != width);
        if other && !self.app.fullscreen && *self.app.transcript.rebuilds() && !self.surface.traits().plain {
            self.surface.rebuild();
            self.app.transcript.hand_out_again();
        }
    }

    /// Whether a list is shown on the other screen: below the rows here it would push some out, and leave a hole at its end.
    fn list_covers(&self) -> bool {
        let (app, size) = (&self.app, self.surface.size());
        let list = app.picker.is_some() || app.composer.popup().is_some();
        let idle = app.asks.is_empty() && !app.spinner.busy();
        list && idle
            && (self.surface.in_overlay() || view::height(app, 0, size.width, size.height) > self.surface.rows())
    }

    /// What is on the screen can be read from now on.
    fn shown(&mut self) {
        let size = self.surface.size();
        if self.app.drawn((size.width, size.height), Instant::now()) {
            self.frame = self.frame.max(Frame::Soon);
        }
    }

    /// Has code coloured beside the loop, or on the spot where that cannot be had.
    fn paint(&mut self, stream: u64, jobs: Vec<Job>) {
        if self.painter.is_none() {
            let colours = self.colours.clone();
            // The loop may have ended meanwhile; then nobody wants them.
            self.painter = Painter::start(move |lines| drop(colours.send(lines)))
                .inspect_err(|error| tracing::warn!(%error, "cannot start the highlighting thread"))
                .ok();
        }
        if !self.painter.as_ref().is_some_and(|painter| painter.ask(stream, jobs)) {
            self.app.transcript.scrollback.colour_here();
            self.frame = self.frame.max(Frame::Soon);
        }
    }
}
