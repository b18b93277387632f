//! Draws what fills the window: its parts, its marks, and what compaction did so far. For `/context`; pure.
//!
//! Nothing is wider than 36 columns inside the drawing, so that it fits the narrowest screen.

use std::fmt::Write;

use super::Thresholds;
use crate::protocol::Trigger;
use crate::session::Compacted;
use crate::stdx::text::short;

/// Columns of the drawing.
const WIDTH: usize = 36;
/// Columns of a part's own bar.
const BAR: usize = 9;
/// Compactions that are listed, the newest ones.
const LISTED: usize = 8;
/// Files read more than once that are listed, the most wasteful ones.
const WASTEFUL: usize = 5;

/// One thing that takes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// At most 14 characters.
    pub name: &'static str,
    /// Estimate.
    pub tokens: u64,
    /// It is a share of the part before it that is not a share itself.
    pub inner: bool,
}

/// A file whose content is in the window more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    pub path: String,
    pub times: u64,
    /// Tokens of all but one of the reads.
    pub tokens: u64,
}

/// All that is drawn.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    pub model: &'a str,
    /// None: the window's size is unknown, so messages count.
    pub window: Option<u64>,
    /// Tokens of the next request.
    pub used: u64,
    pub messages: usize,
    pub marks: Thresholds,
    /// Automatic compaction is on.
    pub auto: bool,
    pub parts: Vec<Part>,
    pub duplicates: Vec<Duplicate>,
    pub history: &'a [Compacted],
}

impl Report<'_> {
    /// The report as Markdown.
    pub fn draw(&self) -> String {
        let mut text = match self.window {
            Some(window) => {
                let percent = percent(self.used, window);
                format!("`{}`: {} of {} tokens ({percent}%)", self.model, short(self.used), short(window))
            }
            None => format!("`{}`: {} tokens; its window size is unknown", self.model, short(self.used)),
        };
        text.push_str("\n\n```\n");
        if let Some(window) = self.window {
            let _ = writeln!(text, "{}\n", self.bar(window));
        }
        for part in self.fitted() {
            self.row(&mut text, part);
        }
        if let Some(window) = self.window {
            let free = self.marks.available.saturating_sub(self.used);
            self.row(&mut text, Part { name: "free", tokens: free, inner: false });
            let reserved = window - self.marks.available;
            self.row(&mut text, Part { name: "reserved", tokens: reserved, inner: false });
            text.push('\n');
        }
        self.marks(&mut text);
        text.push_str("```");
        self.duplicates(&mut text);
        self.history(&mut text);
        text
    }

    /// The whole window as one bar, with its marks.
    fn bar(&self, window: u64) -> String {
        let at = |tokens: u64| {
            let cell = u128::from(tokens.min(window)) * WIDTH as u128 / u128::from(window.max(1));
            (cell as usize).min(WIDTH - 1)
        };
        let full = (u128::from(self.used.min(window)) * WIDTH as u128).div_ceil(u128::from(window.max(1))) as usize;
        let mut cells: Vec<char> = (0..WIDTH).map(|cell| if cell < full { '█' } else { '░' }).collect();
        for (mark, _, tokens) in self.named_marks().into_iter().rev() {
            cells[at(tokens)] = mark;
        }
        cells.into_iter().collect()
    }

    fn named_marks(&self) -> Vec<(char, &'static str, u64)> {
        let Thresholds { warning, target, blocking, .. } = self.marks;
        let mut marks = vec![('w', "warning at", warning)];
        if self.auto {
            marks.push(('c', "compacted at", target));
        }
        marks.push(('f', "full at", blocking));
        marks
    }

    fn marks(&self, text: &mut String) {
        if self.window.is_some() {
            for (mark, name, tokens) in self.named_marks() {
                let _ = writeln!(text, "{mark} {name:<13}{:>5}", short(tokens));
            }
        }
        if let Some(most) = self.marks.max_messages {
            let _ = writeln!(text, "{} messages, compacted at {most}", self.messages);
        }
        if !self.auto {
            text.push_str("automatic compaction is off\n");
        }
    }

    fn row(&self, text: &mut String, Part { name, tokens, inner }: Part) {
        let name = if inner { format!("  {name}") } else { name.to_owned() };
        let of = self.window.unwrap_or(self.used);
        let row = format!("{name:<14} {:>5} {:>3}%", short(tokens), percent(tokens, of));
        let eighths = (u128::from(tokens) * (BAR * 8) as u128).div_ceil(u128::from(of.max(1))) as usize;
        let bar = if inner { String::new() } else { eighth_blocks(eighths.min(BAR * 8)) };
        let _ = writeln!(text, "{}", format!("{row}  {bar}").trim_end());
    }

    /// The parts, so that together they are what is used: the provider's count is better than estimates.
    fn fitted(&self) -> Vec<Part> {
        let sum: u64 = self.parts.iter().filter(|part| !part.inner).map(|part| part.tokens).sum();
        let scale = |tokens: u64| match sum {
            0 => 0,
            sum => (u128::from(tokens) * u128::from(self.used) / u128::from(sum)) as u64,
        };
        let mut parts: Vec<Part> = self.parts.iter().map(|part| Part { tokens: scale(part.tokens), ..*part }).collect();
        let told: u64 = parts.iter().filter(|part| !part.inner).map(|part| part.tokens).sum();
        // What rounding lost goes to the largest.
        if let Some(largest) = parts.iter_mut().filter(|part| !part.inner).max_by_key(|part| part.tokens) {
            largest.tokens += self.used.saturating_sub(told);
        }
        parts.retain(|part| part.tokens > 0);
        parts
    }

    fn duplicates(&self, text: &mut String) {
        if self.duplicates.is_empty() {
            return;
        }
        let tokens: u64 = self.duplicates.iter().map(|duplicate| duplicate.tokens).sum();
        let _ = write!(text, "\n\nFiles that were read more than once waste about {} tokens:\n", short(tokens));
        let mut worst: Vec<&Duplicate> = self.duplicates.iter().collect();
        worst.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.path.cmp(&b.path)));
        for Duplicate { path, times, tokens } in worst.iter().take(WASTEFUL) {
            let _ = write!(text, "\n- `{}`: {times} times, {}", path.replace('`', "'"), short(*tokens));
        }
        more(text, worst.len(), WASTEFUL);
    }

    fn history(&self, text: &mut String) {
        if self.history.is_empty() {
            return;
        }
        text.push_str("\n\nCompactions in this session, newest first:\n");
        for done in self.history.iter().rev().take(LISTED) {
            let who = match done.trigger {
                Trigger::Manual => "on request",
                Trigger::Auto => "automatic",
                Trigger::Plan => "with a plan",
            };
            let when = done.ts.get(..16).unwrap_or(&done.ts).replace('T', " ");
            let tier = done.tier.replace('_', " ");
            let back = if done.undone { ", undone" } else { "" };
            let (before, after) = (short(done.before), short(done.after));
            let _ = write!(text, "\n- {when} UTC: {tier}, {who}, {before} → {after} tokens{back}");
        }
        more(text, self.history.len(), LISTED);
    }
}

fn more(text: &mut String, all: usize, listed: usize) {
    if all > listed {
        let _ = write!(text, "\n- and {} more", all - listed);
    }
}

fn percent(tokens: u64, of: u64) -> u64 {
    if of == 0 { 0 } else { (u128::from(tokens) * 100 / u128::from(of)).min(999) as u64 }
}

/// A bar of so many eighths of a cell.
fn eighth_blocks(eighths: usize) -> String {
    const PART: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    "█".repeat(eighths / 8) + PART[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::Window;
    use crate::compact::fixture::settings;

    fn report(tokens: Option<u64>, used: u64) -> Report<'static> {
        let mut settings = settings();
        settings.fallback_context_window = 0;
        let marks = Thresholds::new(Window { tokens, max_output: 64_000 }, &settings);
        let part = |name, tokens, inner| Part { name, tokens, inner };
        let parts = vec![
            part("system prompt", 2_100, false),
            part("tools", 9_000, false),
            part("memory files", 0, false),
            part("messages", 30_000, false),
            part("prompts", 1_000, true),
            part("tool results", 29_000, true),
        ];
        let (duplicates, history) = (Vec::new(), &[][..]);
        Report { model: "a/b", window: tokens, used, messages: 12, marks, auto: true, parts, duplicates, history }
    }

    #[test]
    fn a_window_with_its_marks() {
        insta::assert_snapshot!(report(Some(200_000), 60_000).draw(), @r#"
        `a/b`: 60k of 200k tokens (30%)

        ```
        ███████████░░░░░░░░░░░░░░░w░░░cf░░░░

        system prompt   3.1k   1%  ▎
        tools            13k   6%  ▋
        messages         43k  21%  ██
          prompts       1.5k   0%
          tool results   42k  21%
        free            120k  60%  █████▌
        reserved         20k  10%  █

        w warning at    147k
        c compacted at  167k
        f full at       177k
        ```
        "#);
    }

    #[test]
    fn full_unknown_and_with_a_history() {
        let done = |seq, trigger, tier: &str, undone| Compacted {
            seq,
            ts: "2026-01-02T03:04:05.678Z".into(),
            trigger,
            tier: tier.into(),
            before: 170_000,
            after: 21_500,
            undone,
        };
        let history = [done(1, Trigger::Manual, "full", true), done(9, Trigger::Auto, "session_memory", false)];
        let duplicate = |path: &str, times, tokens| Duplicate { path: path.into(), times, tokens };
        let duplicates = vec![duplicate("a.rs", 2, 400), duplicate("src/b.rs", 4, 9_000)];
        let full = Report { history: &history, auto: false, ..report(Some(8_192), 9_000) };
        let unknown = Report { duplicates, ..report(None, 60_000) };
        insta::assert_snapshot!(format!("{}\n=====\n{}", full.draw(), unknown.draw()), @r#"
        `a/b`: 9.0k of 8.2k tokens (109%)

        ```
        █████████████w██████f███████████████

        system prompt    459   5%  ▋
        tools           2.0k  24%  ██▎
        messages        6.6k  80%  ███████▎
          prompts        218   2%
          tool results  6.3k  77%
        free               0   0%
        reserved        2.0k  25%  ██▎

        w warning at    3.1k
        f full at       4.6k
        automatic compaction is off
        ```

        Compactions in this session, newest first:

        - 2026-01-02 03:04 UTC: session memory, automatic, 170k → 21k tokens
        - 2026-01-02 03:04 UTC: full, on request, 170k → 21k tokens, undone
        =====
        `a/b`: 60k tokens; its window size is unknown

        ```
        system prompt   3.1k   5%  ▌
        tools            13k  21%  ██
        messages         43k  72%  ██████▋
          prompts       1.5k   2%
          tool results   42k  70%
        12 messages, compacted at 50
        ```

        Files that were read more than once waste about 9.4k tokens:

        - `src/b.rs`: 4 times, 9.0k
        - `a.rs`: 2 times, 400
        "#);
    }

    #[test]
    fn parts_add_up_and_rows_are_narrow() {
        for (window, used) in [(None, 0), (None, 7), (Some(2_000), 1), (Some(200_000), 40_999), (Some(9_000_000), 3)] {
            let report = report(window, used);
            let sum: u64 = report.fitted().iter().filter(|part| !part.inner).map(|part| part.tokens).sum();
            assert_eq!(sum, used, "{window:?}");
            let text = report.draw();
            let rows = text.lines().skip_while(|row| *row != "```").filter(|row| row.chars().count() > WIDTH);
            assert_eq!(rows.collect::<Vec<_>>(), Vec::<&str>::new());
        }
    }
}
