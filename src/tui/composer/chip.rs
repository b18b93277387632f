//! Chips: one character that stands for a large paste or an image. Motions, undo and deletion need not know of them.

use std::ops::Range;
use std::path::PathBuf;

use unicode_width::UnicodeWidthStr;

pub use crate::protocol::Picture;
use crate::protocol::{Fold, Typed};
use crate::tui::{clipboard, paint};

/// First of the private characters that stand for chips; they never come in from outside (`tidy` drops them).
const FIRST: u32 = 0xF_0000;
/// Most chips of one draft.
const MOST: usize = 0xFF00;
/// A paste over this many lines, or `LONG` bytes, becomes a chip.
const LINES: usize = 10;
const LONG: usize = 2_000;

/// What a chip stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Chip {
    /// Pasted text.
    Paste { text: String, lines: usize },
    /// An image file, numbered from 1 in its draft.
    Image { picture: Picture, number: usize },
}

/// Most cells of a picture's name.
const NAME: usize = 20;

impl Chip {
    fn pasted(text: &str) -> Chip {
        Chip::Paste { text: text.to_owned(), lines: text.trim_end_matches('\n').split('\n').count() }
    }

    /// What the composer shows for it.
    pub fn label(&self) -> String {
        match self {
            Chip::Paste { lines: 1, text } => format!("[Pasted {} characters]", text.chars().count()),
            Chip::Paste { lines, .. } => format!("[Pasted {lines} lines]"),
            Chip::Image { number, picture } => {
                let name = picture.path.file_name().unwrap_or_default().to_string_lossy();
                // The digits that tell one from another say nothing to people.
                let name = match name.starts_with(clipboard::KEPT_AS) {
                    true => "clipboard".into(),
                    false => paint::cut(&paint::visible(&name), NAME),
                };
                format!("[Image {number}: {name}, {}]", size(picture.bytes))
            }
        }
    }
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// A text with what its chips stand for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub text: String,
    pub chips: Vec<Chip>,
}

/// The place of a chip in its draft, when `c` is one.
pub fn index(c: char) -> Option<usize> {
    (c as u32).checked_sub(FIRST).map(|at| at as usize).filter(|at| *at < MOST)
}

impl Draft {
    /// A draft of plain text.
    pub fn plain(text: &str) -> Draft {
        Draft { text: tidy(text), chips: Vec::new() }
    }

    /// A prompt as it was typed, with its pastes and pictures.
    pub fn of(typed: &Typed) -> Draft {
        let mut draft = Draft::default();
        let mut from = 0;
        for fold in &typed.folds {
            let (Some(before), Some(part)) = (typed.text.get(from..fold.at), typed.text.get(fold.range())) else {
                continue;
            };
            let chip = match &fold.picture {
                None => Chip::pasted(&tidy(part)),
                Some(picture) => {
                    let number = part.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
                    Chip::Image { picture: picture.clone(), number }
                }
            };
            draft.text.push_str(&tidy(before));
            match draft.add(chip) {
                Some(c) => draft.text.push(c),
                None => draft.text.push_str(&tidy(part)),
            }
            from = fold.range().end;
        }
        draft.text.push_str(&tidy(&typed.text[from..]));
        draft
    }

    /// The chip that a character stands for.
    pub fn chip(&self, c: char) -> Option<&Chip> {
        self.chips.get(index(c)?)
    }

    /// A part of it, with the chips that are in it.
    pub fn part(&self, range: Range<usize>) -> Draft {
        let mut part = Draft::default();
        for c in self.text[range].chars() {
            let c = self.chip(c).cloned().map_or(Some(c), |chip| part.add(chip));
            part.text.extend(c);
        }
        part
    }

    /// This draft and another behind it.
    pub fn followed_by(mut self, other: &Draft) -> Draft {
        self.splice(self.text.len(), other);
        self
    }

    /// Inserts another draft's text; its chips get new characters here.
    pub fn splice(&mut self, at: usize, from: &Draft) {
        let (mut at, mut start) = (at, 0);
        let mut take = |draft: &mut Draft, text: &str| {
            draft.text.insert_str(at, text);
            at += text.len();
        };
        for (place, c) in from.text.char_indices() {
            let Some(chip) = from.chip(c) else { continue };
            take(self, &from.text[start..place]);
            if let Some(c) = self.add(chip.clone()) {
                take(self, c.encode_utf8(&mut [0; 4]));
            }
            start = place + c.len_utf8();
        }
        take(self, &from.text[start..]);
    }

    /// Adds a chip, an image whose number is taken with the next one, and returns the character that stands for it; none when there are
    /// too many.
    pub fn add(&mut self, mut chip: Chip) -> Option<char> {
        if let Chip::Image { number, .. } = &mut chip
            && (*number == 0 || self.images().any(|used| used == *number))
        {
            *number = self.next_image();
        }
        if self.chips.len() >= MOST {
            return None;
        }
        let c = char::from_u32(FIRST + self.chips.len() as u32)?;
        self.chips.push(chip);
        Some(c)
    }

    /// The next image's number.
    pub fn next_image(&self) -> usize {
        1 + self.images().max().unwrap_or(0)
    }

    /// Numbers of the images that the text still has.
    fn images(&self) -> impl Iterator<Item = usize> {
        self.text.chars().filter_map(|c| match self.chip(c) {
            Some(Chip::Image { number, .. }) => Some(*number),
            _ => None,
        })
    }

    /// The text as it is sent: pastes in full, images by their number.
    pub fn expanded(&self) -> String {
        self.typed().text
    }

    /// The text as it is sent, and what of it is folded here.
    pub fn typed(&self) -> Typed {
        let mut typed = Typed::default();
        for c in self.text.chars() {
            let at = typed.text.len();
            let picture = match self.chip(c) {
                Some(Chip::Paste { text, .. }) => {
                    typed.text.push_str(text);
                    None
                }
                Some(Chip::Image { number, picture }) => {
                    typed.text.push_str(&format!("[Image {number}]"));
                    Some(picture.clone())
                }
                None => {
                    typed.text.push(c);
                    continue;
                }
            };
            typed.folds.push(Fold { at, len: typed.text.len() - at, picture });
        }
        typed
    }

    /// The text as it is shown once it is sent: pastes, too, by their label.
    pub fn folded(&self) -> String {
        let mut out = String::with_capacity(self.text.len());
        for c in self.text.chars() {
            match self.chip(c) {
                Some(chip) => out.push_str(&chip.label()),
                None => out.push(c),
            }
        }
        out
    }

    /// Files to send along: images, then what the text names as `@path` or `@"path with spaces"`. Whether they exist is
    /// for the caller to check.
    pub fn attachments(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for c in self.text.chars() {
            if let Some(Chip::Image { picture, .. }) = self.chip(c) {
                paths.push(picture.path.clone());
            }
        }
        for path in mentions(&self.text) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }
}

fn mentions(text: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '@' && (before.is_whitespace() || before == '(') {
            let path = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default(),
                None => rest
                    .split(|c: char| c.is_whitespace() || index(c).is_some())
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches(['.', ',', ':', ';', '!', '?', ')']),
            };
            if !path.is_empty() {
                paths.push(PathBuf::from(path));
            }
        }
        before = c;
    }
    paths
}

/// Cleans text from outside: line ends become `\n`; control, direction and our own private characters go.
pub fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                out.push('\n');
            }
            '\n' | '\t' => out.push(c),
            '\u{2028}' | '\u{2029}' => out.push('\n'),
            _ if c.is_control() || index(c).is_some() => {}
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {}
            _ => out.push(c),
        }
    }
    out
}

/// The chip for a paste that is too large to show in full.
pub fn large(text: &str) -> Option<Chip> {
    let chip = Chip::pasted(text);
    (text.len() > LONG || matches!(chip, Chip::Paste { lines, .. } if lines > LINES)).then_some(chip)
}

/// Reads pasted or dragged text as the path of an image: quoted, with escaped spaces, or a `file://` address. Whether
/// the file exists is for the caller to check.
pub fn image_path(text: &str) -> Option<PathBuf> {
    let text = text.trim();
    if text.is_empty() || text.contains('\n') || text.len() > 4096 {
        return None;
    }
    let quoted = |mark: char| text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    let path = if text.starts_with("file://") {
        url::Url::parse(text).ok()?.to_file_path().ok()?
    } else if let Some(inner) = quoted('\'').or_else(|| quoted('"')) {
        PathBuf::from(inner)
    } else if cfg!(windows) {
        PathBuf::from(text)
    } else {
        PathBuf::from(unescape(text))
    };
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    ["png", "jpg", "jpeg", "gif", "webp"].contains(&extension.as_str()).then_some(path)
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}

/// Cells of one grapheme in the composer; chips take their label's.
pub fn cells(grapheme: &str, chips: &[Chip]) -> usize {
    let first = grapheme.chars().next().unwrap_or(' ');
    match index(first).and_then(|at| chips.get(at)) {
        Some(chip) => paint::width(&chip.label()),
        None if first == '\t' => 4,
        None => grapheme.width(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pastes_are_cleaned() {
        let check = |text: &str, want: &str| assert_eq!(tidy(text), want, "{text:?}");
        check("a\r\nb\rc", "a\nb\nc");
        check("\u{1b}[31mred\u{7}", "[31mred");
        check("x\u{202e}y\u{f0000}z\tw", "xyz\tw");
    }

    #[test]
    fn images_and_mentions_become_attachments() {
        let image = |text: &str, want: Option<&str>| assert_eq!(image_path(text), want.map(PathBuf::from), "{text:?}");
        image("/tmp/shot.PNG ", Some("/tmp/shot.PNG"));
        image("'/tmp/my shot.png'", Some("/tmp/my shot.png"));
        image("/tmp/my\\ shot.jpeg", Some("/tmp/my shot.jpeg"));
        image("file:///tmp/my%20shot.webp", Some("/tmp/my shot.webp"));
        image("notes.txt", None);
        image("a.png\nb.png", None);

        let mut draft = Draft::default();
        let shot = draft
            .add(Chip::Image { picture: Picture { path: "/tmp/a.png".into(), bytes: 23_456 }, number: 1 })
            .unwrap();
        let paste = draft.add(Chip::Paste { text: "one\ntwo".into(), lines: 2 }).unwrap();
        draft.text = format!("look {shot} at @src/main.rs, (@\"my file.txt\") me@home {paste}");
        assert_eq!(draft.expanded(), "look [Image 1] at @src/main.rs, (@\"my file.txt\") me@home one\ntwo");
        let want: Vec<PathBuf> = ["/tmp/a.png", "src/main.rs", "my file.txt"].iter().map(PathBuf::from).collect();
        assert_eq!(draft.attachments(), want);
        assert_eq!(draft.chip(shot).unwrap().label(), "[Image 1: a.png, 24 kB]");
        let name = |name: &str| {
            let picture = Picture { path: name.into(), bytes: 1_500_000 };
            Chip::Image { picture, number: 2 }.label()
        };
        assert_eq!(name("/h/pictures/clipboard-ccd91cd1.png"), "[Image 2: clipboard, 1.5 MB]");
        // What is kept of it comes back the same, whatever stood around it.
        let again = Draft::of(&draft.typed());
        assert_eq!((again.expanded(), again.folded()), (draft.expanded(), draft.folded()));
        assert_eq!((again.typed(), again.attachments()), (draft.typed(), draft.attachments()));
        assert_eq!([size(999), size(1_000), size(2_340_000)], ["999 B", "1 kB", "2.3 MB"]);
    }
}
