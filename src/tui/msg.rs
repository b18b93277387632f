//! What comes into the view state, and what it wants done.

use std::path::PathBuf;

use ratatui::crossterm::event::KeyEvent;

use super::composer::chip::Picture;
use super::terminal::Mouse;
use super::theme::Theme;
use crate::protocol::{AskId, Event, Op};

/// Everything that changes the view state.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time; boxing would cost an allocation for each delta")]
pub enum Msg {
    Key(KeyEvent),
    /// A key that came at once with others: it is part of a text, and no choice.
    Written(KeyEvent),
    Mouse(Mouse),
    /// Pasted text; `image` is the file that it names, when it is an image that exists.
    Paste {
        text: String,
        image: Option<Picture>,
    },
    /// Columns and rows of the screen.
    Resize(u16, u16),
    Focus(bool),
    /// What the terminal sends was cut in two: what comes next may not be what somebody pressed.
    Torn,
    /// The terminal has said what its background is like.
    Background {
        light: bool,
    },
    /// The terminal is gone.
    Eof,
    Engine(Event),
    /// Time has passed; sent when `App::wake` asked for it.
    Tick,
    /// Answers `Effect::Theme`: the theme, or why it cannot be shown.
    Theme(Result<Box<Theme>, String>),
    /// Answers `Effect::ListFiles`, best first.
    Files {
        query: String,
        paths: Vec<String>,
    },
    /// Answers `Effect::OpenEditor`: what was written, or why it failed.
    Edited(Result<String, String>),
    /// Answers `Effect::Rewrite`: the text as it is now; none where nobody changed it.
    Rewritten {
        id: AskId,
        text: Result<Option<String>, String>,
    },
    /// Answers `Effect::EditPlan`: what the file holds now, or why there is nothing new.
    PlanEdited {
        id: AskId,
        text: Result<String, String>,
    },
    /// The branch of the working directory, where there is one.
    Branch(Option<String>),
    /// Answers `Effect::StatusLine`: what the command printed; empty when it failed.
    StatusLine(String),
    /// Answers `Effect::PasteImage`: the picture of the clipboard, or why there is no picture.
    Picture(Result<Picture, String>),
    /// An effect did, or could not do, what it should: a short word to the user.
    Told(String),
}

/// What the run loop does for the view state.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Send(Op),
    OpenEditor(String),
    /// Opens a file in the editor.
    EditFile(PathBuf),
    /// Opens what an edit would write in the editor.
    Rewrite(AskId, String),
    /// Opens the file of a question in the editor.
    EditPlan(AskId, PathBuf),
    Copy(String),
    /// Takes a picture out of the clipboard.
    PasteImage,
    /// Stops doing so.
    LeaveImage,
    /// Answered by `Msg::Theme`.
    Theme {
        name: String,
        /// What `auto` follows.
        light: bool,
    },
    Suspend,
    /// Leaves the program now.
    Exit,
    Redraw,
    ListFiles(String),
    /// Answered by `Msg::Branch`.
    FindBranch,
    /// The viewer let go of what it held.
    FreeMemory,
    /// The composer's text changed: save `App::draft` soon.
    SaveDraft,
    /// A turn ended or a question waits while the user looks elsewhere.
    Notify(String),
    SetTitle(String),
    /// What the program is at, for what is around the terminal.
    Progress(Progress),
    /// Runs the user's status line; `told` is what it gets on its standard input.
    StatusLine {
        command: String,
        told: String,
    },
}

/// What the program is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Idle,
    Working,
    /// A question waits.
    Asking,
    /// The last turn failed.
    Failed,
}
