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
/// Most rows of the scrollback that are shown again on the other screen.
const RECENT: usize = 60;

impl<O: Output> Front<O> {
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        (self.frame, self.framed, self.behind) = (Frame::Not, Some(now), false);
        let Size { width, height } = self.surface.measure();
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
            let (app, recent) = (&self.app, self.recent.make_contiguous());
            self.surface.draw_overlay(|area, buf| match covered {
                true => view::draw_over(app, area, buf),
                false => {
                    let mut rows = recent.to_vec();
                    rows.extend(app.transcript.live(area.width, area.height, app.theme(), now));
                    view::draw(app, &rows, area, buf, now)
                }
            })?;
            self.shown();
            return Ok(());
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
        self.recent.extend(rows.iter().skip(rows.len().saturating_sub(RECENT)).cloned());
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
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

    /// Has the scrollback drawn again for another width, where the user wants that.
    pub(super) fn rebuild(&mut self) {
        let width = self.surface.measure().width;
        let other = self.built.replace(width).is_some_and(|built| built != width);
        if other && *self.app.transcript.rebuilds() && !self.surface.traits().plain {
            self.surface.rebuild();
            self.app.transcript.hand_out_again();
            self.recent.clear();
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
