//! Tool output as a terminal would have shown it: colors kept, overwritten text gone, every other sequence removed.

use ansi_to_tui::IntoText;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::stdx::text;
use crate::tui::theme::Theme;

/// Lines of untrusted output. Colors are reduced to what the theme's terminal shows; text without color is `plain`.
pub fn lines(output: &str, plain: Style, theme: &Theme) -> Vec<Line<'static>> {
    let kept = settle(output);
    let kept = kept.trim_end_matches('\n');
    if kept.is_empty() {
        return Vec::new();
    }
    let uncoloured =
        |kept: &str| kept.split('\n').map(|line| Line::from(Span::styled(line.to_string(), plain))).collect();
    if !kept.contains('\x1b') {
        return uncoloured(&text::clean(kept));
    }
    let Ok(styled) = kept.into_text() else {
        return uncoloured(&text::clean(kept));
    };
    let span = |span: Span<'static>| {
        let style = theme.depth.adapt(span.style);
        let style = if style.fg.is_none() && style.bg.is_none() { plain.patch(style) } else { style };
        Span::styled(text::clean(&span.content).into_owned(), style)
    };
    styled.lines.into_iter().map(|line| Line::from(line.spans.into_iter().map(span).collect::<Vec<_>>())).collect()
}

/// The output as plain text: what `lines` shows, without colors.
pub fn strip(output: &str) -> String {
    let kept = settle(output);
    let mut plain = String::with_capacity(kept.len());
    let mut rest = kept.as_str();
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = rest[at..].find('m').map_or("", |end| &rest[at + end + 1..]);
    }
    plain.push_str(rest);
    text::clean(&plain).into_owned()
}

/// Plays carriage returns, backspaces and erase-line; keeps newlines and color sequences; drops every other sequence.
fn settle(output: &str) -> String {
    if !output.bytes().any(|byte| matches!(byte, b'\r' | b'\x08' | b'\x1b')) {
        return output.to_string();
    }
    let mut out = String::with_capacity(output.len());
    let mut line_start = 0;
    let mut chars = output.chars().peekable();
    // A carriage return takes effect when something is written over the line.
    let mut rewind = false;
    // A backspace must not eat into a color sequence.
    let mut text_last = false;
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                rewind = false;
                out.push('\n');
                line_start = out.len();
            }
            '\r' => rewind = true,
            '\x08' => {
                if out.len() > line_start && text_last {
                    out.pop();
                    text_last = !out.ends_with('m') || !out[line_start..].contains('\x1b');
                }
            }
            '\x1b' => match chars.next() {
                Some('[') => {
                    let mut sequence = String::new();
                    let mut end = None;
                    for c in chars.by_ref() {
                        if ('\x40'..='\x7e').contains(&c) {
                            end = Some(c);
                            break;
                        }
                        if sequence.len() >= 64 || !(' '..='?').contains(&c) {
                            break;
                        }
                        sequence.push(c);
                    }
                    let digits = sequence.bytes().all(|byte| byte.is_ascii_digit() || byte == b';' || byte == b':');
                    match end {
                        Some('m') if digits => {
                            out.push_str("\x1b[");
                            out.push_str(&sequence.replace(':', ";"));
                            out.push('m');
                            text_last = false;
                        }
                        Some('K') if sequence == "2" || rewind => {
                            out.truncate(line_start);
                        }
                        _ => {}
                    }
                }
                // Strings end at BEL or ST; an unfinished one takes the rest of its line.
                Some(']' | 'P' | '_' | '^' | 'X') => {
                    while let Some(&c) = chars.peek() {
                        if c == '\n' {
                            break;
                        }
                        chars.next();
                        if c == '\x07' {
                            break;
                        }
                        if c == '\x1b' {
                            chars.next_if_eq(&'\\');
                            break;
                        }
                    }
                }
                Some('(' | ')' | '*' | '+' | '#' | ' ') => {
                    chars.next();
                }
                _ => {}
            },
            c => {
                if rewind {
                    out.truncate(line_start);
                    rewind = false;
                }
                out.push(c);
                text_last = true;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::Depth;
    use ratatui::style::Color;

    #[test]
    fn only_the_text_survives() {
        let check = |output: &str, want: &str| assert_eq!(strip(output), want, "{output:?}");
        check("plain\n", "plain\n");
        check("10%\r50%\r100%\ndone", "100%\ndone");
        check("a\r\nb\r\n", "a\nb\n");
        check("abc\x08\x08X", "aX");
        check("am\x08X\x1b[1m\x08Y", "aXY");
        check("\x1b[31mred\x1b[0m", "red");
        check("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\y", "xy");
        check("\x1b]52;c;aGk=\nnext", "\nnext");
        check("\x1b[2J\x1b[H\x1b[?1049hhi", "hi");
        check("working\r\x1b[Kdone", "done");
        check("\x1bPq#0\x1b\\z\x1b(Bw", "zw");
        check("bell\x07", "bell␇");
        check("\x1b[", "");
    }

    #[test]
    fn colours_are_kept_as_far_as_the_terminal_has_them() {
        let theme = Theme::dark();
        let red = lines("\x1b[31mred\x1b[0m", theme.dim, &theme);
        assert_eq!(red[0].spans[0].style.fg, Some(Color::Red));
        let mono = lines("\x1b[31mred\x1b[0m", Style::new(), &theme.clone().degrade(Depth::Mono));
        assert_eq!(mono[0].spans[0].style.fg, None);
    }
}
