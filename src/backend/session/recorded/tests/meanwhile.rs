//! What somebody else does to files that a running command has touched, and to those of one whose record nobody closed.

use std::io::Write as _;

use super::*;
use crate::sandbox::record::LEFT;

/// How a record is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Close {
    /// At the end of the command.
    AtOnce,
    /// After a kill: the second edit comes before the resume.
    Adopted,
}

/// How many copies there are of what a command left: they tell that nothing of it writes to that anymore.
pub(super) fn copies(record: &Path) -> usize {
    let names = fs::read_dir(record).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_str().is_some_and(|name| name.ends_with(LEFT))).count()
}

/// A command has two parts; edits come between them and after the end. What the files are before it, and what undo leaves;
/// then what it refuses, and what it keeps of others.
fn row(close: Close, [before, first, between, second, behind, want]: [&str; 6], refused: &[&str], merged: &[&str]) {
    let mut it = Fixture::new(before);
    it.gone = close == Close::Adopted;
    it.turn();
    let go = it.temp.path().join("go");
    it.by_hand("mkfifo ../go");
    let (record, running) = it.start(&format!("{first}\nread -r _ < ../go\n{second}"), None);
    let store = folder(it.session.store(), &record);
    while copies(&store) < 1 {
        std::thread::yield_now();
    }
    it.by_hand(between);
    fs::OpenOptions::new().write(true).open(&go).unwrap().write_all(b"\n").unwrap();
    running.join().unwrap();
    fs::remove_file(&go).unwrap();
    match close {
        Close::AtOnce => {
            it.end(&record);
            it.by_hand(behind);
        }
        Close::Adopted => {
            it.by_hand(behind);
            it.resume();
        }
    }
    let new = it.tree();
    let done = it.undo();
    let what = format!("{close:?}: {first} | {between} | {second} | {behind}");
    let root = format!("{}/", it.root().display());
    let found: Vec<String> = done.refused.iter().map(|line| line.replace(&root, "")).collect();
    assert_eq!(found, refused, "{what}");
    assert_eq!(done.merged, merged.iter().map(|name| it.path(name)).collect::<Vec<_>>(), "{what}");
    same(&it.tree(), &Fixture::new(want).tree(), &what);
    if refused.is_empty() {
        it.session.redo().unwrap();
        same(&it.tree(), &new, &format!("forth again: {what}"));
    }
}

#[test]
fn what_others_change_meanwhile_stays() {
    use Close::{Adopted, AtOnce};
    let ten = "seq 10 > a";
    let nine = "seq 10 | sed s/9/nine/ > a";
    let in_place = |from: &str, to: &str| format!("sed s/{from}/{to}/ a > ../new; cat ../new > a; rm ../new");
    for close in [AtOnce, Adopted] {
        // An editor that puts a new file in the place, and one that writes to the file itself.
        row(close, [ten, "sed -i s/3/three/ a", "sed -i s/9/nine/ a", ":", ":", nine], &[], &["a"]);
        row(close, [ten, "sed -i s/3/three/ a", &in_place("9", "nine"), ":", ":", nine], &[], &["a"]);
        row(close, [ten, &in_place("3", "three"), &in_place("9", "nine"), ":", ":", nine], &[], &["a"]);
        // The command comes back to it.
        let again = "sed -i s/5/five/ a";
        row(close, [ten, "sed -i s/3/three/ a", "sed -i s/9/nine/ a", again, ":", nine], &[], &["a"]);
        row(
            close,
            [ten, &in_place("3", "three"), &in_place("9", "nine"), &in_place("5", "five"), ":", nine],
            &[],
            &["a"],
        );
        // After the end.
        row(close, [ten, "sed -i s/3/three/ a", ":", again, "sed -i s/9/nine/ a", nine], &[], &["a"]);
        row(close, [ten, "sed -i s/3/three/ a", ":", again, &in_place("9", "nine"), nine], &[], &["a"]);
        // What cannot be told apart is left alone.
        let apart = "a was changed since at line 3, on or right next to what the agent changed; revert that first, then try again";
        row(
            close,
            [ten, "sed -i s/3/three/ a", "sed -i s/three/mine/ a", ":", ":", "seq 10 | sed s/3/mine/ > a"],
            &[apart],
            &[],
        );
        let removing = "b was changed since, and removing it would lose that change";
        row(close, ["", "echo new > b", "echo mine >> b", ":", ":", "printf 'new\\nmine\\n' > b"], &[removing], &[]);
        let restore = "b was deleted since: restore it, then try again";
        row(close, ["seq 3 > b", "echo new > b", "rm b", ":", ":", ""], &[restore], &[]);
        // What the command itself did in between is its own.
        row(close, [ten, "sed -i s/3/three/ a", ":", "rm a; mv ../none a 2>/dev/null; echo x > a", ":", ten], &[], &[]);
        row(close, [ten, "echo x > b; ln b c", ":", "echo y >> c", ":", ten], &[], &[]);
        row(close, [ten, "echo x > b", ":", "ln b c; echo y >> c", ":", ten], &[], &[]);
        row(close, ["seq 3 > x", "cp x y", ":", "mv x z; echo more >> z; rm y", ":", "seq 3 > x"], &[], &[]);
    }
}
