//! What a model reads of plan mode over a long session: the cadence in the conversation itself, as requests carry it.

use cocode::message::{Effect, Kind, PlanNote};
use cocode::permission::Mode;

use super::support::harness::{Harness, Ran};

/// Replies that each do something, and a last one that ends the turn. No two are the same: that would be asked about.
fn replies(from: usize, to: usize) -> String {
    let step = |n| format!("- reply: [tool: {{name: Bash, input: {{command: echo {n}}}}}]\n");
    let steps: String = (from..to).map(step).collect();
    format!("{steps}- reply: [text: That was {to}.]\n")
}

/// The conversation: `.` a reply, `F`ull, `S`parse, `R`eentry, e`X`it, put back as `P`lan.
fn cadence(run: &Ran) -> String {
    let session = run.session();
    let letter = |message: &cocode::message::Message| {
        let note = message.effects.iter().find_map(|effect| match effect {
            Effect::Plan { note, .. } => Some(*note),
            _ => None,
        });
        match note {
            Some(PlanNote::Full) => Some('F'),
            Some(PlanNote::Sparse) => Some('S'),
            Some(PlanNote::Reentry) => Some('R'),
            Some(PlanNote::Exit) => Some('X'),
            Some(PlanNote::Restored) => Some('P'),
            None => (message.kind == Kind::Reply).then_some('.'),
        }
    };
    session.context().entries().filter_map(|(_, message)| letter(message)).collect()
}

#[tokio::test]
async fn thirty_replies() {
    let whole = "F.....S.....S.....S.....S.....F.....S.";
    let run = Harness::new().script(&replies(1, 31)).prompt("/plan go").run().await;
    assert_eq!(cadence(&run), whole, "{}", run.trace());
    // The same, in four turns of three processes.
    let mut run = Harness::new().script(&replies(1, 4)).prompt("/plan go").run().await;
    for (from, to) in [(5, 12), (13, 25)] {
        run = Harness::after(run).script(&replies(from, to)).prompt("on").run().await;
    }
    let script = format!("{}{}", replies(26, 28), replies(29, 31));
    let run = Harness::after(run).script(&script).prompt("on").prompt("and on").run().await;
    assert_eq!(cadence(&run), whole, "{}", run.trace());
}

#[tokio::test]
async fn out_and_in_again() {
    let plan = "- reply: [tool: {name: Write, input: {file_path: \"{plan_file}\", content: \"# P\"}}]\n";
    let script = format!("{plan}{}{}{}", replies(2, 3), replies(4, 5), replies(6, 14));
    let run = Harness::new().script(&script).mode(Mode::Default).prompt("/plan go").run().await;
    let go_on = |run: Ran, script: String| Harness::after(run).script(&script);
    assert_eq!(cadence(&run), "F...");
    let run = go_on(run, replies(4, 5)).prompt("/plan exit").prompt("now do it").run().await;
    assert_eq!(cadence(&run), "F...X..");
    // Nothing more of it while it is off, also in the next process.
    let run = go_on(run, replies(6, 7)).prompt("and more").run().await;
    assert_eq!(cadence(&run), "F...X....");
    let run = go_on(run, replies(8, 14)).prompt("/plan again").run().await;
    assert_eq!(cadence(&run), "F...X....RF.....S..");
    // Off and on before the next request: as if nothing had been.
    let run = go_on(run, replies(15, 16)).prompt("/plan exit").prompt("/plan").prompt("on").run().await;
    assert_eq!(cadence(&run), "F...X....RF.....S....");
}

#[tokio::test]
async fn a_boundary_begins_anew() {
    let summary = "- {for: summary, repeat: 3, reply: [text: '<summary>All is well.</summary>']}\n";
    let settings = "compact = { keep_recent_tokens = 0, min_messages_before_compact = 2 }";
    // Enough to be worth a summary.
    let long = format!("- reply: [text: {}]\n", "many words ".repeat(4_000));
    let script = format!("{}{long}", replies(1, 7));
    let run = Harness::new().script(&script).set(settings).prompt("/plan go").prompt("talk").run().await;
    assert_eq!(cadence(&run), "F.....S...");
    let script = format!("{}{summary}", replies(8, 14));
    let run = Harness::after(run).script(&script).set(settings).prompt("/compact").prompt("on").run().await;
    assert_eq!(cadence(&run), "F.....S..", "{}", run.trace());
    // The plan that was written comes back with its text, and the reminder says that it is on.
    let plan = "- reply: [tool: {name: Write, input: {file_path: \"{plan_file}\", content: \"# My plan\"}}]\n";
    let script = format!("{plan}{long}- reply: [text: On.]\n{summary}");
    let run =
        Harness::new().script(&script).set(settings).prompt("/plan go").prompt("/compact").prompt("on").run().await;
    assert_eq!(cadence(&run), "PF.", "{}", run.trace());
    let texts: Vec<String> = run.session().context().messages().iter().map(|message| message.text()).collect();
    assert!(texts.join("\n").contains("not approved yet") && texts.join("\n").contains("# My plan"), "{texts:#?}");
}

#[tokio::test]
async fn they_can_be_switched_off() {
    for name in ["CLAUDE_CODE_DISABLE_ATTACHMENTS", "COCODE_DISABLE_ATTACHMENTS"] {
        let run = Harness::new().env(name, "1").script(&replies(1, 7)).prompt("/plan go").run().await;
        assert_eq!(cadence(&run), ".......", "{name}");
        // The engine holds to it all the same.
        assert_eq!(run.session().facts().mode, Some(Mode::Plan));
    }
}
