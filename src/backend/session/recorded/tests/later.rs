//! Commands in the background that change what later turns changed, too.

use super::meanwhile::copies;
use super::*;
use crate::session::entry::Begun;

impl Fixture {
    /// Starts a command in the background, which waits for a word after its first part.
    fn start_behind(&mut self, first: &str, second: &str) -> (String, std::thread::JoinHandle<String>) {
        self.by_hand("mkfifo ../go ../begun");
        let script = format!("{first}\necho > ../begun\nread -r _ < ../go\n{second}");
        let (record, running) = self.start(&script, None);
        let (task, call) = (record.clone(), CallId::nth(9));
        let begun = Begun { record: Some(record.clone()), ..Begun::command(task, call, script) };
        self.session.append(EntryKind::TaskBegun(begun)).unwrap();
        self.by_hand("read -r _ < ../begun");
        (record, running)
    }

    fn let_go(&mut self, (record, running): (String, std::thread::JoinHandle<String>)) {
        self.by_hand("echo > ../go");
        running.join().unwrap();
        self.end(&record);
        self.by_hand("rm ../go ../begun");
    }

    fn edit(&mut self, name: &str, text: &str) {
        // The log counts in milliseconds.
        let start = now() / 1_000_000;
        while now() / 1_000_000 < start + 2 {
            std::thread::yield_now();
        }
        let path = self.path(name);
        self.session.before_change(&path).unwrap();
        let blob = self.session.store().keep_blob(text.as_bytes()).unwrap();
        self.session.will_change(&path, blob, self.path("temporary")).unwrap();
        fs::write(&path, text).unwrap();
        self.session.settled(&path).unwrap();
    }
}

/// What a command of the first turn does before and after the second turn edits `a`; what `a` is after one undo, and after two;
/// and whose changes the first one undid.
fn row(first: &str, edit: &str, second: &str, [want, then]: [&str; 2], along: bool) {
    for resumed in [false, true] {
        let mut it = Fixture::new("seq 10 > a; echo b > b");
        let old = it.tree();
        it.turn();
        let running = it.start_behind(first, &format!("{second}; echo more > b"));
        // What rests is told apart from what comes later.
        while first.starts_with("sed") && copies(&folder(it.session.store(), &running.0)) < 1 {
            std::thread::yield_now();
        }
        it.turn();
        it.edit("a", edit);
        it.let_go(running);
        let new = it.tree();
        let what = format!("{first} | {edit} | {second}");
        let text = |it: &Fixture| fs::read_to_string(it.path("a")).unwrap();
        if resumed {
            it.resume();
        }
        let done = it.undo();
        assert_eq!((done.refused.as_slice(), text(&it).as_str()), (&[][..], want), "{what}");
        assert_eq!(done.by.len(), usize::from(along), "{what}: {:?}", done.by);
        // What it did elsewhere is its turn's.
        assert_eq!(fs::read_to_string(it.path("b")).unwrap(), "more\n");
        it.session.redo().unwrap();
        same(&it.tree(), &new, &format!("forth again: {what}"));
        it.undo();
        if resumed {
            it.resume();
        }
        let done = it.undo();
        assert_eq!((done.refused.as_slice(), text(&it).as_str()), (&[][..], then), "{what}");
        same(&it.tree(), &old, &what);
        it.session.redo().unwrap();
        it.session.redo().unwrap();
        same(&it.tree(), &new, &format!("forth again from the start: {what}"));
        let done = it.session.undo_all().unwrap();
        assert_eq!(done.refused, [""; 0], "{what}");
        same(&it.tree(), &old, &format!("all of it: {what}"));
    }
}

#[test]
fn a_later_turn_is_undone_whatever_commands_changed_since() {
    let ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
    let with = |from: &str, to: &str| ten.replace(from, to);
    let edited = with("5", "five");
    // The lines do not meet: what the command changed stays until its own turn is undone.
    row(":", &edited, "sed -i s/9/nine/ a", [&with("9", "nine"), ten], false);
    row("sed -i s/2/two/ a", &with("2", "two").replace('5', "five"), ":", [&with("2", "two"), ten], false);
    // They do: it goes along.
    row(":", &edited, "sed -i s/five/cinq/ a", [ten, ten], true);
    row(":", &edited, "echo x > a", [ten, ten], true);
    row(":", &edited, "rm a", [ten, ten], true);
    row(":", &edited, "sed -i s/five/cinq/ a; sed -i s/cinq/cinco/ a", [ten, ten], true);
    // Before and after.
    row("sed -i s/5/V/ a", &edited, "sed -i s/five/cinq/ a", [&with("5", "V"), ten], true);
    // All the time, as a log.
    row("exec 3>>a; echo x >&3", &edited, "echo y >&3", [ten, ten], true);
    row(
        "sed -i s/2/two/ a",
        &with("2", "two").replace('5', "five"),
        "sed -i s/five/cinq/ a",
        [&with("2", "two"), ten],
        true,
    );
}

/// What the user made of it since is not the command's.
#[test]
fn what_goes_along_leaves_what_others_changed() {
    let mut it = Fixture::new("seq 10 > a");
    it.turn();
    let running = it.start_behind(":", "sed -i s/five/cinq/ a");
    it.turn();
    it.edit("a", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n");
    it.let_go(running);
    it.by_hand("sed -i s/9/nine/ a");
    let done = it.undo();
    assert_eq!((done.refused.as_slice(), &done.merged), (&[][..], &vec![it.path("a")]));
    assert_eq!(fs::read_to_string(it.path("a")).unwrap(), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n10\n");
}
