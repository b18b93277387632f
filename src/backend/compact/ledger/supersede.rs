//! A later line on the same thing takes the place of an earlier one.

use super::lexis::{self, CHANGES, LIFTS, OUTDATED, OUTDATES};
use crate::session::entry::{Line, Sort, Who};

/// Lines of one shape that stay: what is said over and over with other names is routine.
const OF_A_SHAPE: usize = 3;

/// Adds a line behind those that it leaves standing.
pub(super) fn add(lines: &mut Vec<Line>, mut line: Line) {
    match (line.sort, line.who) {
        // The newest reason counts.
        (Sort::Path, _) => lines.retain(|old| old.sort != Sort::Path || old.text != line.text),
        (Sort::Error, _) => {
            let about = lexis::subject(&line.text, true);
            lines.retain(|old| old.sort != Sort::Error || lexis::subject(&old.text, true) != about);
            let shape = shape(&line.text);
            let alike = |old: &Line| old.sort == Sort::Error && self::shape(&old.text) == shape;
            if !shape.is_empty() && lines.iter().filter(|old| alike(old)).count() >= OF_A_SHAPE {
                // Of those that are fixed the oldest leaves, or else of all.
                let of_shape = lines.iter().enumerate().filter(|(_, old)| alike(old));
                if let Some((at, _)) = of_shape.min_by_key(|(_, old)| old.fixed.is_none()) {
                    lines.remove(at);
                }
            }
        }
        (_, Who::User) => by_user(lines, &line),
        (_, Who::Model | Who::Tool) => {
            // The user's own words stand; the same said again counts from now on.
            if lines.iter().any(|old| old.who == Who::User && old.text == line.text) {
                return;
            }
            let shape = shape(&line.about);
            if let Some(old) = lines.iter().find(|old| old.who == line.who && old.about == line.about) {
                line.rank = line.rank.min(old.rank);
            }
            lines.retain(|old| {
                old.who != line.who || old.sort == Sort::Path || old.sort == Sort::Error || old.about != line.about
            });
            let alike = |old: &Line| old.who == line.who && old.sort == line.sort && self::shape(&old.about) == shape;
            if !shape.is_empty() && lines.iter().filter(|old| alike(old)).count() >= OF_A_SHAPE {
                line.rank = line.rank.min(1);
                if let Some(oldest) = lines.iter().position(alike) {
                    lines.remove(oldest);
                }
            }
        }
    }
    lines.push(line);
}

/// A subject without the names in it.
fn shape(about: &str) -> String {
    let plain = lexis::words(about).filter(|(sort, word)| *sort == lexis::Sort::Plain && !word.contains('#'));
    plain.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

/// What the user says last holds.
fn by_user(lines: &mut Vec<Line>, line: &Line) {
    let mine = |old: &Line| old.who == Who::User;
    // Said again, or the same with another figure.
    lines.retain(|old| !mine(old) || old.about.is_empty() || old.about != line.about);
    let lifts = LIFTS.found_in(&line.text);
    let outdated = outdated(&line.text);
    let changes = lifts || CHANGES.found_in(&line.text) || !outdated.is_empty();
    if !changes {
        return;
    }
    let marks = lexis::marks(&line.text);
    lines.retain(|old| {
        if !mine(old) {
            return true;
        }
        let of_old = lexis::marks(&old.text);
        // "9000, not 8931" withdraws what chose 8931, never what forbade it.
        let chosen = old.sort != Sort::Constraint || of_old.iter().any(|mark| is_figure(mark));
        let replaced = chosen && !outdated.is_empty() && outdated.iter().any(|gone| chooses(&old.text, gone));
        let lifted = lifts && old.sort == Sort::Constraint && shares(&old.about, &line.about, &of_old, &marks);
        let changed = !lifts && same_thing(old, line, &of_old, &marks);
        !(replaced || lifted || changed)
    });
}

fn is_figure(mark: &str) -> bool {
    mark.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'v')
}

/// What a text says was so: the words behind "instead of", or before "ではなく".
fn outdated(text: &str) -> Vec<String> {
    let mut gone = Vec::new();
    if let Some(place) = OUTDATES.place_in(text) {
        let after = lexis::words(&text[place.end..]).take(2);
        gone.extend(
            after
                .filter(|(_, word)| word.len() > 1 && (is_figure(word) || !lexis::subject(word, false).is_empty()))
                .map(|(_, word)| word.to_lowercase()),
        );
    }
    if let Some(place) = OUTDATED.place_in(text) {
        gone.extend(lexis::words(&text[..place.start]).last().map(|(_, word)| word.to_lowercase()));
    }
    gone
}

/// Whether a text speaks for something: has it as a word of its own, and not as what it speaks against.
fn chooses(text: &str, wanted: &str) -> bool {
    let against = OUTDATES.place_in(text).map_or(text.len(), |place| place.start);
    lexis::words(&text[..against]).any(|(_, word)| word.to_lowercase() == wanted)
}

/// Whether two lines name the same thing, or speak of the same in most of their words.
fn shares(a: &str, b: &str, of_a: &[&str], of_b: &[&str]) -> bool {
    let named = of_a.iter().any(|mark| of_b.contains(mark));
    let words: Vec<&str> = a.split(' ').filter(|word| word.len() > 3).collect();
    let common = words.iter().filter(|word| b.split(' ').any(|other| other == **word)).count();
    named || common >= 2 || words.len() == 1 && common == 1
}

/// Whether a line that changes something gives another figure for what an older one is about.
fn same_thing(old: &Line, line: &Line, of_old: &[&str], of_line: &[&str]) -> bool {
    let figures = |marks: &[&str]| marks.iter().any(|mark| is_figure(mark));
    if !figures(of_old) || !figures(of_line) || old.about.is_empty() || line.about.is_empty() {
        return false;
    }
    let within = |a: &str, b: &str| a.split(' ').all(|word| b.split(' ').any(|other| other == word));
    within(&line.about, &old.about) || within(&old.about, &line.about)
}
