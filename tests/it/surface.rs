//! The inline surface: bytes through an emulator, and a program on a real pseudo-terminal.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use cocode::tui::render::Row;
use cocode::tui::terminal::{Hold, Output, Queries, Report, Surface, Traits};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::{Color, Style};
use ratatui::text::Line;

use crate::support::cargo;
use crate::support::screen::{Launch, Screen, all_rows, lossy_scrolls};

/// An emulator that a surface writes to, and the bytes that it got; also the size that it tells where that is out of date.
#[derive(Clone)]
struct Memory(Arc<Mutex<(vt100::Parser, Vec<u8>, usize)>>, Option<Size>);

impl Memory {
    fn lock(&self) -> MutexGuard<'_, (vt100::Parser, Vec<u8>, usize)> {
        self.0.lock().expect("no test panics with the emulator")
    }

    fn new(columns: u16, rows: u16) -> Memory {
        let parser = vt100::Parser::new(nonzero(rows), nonzero(columns), 100_000);
        Memory(Arc::new(Mutex::new((parser, Vec::new(), 0))), None)
    }
}

impl Output for Memory {
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut inner = self.lock();
        inner.0.process(bytes);
        inner.1.extend_from_slice(bytes);
        inner.2 += 1;
        Ok(())
    }

    fn size(&self) -> Option<Size> {
        let (rows, columns) = self.lock().0.screen().size();
        self.1.or(Some(Size::new(columns.get(), rows.get())))
    }
}

struct Bench {
    memory: Memory,
    surface: Surface<Memory>,
    queries: Queries,
    history: Vec<String>,
}

impl Bench {
    /// A surface on a screen on which a shell has left `shell` rows.
    fn new(columns: u16, rows: u16, shell: usize, traits: Traits) -> Bench {
        let memory = Memory::new(columns, rows);
        let lines: Vec<_> = (0..shell).map(|n| format!("shell {n}")).collect();
        let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        memory.lock().0.process(text.as_bytes());
        let queries = Queries::default();
        let surface = Surface::open(memory.clone(), traits, queries.clone());
        Bench { memory, surface, queries, history: lines }
    }

    fn frame(&mut self, rows: &[&str], height: u16) {
        self.history.extend(rows.iter().map(|row| (*row).to_owned()));
        let rows: Vec<_> = rows.iter().map(|row| Row::from(Line::from((*row).to_owned()))).collect();
        self.surface.measure();
        self.surface.frame(&rows, height, region).expect("a frame is written");
        self.check();
    }

    /// The terminal's answer to the question for the cursor.
    fn answer(&mut self) {
        let (row, column) = self.memory.lock().0.screen().cursor_position();
        self.surface.report(&Report::Cursor(Position::new(column, row))).expect("an answer is taken in");
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.memory.lock().0.set_size(nonzero(rows), nonzero(columns));
    }

    fn all(&self) -> Vec<String> {
        let mut rows = all_rows(self.memory.lock().0.screen_mut());
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// History is there once and in order, then the live region once, and nothing else.
    #[track_caller]
    fn check(&self) {
        let rows = self.all();
        let width = usize::from(self.surface.size().width);
        let first = rows.iter().position(|row| row.starts_with("top ")).expect("the live region shows");
        let history: Vec<_> = rows[..first].iter().map(|row| row.trim_end().to_owned()).collect();
        let cut = |row: &String| row.chars().take(width).collect::<String>();
        assert_eq!(history, self.history.iter().map(cut).collect::<Vec<_>>());
        let live = &rows[first..];
        let cursor = usize::from(self.memory.lock().0.screen().cursor_position().0);
        let above = rows_above_screen(&self.memory);
        assert!((first..first + live.len()).contains(&(above + cursor)), "the cursor is in the live region: {rows:?}");
        for (index, row) in live.iter().enumerate().skip(1) {
            assert_eq!(row.trim_end(), cut(&format!("live {index}")), "{rows:?}");
        }
    }

    fn bytes(&self) -> usize {
        self.memory.lock().1.len()
    }
}

fn rows_above_screen(memory: &Memory) -> usize {
    memory.lock().0.screen().scrollback_len()
}

fn region(area: Rect, buffer: &mut Buffer) -> Option<Position> {
    for row in 0..area.height {
        let text = if row == 0 { format!("top {}", area.width) } else { format!("live {row}") };
        buffer.set_string(0, row, text, Style::new().fg(Color::Cyan));
    }
    Some(Position::new(2, area.height / 2))
}

fn nonzero(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a size is not zero")
}

/// Regions and the plain path, with the cursor's place known and unknown, from every row of the screen.
fn each(check: impl Fn(Traits, bool, usize)) {
    let cut = Traits { reflows: false, ..Traits::USUAL };
    for traits in [cut, Traits { regions: false, ..cut }] {
        for answers in [false, true] {
            for shell in [0, 5, 9, 30] {
                check(traits, answers, shell);
            }
        }
    }
}

#[test]
fn every_row_is_in_the_history_once() {
    each(|traits, answers, shell| {
        let mut bench = Bench::new(40, 12, shell, traits);
        bench.frame(&[], 4);
        for step in 0..40_u16 {
            if answers {
                bench.answer();
                let _ = &bench.queries;
            }
            let rows: Vec<_> = (0..step % 4).map(|n| format!("history {step}.{n}")).collect();
            bench.frame(&rows.iter().map(String::as_str).collect::<Vec<_>>(), 2 + step % 5);
        }
        let many: Vec<_> = (0..100).map(|n| format!("many {n}")).collect();
        bench.frame(&many.iter().map(String::as_str).collect::<Vec<_>>(), 12);
        bench.frame(&["end"], 1);
        assert_eq!(lossy_scrolls(&bench.memory.lock().1), Vec::<String>::new());
    });
}

#[test]
fn heights_leave_no_copies() {
    each(|traits, answers, shell| {
        let mut bench = Bench::new(40, 12, shell, traits);
        bench.frame(&["one", "two"], 4);
        for (step, rows) in [24, 18, 12, 8, 5, 12, 24, 30, 5, 30, 3, 12].into_iter().enumerate() {
            if answers {
                bench.answer();
            }
            bench.resize(40, rows);
            bench.frame(&[], 4);
            // A cut emulator throws rows below the cursor away and no more.
            let row = format!("after {step}");
            bench.frame(&[&row], 4);
        }
    });
}

#[test]
fn widths_leave_no_copies() {
    each(|traits, answers, shell| {
        let mut bench = Bench::new(80, 12, shell, traits);
        bench.frame(&["one"], 4);
        for (step, columns) in [70, 60, 40, 20, 60, 80, 120].into_iter().enumerate() {
            if answers {
                bench.answer();
            }
            bench.resize(columns, 12);
            let row = format!("after {step}");
            bench.frame(&[&row], 4);
        }
    });
}

/// A terminal has another size than it tells: what is written meanwhile is all there, and nothing above it is touched.
#[test]
fn a_size_that_is_out_of_date_costs_no_row() {
    for hold in [Hold::Anchored, Hold::Low] {
        for (columns, rows) in [(20, 12), (30, 6), (80, 8), (80, 30)] {
            let mut memory = Memory::new(40, 12);
            memory.1 = Some(Size::new(40, 12));
            let traits = Traits { regions: false, reflows: false, ..Traits::USUAL };
            let mut surface = Surface::open(memory.clone(), traits, Queries::default());
            surface.hold(hold);
            surface.frame(&[Row::from(Line::from("before"))], 4, region).unwrap();
            memory.lock().0.set_size(nonzero(rows), nonzero(columns));
            let mut want = vec!["before".to_owned()];
            for step in 0..12 {
                // As wide as the terminal is said to be, then a short one.
                for text in [format!("{:-<39}|", format!("wide {step} ")), format!("short {step}")] {
                    surface.frame(&[Row::from(Line::from(text.clone()))], 4 + step % 3, region).unwrap();
                    want.push(text);
                }
                surface.frame(&[], 4, region).unwrap();
            }
            surface.release().unwrap();
            let all = all_rows(memory.lock().0.screen_mut()).concat();
            assert_eq!(all, want.concat(), "{hold:?} {columns}x{rows}");
        }
    }
}

#[test]
fn the_cursor_is_painted_while_it_rests_elsewhere() {
    let mut bench = Bench::new(40, 12, 3, Traits::USUAL);
    let look = |bench: &Bench| {
        let memory = bench.memory.lock();
        let screen = memory.0.screen();
        let inverse = screen.cell(5, 2).expect("a cell").inverse();
        (screen.hide_cursor(), screen.cursor_position(), inverse)
    };
    for (hold, want) in [
        (Hold::Loose, (false, (5, 2), false)),
        (Hold::Anchored, (true, (3, 0), true)),
        (Hold::Low, (true, (3, 0), true)),
        (Hold::Loose, (false, (5, 2), false)),
    ] {
        bench.surface.hold(hold);
        bench.frame(&[], 4);
        assert_eq!(look(&bench), want, "{hold:?}");
    }
}

#[test]
fn unchanged_frames_write_nothing() {
    let mut bench = Bench::new(40, 12, 3, Traits::USUAL);
    bench.frame(&[], 4);
    bench.answer();
    bench.frame(&[], 4);
    let before = bench.bytes();
    bench.frame(&[], 4);
    assert_eq!(bench.bytes(), before);
    bench.frame(&["row"], 4);
    assert_eq!(bench.memory.lock().2, 3, "each changed frame is one write");
}

#[test]
fn the_region_reaches_the_bottom_and_history_fills_its_blank_rows() {
    let mut bench = Bench::new(40, 12, 3, Traits::USUAL);
    bench.frame(&[], 4);
    assert_eq!(bench.all().len(), 3 + 4, "nobody knows yet where the bottom is");
    bench.answer();
    for (rows, height, want) in [
        (&[][..], 4, 12),
        (&["one", "two"], 4, 12),
        (&["three"], 6, 12),
        // A dialog closes: its rows stay the region's, until history comes.
        (&[], 4, 12),
        (&["four"], 4, 12),
        (&["five", "six", "seven"], 4, 14),
        (&["eight"], 4, 15),
    ] {
        bench.frame(rows, height);
        assert_eq!((bench.all().len(), bench.memory.lock().0.screen().scrollback_len()), (want, want - 12), "{rows:?}");
    }
}

#[test]
fn continued_rows_are_one_line_for_the_terminal() {
    for (shell, answers) in [(0, false), (30, false), (30, true)] {
        let mut bench = Bench::new(10, 12, shell, Traits::USUAL);
        bench.frame(&[], 3);
        if answers {
            bench.answer();
        }
        let row = |text: &str, continues| Row { continues, ..Row::from(Line::from(text.to_owned())) };
        let rows = [row("0123456789", false), row("abcdefghij", true), row("end", true), row("next", false)];
        bench.surface.frame(&rows, 3, region).unwrap();
        let contents = bench.memory.lock().0.screen().contents();
        assert!(contents.contains("0123456789abcdefghijend\nnext\ntop"), "{contents}");
    }
}

#[test]
fn wide_text_is_drawn_over_other_text_as_on_a_blank_screen() {
    let mut bench = Bench::new(20, 6, 0, Traits::USUAL);
    for text in ["日本語のテキスト", "a日b本c", "日x本語", "plain", "日本語日本語日本語日", "本x"]
    {
        let draw = |surface: &mut Surface<Memory>| {
            surface.draw(2, |_, buffer| {
                buffer.set_string(0, 0, text, Style::new());
                None
            })
        };
        draw(&mut bench.surface).unwrap();
        let mut blank = Bench::new(20, 6, 0, Traits::USUAL);
        draw(&mut blank.surface).unwrap();
        assert_eq!(bench.all(), blank.all());
        assert_eq!(bench.all(), [text]);
    }
}

#[test]
fn history_waits_while_the_overlay_is_shown() {
    let mut bench = Bench::new(40, 12, 3, Traits::USUAL);
    bench.frame(&["before"], 4);
    bench.surface.enter_overlay().unwrap();
    bench
        .surface
        .draw_overlay(|_, buffer| {
            buffer.set_string(0, 0, "pager", Style::new());
            None
        })
        .unwrap();
    bench.history.push("hidden".into());
    bench.surface.frame(&[Row::from(Line::from("hidden"))], 4, region).unwrap();
    assert_eq!(bench.memory.lock().0.screen().contents().trim_end(), "pager");
    bench.surface.leave_overlay().unwrap();
    bench.frame(&["after"], 4);
}

#[test]
fn rebuild_puts_the_callers_rows_alone() {
    let mut bench = Bench::new(40, 12, 30, Traits::USUAL);
    bench.frame(&["one", "two"], 4);
    bench.surface.rebuild();
    bench.history.clear();
    bench.frame(&["new one", "new two"], 4);
    bench.frame(&["three"], 4);
}

#[test]
fn release_erases_the_live_region_alone() {
    let mut bench = Bench::new(40, 12, 3, Traits::USUAL);
    bench.frame(&["one"], 4);
    bench.surface.release().unwrap();
    assert_eq!(bench.all(), bench.history);
    bench.frame(&["two"], 4);
}

#[test]
fn plain_terminals_get_text_alone() {
    let mut bench = Bench::new(40, 12, 0, Traits { plain: true, ..Traits::USUAL });
    let line = Line::styled("a\x1b[31mb", Style::new().fg(Color::Red));
    bench.surface.frame(&[line.into()], 4, region).unwrap();
    assert!(bench.memory.lock().1.starts_with(b"a[31mb\r\n"));
    assert!(!bench.memory.lock().1.contains(&b'\x1b'));
}

/// The demo of the surface. A plain `cargo test` has built it; a run of this test alone has not.
fn demo() -> &'static Path {
    static DEMO: LazyLock<PathBuf> = LazyLock::new(|| {
        let built = cargo().args(["build", "--quiet", "--example", "surface_demo"]).status();
        assert!(built.expect("cargo runs").success());
        let test = std::env::current_exe().expect("the test has a path");
        test.ancestors().nth(3).expect("tests are in target/PROFILE/deps").join("debug/examples/surface_demo")
    });
    &DEMO
}

fn ready(launch: Launch) -> Screen {
    let screen = launch.start();
    screen.wait_text("LIVE");
    screen
}

#[test]
fn a_program_draws_reads_and_leaves_the_terminal_as_it_was() {
    for launch in [Launch::new(demo()), Launch::new(demo()).silent()] {
        let mut screen = ready(launch);
        for n in 0..40 {
            screen.send(format!("line{n}\r"));
            screen.wait_text(&format!("row {n}: line{n}"));
        }
        screen.send("many\r");
        screen.wait_text("row 1039: many");
        screen.send("\x1b[200~a\r\nb\x1b[201~");
        screen.wait_text("pasted 3 bytes");
        screen.send("pager\r");
        screen.wait_for("the pager", |text| text.starts_with("pager 80x24"));
        screen.send("q");
        screen.wait_text("closed the pager");
        screen.send("\x04");
        assert!(screen.wait_exit().success());
        let rows = screen.scrollback_text();
        let expected: Vec<_> = (0..40)
            .map(|n| format!("row {n}: line{n}"))
            .chain((40..1040).map(|n| format!("row {n}: many")))
            .chain(["row 1040: pager".to_owned()])
            .collect();
        assert_eq!(rows.lines().collect::<Vec<_>>(), expected);
        let state = screen.state();
        let modes = (state.parser.screen().bracketed_paste(), state.parser.screen().hide_cursor());
        assert_eq!(modes, (false, false));
        drop(state);
        screen.assert_no_lossy_scroll();
    }
}

#[test]
fn a_panic_restores_the_terminal() {
    let mut screen = ready(Launch::new(demo()));
    screen.send("panic\r");
    assert_eq!(screen.wait_exit().exit_code(), 101);
    let text = screen.text();
    let (live, message) = (text.find("LIVE").unwrap(), text.find("panicked").unwrap());
    assert!(live < message, "{text}");
    assert!(!screen.state().parser.screen().bracketed_paste());
}

#[test]
fn a_resized_program_leaves_no_copies() {
    let mut screen = ready(Launch::new(demo()));
    for n in 0..30 {
        screen.send(format!("x{n}\r"));
        screen.wait_text(&format!("row {n}: x{n}"));
    }
    for (columns, rows) in [(60, 24), (40, 12), (80, 12), (40, 30), (100, 8), (80, 24)] {
        screen.resize(columns, rows);
        screen.wait_text(&format!("LIVE {columns}x"));
        screen.wait_for("one live region", |text| text.matches("LIVE").count() == 1);
    }
    screen.send("\x04");
    screen.wait_exit();
    let expected: Vec<_> = (0..30).map(|n| format!("row {n}: x{n}")).collect();
    assert_eq!(screen.scrollback_text().lines().collect::<Vec<_>>(), expected);
}
