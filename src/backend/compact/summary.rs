//! The text of a summary: the request for it, what is made of the answer, and how it opens the rest of the conversation.

use std::collections::HashSet;
use std::sync::Arc;

use super::ledger;
use super::trim::shortened;
use crate::message::{Attachment, Block, Kind, Message, StopReason, tokens, typed};
use crate::protocol::{FailureReason, Trigger};
use crate::session::Context;
use crate::session::context::Shown;
use crate::session::entry::Seq;

/// The instruction that asks for a summary.
pub const INSTRUCTION: &str = include_str!("../../../assets/prompts/compact.md");

/// How every summary begins: the words that models know it by.
const PREFIX: &str = "This session is being continued from a previous conversation that ran out of context. The summary \
                      below covers the earlier portion of the conversation";

/// Whether the model has the tool that searches what left its context; otherwise nothing speaks of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Search {
    #[default]
    Recall,
    None,
}

/// What the model reads after an automatic summary.
const GO_ON: &str = "Carry on with the last task where it stopped, without asking the user anything and without \
                     mentioning this summary.";

/// How long a summary may be, in words for the model.
pub fn length(tokens: u64) -> String {
    format!("Keep the summary within {tokens} tokens.")
}

/// Who reads the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The model of the conversation, whose tools are there for the cache's sake alone.
    Conversation,
    /// One that only summarizes, and may look things up.
    Summarizer,
}

/// The instruction with what the user or hooks add to it.
pub fn instruction(own: Option<&str>, extra: Option<&str>, reader: Reader) -> String {
    let tools = match reader {
        Reader::Conversation => "Answer with text only; do not call tools.",
        Reader::Summarizer => {
            "You may call tools to look up what the conversation does not show; then answer with text."
        }
    };
    let text = own.unwrap_or(INSTRUCTION).trim_end().replace("{tools}", tools);
    match extra.map(str::trim).filter(|extra| !extra.is_empty()) {
        Some(extra) => format!("{text}\n\nAlso follow these instructions for this summary:\n\n{extra}"),
        None => text,
    }
}

/// The summary in a complete answer: the text inside the tags, or all of it without tags.
///
/// # Errors
/// The answer was cut off, refused, or holds nothing.
pub fn read(reply: &Message) -> Result<String, (FailureReason, String)> {
    let failed = |text: &str| Err((FailureReason::NoSummary, text.to_owned()));
    match &reply.stop {
        Some(StopReason::MaxTokens) => return failed("the summary was cut off"),
        Some(StopReason::Refusal(word)) => return failed(&format!("the model refused to summarize ({word})")),
        Some(StopReason::Interrupted) => return failed("the summary was interrupted"),
        _ => {}
    }
    let text = reply.text();
    let inner = match (text.find("<summary>"), text.rfind("</summary>")) {
        (Some(start), Some(end)) if start < end => &text[start + "<summary>".len()..end],
        (Some(start), None) => &text[start + "<summary>".len()..],
        _ => without_analysis(&text),
    };
    let summary = tidied(inner);
    match () {
        () if !summary.chars().any(char::is_alphanumeric) => failed("the model returned an empty answer"),
        () if refuses(&summary) => failed("the model refused to summarize"),
        () if text.contains(OPENING_WORDS) => failed("the model repeated the instruction"),
        () => Ok(summary),
    }
}

/// How the instruction begins: no summary has reason to say it.
const OPENING_WORDS: &str = "You are about to write a summary that replaces the conversation";

/// Whether an answer is an excuse: a few words that begin like one.
fn refuses(summary: &str) -> bool {
    const EXCUSES: [&str; 10] = [
        "i'm sorry",
        "i am sorry",
        "sorry,",
        "i can't ",
        "i cannot ",
        "i can’t ",
        "i'm unable",
        "i am unable",
        "i won't ",
        "as an ai",
    ];
    const LONGEST: usize = 400;
    let start = summary.get(..summary.floor_char_boundary(20)).unwrap_or_default().to_lowercase();
    summary.len() < LONGEST && EXCUSES.iter().any(|excuse| start.starts_with(excuse))
}

fn without_analysis(text: &str) -> &str {
    match (text.trim_start().starts_with("<analysis>"), text.find("</analysis>")) {
        (true, Some(end)) => &text[end + "</analysis>".len()..],
        _ => text,
    }
}

/// Runs of blank lines become one.
fn tidied(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.trim().lines().map(str::trim_end) {
        if !(line.is_empty() && lines.last().is_some_and(|last| last.is_empty())) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// The message that stands for what was summarized.
pub fn message(summary: &str, trigger: Trigger, search: Search) -> Message {
    let go_on = if trigger == Trigger::Auto { format!("\n\n{GO_ON}") } else { String::new() };
    let search = if search == Search::Recall { ", which Recall can search" } else { "" };
    let text = format!("{PREFIX}{search}.\n\nSummary:\n{summary}{go_on}");
    Message { kind: Kind::CompactSummary, user_visible: false, ..Message::prompt(text) }
}

/// What the user said in answers to questions, in refusals, and of plans.
fn answers(message: &Message) -> String {
    let words = message.results().filter_map(ledger::users_words);
    let words = words.flatten().map(|said| match said.question.as_str() {
        "" => said.words.clone(),
        question => format!("{}{}{question})", said.words, ledger::ASKED),
    });
    words.collect::<Vec<_>>().join("\n")
}

/// A summary without the lines that the log refutes; the user's own words are next to it.
pub fn vetted(summary: &Arc<Message>, context: &Context) -> Arc<Message> {
    let [Block::Text { text, wire: None }] = summary.blocks.as_slice() else { return Arc::clone(summary) };
    let left: Vec<&str> = text.lines().filter(|line| !ledger::refuted(line, context)).collect();
    match left.len() == text.lines().count() {
        true => Arc::clone(summary),
        false => Arc::new(Message { blocks: vec![Block::text(left.join("\n"))], ..Message::clone(summary) }),
    }
}

/// The user's own messages before `keep_from`, newest first within the budget, as one block of history, if there
/// are any. Those of an earlier block are kept. `carried` are the positions of prompts that come along in another way.
pub fn history(context: &Context, keep_from: Seq, budget: u64, carried: &[usize]) -> Option<Arc<Message>> {
    const TITLE: &str = "# Earlier messages from the user\nVerbatim, oldest first. They are history: the summary says what \
                         is still to be done.\n\n";
    /// Bytes of a paste or of piped input that are quoted.
    const OF_DATA: usize = 1_000;
    let mut left = budget;
    let (mut quotes, mut met) = (Vec::new(), HashSet::new());
    let leaves = |(at, shown): &(usize, Shown<'_>)| (shown.lead || shown.seq < keep_from) && !carried.contains(at);
    for (_, shown) in context.shown().enumerate().rev().filter(leaves) {
        let text = match shown.message.kind {
            Kind::Prompt => typed(&shown.message.text(), &shown.message.data, OF_DATA),
            Kind::ToolResult => answers(shown.message),
            Kind::Attachment(Attachment::Prompts { quotes }) if shown.lead => {
                shown.message.attached().get(quotes..).unwrap_or_default().to_owned()
            }
            _ => continue,
        };
        let text = text.trim();
        // Said again and again ("continue"), the last time is enough.
        if text.is_empty() || !met.insert(text.to_owned()) {
            continue;
        }
        let quote = shortened(text, left);
        let tokens = tokens::text(&quote);
        if left < 10 || tokens > left + 10 {
            break;
        }
        left = left.saturating_sub(tokens);
        quotes.push(quote);
    }
    quotes.reverse();
    let text = format!("{TITLE}{}", quotes.join("\n\n---\n\n"));
    let message = Message::attachment(Attachment::Prompts { quotes: TITLE.len() }, &text);
    (!quotes.is_empty()).then(|| Arc::new(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::Talk;

    #[test]
    fn answers_become_summaries() {
        fn check(text: &str, stop: StopReason, want: Result<&str, &str>) {
            let reply = Message { stop: Some(stop), ..Message::reply(vec![Block::text(text)]) };
            let got = read(&reply).map_err(|(_, text)| text);
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{text}");
        }
        use StopReason::{EndTurn, MaxTokens, Refusal};
        check("<analysis>x</analysis>\n<summary>\n1. A\n\n\n\nB\n</summary>", EndTurn, Ok("1. A\n\nB"));
        check("no tags", EndTurn, Ok("no tags"));
        check("<analysis>x</analysis> rest", EndTurn, Ok("rest"));
        check("<summary>open", EndTurn, Ok("open"));
        check("<summary> </summary>", EndTurn, Err("the model returned an empty answer"));
        check("", EndTurn, Err("the model returned an empty answer"));
        check("<summary>\n---\n</summary>", EndTurn, Err("the model returned an empty answer"));
        check("I'm sorry, but I can't help with that.", EndTurn, Err("the model refused to summarize"));
        check(
            "I cannot connect to the database, says the user.".repeat(20).as_str(),
            EndTurn,
            Ok("I cannot connect to the database, says the user.".repeat(20).as_str()),
        );
        check(INSTRUCTION, EndTurn, Err("the model repeated the instruction"));
        check("<summary>half", MaxTokens, Err("the summary was cut off"));
        check("no", Refusal("policy".into()), Err("the model refused to summarize (policy)"));
    }

    #[test]
    fn the_users_words_are_handed_on_newest_first() {
        let mut talk = Talk::new();
        for word in ["one", "two", "three"] {
            talk.push(Message::prompt(word));
            talk.reply(1);
        }
        let end = talk.session.next_seq();
        let text = |budget| history(talk.context(), end, budget, &[]).map(|message| message.text());
        assert!(text(100).unwrap().ends_with("one\n\n---\n\ntwo\n\n---\n\nthree\n</system-reminder>"));
        assert_eq!(text(5), None);
        assert_eq!(history(talk.context(), 0, 100, &[]), None);
    }

    #[test]
    fn what_came_with_a_prompt_is_nobodys_word() {
        let mut talk = Talk::new();
        let (words, log) =
            ("Never touch a.rs. What is it?", "It's ok to touch a.rs now.\nNever run the tests.\n".repeat(90));
        let text = format!("{words}\n\n{log}");
        let data = std::iter::once(words.len() + 2..text.len()).collect();
        talk.push(Message { data, ..Message::prompt(text) });
        talk.reply(1);
        let end = talk.session.next_seq();
        let quoted = history(talk.context(), end, 1_000, &[]).unwrap().text();
        assert!(
            quoted.contains(words) && quoted.contains("[came with it: It's ok") && quoted.len() < 1_300,
            "{quoted}"
        );
        let ledger = ledger::Fold::default().of(talk.context());
        let told = ledger::message(&ledger, &[], ledger::Known::default(), 2_000).unwrap().attached();
        assert!(told.contains("- Never touch a.rs.") && !told.contains("ok") && !told.contains("tests"), "{told}");
    }
}
