//! What was typed behind the program's name.

use std::time::Instant;

use super::app::App;
use super::msg::Effect;
use super::update::{command, known, remember};
use crate::protocol::{Delivery, Op};

/// Does what was typed behind the program's name, now that all commands are known.
pub(super) fn first(app: &mut App, now: Instant) -> Vec<Effect> {
    let Some(line) = app.first.take() else { return Vec::new() };
    match known(app, &line) {
        Ok(Some((name, builtin, args))) => {
            let mut effects = remember(app, line.as_str().into());
            effects.extend(command(app, name, builtin, args, now));
            effects
        }
        Ok(None) => {
            let mut effects = remember(app, line.as_str().into());
            let delivery = Delivery::AfterTurn;
            effects.push(Effect::Send(Op::Prompt {
                text: line,
                attachments: Vec::new(),
                delivery,
                thinking: None,
                data: Vec::new(),
            }));
            effects
        }
        Err(unknown) => {
            app.composer.restore(&line);
            app.tell(unknown, now);
            Vec::new()
        }
    }
}
