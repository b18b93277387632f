//! Draws an emulator's screen as an SVG picture of a window.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

/// Size of a cell and of the font, in pixels.
const CELL: (f32, f32) = (8.4, 18.0);
const FONT: f32 = 14.0;
/// Around the screen, in pixels; above it lies the title bar.
const MARGIN: f32 = 16.0;
const TITLE: f32 = 34.0;

const FOREGROUND: u32 = 0x00d9_dce7;
const BACKGROUND: u32 = 0x0016_161e;
/// The sixteen colours of the palette.
const PALETTE: [u32; 16] = [
    0x2a2b3c, 0xf7768e, 0x9ece6a, 0xe0af68, 0x7aa2f7, 0xbb9af7, 0x7dcfff, 0xa9b1d6, 0x6b7089, 0xff899d, 0xb9f27c,
    0xffc777, 0x8db0ff, 0xc7a9ff, 0xa4daff, 0xe6e9f5,
];

/// How a stretch of cells looks.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    foreground: u32,
    background: u32,
    bold: bool,
    italic: bool,
    underline: bool,
    dim: bool,
}

impl Look {
    fn of(cell: &Cell) -> Look {
        let foreground = colour(cell.fgcolor(), FOREGROUND);
        let background = colour(cell.bgcolor(), BACKGROUND);
        let (foreground, background) = if cell.inverse() { (background, foreground) } else { (foreground, background) };
        Look {
            foreground,
            background,
            bold: cell.bold(),
            italic: cell.italic(),
            underline: cell.underline(),
            dim: cell.dim(),
        }
    }
}

/// Draws the screen in a window with this title. Rows at the end that show nothing are left out.
pub(crate) fn draw(screen: &Screen, title: &str) -> String {
    let (columns, rows) = (screen.size().1.get(), screen.size().0.get());
    let used = screen.rows(0, columns).enumerate().filter(|(_, row)| !row.trim().is_empty()).last();
    let rows = used.map_or(1, |(at, _)| at + 1).min(usize::from(rows)) as u16;
    let width = f32::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f32::from(rows) * CELL.1 + TITLE + 1.5 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"{FONT}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"{}\"/>\n",
        hex(BACKGROUND)
    );
    for (at, fill) in ["#f7768e", "#e0af68", "#9ece6a"].iter().enumerate() {
        let x = 20.0 + 20.0 * at as f32;
        let _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"18\" r=\"6\" fill=\"{fill}\"/>");
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"23\" text-anchor=\"middle\" fill=\"#6b7089\">{}</text>",
        width / 2.0,
        escape(title)
    );
    for row in 0..rows {
        for (column, cells, text, look) in stretches(screen, row, columns) {
            stretch(&mut svg, (column, row), cells, &text, &look);
        }
    }
    if !screen.hide_cursor() {
        let (row, column) = screen.cursor_position();
        let (x, y) = corner((column, row));
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" fill=\"{}\" opacity=\"0.6\"/>",
            CELL.0,
            CELL.1,
            hex(FOREGROUND)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The row's stretches of one look: first column, number of cells, text. A wide character stands alone, so that a font
/// that draws it narrower moves nothing.
fn stretches(screen: &Screen, row: u16, columns: u16) -> Vec<(u16, u16, String, Look)> {
    let mut found: Vec<(u16, u16, String, Look)> = Vec::new();
    let mut alone = true;
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let look = Look::of(cell);
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let cells = if cell.is_wide() { 2 } else { 1 };
        match found.last_mut() {
            Some((_, length, last, same)) if !alone && !cell.is_wide() && *same == look => {
                *length += cells;
                last.push_str(text);
            }
            _ => found.push((column, cells, text.to_owned(), look)),
        }
        alone = cell.is_wide();
    }
    found
}

fn stretch(svg: &mut String, at: (u16, u16), cells: u16, text: &str, look: &Look) {
    let (x, y) = corner(at);
    if look.background != BACKGROUND {
        let width = f32::from(cells) * CELL.0;
        let fill = hex(look.background);
        // A hair more, or the seams between rows show.
        let height = CELL.1 + 0.3;
        let _ =
            writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{fill}\"/>");
    }
    let shown = text.trim_end();
    let inner = shown.trim_start();
    if inner.is_empty() {
        return;
    }
    let leading = (shown.chars().count() - inner.chars().count()) as f32;
    let length = if cells == 2 && inner.chars().count() == 1 { 2.0 } else { inner.chars().count() as f32 };
    let mut style = String::new();
    for (set, attribute) in [
        (look.bold, " font-weight=\"bold\""),
        (look.italic, " font-style=\"italic\""),
        (look.underline, " text-decoration=\"underline\""),
        (look.dim, " opacity=\"0.6\""),
    ] {
        if set {
            style.push_str(attribute);
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{style} xml:space=\"preserve\">{}</text>",
        x + leading * CELL.0,
        y + CELL.1 * 0.75,
        length * CELL.0,
        hex(look.foreground),
        escape(inner)
    );
}

/// Upper left corner of a cell.
fn corner((column, row): (u16, u16)) -> (f32, f32) {
    (MARGIN + f32::from(column) * CELL.0, TITLE + MARGIN / 2.0 + f32::from(row) * CELL.1)
}

fn colour(colour: Color, default: u32) -> u32 {
    match colour {
        Color::Default => default,
        Color::Rgb(red, green, blue) => u32::from(red) << 16 | u32::from(green) << 8 | u32::from(blue),
        Color::Idx(index @ 0..16) => PALETTE[usize::from(index)],
        Color::Idx(index @ 16..232) => {
            let index = u32::from(index) - 16;
            let level = |value: u32| if value == 0 { 0 } else { 55 + 40 * value };
            level(index / 36) << 16 | level(index / 6 % 6) << 8 | level(index % 6)
        }
        Color::Idx(index) => (8 + 10 * (u32::from(index) - 232)) * 0x01_01_01,
    }
}

fn hex(colour: u32) -> String {
    format!("#{colour:06x}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
