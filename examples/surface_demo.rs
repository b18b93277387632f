//! Shows the inline surface by hand: every line that Enter ends goes into history.
//!
//! `many` inserts a thousand rows at once, `pager` covers the screen until a key, `panic` panics; Ctrl+Z suspends,
//! Ctrl+L redraws, Ctrl+D exits. An argument is the number of rows of the live region.

use cocode::stdx::panics;
use cocode::tui::render::Row;
use cocode::tui::terminal::{Input, Keyboard, Queries, Session, Signal, Surface, Traits, Tty, away, signals, stop};
use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;

fn main() -> std::process::ExitCode {
    match panics::reported(demo) {
        Some(Ok(())) => 0.into(),
        Some(Err(error)) => {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("error: {error}\n").as_bytes());
            1.into()
        }
        None => 101.into(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn demo() -> std::io::Result<()> {
    let height = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(4);
    let (Some(input), Some(output)) = (Tty::of(std::io::stdin())?, Tty::of(std::io::stdout())?) else {
        return Err(std::io::Error::other("not a terminal"));
    };
    let size_source = Tty::of(std::io::stdout())?;
    let session =
        Session::open(Tty::of(std::io::stdin())?.ok_or_else(|| std::io::Error::other("no terminal"))?.into())?;
    let queries = Queries::default();
    let mut surface = Surface::open(output, Traits::detect(|name| std::env::var(name).ok()), queries.clone());
    let (sender, mut inputs) = tokio::sync::mpsc::unbounded_channel();
    let keyboard = Keyboard::start(input.into(), queries, sender.clone())?;
    let task = signals(move || cocode::tui::terminal::Output::size(size_source.as_ref()?), sender)?;

    let (mut text, mut count, mut rows, mut log) = (String::new(), 0, Vec::new(), String::new());
    loop {
        surface.measure();
        surface.frame(&rows, height, |area, buffer| live(area, buffer, &text, &log))?;
        rows.clear();
        let Some(input) = inputs.recv().await else { break };
        match input {
            Input::Key(key) | Input::Written(key) if surface.in_overlay() => {
                log = format!("{:?} closed the pager", key.code);
                surface.leave_overlay()?;
            }
            Input::Key(key) | Input::Written(key) if key.modifiers.contains(KeyModifiers::CONTROL) => match key.code {
                KeyCode::Char('d') => break,
                KeyCode::Char('l') => surface.redraw(),
                KeyCode::Char('z') => away(&mut surface, &session, &keyboard, stop)??,
                code => log = format!("ctrl {code:?}"),
            },
            Input::Key(key) | Input::Written(key) => match key.code {
                KeyCode::Char(c) => text.push(c),
                KeyCode::Enter => {
                    let line = std::mem::take(&mut text);
                    match line.as_str() {
                        "panic" => panic!("as asked"),
                        "pager" => surface.enter_overlay()?,
                        _ => {}
                    }
                    let many = if line == "many" { 1000 } else { 1 };
                    rows.extend((count..count + many).map(|n| Row::from(Line::from(format!("row {n}: {line}")))));
                    count += many;
                }
                code => log = format!("{code:?}"),
            },
            Input::Paste(paste) => log = format!("pasted {} bytes", paste.len()),
            Input::Resize(size) => surface.resize(size),
            Input::Mouse(mouse) => log = format!("{mouse:?}"),
            Input::Torn => log = "torn".to_owned(),
            Input::Focus(focus) => log = format!("focus {focus}"),
            Input::Report(report) => surface.report(&report)?,
            Input::Signal(Signal::Continue) => {
                session.resume()?;
                surface.redraw();
            }
            Input::Signal(_) | Input::Eof => break,
        }
        surface.draw_overlay(|area, buffer| {
            buffer.set_string(0, 0, format!("pager {}x{}", area.width, area.height), Style::new());
            None
        })?;
    }
    surface.release()?;
    drop(keyboard);
    drop(session);
    task.abort();
    Ok(())
}

fn live(area: Rect, buffer: &mut Buffer, text: &str, log: &str) -> Option<Position> {
    let border = "─".repeat(usize::from(area.width));
    let dim = Style::new().fg(Color::DarkGray);
    let last = area.height - 1;
    buffer.set_string(0, 0, &border, dim);
    buffer.set_string(0, last.min(1), format!("> {text}"), Style::new());
    let column = u16::try_from(Line::from(text).width() + 2).unwrap_or(u16::MAX);
    if last > 1 {
        buffer.set_string(0, last - 1, &border, dim);
        buffer.set_string(0, last, format!("LIVE {}x{} {log}", area.width, area.height), dim);
    }
    Some(Position::new(column.min(area.width - 1), last.min(1)))
}
