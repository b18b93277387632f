//! Random programs of shell operations.

use super::{Fixture, same};

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
        match self.below(36) {
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
            // Hard links that outlive their turn come back as files of their own.
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
            _ if n < 300 => format!("python3 -c 'open(\"{one}\",\"r+b\").write(b\"{n}\")'"),
            _ => format!("cat {p} {q} > joined; mv joined {p}"),
        }
    }
}

/// Programs of shell operations: the tree after an undo of each is as it was before it, and after a redo as after it.
fn fuzz(seed: u64, operations: usize) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut it = Fixture::new(
        "mkdir -p d/e g repo; for f in a b d/a d/b d/e/a d/e/c g/f1 g/f2 repo/a; do echo 1 2 3 $f > $f; done; \
         for i in $(seq 40); do seq $i > d/e/many$i; done; ln -s d/e l; ln -s nowhere d/n; git init -q repo",
    );
    let mut trees = vec![it.tree()];
    let mut scripts = Vec::new();
    for turn in 0..4 {
        it.turn();
        let script: String = (0..operations / 4)
            .map(|_| format!("{{ {}; }} 2>/dev/null; cd {}\n", random.operation(), it.root().display()))
            .collect();
        // One of them is killed, and the session with it.
        if turn == random.below(4) {
            let bytes = 100 + random.below(20_000) as u64;
            it.start(&script, Some(bytes)).1.join().unwrap();
            it.resume();
        } else {
            let finished = it.run(&script);
            assert_eq!(finished.missed, [""; 0], "seed {seed}: {script}");
        }
        scripts.push(script);
        // A turn that changed nothing has nothing to undo.
        let tree = it.tree();
        if Some(&tree) == trees.last() {
            scripts.pop();
        } else {
            trees.push(tree);
        }
    }
    for round in ["first", "second"] {
        for at in (0..trees.len() - 1).rev() {
            let done = it.undo();
            assert_eq!((done.refused, done.unseen), (vec![], vec![]), "seed {seed}, {round} undo of {}", scripts[at]);
            same(&it.tree(), &trees[at], &format!("seed {seed}, {round} undo of {}", scripts[at]));
        }
        for at in 1..trees.len() {
            let done = it.session.redo().unwrap();
            assert_eq!(done.refused, [""; 0], "seed {seed}, {round} redo of {}", scripts[at - 1]);
            same(&it.tree(), &trees[at], &format!("seed {seed}, {round} redo of {}", scripts[at - 1]));
        }
    }
}

#[test]
fn random_programs_are_undone_exactly() {
    let asked = std::env::var("COCODE_UNDO_FUZZ").unwrap_or_default();
    let mut numbers = asked.split_whitespace().map(|number| number.parse::<u64>().unwrap());
    match (numbers.next(), numbers.next()) {
        (Some(seed), count) => (seed..seed + count.unwrap_or(1)).for_each(|seed| fuzz(seed, 200)),
        _ => (1..=2).for_each(|seed| fuzz(seed, 40)),
    }
}
