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
        for stretch in stretches(screen, row, columns) {
            stretch.draw(&mut svg, row);
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

/// Neighbouring cells of one look.
struct Stretch<'a> {
    look: Look,
    /// First column, and the one behind the last.
    columns: (u16, u16),
    /// What can be seen: column, cells, text.
    glyphs: Vec<(u16, u16, &'a str)>,
}

fn stretches(screen: &Screen, row: u16, columns: u16) -> Vec<Stretch<'_>> {
    let mut found: Vec<Stretch> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let (look, cells) = (Look::of(cell), if cell.is_wide() { 2 } else { 1 });
        if found.last().is_none_or(|last| last.look != look) {
            found.push(Stretch { look, columns: (column, column), glyphs: Vec::new() });
        }
        let Some(stretch) = found.last_mut() else { continue };
        stretch.columns.1 = column + cells;
        if !cell.contents().trim().is_empty() {
            stretch.glyphs.push((column, cells, cell.contents()));
        }
    }
    found
}

impl Stretch<'_> {
    /// Centers each character in its own cells. A text of several would drift in a viewer whose font has another width.
    fn draw(&self, svg: &mut String, row: u16) {
        let ((x, y), look) = (corner((self.columns.0, row)), &self.look);
        if look.background != BACKGROUND {
            // A hair taller, or the seams between rows show.
            rectangle(svg, (x, y), (width(self.columns.1 - self.columns.0), CELL.1 + 0.3), look.background);
        }
        let mut text = String::new();
        for &(column, cells, glyph) in &self.glyphs {
            let (left, middle) = (corner((column, row)).0, corner((column, row)).0 + width(cells) / 2.0);
            match glyph {
                // Fonts leave gaps between these.
                "─" => rectangle(svg, (left, y + CELL.1 / 2.0 - 0.5), (CELL.0, 1.2), look.foreground),
                "█" => rectangle(svg, (left, y + 2.0), (CELL.0 + 0.1, CELL.1 - 4.0), look.foreground),
                _ => drop(write!(text, "<tspan x=\"{middle:.1}\">{}</tspan>", escape(glyph))),
            }
        }
        if text.is_empty() {
            return;
        }
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
        let (y, fill) = (y + CELL.1 * 0.75, hex(look.foreground));
        let _ = writeln!(svg, "<text y=\"{y:.1}\" text-anchor=\"middle\" fill=\"{fill}\"{style}>{text}</text>");
    }
}

fn rectangle(svg: &mut String, (x, y): (f32, f32), (width, height): (f32, f32), fill: u32) {
    let fill = hex(fill);
    let _ =
        writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>");
}

/// Width of so many cells, in pixels.
fn width(cells: u16) -> f32 {
    f32::from(cells) * CELL.0
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
