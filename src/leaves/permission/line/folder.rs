//! `cd`: where a line continues.

use std::path::PathBuf;

use super::super::Behavior;
use super::super::decide::Verdict;
use super::super::files::lexical;
use super::super::paths::{self, Cwd};
use super::super::shell::{Simple, Word};
use super::Part;
use super::judge::Judge;

impl Judge<'_> {
    pub(super) fn change_folder(&mut self, words: &[Word], cwd: Cwd) -> (Cwd, Cwd) {
        let text = Simple::canonical(words);
        let places = self.query.places;
        let arguments = match &words[1..] {
            [first, rest @ ..] if first.literal().as_deref() == Some("--") => rest,
            all => all,
        };
        let target = match arguments {
            [] => places.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned),
            [one] if one.literal().as_deref() != Some("-") && !one.prefix().starts_with('-') => {
                paths::path_text(one, places)
            }
            _ => None,
        };
        let (Some(target), Some(from)) = (target, cwd.0.clone()) else {
            let verdict = Verdict::new(Behavior::Ask, "it is unknown where it goes");
            self.parts.push(Part { words: words.to_vec(), ..Part::new(text, verdict, true) });
            return (Cwd(None), Cwd(None));
        };
        let to: Vec<PathBuf> = from.iter().map(|from| lexical(&from.join(&target))).collect();
        let mut worst = Verdict::new(Behavior::Allow, "it stays in the workspace");
        for path in &to {
            if !places.inside(path, self.files) || !places.inside(&self.files.resolve(path), self.files) {
                paths::worse(
                    &mut worst,
                    Verdict::new(Behavior::Ask, format!("{} is outside the workspace", path.display())),
                );
            }
        }
        self.parts.push(Part { words: words.to_vec(), ..Part::new(text, worst, true) });
        (Cwd(Some(to)), cwd)
    }
}
