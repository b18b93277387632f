//! Reads keys of normal and visual mode as commands. Pure: the same keys always mean the same.

use super::motions::{Find, Motion};
use super::objects::{Object, Shape};

/// Largest count.
const MOST: usize = 9_999;

/// Keys without a character, as `keys` carries them.
pub(super) const LEFT: char = '\u{1c}';
pub(super) const RIGHT: char = '\u{1d}';
pub(super) const UP: char = '\u{1e}';
pub(super) const DOWN: char = '\u{1f}';
pub(super) const REDO: char = '\u{12}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Yank,
    Indent,
    Outdent,
    Toggle,
    Lower,
    Upper,
}

impl Operator {
    /// It always takes whole lines.
    pub(super) fn is_of_lines(self) -> bool {
        matches!(self, Operator::Indent | Operator::Outdent)
    }

    /// A character as the operator writes it.
    pub(super) fn cased(self, c: char) -> String {
        match self {
            Operator::Lower => c.to_lowercase().collect(),
            Operator::Upper => c.to_uppercase().collect(),
            _ if c.is_lowercase() => c.to_uppercase().collect(),
            _ => c.to_lowercase().collect(),
        }
    }
}

/// What an operator works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Motion(Motion),
    Object(Object),
    /// The line itself, and those below by the count.
    Lines,
    /// What visual mode has selected.
    Selection,
    /// The lines in which that is.
    SelectedLines,
    /// As much as visual mode had selected when the change was made that is repeated: graphemes, or lines.
    Graphemes(usize),
    Rows(usize),
}

/// Where an insertion begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Here,
    Behind,
    FirstWord,
    LineEnd,
    LineBelow,
    LineAbove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Move(Motion),
    Operate(Operator, Target),
    Insert(Place),
    Select {
        lines: bool,
    },
    /// A text object becomes the selection.
    SelectObject(Object),
    OtherEnd,
    Put {
        before: bool,
    },
    Replace(char, Target),
    Overwrite,
    Join {
        blank: bool,
        target: Target,
    },
    Undo,
    Redo,
    Repeat,
    /// `/`: earlier prompts.
    Search,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) count: Option<usize>,
    pub(super) register: Option<char>,
    pub(super) action: Action,
}

/// Why keys are not a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// More are to come.
    More,
    Unknown,
}

/// Reads all of `keys` as one command.
pub(super) fn read(keys: &[char], visual: bool) -> Result<Command, Stop> {
    let mut keys = Keys(keys.iter().copied().peekable());
    let mut count = keys.count();
    let mut register = None;
    while keys.0.next_if_eq(&'"').is_some() {
        let name = keys.take()?;
        if !matches!(name, 'a'..='z' | 'A'..='Z' | '0'..='9' | '"' | '_' | '-') {
            return Err(Stop::Unknown);
        }
        register = Some(name);
        count = times(count, keys.count());
    }
    let key = keys.take()?;
    let action = if visual { keys.selected(key)? } else { keys.normal(key, &mut count)? };
    Ok(Command { count, register, action })
}

/// Two counts of one command multiply.
fn times(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_mul(other).min(MOST)),
        (one, other) => one.or(other),
    }
}

struct Keys<I: Iterator<Item = char>>(std::iter::Peekable<I>);

impl<I: Iterator<Item = char>> Keys<I> {
    fn take(&mut self) -> Result<char, Stop> {
        self.0.next().ok_or(Stop::More)
    }

    fn count(&mut self) -> Option<usize> {
        let mut count = None;
        while let Some(digit) = self.0.peek().and_then(|c| c.to_digit(10)) {
            if digit == 0 && count.is_none() {
                break;
            }
            self.0.next();
            count = Some((count.unwrap_or(0) * 10 + digit as usize).min(MOST));
        }
        count
    }

    fn normal(&mut self, key: char, count: &mut Option<usize>) -> Result<Action, Stop> {
        use Operator::{Change, Delete, Yank};
        let motion = |operator, motion| Ok(Action::Operate(operator, Target::Motion(motion)));
        match key {
            'x' => motion(Delete, Motion::Right),
            'X' => motion(Delete, Motion::Left),
            'D' => motion(Delete, Motion::LineEnd),
            'C' => motion(Change, Motion::LineEnd),
            's' => motion(Change, Motion::Right),
            'S' => Ok(Action::Operate(Change, Target::Lines)),
            'Y' => Ok(Action::Operate(Yank, Target::Lines)),
            'i' => Ok(Action::Insert(Place::Here)),
            'a' => Ok(Action::Insert(Place::Behind)),
            'I' => Ok(Action::Insert(Place::FirstWord)),
            'A' => Ok(Action::Insert(Place::LineEnd)),
            'o' => Ok(Action::Insert(Place::LineBelow)),
            'O' => Ok(Action::Insert(Place::LineAbove)),
            'r' => Ok(Action::Replace(self.character()?, Target::Motion(Motion::Right))),
            'R' => Ok(Action::Overwrite),
            'J' => Ok(Action::Join { blank: true, target: Target::Lines }),
            'u' => Ok(Action::Undo),
            REDO => Ok(Action::Redo),
            '.' => Ok(Action::Repeat),
            '/' => Ok(Action::Search),
            '~' => Ok(Action::Operate(Operator::Toggle, Target::Motion(Motion::Right))),
            'd' | 'c' | 'y' | '>' | '<' => {
                let operator = operator(key).ok_or(Stop::Unknown)?;
                self.operate(operator, key, count)
            }
            'g' => match self.take()? {
                'J' => Ok(Action::Join { blank: false, target: Target::Lines }),
                key @ ('u' | 'U' | '~') => self.operate(case(key), key, count),
                key => Ok(Action::Move(behind_g(key)?)),
            },
            key => self.common(key),
        }
    }

    fn selected(&mut self, key: char) -> Result<Action, Stop> {
        let selection = Target::Selection;
        match key {
            'x' => Ok(Action::Operate(Operator::Delete, selection)),
            's' => Ok(Action::Operate(Operator::Change, selection)),
            'd' | 'c' | 'y' | '>' | '<' => Ok(Action::Operate(operator(key).ok_or(Stop::Unknown)?, selection)),
            'u' | 'U' | '~' => Ok(Action::Operate(case(key), selection)),
            'r' => Ok(Action::Replace(self.character()?, selection)),
            'J' => Ok(Action::Join { blank: true, target: selection }),
            'D' | 'X' => Ok(Action::Operate(Operator::Delete, Target::SelectedLines)),
            'C' | 'S' | 'R' => Ok(Action::Operate(Operator::Change, Target::SelectedLines)),
            'Y' => Ok(Action::Operate(Operator::Yank, Target::SelectedLines)),
            'o' => Ok(Action::OtherEnd),
            'i' | 'a' => Ok(Action::SelectObject(self.object(key == 'a')?)),
            'g' => match self.take()? {
                'J' => Ok(Action::Join { blank: false, target: selection }),
                key @ ('u' | 'U' | '~') => Ok(Action::Operate(case(key), selection)),
                key => Ok(Action::Move(behind_g(key)?)),
            },
            key => self.common(key),
        }
    }

    fn common(&mut self, key: char) -> Result<Action, Stop> {
        match key {
            'v' => Ok(Action::Select { lines: false }),
            'V' => Ok(Action::Select { lines: true }),
            'p' => Ok(Action::Put { before: false }),
            'P' => Ok(Action::Put { before: true }),
            key => self.motion(key).map(Action::Move),
        }
    }

    fn operate(&mut self, operator: Operator, own: char, count: &mut Option<usize>) -> Result<Action, Stop> {
        *count = times(*count, self.count());
        let target = match self.take()? {
            key if key == own => Target::Lines,
            key @ ('i' | 'a') => Target::Object(self.object(key == 'a')?),
            'g' => match self.take()? {
                // `guu` is short for `gugu`.
                key if key == own => Target::Lines,
                key => Target::Motion(behind_g(key)?),
            },
            key => Target::Motion(self.motion(key)?),
        };
        Ok(Action::Operate(operator, target))
    }

    fn object(&mut self, around: bool) -> Result<Object, Stop> {
        let shape = Shape::of(self.take()?).ok_or(Stop::Unknown)?;
        Ok(Object { shape, around })
    }

    fn motion(&mut self, key: char) -> Result<Motion, Stop> {
        Ok(match key {
            'h' | LEFT => Motion::Left,
            'l' | ' ' | RIGHT => Motion::Right,
            'k' | UP => Motion::Up,
            'j' | DOWN => Motion::Down,
            'w' => Motion::Word { big: false },
            'W' => Motion::Word { big: true },
            'b' => Motion::Back { big: false },
            'B' => Motion::Back { big: true },
            'e' => Motion::End { big: false },
            'E' => Motion::End { big: true },
            '0' => Motion::LineStart,
            '^' => Motion::FirstWord,
            '+' => Motion::FirstBelow,
            '-' => Motion::FirstAbove,
            '_' => Motion::FirstHere,
            '|' => Motion::Column,
            '$' => Motion::LineEnd,
            'G' => Motion::Bottom,
            'g' => behind_g(self.take()?)?,
            'f' | 'F' | 't' | 'T' => {
                let target = self.character()?;
                Motion::Find(Find { target, back: matches!(key, 'F' | 'T'), till: matches!(key, 't' | 'T') })
            }
            ';' => Motion::Again { reverse: false },
            ',' => Motion::Again { reverse: true },
            '%' => Motion::Bracket,
            '(' => Motion::Sentence { back: true },
            ')' => Motion::Sentence { back: false },
            '{' => Motion::Paragraph { back: true },
            '}' => Motion::Paragraph { back: false },
            _ => return Err(Stop::Unknown),
        })
    }

    /// A character that is meant as itself.
    fn character(&mut self) -> Result<char, Stop> {
        self.take().and_then(|c| if c.is_control() { Err(Stop::Unknown) } else { Ok(c) })
    }
}

fn behind_g(key: char) -> Result<Motion, Stop> {
    match key {
        'g' => Ok(Motion::Top),
        'e' => Ok(Motion::EndBack { big: false }),
        'E' => Ok(Motion::EndBack { big: true }),
        'j' => Ok(Motion::Down),
        'k' => Ok(Motion::Up),
        _ => Err(Stop::Unknown),
    }
}

fn operator(key: char) -> Option<Operator> {
    Some(match key {
        'd' => Operator::Delete,
        'c' => Operator::Change,
        'y' => Operator::Yank,
        '>' => Operator::Indent,
        '<' => Operator::Outdent,
        _ => return None,
    })
}

fn case(key: char) -> Operator {
    match key {
        'u' => Operator::Lower,
        'U' => Operator::Upper,
        _ => Operator::Toggle,
    }
}
