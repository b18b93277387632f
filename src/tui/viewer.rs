//! Opens what is scrolled through, and gives it its rows: the transcript, or a text on the whole screen.

use std::time::Instant;

use super::app::App;
use super::cell::Detail;
use super::msg::Effect;
use super::pager::{Page, Pager};
use super::transcript::Want;
use super::view;
use crate::protocol::Op;

/// Lines of output below a call that runs.
const LINES: usize = 5;

/// Opens a text on the whole screen, at its start.
pub(super) fn open_page(app: &mut App, page: Page) {
    let rows = match &page {
        Page::Keys => super::keys::rows(app),
        Page::Changes(review) => review.rows(usize::from(app.size.0), &app.options.theme).0,
        Page::Diff(diff) => super::changes::diff(app, diff),
    };
    app.close_pager();
    app.pager = Some(Pager::text(page, rows));
    show_review(app);
}

/// Makes the rows of an open review again.
pub(super) fn show_review(app: &mut App) {
    let (width, height) = app.size;
    if let Some(pager) = &mut app.pager
        && let Some(Page::Changes(review)) = pager.page()
    {
        let (rows, focus) = review.rows(usize::from(width), &app.options.theme);
        pager.show(rows, focus, height);
    }
}

pub(super) fn open_transcript(app: &mut App, now: Instant) -> Vec<Effect> {
    let mut effects: Vec<Effect> = app.close_back().into_iter().collect();
    app.pager = Some(Pager::open());
    effects.extend(show_transcript(app, now));
    effects
}

/// Gives what shows the transcript, where something is open, the transcript as it is now, and asks for what it wants of the
/// log.
pub(super) fn show_transcript(app: &mut App, now: Instant) -> Vec<Effect> {
    let height = height(app);
    let detail = if app.pager.is_some() { Detail::Whole } else { Detail::Live { lines: LINES, now } };
    let Some(pager) = open_pager(&mut app.pager, &mut app.back).filter(|pager| pager.live()) else { return Vec::new() };
    let view = app.transcript.view(app.size.0, &app.options.theme, detail);
    pager.set_view(view, (now, app.transcript.revision()), height);
    let mut effects: Vec<Effect> =
        app.transcript.unread_agents().into_iter().map(|id| Effect::Send(Op::Agent { id })).collect();
    let first = app.transcript.earlier.unread().then_some(Want::Back);
    effects.extend(first.and_then(|want| read_log(app, want)));
    effects.extend(want_log(app));
    effects
}

/// Shows what has changed, when it is time for that.
pub(super) fn refresh(app: &mut App, now: Instant) -> Vec<Effect> {
    let due = open_pager(&mut app.pager, &mut app.back).and_then(|pager| pager.due(app.transcript.revision()));
    if due.is_some_and(|due| due <= now) { show_transcript(app, now) } else { Vec::new() }
}

/// What is scrolled through: what covers the screen, or else what was scrolled back to on a screen of its own.
fn open_pager<'a>(over: &'a mut Option<Pager>, back: &'a mut Option<Box<Pager>>) -> Option<&'a mut Pager> {
    over.as_mut().or(back.as_deref_mut())
}

/// Rows of the screen that it has.
fn height(app: &App) -> u16 {
    if app.pager.is_some() { app.size.1 } else { view::body(app) }
}

/// What it wants of the log for what is in view.
pub(super) fn want_log(app: &mut App) -> Option<Effect> {
    let height = height(app);
    let want = open_pager(&mut app.pager, &mut app.back)?.take_want(height)?;
    read_log(app, want)
}

fn read_log(app: &mut App, want: Want) -> Option<Effect> {
    app.transcript.earlier.want(want).map(|part| Effect::Send(Op::Earlier { part }))
}
