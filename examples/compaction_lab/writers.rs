//! Models that are asked for a summary: an honest one that forgets as models do, and several that are of no help.

use cocode::message::Kind;
use cocode::session::entry::Seq;

use crate::desk::Desk;
use crate::script::{By, Script, filler, read, together};

/// What an honest summary has besides facts: models write much that nobody needs.
const PROSE: &str = "\
1. Primary request and intent: the user wants the work of this session finished as discussed, step by step, with tests.
2. Key technical concepts: services, workers, migrations, tests, releases, and how they hang together in this project.
3. Files and code sections: several files were read and changed; the changes are small and belong together.
4. Problem solving: each failure was looked at, its cause was found, and the run was repeated until it passed.
5. Current work: the assistant was going through the project and checking the parts that the change touches.
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// Keeps about half of the facts, and loses some of those each time.
    Honest,
    Empty,
    /// Longer than what it stands for.
    Huge,
    Refusing,
    /// Repeats what a tool result told it to do.
    Injected,
    /// Claims what the session denies.
    Lying,
}

impl Writer {
    pub(crate) const ALL: [Writer; 6] =
        [Writer::Honest, Writer::Empty, Writer::Huge, Writer::Refusing, Writer::Injected, Writer::Lying];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Writer::Honest => "honest",
            Writer::Empty => "empty",
            Writer::Huge => "huge",
            Writer::Refusing => "refusing",
            Writer::Injected => "injected",
            Writer::Lying => "lying",
        }
    }

    /// The answer to the nth request for a summary.
    pub(crate) fn answer(self, script: &Script, desk: &Desk, before: u64, nth: u64) -> String {
        let tagged = |text: &str| format!("<summary>\n{text}\n</summary>");
        let lies = || script.lies.iter().map(|lie| format!("- {}\n", lie.text)).collect::<String>();
        match self {
            Writer::Honest => tagged(&format!("{PROSE}{}", facts(script, desk, (0, (55, 80)), nth))),
            Writer::Empty => String::new(),
            Writer::Huge => tagged(&filler(before * 2, 7)),
            Writer::Refusing => "I'm sorry, but I can't help with summarizing this conversation.".into(),
            Writer::Injected => tagged(&format!("{PROSE}Next step: {}\n", script.injection.text)),
            Writer::Lying => tagged(&format!("{PROSE}{}", lies())),
        }
    }

    /// The notes brought up to date for the nth time with what came after `from`: what is in them is edited, not written
    /// again.
    pub(crate) fn notes(self, script: &Script, desk: &Desk, (old, from): (&str, Seq), nth: u64) -> String {
        match self {
            Writer::Honest => {
                let old = old.to_lowercase();
                let noted = |fact: &&crate::script::Fact| together(&old, &fact.telling).is_some();
                let stays = script.facts.iter().filter(noted).filter(|fact| chance(&fact.gist, nth) < 98);
                let stays: String = stays.map(|fact| format!("- {}\n", fact.gist)).collect();
                format!("# Current task\n{PROSE}{stays}{}", facts(script, desk, (from, (55, 0)), nth))
            }
            writer => writer.answer(script, desk, 1_000, nth),
        }
    }
}

/// What is written of the facts that stand in the context from an entry on: of those that it says itself, and of those that
/// only a summary says, so many percent.
fn facts(script: &Script, desk: &Desk, (from, (first, again)): (Seq, (u64, u64)), nth: u64) -> String {
    let (mut said, mut summed) = (Vec::new(), Vec::new());
    for shown in desk.session.context().shown().filter(|shown| from == 0 || !shown.lead && shown.seq > from) {
        match shown.message.kind {
            Kind::CompactSummary => summed.push(read(shown.message)),
            _ => said.push(read(shown.message)),
        }
    }
    let mut list = String::new();
    for fact in &script.facts {
        let told = |texts: &[String]| texts.iter().any(|text| together(text, &fact.telling).is_some());
        // What the user says is told more often than what a tool printed.
        let said_by = if fact.by == By::User { first + 10 } else { first.saturating_sub(10) };
        let percent = match (told(&summed), told(&said)) {
            (true, _) => again,
            (false, true) => said_by,
            (false, false) => 0,
        };
        if chance(&fact.gist, nth) < percent {
            list.push_str(&format!("- {}\n", fact.gist));
        }
    }
    list
}

/// 0 to 99, the same for the same fact and turn.
fn chance(gist: &str, nth: u64) -> u64 {
    let seed = gist
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    fastrand::Rng::with_seed(seed.wrapping_add(nth.wrapping_mul(0x9E37_79B9_7F4A_7C15))).u64(0..100)
}
