//! Names of plans: an adjective, a noun and a verb, such as `amber-otter-humming`.

use crate::stdx::hash::sha256_hex;

const ADJECTIVES: [&str; 64] = [
    "amber", "ample", "azure", "bold", "brave", "breezy", "bright", "brisk", "calm", "clear", "clever", "cosy",
    "crisp", "curious", "deft", "eager", "early", "fair", "fleet", "fond", "fresh", "gentle", "glad", "golden",
    "grand", "green", "happy", "hardy", "honest", "humble", "jolly", "keen", "kind", "lively", "lucid", "lucky",
    "mellow", "merry", "mild", "misty", "modest", "neat", "nimble", "noble", "patient", "plain", "polite", "proud",
    "quick", "quiet", "rapid", "rosy", "round", "silver", "snowy", "solid", "sunny", "swift", "tidy", "tranquil",
    "vivid", "warm", "witty", "young",
];

const NOUNS: [&str; 64] = [
    "acorn", "anchor", "aspen", "badger", "beacon", "birch", "bison", "brook", "canyon", "cedar", "cello", "clover",
    "comet", "compass", "coral", "crane", "cricket", "delta", "dolphin", "ember", "falcon", "fern", "finch", "fjord",
    "fox", "garden", "glacier", "harbor", "hare", "hazel", "heron", "ibis", "island", "juniper", "lantern", "lark",
    "lemur", "lynx", "maple", "marble", "meadow", "moth", "nebula", "oak", "ocean", "orchid", "otter", "owl", "panda",
    "pebble", "pine", "planet", "prairie", "quartz", "raven", "reef", "river", "robin", "sparrow", "spruce", "tulip",
    "walrus", "willow", "wren",
];

const VERBS: [&str; 64] = [
    "baking",
    "balancing",
    "blooming",
    "bouncing",
    "building",
    "carving",
    "chasing",
    "chiming",
    "climbing",
    "coasting",
    "counting",
    "crafting",
    "dancing",
    "diving",
    "dozing",
    "drifting",
    "exploring",
    "fishing",
    "floating",
    "flying",
    "gathering",
    "gazing",
    "glowing",
    "growing",
    "hiking",
    "hopping",
    "humming",
    "juggling",
    "jumping",
    "knitting",
    "laughing",
    "leaping",
    "listening",
    "mapping",
    "marching",
    "melding",
    "musing",
    "paddling",
    "painting",
    "playing",
    "pondering",
    "racing",
    "reading",
    "resting",
    "riding",
    "roaming",
    "rolling",
    "rowing",
    "sailing",
    "singing",
    "skating",
    "sketching",
    "soaring",
    "spinning",
    "strolling",
    "surfing",
    "swimming",
    "thinking",
    "tinkering",
    "wandering",
    "waving",
    "weaving",
    "whistling",
    "writing",
];

/// Names tried before one gets a number.
const TRIES: u32 = 8;

/// Picks a name that is not taken. The same seed picks the same name while the same ones are taken.
pub(super) fn pick(seed: &str, taken: impl Fn(&str) -> bool) -> String {
    let name = |attempt: u32| {
        let hash = sha256_hex(format!("{seed} {attempt}").as_bytes());
        let word = |at: usize, words: &'static [&'static str]| {
            let number = hash.get(at..at + 8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0);
            words[number as usize % words.len()]
        };
        format!("{}-{}-{}", word(0, &ADJECTIVES), word(8, &NOUNS), word(16, &VERBS))
    };
    if let Some(free) = (0..TRIES).map(name).find(|name| !taken(name)) {
        return free;
    }
    let base = name(0);
    let mut number = 2u64;
    while taken(&format!("{base}-{number}")) {
        number += 1;
    }
    format!("{base}-{number}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_are_many_and_plain() {
        for (words, ending) in [(&ADJECTIVES, ""), (&NOUNS, ""), (&VERBS, "ing")] {
            let different: BTreeSet<&&str> = words.iter().collect();
            assert_eq!(different.len(), words.len());
            assert!(words.iter().all(|word| word.ends_with(ending) && word.chars().all(|c| c.is_ascii_lowercase())));
        }
    }

    #[test]
    fn names_are_stable_different_and_free() {
        let free = |_: &str| false;
        assert_eq!(pick("a", free), pick("a", free));
        let names: BTreeSet<String> = (0..200).map(|seed| pick(&seed.to_string(), free)).collect();
        assert!(names.len() > 195, "{} of 200", names.len());
        let first = pick("a", free);
        assert_ne!(pick("a", |name| name == first), first);
        // With every combination gone a number tells them apart.
        let numbered = pick("a", |name| name.split('-').count() == 3 || name.ends_with("-2"));
        assert_eq!(numbered, format!("{first}-3"));
    }
}
