//! Draws what fills the window: its parts, its marks, and what compaction did so far.
//!
//! Nothing is wider than 36 columns inside the drawing, so that it fits the narrowest screen.

use std::fmt::Write;

use crate::protocol::Trigger;
use crate::protocol::report::{Duplicate, Marks, Part, Window};
use crate::stdx::text::short;

/// Columns of the drawing.
const WIDTH: usize = 36;
/// Columns of a part's own bar.
const BAR: usize = 9;
/// Compactions that are listed, the newest ones.
const LISTED: usize = 8;
/// Files read more than once that are listed, the most wasteful ones.
const WASTEFUL: usize = 5;

/// At most 14 characters.
fn name(part: Part) -> &'static str {
    match part {
        Part::SystemPrompt => "system prompt",
        Part::Tools => "tools",
        Part::MemoryFiles => "memory files",
        Part::Skills => "skills",
        Part::Messages => "messages",
        Part::Prompts => "prompts",
        Part::Replies => "replies",
        Part::ToolResults => "tool results",
        Part::Summary => "summary",
        Part::Reminders => "reminders",
    }
}

impl Window {
    /// As Markdown.
    pub(super) fn draw(&self) -> String {
        let mut text = match self.tokens {
            Some(window) => {
                let (used, whole) = (short(self.used), short(window));
                let before = if self.auto { " before compaction" } else { "" };
                format!("`{}`: {used} of {whole} tokens, {}% free{before}", self.model, self.left)
            }
            None => format!("`{}`: {} tokens; its window size is unknown", self.model, short(self.used)),
        };
        text.push_str("\n\n```\n");
        if let Some(window) = self.tokens {
            let _ = writeln!(text, "{}\n", self.bar(window));
        }
        for (part, tokens) in self.fitted() {
            self.row(&mut text, name(part), tokens, part.inner());
        }
        if let Some(window) = self.tokens {
            let free = self.marks.available.saturating_sub(self.used);
            self.row(&mut text, "free", free, false);
            let reserved = window - self.marks.available;
            self.row(&mut text, "reserved", reserved, false);
            text.push('\n');
        }
        self.mark_rows(&mut text);
        text.push_str("```");
        self.duplicate_rows(&mut text);
        self.compaction_rows(&mut text);
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
            // Marks that fall into one cell stand side by side, in their order.
            let free = (0..=at(tokens)).rev().find(|cell| matches!(cells[*cell], '█' | '░'));
            cells[free.unwrap_or(0)] = mark;
        }
        cells.into_iter().collect()
    }

    fn named_marks(&self) -> Vec<(char, &'static str, u64)> {
        let Marks { warning, target, blocking, .. } = self.marks;
        let mut marks = vec![('w', "warning at", warning)];
        if self.auto {
            marks.push(('c', "compacted at", target));
        }
        marks.push(('f', "full at", blocking));
        marks
    }

    fn mark_rows(&self, text: &mut String) {
        if self.tokens.is_some() {
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

    fn row(&self, text: &mut String, name: &str, tokens: u64, inner: bool) {
        let name = if inner { format!("  {name}") } else { name.to_owned() };
        let of = self.tokens.unwrap_or(self.used);
        let row = format!("{name:<14} {:>5} {:>3}%", short(tokens), percent(tokens, of));
        let eighths = (u128::from(tokens) * (BAR * 8) as u128).div_ceil(u128::from(of.max(1))) as usize;
        let bar = if inner { String::new() } else { eighth_blocks(eighths.min(BAR * 8)) };
        let _ = writeln!(text, "{}", format!("{row}  {bar}").trim_end());
    }

    /// The parts, so that together they are what is used: the provider's count is better than estimates.
    fn fitted(&self) -> Vec<(Part, u64)> {
        let outer = |parts: &[(Part, u64)]| -> u64 {
            parts.iter().filter(|(part, _)| !part.inner()).map(|(_, tokens)| tokens).sum()
        };
        let sum = outer(&self.parts);
        let scale = |tokens: u64| match sum {
            0 => 0,
            sum => (u128::from(tokens) * u128::from(self.used) / u128::from(sum)) as u64,
        };
        let mut parts: Vec<(Part, u64)> = self.parts.iter().map(|(part, tokens)| (*part, scale(*tokens))).collect();
        let told = outer(&parts);
        // What rounding lost goes to the largest.
        if let Some((_, largest)) = parts.iter_mut().filter(|(part, _)| !part.inner()).max_by_key(|(_, tokens)| *tokens)
        {
            *largest += self.used.saturating_sub(told);
        }
        parts.retain(|(_, tokens)| *tokens > 0);
        parts
    }

    fn duplicate_rows(&self, text: &mut String) {
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

    fn compaction_rows(&self, text: &mut String) {
        if self.compactions.is_empty() {
            return;
        }
        text.push_str("\n\nCompactions in this session, newest first:\n");
        for done in self.compactions.iter().rev().take(LISTED) {
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
        more(text, self.compactions.len(), LISTED);
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
    use crate::protocol::Compacted;

    fn marks(tokens: Option<u64>) -> Marks {
        let of =
            |available, warning, target, blocking| Marks { available, warning, target, blocking, max_messages: None };
        match tokens {
            Some(8_192) => of(6_144, 3_100, 4_000, 4_600),
            Some(tokens) => of(tokens / 10 * 9, tokens / 1_000 * 735, tokens / 1_000 * 835, tokens / 1_000 * 885),
            None => Marks { max_messages: Some(50), ..of(0, 0, 0, 0) },
        }
    }

    fn window(tokens: Option<u64>, used: u64) -> Window {
        Window {
            model: "a/b".into(),
            tokens,
            used,
            left: 64,
            messages: 12,
            marks: marks(tokens),
            auto: true,
            parts: vec![
                (Part::SystemPrompt, 2_100),
                (Part::Tools, 9_000),
                (Part::MemoryFiles, 0),
                (Part::Messages, 30_000),
                (Part::Prompts, 1_000),
                (Part::ToolResults, 29_000),
            ],
            duplicates: Vec::new(),
            compactions: Vec::new(),
        }
    }

    #[test]
    fn a_window_with_its_marks() {
        insta::assert_snapshot!(window(Some(200_000), 60_000).draw(), @r#"
        `a/b`: 60k of 200k tokens, 64% free before compaction

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
        let compactions = vec![done(1, Trigger::Manual, "full", true), done(9, Trigger::Auto, "session_memory", false)];
        let duplicate = |path: &str, times, tokens| Duplicate { path: path.into(), times, tokens };
        let duplicates = vec![duplicate("a.rs", 2, 400), duplicate("src/b.rs", 4, 9_000)];
        let full = Window { left: 0, compactions, auto: false, ..window(Some(8_192), 9_000) };
        let unknown = Window { duplicates, ..window(None, 60_000) };
        insta::assert_snapshot!(format!("{}\n=====\n{}", full.draw(), unknown.draw()), @r#"
        `a/b`: 9.0k of 8.2k tokens, 0% free

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
        for (tokens, used) in [(None, 0), (None, 7), (Some(2_000), 1), (Some(200_000), 40_999), (Some(9_000_000), 3)] {
            let window = window(tokens, used);
            let sum: u64 = window.fitted().iter().filter(|(part, _)| !part.inner()).map(|(_, tokens)| tokens).sum();
            assert_eq!(sum, used, "{tokens:?}");
            let text = window.draw();
            let bar = text.lines().find(|row| row.contains(['█', '░'])).unwrap_or_default();
            assert!(tokens.is_none() || ['w', 'c', 'f'].iter().all(|mark| bar.contains(*mark)), "{bar}");
            let rows = text.lines().skip_while(|row| *row != "```").filter(|row| row.chars().count() > WIDTH);
            assert_eq!(rows.collect::<Vec<_>>(), Vec::<&str>::new());
        }
    }
}
