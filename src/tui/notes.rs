//! A prompt that begins with `#`: a line for a memory file.

use super::app::App;
use super::composer::Mode;
use super::msg::Effect;
use super::update::remember;
use crate::protocol::Op;

/// What is to be remembered, where a line that somebody typed says so: a `#` alone, as a heading has too, and one line.
fn note(text: &str) -> Option<&str> {
    let note = text.trim().strip_prefix('#').filter(|rest| !rest.starts_with(['#', '!']))?.trim();
    (!note.is_empty() && !note.contains('\n')).then_some(note)
}

/// Takes what is in the composer where it is to be remembered. Where it goes is asked next.
pub(super) fn written(app: &mut App) -> Option<Vec<Effect>> {
    let typed = app.composer.editor.draft().typed().trimmed();
    // What was pasted was not written to be remembered.
    let args = format!("add {}", note(&typed.text).filter(|_| typed.folds.is_empty())?);
    if app.composer.mode == Mode::Shell {
        return None;
    }
    app.close_panel();
    app.composer.take();
    let mut effects = remember(app, typed);
    effects.push(Effect::Send(Op::Command { name: "memory".to_owned(), args }));
    Some(effects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_one_mark_is_remembered() {
        for (text, want) in [
            ("# use tabs", Some("use tabs")),
            (" #use tabs ", Some("use tabs")),
            ("#", None),
            ("## Heading", None),
            ("#!/bin/sh", None),
            ("# Heading\nand text", None),
            ("fix #12", None),
        ] {
            assert_eq!(note(text), want, "{text}");
        }
    }
}
