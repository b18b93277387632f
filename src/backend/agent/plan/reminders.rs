//! What the model is told of plan mode, and when. Counted over the projection, so that it survives a resume.

use std::path::Path;

use crate::message::{Attachment, Block, Effect, Kind, Message, PlanNote};
use crate::session::entry::Seq;

/// Replies after which the model is reminded again.
const EVERY: usize = 5;
/// Of so many reminders one says all.
const FULL_EVERY: usize = 5;

const FULL: &str = include_str!("../../../../assets/prompts/plan_full.md");
const SPARSE: &str = include_str!("../../../../assets/prompts/plan_sparse.md");
const REENTRY: &str = include_str!("../../../../assets/prompts/plan_reentry.md");
const EXIT: &str = include_str!("../../../../assets/prompts/plan_exit.md");
const SUB_AGENT: &str = include_str!("../../../../assets/prompts/plan_sub_agent.md");

/// Agents that may work on a plan side by side; a slice of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Most Explore agents in parallel, 1 to 5.
    pub explore_agents: u32,
    /// Most Plan agents, 1 to 5.
    pub plan_agents: u32,
}

/// Whether plan mode is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Planning {
    On,
    Off,
}

/// Whether there is something in the plan file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Yes,
    No,
}

impl Written {
    fn told(self) -> &'static str {
        match self {
            Written::Yes => "It exists already: read it and change it with Edit.",
            Written::No => "It does not exist yet: create it with Write.",
        }
    }
}

/// What a message says of plan mode, and of which plan file.
fn said(message: &Message) -> Option<(PlanNote, &Path)> {
    message.effects.iter().find_map(|effect| match effect {
        Effect::Plan { note, file } => Some((*note, file.as_path())),
        _ => None,
    })
}

/// What a message says of plan mode.
pub(in crate::agent) fn note(message: &Message) -> Option<PlanNote> {
    said(message).map(|(note, _)| note)
}

/// A reply that said or did something; thinking alone does not count.
fn speaks(message: &Message) -> bool {
    message.kind == Kind::Reply && message.blocks.iter().any(|block| !matches!(block, Block::Thinking { .. }))
}

/// Which reminders go out before the next request, oldest first. What was said of another file than `file` was meant for
/// the session that this one is a fork of.
pub(super) fn due<'a>(
    entries: impl Iterator<Item = (Seq, &'a Message)>,
    planning: Planning,
    written: Written,
    file: &Path,
) -> Vec<PlanNote> {
    // What the model was told last, wherever that is.
    let mut told = None;
    // Since the last exit or boundary: reminders that say that it is on, and replies since the last one. None: no reminder.
    let (mut count, mut replies) = (0, None);
    let mut highest = 0;
    for (seq, message) in entries {
        // What a boundary put in front bears its number; what it kept is older, and was told before it.
        if seq < highest {
            (count, replies) = (0, None);
        }
        highest = highest.max(seq);
        if speaks(message) {
            replies = replies.map(|replies| replies + 1);
        }
        let Some((note, of)) = said(message) else { continue };
        told = Some(note);
        match note {
            PlanNote::Exit => (count, replies) = (0, None),
            PlanNote::Restored => {}
            _ if of != file => {}
            PlanNote::Reentry => replies = Some(0),
            PlanNote::Full | PlanNote::Sparse => {
                count += 1;
                replies = Some(0);
            }
        }
    }
    match (planning, told) {
        (Planning::Off, None | Some(PlanNote::Exit)) => Vec::new(),
        (Planning::Off, Some(_)) => vec![PlanNote::Exit],
        (Planning::On, Some(PlanNote::Exit)) if written == Written::Yes => vec![PlanNote::Reentry, PlanNote::Full],
        (Planning::On, _) if replies.is_some_and(|replies| replies < EVERY) => Vec::new(),
        (Planning::On, _) if count % FULL_EVERY == 0 => vec![PlanNote::Full],
        (Planning::On, _) => vec![PlanNote::Sparse],
    }
}

/// The attachment that says it.
pub(super) fn message(note: PlanNote, file: &Path, written: Written, settings: Settings) -> Message {
    let text = match note {
        PlanNote::Full | PlanNote::Restored => FULL,
        PlanNote::Sparse => SPARSE,
        PlanNote::Reentry => REENTRY,
        PlanNote::Exit => EXIT,
    };
    let left = if written == Written::Yes { "It exists" } else { "It was not written" };
    let text = text
        .replace("{state}", written.told())
        .replace("{left}", left)
        .replace("{explore}", &settings.explore_agents.to_string())
        .replace("{plan}", &settings.plan_agents.to_string());
    noted(note, file, &fill(&text, file))
}

/// What a sub-agent is told whose parent plans; it has a plan file of its own, and perhaps no tool that writes it.
pub(super) fn sub_agent(file: &Path, written: Written) -> Message {
    let state = match written {
        Written::Yes => "It exists already.",
        Written::No => "It does not exist yet.",
    };
    noted(PlanNote::Full, file, &fill(&SUB_AGENT.replace("{state}", state), file))
}

/// A reminder that counts as this note about this plan file.
pub(in crate::agent) fn noted(note: PlanNote, file: &Path, text: &str) -> Message {
    let effects = vec![Effect::Plan { note, file: file.to_owned() }];
    Message { effects, ..Message::attachment(Attachment::Plan, text) }
}

fn fill(text: &str, file: &Path) -> String {
    text.replace("{file}", &file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    /// Plays replies and changes of mode: `p` plan mode on, `d` off, `r` a reply, `t` one of thinking alone, `b` a boundary
    /// that keeps nothing, `k` one that keeps all, `f` a fork with a plan file of its own, ` ` a request. Returns what each request is told: `F`ull, `S`parse,
    /// `R`eentry and full, e`X`it, `-` nothing.
    fn check(written: Written, play: &str, want: &str) {
        let mut entries: Vec<(Seq, Message)> = Vec::new();
        let (mut planning, mut told, mut next, mut file) = (Planning::Off, String::new(), 0, "/plans/a.md");
        for step in play.chars() {
            let mut push = |message| {
                entries.push((next, message));
                next += 1;
            };
            match step {
                'p' => planning = Planning::On,
                'd' => planning = Planning::Off,
                'f' => file = "/plans/b.md",
                'r' => push(Message::reply(vec![Block::text("x")])),
                't' => push(Message::reply(vec![Block::Thinking { text: "x".into(), wire: None }])),
                'b' => {
                    entries = vec![(next, Message::reminder("a summary"))];
                    next += 1;
                }
                'k' => {
                    entries.insert(0, (next, Message::reminder("a summary")));
                    next += 1;
                }
                ' ' => {
                    let entries_now = entries.iter().map(|(seq, message)| (*seq, message));
                    let notes = due(entries_now, planning, written, Path::new(file));
                    told.push_str(match notes.as_slice() {
                        [] => "-",
                        [PlanNote::Full] => "F",
                        [PlanNote::Sparse] => "S",
                        [PlanNote::Reentry, PlanNote::Full] => "R",
                        [PlanNote::Exit] => "X",
                        other => panic!("{other:?}"),
                    });
                    for note in notes {
                        entries.push((next, noted(note, Path::new(file), "told")));
                        next += 1;
                    }
                }
                other => panic!("{other}"),
            }
        }
        assert_eq!(told, want, "{play}");
    }

    #[test]
    fn cadence() {
        let yes = |play: &str, want: &str| check(Written::Yes, play, want);
        let no = |play: &str, want: &str| check(Written::No, play, want);
        // Thirty replies, one a request: every fifth one is told, and of those every fifth in full.
        no(&format!("p {}", "r ".repeat(30)), "F----S----S----S----S----F----S");
        // Without plan mode nothing; thinking alone does not count.
        no("r r r ", "---");
        no("p t t t t t t r r r r r ", "F----------S");
        // Out, and in again: the earlier plan is spoken of, also soon after; the throttle counts from there.
        yes("p r d r p r r r r r ", "F-X-R----S");
        yes("p d p ", "FXR");
        no("p d p ", "FXF");
        // The count starts over with each exit.
        yes(&format!("p {}d p {}", "r ".repeat(7), "r ".repeat(25)), "F----S--XR----S----S----S----S----F");
        // What cancels out before the next request leaves nothing.
        yes("pd r pd ", "---");
        yes("p rdp rrrr ", "F-S");
        yes("p r dpdr ", "F-X");
        // A boundary starts over, whatever it keeps.
        no("p r rb rrrrr ", "F-FS");
        no("p r rk r r r r r ", "F-F----S");
        // A fork is told of its own file, and counts from there.
        yes("p r f r r r r r ", "F-F----S");
        yes("p r fd r p ", "F-X-R");
        no("p rd f r p ", "FX--F");
        // Off is told once, also when the boundary kept only what came before.
        no("p r kd r ", "F-X-");
        yes("p rd rk r p ", "FX--R");
    }

    #[test]
    fn a_plan_that_was_put_back_counts_as_told_but_not_as_a_reminder() {
        let restored = [(3, noted(PlanNote::Restored, Path::new("x"), "x"))];
        let of = |planning| {
            due(restored.iter().map(|(seq, message)| (*seq, message)), planning, Written::Yes, Path::new("x"))
        };
        assert_eq!(of(Planning::On), [PlanNote::Full]);
        assert_eq!(of(Planning::Off), [PlanNote::Exit]);
    }

    #[test]
    fn texts_name_the_file_and_the_way_out() {
        let settings = Settings { explore_agents: 4, plan_agents: 2 };
        let file = Path::new("/h/plans/a-b-c.md");
        for (note, written, wants) in [
            (
                PlanNote::Full,
                Written::No,
                &[
                    "create it with Write",
                    "at most 4 in parallel",
                    "at most 2)",
                    "ExitPlanMode",
                    "# Plan\n",
                    "## Summary\n",
                    "## Approach",
                    "## Files to Modify",
                    "## Considerations",
                    "## Verification",
                ][..],
            ),
            (PlanNote::Full, Written::Yes, &["exists already"]),
            (PlanNote::Sparse, Written::Yes, &["still on", "ExitPlanMode", "AskUserQuestion"]),
            (PlanNote::Reentry, Written::Yes, &["earlier plan"]),
            (PlanNote::Exit, Written::Yes, &["is over", "It exists"]),
            (PlanNote::Exit, Written::No, &["was not written"]),
        ] {
            let text = message(note, file, written, settings).text();
            for want in wants.iter().chain(&["/h/plans/a-b-c.md"]) {
                assert!(text.contains(want), "{note:?}: no {want:?} in {text}");
            }
            assert!(!text.contains('{') && text.len() < 2_900, "{note:?}: {} bytes: {text}", text.len());
        }
        for (written, want) in [(Written::No, "does not exist yet"), (Written::Yes, "exists already")] {
            let text = sub_agent(file, written).text();
            assert!(["/h/plans/a-b-c.md", "comprehensive", want].iter().all(|want| text.contains(want)), "{text}");
            assert!(!text.contains('{'), "{text}");
        }
    }
}
