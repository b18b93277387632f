//! Keys in; text, cursor and mode out.

mod grammar;
mod visual;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt::Write;

use super::*;
use crate::tui::composer::chip::Chip;
use crate::tui::keymap::Keymap;

/// An editor with vim, in normal mode.
struct Fixture {
    vim: Vim,
    editor: Editor,
    keymap: Keymap,
    width: usize,
}

impl Fixture {
    /// `|` is the cursor; `#` is a folded paste.
    fn new(start: &str) -> Fixture {
        let mut editor = Editor::default();
        let (before, behind) = start.split_once('|').unwrap_or((start, ""));
        for part in [before, behind] {
            for c in part.chars() {
                match c {
                    '#' => editor.insert_chip(Chip::Paste { text: "pasted".into(), lines: 20 }),
                    c => editor.insert(c.encode_utf8(&mut [0; 4])),
                }
            }
        }
        editor.go(before.len() + before.matches('#').count() * 3);
        let mut vim = Vim { mode: Mode::Normal, ..Vim::default() };
        vim.settle(&mut editor);
        Fixture { vim, editor, keymap: Keymap::default(), width: 40 }
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Outcome {
        let key = KeyEvent::new(code, modifiers);
        let outcome = self.vim.key(key, self.keymap.action(key), &mut self.editor, self.width);
        // The composer's part of it.
        if outcome == Outcome::Passed {
            match code {
                KeyCode::Char(c) => self.editor.type_text(c.encode_utf8(&mut [0; 4])),
                KeyCode::Backspace => {
                    self.editor.delete(crate::tui::composer::editor::Unit::Grapheme, super::super::editor::Way::Back);
                }
                _ => {}
            }
        }
        self.vim.settle(&mut self.editor);
        outcome
    }

    /// Characters are typed; `<esc>`, `<bs>`, `<up>`, `<c-r>` and the like are keys.
    fn keys(&mut self, keys: &str) -> Outcome {
        let mut outcome = Outcome::Handled;
        let mut rest = keys;
        while let Some(c) = rest.chars().next() {
            let named = [
                ("<esc>", KeyCode::Esc, KeyModifiers::NONE),
                ("<bs>", KeyCode::Backspace, KeyModifiers::NONE),
                ("<up>", KeyCode::Up, KeyModifiers::NONE),
                ("<down>", KeyCode::Down, KeyModifiers::NONE),
                ("<left>", KeyCode::Left, KeyModifiers::NONE),
                ("<right>", KeyCode::Right, KeyModifiers::NONE),
                ("<del>", KeyCode::Delete, KeyModifiers::NONE),
                ("<cr>", KeyCode::Enter, KeyModifiers::NONE),
                ("<c-r>", KeyCode::Char('r'), KeyModifiers::CONTROL),
                ("<c-w>", KeyCode::Char('w'), KeyModifiers::CONTROL),
            ];
            let named = named.iter().find(|(name, ..)| rest.starts_with(name));
            let (length, code, modifiers) = named
                .map_or((c.len_utf8(), KeyCode::Char(c), KeyModifiers::NONE), |named| {
                    (named.0.len(), named.1, named.2)
                });
            rest = &rest[length..];
            outcome = self.press(code, modifiers);
        }
        outcome
    }

    /// The text with its cursor, and the mode where it is not normal.
    fn shown(&self) -> String {
        let mut shown = String::new();
        for (at, c) in self.editor.text().char_indices() {
            if at == self.editor.cursor() {
                shown.push('|');
            }
            let chip = self.editor.draft().chip(c).is_some();
            shown.push(if chip { '#' } else { c });
        }
        if self.editor.cursor() == self.editor.text().len() {
            shown.push('|');
        }
        match self.vim.mode {
            Mode::Normal => {}
            Mode::Insert => shown.push_str(" INSERT"),
            Mode::Visual { lines: false, .. } => shown.push_str(" VISUAL"),
            Mode::Visual { lines: true, .. } => shown.push_str(" LINES"),
            Mode::Overwrite { .. } => shown.push_str(" REPLACE"),
        }
        shown
    }
}

fn check(rows: &[(&str, &str, &str)]) {
    let mut wrong = String::new();
    for (start, keys, want) in rows {
        let mut it = Fixture::new(start);
        it.keys(keys);
        let got = it.shown();
        if got != *want {
            let _ = writeln!(wrong, "{start:?} {keys:?}\n   got {got:?}\n  want {want:?}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn motions() {
    check(&[
        ("ab|c", "h", "a|bc"),
        ("|abc", "h", "|abc"),
        ("|abc", "l", "a|bc"),
        ("ab|c", "l", "ab|c"),
        ("|abcdef", "3l", "abc|def"),
        ("|abc", "9l", "ab|c"),
        ("a\n|b", "h", "a\n|b"),
        ("|ab\ncd", "j", "ab\n|cd"),
        ("a|b\nc", "j", "ab\n|c"),
        ("ab|c\nd\nefg", "jj", "abc\nd\nef|g"),
        ("abc\nd\nef|g", "kk", "ab|c\nd\nefg"),
        ("|a\nb\nc\nd", "3j", "a\nb\nc\n|d"),
        ("a\nb\nc\n|d", "2k", "a\n|b\nc\nd"),
        ("|abc\nd\nefgh", "$jj", "abc\nd\nefg|h"),
        ("|foo bar", "w", "foo |bar"),
        ("|foo bar", "ww", "foo ba|r"),
        ("|foo.bar baz", "w", "foo|.bar baz"),
        ("|foo.bar baz", "ww", "foo.|bar baz"),
        ("|foo.bar baz", "W", "foo.bar |baz"),
        ("|a b c d", "3w", "a b c |d"),
        ("|foo\n\nbar", "w", "foo\n|\nbar"),
        ("|foo\n\nbar", "ww", "foo\n\n|bar"),
        ("|foo\n  bar", "w", "foo\n  |bar"),
        ("foo ba|r", "b", "foo |bar"),
        ("foo |bar", "b", "|foo bar"),
        ("foo.ba|r", "B", "|foo.bar"),
        ("foo.ba|r", "bb", "foo|.bar"),
        ("foo\n\n|bar", "b", "foo\n|\nbar"),
        ("foo\n\n|bar", "bb", "|foo\n\nbar"),
        ("a b c |d", "2b", "a |b c d"),
        ("|foo bar", "e", "fo|o bar"),
        ("fo|o bar", "e", "foo ba|r"),
        ("|foo.bar", "E", "foo.ba|r"),
        ("|foo.bar", "ee", "foo|.bar"),
        ("|a bc d", "2e", "a bc |d"),
        ("fo|o\n\n bar", "e", "foo\n\n ba|r"),
        ("foo ba|r", "ge", "fo|o bar"),
        ("foo.x ba|r", "gE", "foo.|x bar"),
        ("foo ba|r baz", "0", "|foo bar baz"),
        ("  foo ba|r", "0", "|  foo bar"),
        ("  foo ba|r", "^", "  |foo bar"),
        ("  foo ba|r", "_", "  |foo bar"),
        ("|foo bar", "$", "foo ba|r"),
        ("|foo\nbar", "$", "fo|o\nbar"),
        ("|foo\nbar", "2$", "foo\nba|r"),
        ("a\nb\n|c", "gg", "|a\nb\nc"),
        ("|a\nb\n  c", "G", "a\nb\n  |c"),
        ("|a\nb\nc", "2G", "a\n|b\nc"),
        ("a\nb\n|c", "2gg", "a\n|b\nc"),
        ("|a\nb", "9G", "a\n|b"),
        ("|abcabc", "fc", "ab|cabc"),
        ("|abcabc", "2fc", "abcab|c"),
        ("|abcabc", "fx", "|abcabc"),
        ("|abc\nx", "fx", "|abc\nx"),
        ("|abcabc", "tc", "a|bcabc"),
        ("abcab|c", "Fb", "abca|bc"),
        ("abcab|c", "Ta", "abca|bc"),
        ("abcabc|d", "2Fa", "|abcabcd"),
        ("|abcabc", "fb;", "abca|bc"),
        ("|abcabcabc", "fb;;,", "abca|bcabc"),
        ("|abcabc", "tc;", "abca|bc"),
        ("abcabca|b", "Fb,", "abcabca|b"),
        ("|a,b,c,d", "f,2;", "a,b,c|,d"),
        ("|(a (b) c)", "%", "(a (b) c|)"),
        ("(a (b) c|)", "%", "|(a (b) c)"),
        ("a| [b]", "%", "a [b|]"),
        ("|f {\n x\n}", "%", "f {\n x\n|}"),
        ("|(a", "%", "|(a"),
        ("|a\nb\n\nc", "}", "a\nb\n|\nc"),
        ("|a\n\nb\n\nc", "2}", "a\n\nb\n|\nc"),
        ("|a\nb", "}", "a\n|b"),
        ("a\n\nb\n|c", "{", "a\n|\nb\nc"),
        ("a\nb|c", "{", "|a\nbc"),
        ("|ab cd", "<right><right>", "ab| cd"),
        ("ab |cd", "<left>", "ab| cd"),
        ("ab |cd", "<bs><bs>", "a|b cd"),
        ("|a\nb", "<down>", "a\n|b"),
        ("|ab", " ", "a|b"),
    ]);
}

#[test]
fn graphemes_wide_characters_and_chips_are_whole() {
    check(&[
        ("|👩‍👩‍👧b", "l", "👩‍👩‍👧|b"),
        ("👩‍👩‍👧|b", "h", "|👩‍👩‍👧b"),
        ("|👩‍👩‍👧b", "x", "|b"),
        ("a|e\u{301}b", "x", "a|b"),
        ("a|e\u{301}b", "rx", "a|xb"),
        ("|🇩🇪🇫🇷", "x", "|🇫🇷"),
        ("|日本語 x", "w", "日本語 |x"),
        ("|日本カタ", "w", "日本|カタ"),
        ("|ひら漢字", "dw", "|漢字"),
        ("|한글abc", "e", "한|글abc"),
        ("|日本", "f本x", "|日"),
        ("|日本", "~", "日|本"),
        ("日|本", "p", "日|本"),
        ("|日本", "xp", "本|日"),
        ("|👍🏽a", "ylp", "👍🏽|👍🏽a"),
        ("|straße", "gUiw", "|STRASSE"),
        ("see |# now", "x", "see | now"),
        ("see |# now", "dw", "see |now"),
        ("see |# now", "xp", "see  |#now"),
        ("|see # now", "dwp", "#see|  now"),
        ("|#", "yyp", "#\n|#"),
        ("|#abc", "w", "#|abc"),
        ("ab|c#", "e", "abc|#"),
        ("|ab#cd", "diw", "|#cd"),
        ("|#x", "~", "#|x"),
        ("a|#b", "gUU", "|A#B"),
        ("|# #", "cwx<esc>", "|x #"),
        ("|#a", "v$y$p", "#a#|a"),
        ("|a#", "$rx", "a|x"),
        ("|日本\n語", "J", "日本| 語"),
        ("|e\u{301}a", "R日<esc>", "|日a"),
    ]);
}

#[test]
fn inserting_replacing_joining() {
    check(&[
        ("a|b", "ix<esc>", "a|xb"),
        ("a|b", "ax<esc>", "ab|x"),
        ("  a|b", "Ix<esc>", "  |xab"),
        ("|ab", "Ax<esc>", "ab|x"),
        ("|a\nb", "ox<esc>", "a\n|x\nb"),
        ("a\n|b", "Ox<esc>", "a\n|x\nb"),
        ("|ab", "i", "|ab INSERT"),
        ("|ab", "a", "a|b INSERT"),
        ("|", "ihello<esc>", "hell|o"),
        ("|b", "3ix<esc>", "xx|xb"),
        ("|a", "2oxy<esc>", "a\nxy\nx|y"),
        ("|a", "3A!<esc>", "a!!|!"),
        ("|ab", "ix<esc>u", "|ab"),
        ("|ab", "ifoo bar<esc>u", "|ab"),
        ("|ab", "ifoo<esc>u<c-r>", "fo|oab"),
        ("|abc", "xi<esc>u", "|abc"),
        ("|abc", "xu", "|abc"),
        ("|abc", "xxx3u", "|abc"),
        ("|abc", "xxuu<c-r>", "|bc"),
        ("|abc", "xul<c-r>", "|bc"),
        ("|abc", "xuylp<c-r>", "a|abc"),
        ("|a b", "cwxyz<esc>u", "|a b"),
        ("|abc", "rx", "|xbc"),
        ("|abc", "2rx", "x|xc"),
        ("|abc", "9rx", "|abc"),
        ("ab|c", "r ", "ab| "),
        ("|abc", "r<esc>l", "a|bc"),
        ("|abc", "Rxy<esc>", "x|yc"),
        ("|abc", "Rx", "x|bc REPLACE"),
        ("ab|c", "Rxyz<esc>", "abxy|z"),
        ("|abc", "Rxy<bs>", "x|bc REPLACE"),
        ("|abc", "Rxy<bs><bs><bs>", "|abc REPLACE"),
        ("|abc", "Rxy<esc>u", "|abc"),
        ("|abcdef", "Rxy<esc>l.", "xyx|yef"),
        ("|a\nb", "J", "a| b"),
        ("|a\n   b", "J", "a| b"),
        ("|a \nb", "J", "a |b"),
        ("|a\n)", "J", "a|)"),
        ("|a\n\nb", "J", "|a\nb"),
        ("|a\nb\nc", "3J", "a b| c"),
        ("|a\nb\nc", "2J", "a| b\nc"),
        ("|a\n b", "gJ", "a| b"),
        ("|a", "J", "|a"),
        ("|a\nb", "Ju", "|a\nb"),
    ]);
}

#[test]
fn dot_repeats_the_last_change() {
    check(&[
        ("|abc", "x.", "|c"),
        ("|abcdef", "2x.", "|ef"),
        ("|abcdef", "x3.", "|ef"),
        ("|a b c", "dw.", "|c"),
        ("|a b c", "cwx<esc>w.", "x |x c"),
        ("|a b c", "ciwfoo<esc>ww.", "foo b fo|o"),
        ("|ab", "ix<esc>.", "|xxab"),
        ("|a", "Ax<esc>.", "ax|x"),
        ("|a", "ox<esc>.", "a\nx\n|x"),
        ("|b", "2ix<esc>.", "xx|xxb"),
        ("a\nb\n|c", "kdd.", "|a"),
        ("|a\nb\nc", ">>j.", "  a\n  |b\nc"),
        ("|abc", "rxl.", "x|xc"),
        ("|abcd", "~~.", "ABC|d"),
        ("|a\nb\nc", "J.", "a b| c"),
        ("|ab cd", "ylp.", "aa|ab cd"),
        ("|abcdef", "vld.", "|ef"),
        ("|a\nb\nc\nd\ne", "Vjd.", "|e"),
        ("|abc abc", "vlUfa.", "ABc |ABc"),
        ("|abc", "x:u.", "|bc"),
        ("|a,b,c,d", "df,.", "|c,d"),
        ("|abc", "xu.", "|bc"),
        ("|abc", "ylx.", "|c"),
        ("|abc", ".", "|abc"),
        ("|ab cd", "ifoo<bs><esc>w.", "foab f|ocd"),
        ("|# x", "xP$.", "# |#x"),
        ("|ab cd", "ea!<esc>ww.", "ab! cd|!"),
    ]);
}

#[test]
fn registers_keep_what_was_cut() {
    check(&[
        ("|a b", "dwp", "ba| "),
        ("|a b", "dwP", "a| b"),
        ("|ab", "xp", "b|a"),
        ("|a\nb", "ddp", "b\n|a"),
        ("|a\nb", "jddP", "|b\na"),
        ("|a\nb", "yy3p", "a\n|a\na\na\nb"),
        ("|ab", "yl3p", "aaa|ab"),
        ("|ab cd", "\"ayiww\"byiw\"ap", "ab ca|bd"),
        ("|ab cd", "\"ayiww\"byiwp", "ab cc|dd"),
        ("|ab cd", "\"ayiww\"Ayiw$\"ap", "ab cdabc|d"),
        ("|a\nb", "\"ayyj\"Ayy\"ap", "a\nb\n|a\nb"),
        ("|ab cd", "yiwwdiw\"0p", "ab a|b"),
        ("|a\nb\nc", "dddd\"2p", "c\n|a"),
        ("|a\nb\nc", "dddd\"1p", "c\n|b"),
        ("|abc", "xx\"-p", "c|b"),
        ("|ab cd", "yiww\"_diwp", "ab a|b"),
        ("|ab", "\"zp", "|ab"),
        ("|ab", "\"!x", "|b"),
        ("|ab cd", "2\"adw\"ap", "ab c|d"),
        ("|ab", "ylix<esc>p", "x|aab"),
        ("|a", "ddp", "\n|a"),
        ("|", "p", "|"),
        ("|a b\nc", "yjp", "a b\n|a b\nc\nc"),
        ("|foo\nbar", "vjyP", "|foo\nbfoo\nbar"),
    ]);
    // They outlive the prompt, with what was folded in it.
    let mut it = Fixture::new("|look #");
    it.keys("yy");
    it.editor.take();
    it.vim.begin();
    it.keys("<esc>p");
    assert_eq!(it.shown(), "\n|look #");
    assert_eq!(it.editor.draft().expanded(), "\nlook pasted");
}

#[test]
fn keys_that_are_not_vims_pass() {
    let outcome = |start: &str, keys: &str, want: Outcome| {
        let mut it = Fixture::new(start);
        assert_eq!(it.keys(keys), want, "{start:?} {keys:?}");
    };
    outcome("|a", "<esc>", Outcome::Passed);
    outcome("|a", "d<esc>", Outcome::Handled);
    outcome("|a", "v<esc>", Outcome::Handled);
    outcome("|a", "i<esc>", Outcome::Handled);
    outcome("|a", "i<esc><esc>", Outcome::Passed);
    outcome("|a", "Rx<esc>", Outcome::Handled);
    outcome("|a", "<cr>", Outcome::Passed);
    outcome("|a", "i<cr>", Outcome::Passed);
    outcome("|a", "ix", Outcome::Passed);
    outcome("|a", "<c-w>", Outcome::Passed);
    outcome("|a", "Z", Outcome::Handled);
    outcome("|a", "!", Outcome::Handled);
    outcome("|", "?", Outcome::Passed);
    outcome("|a", "/", Outcome::As(Action::SearchHistory));
    outcome("|a\nb", "k", Outcome::As(Action::Up));
    outcome("|a\nb", "j", Outcome::Handled);
    outcome("|a\nb", "jj", Outcome::As(Action::Down));
    outcome("|a\nb", "<up>", Outcome::As(Action::Up));
    outcome("|a", "vk", Outcome::Handled);
    outcome("|", "k", Outcome::As(Action::Up));
    outcome("|", "<bs>", Outcome::Passed);
    let label = |keys: &str, want: &str| {
        let mut it = Fixture::new("|abc def");
        it.keys(keys);
        assert_eq!(it.vim.label(), want);
    };
    label("", "-- NORMAL --");
    label("2d", "-- NORMAL -- 2d");
    label("\"a", "-- NORMAL -- \"a");
    label("i", "-- INSERT --");
    label("R", "-- REPLACE --");
    label("v", "-- VISUAL --");
    label("V", "-- VISUAL LINE --");
}

/// A line that fills its row to the end is followed by an empty row, where the cursor cannot rest.
#[test]
fn rows_that_are_full_do_not_hold_the_cursor() {
    let mut it = Fixture::new("|0123456789");
    it.width = 10;
    assert_eq!(it.keys("j"), Outcome::As(Action::Down));
    let mut it = Fixture::new("|0123456789abc");
    it.width = 10;
    it.keys("j");
    assert_eq!(it.shown(), "0123456789|abc");
}

/// No keys break a text: the cursor stays between graphemes, chips stay whole, counts do not flood.
#[test]
fn any_keys_leave_a_whole_text() {
    let alphabet: Vec<char> = "hjklwbeWBE0^$gGfFtT;,%{}dcy><~uUJrRpPxXsSDCYiaIAoOvV.123\"'()[]ab_ 日".chars().collect();
    let mut seed: u64 = 7;
    for run in 0..400 {
        let mut it = Fixture::new("|one (two) # \"日本語\"\n\n  {e\u{301}👩‍👩‍👧 x}\nlast # 🇩🇪🇫🇷");
        for step in 0..60 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let pick = usize::try_from(seed >> 33).unwrap();
            match pick % 12 {
                0 => it.press(KeyCode::Esc, KeyModifiers::NONE),
                1 => it.press(KeyCode::Char('r'), KeyModifiers::CONTROL),
                _ => it.press(KeyCode::Char(alphabet[pick / 12 % alphabet.len()]), KeyModifiers::NONE),
            };
            let (text, cursor) = (it.editor.text(), it.editor.cursor());
            let boundary = text.grapheme_indices(true).any(|(at, _)| at == cursor) || cursor == text.len();
            assert!(boundary, "run {run}, step {step}");
            assert!(
                text.chars()
                    .all(|c| crate::tui::composer::chip::index(c).is_none_or(|at| at < it.editor.chips().len()))
            );
            assert!(text.len() < 64 << 20, "run {run}, step {step}");
        }
    }
}
