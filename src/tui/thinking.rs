//! How hard the model thinks: what the status line says of it, and what the keys do.

use ratatui::text::Span;

use super::app::App;
use super::composer::Composer;
use super::msg::Effect;
use super::theme::Theme;
use crate::protocol::{Op, ThinkingInfo};
use crate::thinking::{Keywords, Level};

/// What the engine said last, and what the prompt that is being written asks for.
#[derive(Debug, Clone, Default)]
pub struct Thinking {
    info: Option<ThinkingInfo>,
    /// The keyword of the prompt.
    keyword: Option<Level>,
    /// Levels that were sent and not confirmed yet: what the engine says of earlier ones is old.
    ahead: u32,
}

/// Which way a key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    More,
    Less,
}

impl Thinking {
    /// Takes what the engine says.
    pub(super) fn set(&mut self, info: ThinkingInfo) {
        match &self.info {
            Some(own) if self.ahead > 1 && own.session != info.session => self.ahead -= 1,
            _ => (self.ahead, self.info) = (0, Some(info)),
        }
    }

    /// Words to look for in the prompt: none while a variable decides anyway.
    pub(super) fn keywords(&self) -> Keywords {
        let info = self.info.as_ref().filter(|info| info.locked.is_none());
        info.map(|info| info.keywords.clone()).unwrap_or_default()
    }

    /// Takes over what the prompt asks for.
    pub(super) fn read(&mut self, composer: &Composer) {
        self.keyword = composer.keyword();
    }

    /// What the next prompt is thought about with, as far as the engine has told.
    pub(super) fn asked(&self) -> Level {
        self.keyword.or(self.info.as_ref().map(|info| info.asked)).unwrap_or_default()
    }

    /// The part of the status line; none when the model does not think, and nobody asked it to.
    pub(super) fn part(&self, theme: &Theme) -> Option<Span<'static>> {
        let info = self.info.as_ref()?;
        let (asked, once) = match self.keyword {
            Some(level) => (level, " once"),
            None => (info.asked, ""),
        };
        let level = info.supported.iter().copied().filter(|can| *can <= asked).max().unwrap_or(Level::None);
        Some(match (asked, level) {
            (Level::None, _) => return None,
            (_, Level::None) => Span::styled("cannot think", theme.warning),
            (asked, level) if asked == level => Span::styled(format!("{}{once}", level.name()), theme.thinking),
            (_, level) => Span::styled(format!("{}{once}, at most", level.name()), theme.warning),
        })
    }
}

/// Goes to another level at once; the engine follows.
pub(super) fn step(app: &mut App, way: Way, now: std::time::Instant) -> Vec<Effect> {
    let Some(info) = app.status.thinking.info.as_mut() else { return Vec::new() };
    if let Some(variable) = &info.locked {
        let text = format!("locked by {variable}");
        app.tell_briefly(text, now);
        return Vec::new();
    }
    if info.supported.len() < 2 {
        app.tell_briefly("this model cannot think", now);
        return Vec::new();
    }
    let from = info.session.unwrap_or(info.level);
    let level = match way {
        Way::More => from.up(&info.supported),
        Way::Less => from.down(&info.supported),
    };
    (info.level, info.asked, info.session) = (level, level, Some(level));
    app.status.thinking.ahead += 1;
    if level == Level::None {
        app.tell_briefly("no thinking", now);
    } else {
        // What an earlier press said no longer holds.
        app.hint = None;
    }
    vec![Effect::Send(Op::SetThinking { level: Some(level) })]
}

/// A level chosen by `/thinking` while a turn runs; `None` for an unknown word, which the engine explains.
pub(super) fn chosen(app: &mut App, word: &str) -> Option<Vec<Effect>> {
    let info = app.status.thinking.info.as_ref()?;
    let level = match word {
        "auto" => None,
        word => Some(word.parse().ok()?),
    };
    info.locked.is_none().then(|| vec![Effect::Send(Op::SetThinking { level })])
}
