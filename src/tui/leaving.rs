//! How the user leaves while something runs in the background: they end with the session, so the user is asked once.

use std::time::Instant;

use super::app::App;
use super::dialog::picker::Picker;
use super::msg::Effect;

/// A way to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    Now,
    /// Once they have ended.
    Later,
}

/// How far the user is with leaving.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Leaving {
    #[default]
    No,
    Asked,
    /// Until the commands have ended; any key takes it back.
    Waits,
}

/// The user wants to leave. Asked a second time, it does without a question.
pub(super) fn leave(app: &mut App) -> Vec<Effect> {
    if app.status.background == 0 || app.closing || app.leaving != Leaving::No {
        return app.quit();
    }
    app.leaving = Leaving::Asked;
    app.picker = Some(Picker::leaving(app.status.background));
    Vec::new()
}

/// What was chosen.
pub(super) fn chosen(app: &mut App, how: Leave, now: Instant) -> Vec<Effect> {
    match how {
        Leave::Now => app.quit(),
        Leave::Later => {
            app.leaving = Leaving::Waits;
            app.tell("exiting once the background tasks have ended · any key stays", now);
            Vec::new()
        }
    }
}

/// Somebody is at the keyboard.
pub(super) fn pressed(app: &mut App, now: Instant) {
    if app.leaving == Leaving::Waits {
        app.leaving = Leaving::No;
        app.tell_briefly("staying", now);
    }
}

/// Leaves if that is due: an agent at work is not cut off. A question about commands that have ended is no longer asked.
pub(super) fn follow(app: &mut App, now: Instant) -> Vec<Effect> {
    if app.leaving == Leaving::Asked && app.status.background == 0 && !app.closing {
        (app.leaving, app.picker) = (Leaving::No, None);
        app.tell_briefly("the background tasks have ended: you can exit now", now);
    }
    if app.leaving == Leaving::Waits && app.status.background == 0 && !app.spinner.busy() && !app.closing {
        return app.quit();
    }
    Vec::new()
}
