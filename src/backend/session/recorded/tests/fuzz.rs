//! Random programs of shell operations. Two short ones run with every test; a hundred of 200 operations, some of them killed:
//! `COCODE_UNDO_FUZZ="1 100" cargo test -p cocode-backend random_programs -- --nocapture`, from seed 1 on. With
//! `COCODE_UNDO_SHRINK=1` each one that fails is made as small as it gets: a row for the tables beside this file.

use super::{Fixture, differ};

/// A generator of numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn path(&mut self) -> String {
        let folder = self.pick(&["", "", "d/", "d/e/", "g/", "repo/", "d/l/"]);
        format!("{folder}{}", self.pick(&["a", "b", "c", "f1", "f2", "d", "g", "l", "x y", "n"]))
    }

    fn operation(&mut self) -> String {
        let (one, other) = (self.path(), self.path());
        let (p, q) = (format!("'{one}'"), format!("'{other}'"));
        let n = self.below(1000);
        match self.below(42) {
            0 | 1 => format!("echo {n} > {p}"),
            2 => format!("echo {n} >> {p}"),
            3 => format!("cp -a {p} {q}"),
            4 => format!("cp {p} {q}"),
            5 | 6 => format!("mv {p} {q}"),
            7 => format!("mv -f {p} {q}; echo {n} >> {q}"),
            8 | 9 => format!("rm -rf {p}"),
            10 => format!("sed -i s/1/{n}/ {p}"),
            11 => format!("truncate -s {n} {p}"),
            12 => format!("mkdir -p {p}"),
            13 => format!("rmdir {p}"),
            14 => format!("ln {p} t3; mv -f t3 {q}; rm -f {p}"),
            15 => format!("ln -s {p} {q}"),
            16 => format!("ln -sfn '{}' {q}", one.rsplit('/').next().unwrap_or("a")),
            17 => format!("ln -s . {p}; ln -s l {q}"),
            18 => format!("chmod {} {p}", self.pick(&["600", "644", "755", "700", "440"])),
            19 => format!("dd if=/dev/zero of={p} bs=1000 seek={n} count=1 conv=notrunc"),
            20 => format!("truncate -s 3M {p}; printf x | dd of={p} bs=1 seek=2000000 conv=notrunc"),
            21 => format!("tar cf t.tar {p}; tar xf t.tar -C {q}; rm -f t.tar"),
            22 => "mv d d2; mv g d; mv d2 g".to_owned(),
            23 => format!("mv {p} t1; mv t1 t2; mv t2 {q}"),
            24 => format!("rm -rf {p}; mkdir {p}; echo {n} > {p}/in; rm -rf {q}; echo {n} > {q}"),
            25 => format!("cp -al d t4; echo {n} > t4/a; rm -rf t4; cp -a d {q}"),
            26 => "git init -q repo; cd repo && git add -A && git commit -qm x; cd ..".to_owned(),
            27 => format!("cd repo && git add -A && git commit -qm {n}; cd .."),
            28 => format!("cd repo && echo {n} > a && {}; cd ..", self.pick(&["git stash -q -u", "git stash pop -q"])),
            29 => "cd repo && git checkout -q -f . ; cd ..".to_owned(),
            30 => format!(
                "cd repo && {}; cd ..",
                self.pick(&["git clean -fdxq", "git reset -q --hard HEAD~1", "git gc -q"])
            ),
            31 => format!("cat {p} > {q}; touch {p}"),
            32 => format!("(echo {n} > {p} & echo {n} > {q} & wait)"),
            33 => format!("exec 5<> {p}; rm -f {p}; echo {n} >&5; exec 5>&-"),
            34 => format!("mkfifo {p}; rm -f {p}"),
            35 => format!("ln {p} {q}"),
            36 => format!("ln -f {p} {q}; echo {n} >> {p}"),
            37 => format!("cp -al d t5; mv -T t5 {q}"),
            38 => format!("touch -c -d 2001-01-0{} {p}", n % 9 + 1),
            39 => format!("touch -c -r {p} {q}; cp -a {p} {q}"),
            40 => format!("printf {} | dd of={p} conv=notrunc; touch -c -r {q} {p}", n % 10),
            _ if n < 300 => format!("python3 -c 'open(\"{one}\",\"r+b\").write(b\"{n}\")'"),
            _ => format!("cat {p} {q} > joined; mv joined {p}"),
        }
    }
}

/// Turns of shell operations.
#[derive(Debug, Clone)]
struct Program {
    turns: Vec<Turn>,
}

#[derive(Debug, Clone)]
struct Turn {
    operations: Vec<String>,
    /// It is killed once its manifest has so many bytes, and the session with it.
    killed: Option<u64>,
}

impl Program {
    fn random(seed: u64, operations: usize) -> Program {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let turn = |turn| {
            let operations = (0..operations / 4).map(|_| random.operation()).collect();
            let killed = (turn == random.below(4)).then(|| 100 + random.below(20_000) as u64);
            Turn { operations, killed }
        };
        Program { turns: (0..4).map(turn).collect() }
    }

    /// Runs it: the tree after an undo of each turn is as it was before it, and after a redo as after it.
    fn check(&self) -> Result<(), String> {
        let mut it = Fixture::new(
            "mkdir -p d/e g repo; for f in a b d/a d/b d/e/a d/e/c g/f1 g/f2 repo/a; do echo 1 2 3 $f > $f; done; \
             for i in $(seq 40); do seq $i > d/e/many$i; done; ln -s d/e l; ln -s nowhere d/n; git init -q repo",
        );
        let mut trees = vec![it.tree()];
        for (turn, Turn { operations, killed }) in self.turns.iter().enumerate() {
            it.turn();
            let root = it.root();
            let script: String = operations
                .iter()
                .map(|operation| format!("{{ {operation}; }} 2>/dev/null; cd {}\n", root.display()))
                .collect();
            match *killed {
                Some(bytes) => {
                    it.start(&script, Some(bytes)).1.join().unwrap();
                    it.resume();
                }
                None => {
                    let finished = it.run(&script);
                    expect(&finished.missed, &[], &format!("turn {turn}"))?;
                }
            }
            // A turn that changed nothing has nothing to undo.
            let tree = it.tree();
            if Some(&tree) != trees.last() {
                trees.push(tree);
            }
        }
        for round in ["first", "second"] {
            for at in (0..trees.len() - 1).rev() {
                let what = format!("{round} undo of {at}");
                let done = it.session.undo().map_err(|error| format!("{what}: {error}"))?;
                expect(&done.refused, &[], &what)?;
                expect(&done.unseen, &[], &what)?;
                differ(&it.tree(), &trees[at], &what)?;
            }
            for (at, tree) in trees.iter().enumerate().skip(1) {
                let what = format!("{round} redo of {}", at - 1);
                let done = it.session.redo().map_err(|error| format!("{what}: {error}"))?;
                expect(&done.refused, &[], &what)?;
                differ(&it.tree(), tree, &what)?;
            }
        }
        Ok(())
    }

    /// The same with as few operations as fail.
    fn shrunk(mut self) -> Program {
        let fails = |program: &Program| (0..TRIES).any(|_| program.check().is_err());
        let mut alive = self.clone();
        alive.turns.iter_mut().for_each(|turn| turn.killed = None);
        if fails(&alive) {
            self = alive;
        }
        let mut count = self.turns.iter().map(|turn| turn.operations.len()).max().unwrap_or(1);
        while count > 0 {
            let mut shrank = false;
            for turn in 0..self.turns.len() {
                let mut from = 0;
                while from < self.turns[turn].operations.len() {
                    let mut less = self.clone();
                    let operations = &mut less.turns[turn].operations;
                    operations.drain(from..(from + count).min(operations.len()));
                    if fails(&less) {
                        (self, shrank) = (less, true);
                    } else {
                        from += count;
                    }
                }
            }
            count = if count == 1 && shrank { 1 } else { count / 2 };
        }
        self
    }
}

/// How often a program may pass before it counts as one that does: some depend on who comes first.
const TRIES: usize = 2;

fn expect(found: &[String], want: &[String], what: &str) -> Result<(), String> {
    if found == want { Ok(()) } else { Err(format!("{what}: {found:#?}")) }
}

/// Checks some seeds. What fails is made small where `COCODE_UNDO_SHRINK` is set.
fn fuzz(seeds: std::ops::Range<u64>, operations: usize) {
    let mut failed = Vec::new();
    for seed in seeds {
        let program = Program::random(seed, operations);
        if let Err(why) = program.check() {
            failed.push(format!("seed {seed}: {why}"));
            eprintln!("seed {seed}: {why}");
            if std::env::var_os("COCODE_UNDO_SHRINK").is_some() {
                let program = program.shrunk();
                eprintln!("{program:#?}\n{:?}", program.check());
            }
        } else {
            eprintln!("seed {seed}: as it was");
        }
    }
    assert_eq!(failed, [""; 0]);
}

#[test]
fn random_programs_are_undone_exactly() {
    let asked = std::env::var("COCODE_UNDO_FUZZ").unwrap_or_default();
    let mut numbers = asked.split_whitespace().map(|number| number.parse::<u64>().unwrap());
    match (numbers.next(), numbers.next()) {
        (Some(seed), count) => fuzz(seed..seed + count.unwrap_or(1), 200),
        _ => fuzz(1..3, 40),
    }
}
