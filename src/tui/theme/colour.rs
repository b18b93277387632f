//! Colors of terminals that show fewer of them.

use ratatui::style::{Color, Style};

/// How many colors a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Depth {
    TrueColor,
    /// The palette of 256.
    Indexed,
    Ansi16,
    /// None, as `NO_COLOR` asks; weight and underline stay.
    Mono,
}

/// The sixteen colors as most terminals show them.
const SIXTEEN: [(Color, [u8; 3]); 16] = [
    (Color::Black, [0, 0, 0]),
    (Color::Red, [205, 49, 49]),
    (Color::Green, [13, 188, 121]),
    (Color::Yellow, [229, 229, 16]),
    (Color::Blue, [36, 114, 200]),
    (Color::Magenta, [188, 63, 188]),
    (Color::Cyan, [17, 168, 205]),
    (Color::Gray, [229, 229, 229]),
    (Color::DarkGray, [102, 102, 102]),
    (Color::LightRed, [241, 76, 76]),
    (Color::LightGreen, [35, 209, 139]),
    (Color::LightYellow, [245, 245, 67]),
    (Color::LightBlue, [59, 142, 234]),
    (Color::LightMagenta, [214, 112, 214]),
    (Color::LightCyan, [41, 184, 219]),
    (Color::White, [255, 255, 255]),
];

impl Depth {
    /// The style in colors that this terminal has.
    pub fn adapt(self, style: Style) -> Style {
        match self {
            Depth::TrueColor => style,
            Depth::Mono => Style { fg: None, bg: None, underline_color: None, ..style },
            Depth::Indexed | Depth::Ansi16 => Style {
                fg: style.fg.map(|colour| self.nearest(colour)),
                bg: style.bg.map(|colour| self.nearest(colour)),
                underline_color: None,
                ..style
            },
        }
    }

    fn nearest(self, colour: Color) -> Color {
        match (self, colour) {
            (Depth::Indexed, Color::Rgb(r, g, b)) => Color::Indexed(indexed([r, g, b])),
            (Depth::Ansi16, Color::Rgb(r, g, b)) => sixteen([r, g, b]),
            (Depth::Ansi16, Color::Indexed(index)) => match index {
                0..=15 => SIXTEEN[index as usize].0,
                _ => sixteen(palette(index)),
            },
            _ => colour,
        }
    }
}

fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    (0..3).map(|i| u32::from(a[i].abs_diff(b[i])).pow(2)).sum()
}

fn sixteen(colour: [u8; 3]) -> Color {
    let mut best = (u32::MAX, Color::Reset);
    for (name, value) in SIXTEEN {
        let away = distance(colour, value);
        if away < best.0 {
            best = (away, name);
        }
    }
    best.1
}

/// The nearest of the 240 fixed colors of the palette.
fn indexed(colour: [u8; 3]) -> u8 {
    let mut best = (u32::MAX, 16);
    for index in 16..=255 {
        let away = distance(colour, palette(index));
        if away < best.0 {
            best = (away, index);
        }
    }
    best.1
}

/// What the palette shows for an index from 16 on.
fn palette(index: u8) -> [u8; 3] {
    if index >= 232 {
        return [8 + (index - 232) * 10; 3];
    }
    let cube = index.saturating_sub(16);
    let level = |step: u8| if step == 0 { 0 } else { 55 + step * 40 };
    [level(cube / 36), level(cube / 6 % 6), level(cube % 6)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_reduced_to_the_nearest() {
        let check = |depth: Depth, from: Color, want: Option<Color>| {
            assert_eq!(depth.adapt(Style::new().fg(from)).fg, want, "{depth:?} {from:?}");
        };
        check(Depth::TrueColor, Color::Rgb(1, 2, 3), Some(Color::Rgb(1, 2, 3)));
        check(Depth::Indexed, Color::Rgb(255, 0, 0), Some(Color::Indexed(196)));
        check(Depth::Indexed, Color::Rgb(9, 9, 9), Some(Color::Indexed(232)));
        check(Depth::Indexed, Color::Red, Some(Color::Red));
        check(Depth::Ansi16, Color::Rgb(250, 70, 80), Some(Color::LightRed));
        check(Depth::Ansi16, Color::Indexed(1), Some(Color::Red));
        check(Depth::Ansi16, Color::Indexed(255), Some(Color::Gray));
        check(Depth::Mono, Color::Red, None);
    }
}
