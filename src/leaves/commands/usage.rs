//! How often skills were used, and how lately: orders completion, and says what may be shortened first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::stdx::fs::replace_private;

/// Skills that are remembered; beyond, the lowest scores are forgotten.
const MOST: usize = 5_000;

/// Uses by name of the skill.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// None: nothing is read or written.
    file: Option<PathBuf>,
    /// Days after which a use counts half.
    half_life: f64,
    skills: BTreeMap<String, Uses>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Uses {
    count: u64,
    /// Seconds since 1970.
    last: u64,
}

#[derive(Deserialize, Serialize)]
struct Stored {
    skills: BTreeMap<String, Uses>,
}

impl Usage {
    /// Counts nothing, and knows of nothing.
    pub fn off() -> Usage {
        Usage::default()
    }

    /// Reads the file of a home; a use counts half after so many days. The second part is a notice when the file is damaged: the count starts afresh.
    pub fn open(home: &Path, half_life_days: u32) -> (Usage, Option<String>) {
        let half_life = f64::from(half_life_days.max(1));
        let file = home.join("cocode").join("skill-usage.json");
        let read = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Stored>(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Stored { skills: BTreeMap::new() }),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(Stored { skills }) => (Usage { file: Some(file), half_life, skills }, None),
            Err(error) => {
                let notice = format!("{} is damaged ({error}): counting of skill usage starts over.", file.display());
                (Usage { file: Some(file), half_life, skills: BTreeMap::new() }, Some(notice))
            }
        }
    }

    /// `count × 2^(-days since the last use / half-life)`; 0 for what was never used.
    pub fn score(&self, name: &str, now: SystemTime) -> f64 {
        self.skills.get(name).map_or(0.0, |uses| score(*uses, seconds(now), self.half_life))
    }

    /// Counts a use, and writes the file; what another process counted meanwhile is kept.
    ///
    /// # Errors
    /// What the file system says; the use counts for this process all the same.
    pub fn record(&mut self, name: &str, now: SystemTime) -> std::io::Result<()> {
        let Some(file) = self.file.clone() else { return Ok(()) };
        if let Ok(Stored { skills }) =
            std::fs::read(&file).map_err(drop).and_then(|bytes| serde_json::from_slice(&bytes).map_err(drop))
        {
            self.skills = skills;
        }
        let (now, half_life) = (seconds(now), self.half_life);
        let uses = self.skills.entry(name.to_owned()).or_insert(Uses { count: 0, last: now });
        *uses = Uses { count: uses.count.saturating_add(1), last: now.max(uses.last) };
        while self.skills.len() > MOST {
            let least =
                self.skills.iter().min_by(|a, b| score(*a.1, now, half_life).total_cmp(&score(*b.1, now, half_life)));
            let Some(name) = least.map(|(name, _)| name.clone()) else { break };
            self.skills.remove(&name);
        }
        let stored = serde_json::to_vec_pretty(&Stored { skills: self.skills.clone() })?;
        replace_private(&file, &stored)
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

fn score(uses: Uses, now: u64, half_life: f64) -> f64 {
    let days = now.saturating_sub(uses.last) as f64 / 86_400.0;
    uses.count as f64 * (-days / half_life).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(days: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400)
    }

    #[test]
    fn a_week_halves_a_score() {
        let home = tempfile::tempdir().unwrap();
        let (mut usage, notice) = Usage::open(home.path(), 7);
        assert_eq!(notice, None);
        for (name, day) in [("commit", 100), ("commit", 107), ("init", 114)] {
            usage.record(name, at(day)).unwrap();
        }
        let (usage, _) = Usage::open(home.path(), 7);
        let scores = |day| ["commit", "init", "none"].map(|name| usage.score(name, at(day)));
        assert_eq!(scores(107), [2.0, 1.0, 0.0]);
        assert_eq!(scores(121), [0.5, 0.5, 0.0]);
        let (slow, _) = Usage::open(home.path(), 14);
        assert_eq!(slow.score("commit", at(121)), 1.0);
    }

    #[test]
    fn two_processes_keep_each_others_counts() {
        let home = tempfile::tempdir().unwrap();
        let (mut one, mut two) = (Usage::open(home.path(), 7).0, Usage::open(home.path(), 7).0);
        one.record("a", at(1)).unwrap();
        two.record("a", at(1)).unwrap();
        one.record("b", at(1)).unwrap();
        assert_eq!(Usage::open(home.path(), 7).0.score("a", at(1)), 2.0);
    }

    #[test]
    fn a_damaged_file_is_started_afresh_and_said_so() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("cocode/skill-usage.json");
        for damage in ["{\"skills\": {\"a\": {\"coun", "[]", "\u{0}"] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, damage).unwrap();
            let (mut usage, notice) = Usage::open(home.path(), 7);
            assert!(notice.unwrap().contains("skill-usage.json is damaged"));
            usage.record("a", at(1)).unwrap();
            assert_eq!(Usage::open(home.path(), 7).0.score("a", at(1)), 1.0);
        }
    }

    #[test]
    fn off_writes_nothing() {
        let mut usage = Usage::off();
        usage.record("a", at(1)).unwrap();
        assert_eq!(usage.score("a", at(1)), 0.0);
    }
}
