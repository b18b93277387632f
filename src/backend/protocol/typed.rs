//! Prompts as they were typed: the text that is sent, and which parts of it the composer had folded.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Separates prompts that come back together.
pub const BETWEEN: &str = "\n\n";

/// A prompt as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    /// As it is sent: pastes in full, pictures as `[Image 1]`.
    pub text: String,
    /// In the order of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folds: Vec<Fold>,
}

/// A part of a text, in bytes, that the composer shows as one mark: a paste, or the name of a picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    pub at: usize,
    pub len: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Picture>,
}

/// An image file and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    pub path: PathBuf,
    pub bytes: u64,
}

impl From<&str> for Typed {
    fn from(text: &str) -> Typed {
        Typed { text: text.to_owned(), folds: Vec::new() }
    }
}

impl Fold {
    pub fn range(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.len)
    }
}

impl Typed {
    /// Without the blanks around it.
    pub fn trimmed(mut self) -> Typed {
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        let blank = self.text.len() - self.text.trim_start().len();
        self.text.drain(..blank);
        for fold in &mut self.folds {
            let range = fold.range();
            fold.at = range.start.saturating_sub(blank);
            fold.len = range.end.min(end).saturating_sub(blank).saturating_sub(fold.at);
        }
        self.folds.retain(|fold| fold.len > 0);
        self
    }

    /// With a prefix.
    pub fn behind(mut self, word: &str) -> Typed {
        self.text.insert_str(0, word);
        self.folds.iter_mut().for_each(|fold| fold.at += word.len());
        self
    }

    /// Another text with the folds of this one that it still has, in their order.
    pub fn rewritten(&self, text: &str) -> Typed {
        let mut rewritten = Typed::from(text);
        let mut from = 0;
        for fold in &self.folds {
            let part = self.text.get(fold.range()).unwrap_or_default();
            if let Some(at) = text[from..].find(part).filter(|_| !part.is_empty()) {
                rewritten.folds.push(Fold { at: from + at, ..fold.clone() });
                from += at + part.len();
            }
        }
        rewritten
    }

    /// Without folds that do not lie in the text one after the other, and without the marks of pictures that are gone.
    pub fn checked(self, exists: impl Fn(&Path) -> bool) -> Typed {
        let mut checked = Typed::default();
        let mut from = 0;
        for fold in self.folds {
            let range = fold.range();
            let Some(part) = self.text.get(range.clone()).filter(|part| range.start >= from && !part.is_empty()) else {
                continue;
            };
            checked.text.push_str(&self.text[from..range.start]);
            from = range.end;
            if fold.picture.as_ref().is_none_or(|picture| exists(&picture.path)) {
                checked.folds.push(Fold { at: checked.text.len(), ..fold });
                checked.text.push_str(part);
            } else if self.text[from..].starts_with(' ') {
                from += 1;
            }
        }
        checked.text.push_str(&self.text[from..]);
        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, folds: &[(usize, usize, Option<&str>)]) -> Typed {
        let picture = |path: &str| Picture { path: path.into(), bytes: 1 };
        let fold =
            |(at, len, path): &(usize, usize, Option<&str>)| Fold { at: *at, len: *len, picture: path.map(picture) };
        Typed { text: text.into(), folds: folds.iter().map(fold).collect() }
    }

    #[test]
    fn folds_follow_their_text() {
        let cut = typed("  a pasted \n", &[(0, 1, None), (4, 8, None)]).trimmed();
        assert_eq!(cut, typed("a pasted", &[(2, 6, None)]));
        assert_eq!(typed("pasted", &[(0, 6, None)]).behind("!"), typed("!pasted", &[(1, 6, None)]));
    }

    #[test]
    fn an_edited_text_keeps_what_it_still_has() {
        let before = typed("see [Image 1] and a\nb", &[(4, 9, Some("/a.png")), (18, 3, None)]);
        let check = |text: &str, folds: &[(usize, usize, Option<&str>)]| {
            assert_eq!(before.rewritten(text), typed(text, folds), "{text:?}");
        };
        check("look: [Image 1]", &[(6, 9, Some("/a.png"))]);
        check("a\nb", &[(0, 3, None)]);
        check("all new", &[]);
    }

    #[test]
    fn lost_pictures_and_broken_folds_go() {
        let check = |from: Typed, want: Typed| assert_eq!(from.checked(|path| path == Path::new("/here")), want);
        let two = typed("see [Image 1] and [Image 2] ok", &[(4, 9, Some("/gone")), (18, 9, Some("/here"))]);
        check(two, typed("see and [Image 2] ok", &[(8, 9, Some("/here"))]));
        // Out of the text, inside a character, before the one that came before it, empty.
        let broken = &[(0, 99, None), (1, 1, None), (3, 2, None), (0, 2, None), (5, 0, None), (9, usize::MAX, None)];
        check(typed("日本 text", broken), typed("日本 text", &[(3, 2, None)]).checked(|_| true));
    }
}
