//! What comes into the view state, and what it wants done.

use std::path::PathBuf;

use ratatui::crossterm::event::KeyEvent;

use super::render::Row;
use crate::permission::Behavior;
use crate::protocol::{Event, Op};

/// Everything that changes the view state.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time; boxing would cost an allocation for each delta")]
pub enum Msg {
    Key(KeyEvent),
    /// Pasted text; `image` is the file that it names, when it is an image that exists.
    Paste {
        text: String,
        image: Option<PathBuf>,
    },
    /// Columns and rows of the screen.
    Resize(u16, u16),
    Focus(bool),
    /// The terminal is gone.
    Eof,
    Engine(Event),
    /// Time has passed; sent when `App::wake` asked for it.
    Tick,
    /// Answers `Effect::ListFiles`, best first.
    Files {
        query: String,
        paths: Vec<String>,
    },
    /// Answers `Effect::List`.
    Listed(Listed),
    /// Answers `Effect::OpenEditor`: what was written, or why it failed.
    Edited(Result<String, String>),
    /// Answers `Effect::RenderTranscript`.
    Transcript(Vec<Row>),
    /// The branch of the working directory, where there is one.
    Branch(Option<String>),
    /// Output of the user's own status line command, one row.
    StatusText(Option<String>),
    /// An effect did, or could not do, what it should: a short word to the user.
    Told(String),
}

/// What the run loop does for the view state.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Send(Op),
    OpenEditor(String),
    /// Copies the last answer, or the code block that the argument names.
    Copy(String),
    Suspend,
    /// Leaves the program now.
    Exit,
    Redraw,
    ListFiles(String),
    List(ListKind),
    /// The transcript's rows are wanted for the pager.
    RenderTranscript,
    /// The composer's text changed: save `App::draft` soon.
    SaveDraft,
    AppendHistory(String),
    /// A turn ended or a question waits while the user looks elsewhere.
    Notify(String),
    SetTitle(String),
}

/// Lists that are gathered outside the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    Sessions,
    Models,
    Rules,
}

/// Rows of a list, as gathered.
#[derive(Debug, Clone, PartialEq)]
pub enum Listed {
    Sessions(Vec<SessionRow>),
    Models(Vec<ModelRow>),
    Rules(Vec<RuleRow>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    pub id: String,
    pub title: String,
    /// For people: `2 hours ago · 14 messages`.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelRow {
    /// As `/model` takes it.
    pub id: String,
    pub detail: String,
    pub current: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RuleRow {
    pub rule: String,
    pub behavior: Behavior,
    /// The file or flag that it comes from.
    pub source: String,
    /// `/permissions revoke` can take it back.
    pub revocable: bool,
}
