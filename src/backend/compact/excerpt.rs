//! The conversation as a separate summarizer reads it: shortened, and without what a summary cannot use.

use std::collections::HashSet;
use std::sync::Arc;

use super::digest::clipped;
use crate::message::{Attachment, Block, CallId, Content, Kind, Message, Role, ToolResult, tokens};

/// Where a configured instruction wants the conversation: as text, in its own place.
const PLACE: &str = "{messages}";

/// What a cleared result reads as. Nothing was saved of it: this is a view.
const CLEARED: &str = "[old result omitted]";

/// What is sent to be summarized.
#[derive(Debug, Clone, PartialEq)]
pub struct Excerpt {
    messages: Vec<Arc<Message>>,
    /// Asks for the summary.
    instruction: String,
}

impl Excerpt {
    /// Takes over what says something: no notices, no thoughts, no media; of each result at most `most` characters, and
    /// nothing of those in `cleared`.
    pub fn new(messages: &[Arc<Message>], cleared: &HashSet<CallId>, most: usize, instruction: String) -> Excerpt {
        let messages = messages.iter().filter(|message| message.kind != Kind::Notice);
        let messages = messages.map(|message| shortened(message, cleared, most));
        let messages = messages.filter(|message| !message.blocks.is_empty()).map(Arc::new).collect();
        Excerpt { messages, instruction }
    }

    /// Whether an instruction wants the conversation as text.
    pub fn inline(instruction: &str) -> bool {
        instruction.contains(PLACE)
    }

    /// Without about its oldest third; none when nothing is left to leave out.
    pub fn shorter(&self) -> Option<Excerpt> {
        without_oldest(&self.messages).map(|messages| Excerpt { messages, ..self.clone() })
    }

    /// Characters of its longest text.
    pub fn longest(&self) -> usize {
        let texts = self.messages.iter().flat_map(|message| &message.blocks).filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.chars().count()),
            _ => None,
        });
        texts.max().unwrap_or_default()
    }

    /// Every text that is longer than so many characters cut in its middle.
    pub fn clipped(&self, most: usize) -> Excerpt {
        let block = |block: &Block| match block {
            Block::Text { text, wire: None } => Block::text(clipped(text, most)),
            other => other.clone(),
        };
        let message = |message: &Arc<Message>| {
            Arc::new(Message { blocks: message.blocks.iter().map(block).collect(), ..Message::clone(message) })
        };
        Excerpt { messages: self.messages.iter().map(message).collect(), ..self.clone() }
    }

    /// The request's messages, with what follows the instruction: the summarizer's own calls and their results.
    pub fn request(&self, rounds: &[Arc<Message>]) -> Vec<Arc<Message>> {
        if Excerpt::inline(&self.instruction) {
            let text = self.instruction.replace(PLACE, &transcript(&self.messages));
            return std::iter::once(asks(text)).chain(rounds.iter().cloned()).collect();
        }
        let all = self.messages.iter().cloned().chain([asks(self.instruction.clone())]).chain(rounds.iter().cloned());
        merged(all)
    }
}

/// The message that asks for a summary.
pub fn asks(text: String) -> Arc<Message> {
    let message =
        Message { kind: Kind::Attachment(Attachment::Instruction), user_visible: false, ..Message::prompt(text) };
    Arc::new(message)
}

/// A reply of the summarizer's and the results of its calls, as they go back to it.
pub fn round(reply: Message, results: Vec<ToolResult>, most: usize) -> [Arc<Message>; 2] {
    let none = HashSet::new();
    let results = Message::tool_results(results);
    [Arc::new(shortened(&reply, &none, most)), Arc::new(shortened(&results, &none, most))]
}

fn shortened(message: &Message, cleared: &HashSet<CallId>, most: usize) -> Message {
    let block = |block: &Block| match block {
        Block::Thinking { .. } => None,
        Block::Media(media) => Some(Block::text(left_out(&media.media_type))),
        Block::ToolResult(result) => Some(Block::ToolResult(result_of(result, cleared, most))),
        Block::Text { text, wire: None } if text.trim().is_empty() => None,
        Block::Text { .. } | Block::ToolCall(_) => Some(block.clone()),
    };
    Message { blocks: message.blocks.iter().filter_map(block).collect(), ..message.clone() }
}

fn result_of(result: &ToolResult, cleared: &HashSet<CallId>, most: usize) -> ToolResult {
    let text = match cleared.contains(&result.id) {
        true => CLEARED.to_owned(),
        false => {
            let part = |part: &Content| match part {
                Content::Text { text } => text.clone(),
                Content::Media(media) => left_out(&media.media_type),
            };
            clipped(&result.content.iter().map(part).collect::<Vec<_>>().join("\n"), most)
        }
    };
    ToolResult { content: vec![Content::text(text)], display: None, effects: Vec::new(), ..result.clone() }
}

fn left_out(media_type: &str) -> String {
    format!("[{media_type} omitted]")
}

/// Adjacent messages of the user's side as one message, results first: a prompt's attachments are in it.
fn merged(messages: impl Iterator<Item = Arc<Message>>) -> Vec<Arc<Message>> {
    let mut merged: Vec<Arc<Message>> = Vec::new();
    for message in messages {
        match merged.last_mut() {
            Some(last) if last.role == Role::User && message.role == Role::User => {
                let last = Arc::make_mut(last);
                last.blocks.extend(message.blocks.iter().cloned());
                if message.kind == Kind::Prompt {
                    last.kind = Kind::Prompt;
                }
            }
            _ => merged.push(message),
        }
    }
    merged
}

/// Messages without about their oldest third: whole rounds go, and a note says so. None when nothing is left to leave out.
pub fn without_oldest(messages: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
    let third = messages.iter().map(|message| tokens::message(message)).sum::<u64>() / 3;
    let mut gone = 0;
    // A reply begins a round; its results stand behind it.
    let cut = messages.iter().enumerate().position(|(at, message)| {
        let begins = at > 1 && (message.role == Role::Assistant || message.kind == Kind::Prompt) && gone >= third;
        gone += tokens::message(message);
        begins
    })?;
    let note = Message::reminder("The oldest part of this conversation is omitted here because it was too long.");
    Some(std::iter::once(Arc::new(note)).chain(messages[cut..].iter().cloned()).collect())
}

/// The conversation as text, for instructions that hold it in their own place.
fn transcript(messages: &[Arc<Message>]) -> String {
    let mut parts = Vec::new();
    for message in messages {
        for block in &message.blocks {
            parts.push(match (block, message.role) {
                (Block::Text { text, .. }, Role::User) => format!("[user]\n{}", text.trim()),
                (Block::Text { text, .. }, Role::Assistant) => format!("[assistant]\n{}", text.trim()),
                (Block::ToolCall(call), _) => format!("[calls {}] {}", call.name, call.input),
                (Block::ToolResult(result), _) => format!("[result]\n{}", result.text().trim()),
                (Block::Media(media), _) => left_out(&media.media_type),
                (Block::Thinking { .. }, _) => continue,
            });
        }
    }
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::Talk;
    use crate::message::{BlobId, Media, Outcome, ToolCall};

    fn call(id: &str) -> Block {
        Block::ToolCall(ToolCall::new(CallId(id.into()), "Read", serde_json::json!({ "file_path": id })))
    }

    fn result(id: &str, text: &str) -> ToolResult {
        ToolResult::of_text(CallId(id.into()), Outcome::Ok, text)
    }

    fn thought(text: &str) -> Block {
        Block::Thinking { text: text.into(), wire: None }
    }

    /// A conversation with a bit of everything.
    fn talk() -> Vec<Arc<Message>> {
        let image = Block::Media(Media { media_type: "image/png".into(), blob: BlobId("x".into()), bytes: 9 });
        let prompt = Message { blocks: vec![Block::text("look"), image], ..Message::prompt("") };
        let messages = [
            Message::reminder("opening"),
            prompt,
            Message::reminder("attached"),
            Message::reply(vec![thought("only thought")]),
            Message::reply(vec![thought("hm"), Block::text("I look."), call("a"), call("b")]),
            Message::tool_results(vec![result("a", "日本語日本語"), result("b", "old")]),
            Message { kind: Kind::Notice, ..Message::prompt("for people") },
            Message::reminder("remember"),
            Message::reply(vec![Block::text("Done.")]),
        ];
        messages.into_iter().map(Arc::new).collect()
    }

    /// Roles and blocks, one line a message.
    fn show(messages: &[Arc<Message>]) -> String {
        let block = |block: &Block| match block {
            Block::Text { text, .. } => text.replace("<system-reminder>\n", "<").replace("\n</system-reminder>", ">"),
            Block::Thinking { text, .. } => format!("({text})"),
            Block::ToolCall(call) => format!("[{}]", call.id),
            Block::ToolResult(result) => format!("{}={}", result.id, result.text().replace('\n', "⏎")),
            Block::Media(media) => media.media_type.clone(),
        };
        let line = |message: &Arc<Message>| {
            let blocks: Vec<String> = message.blocks.iter().map(block).collect();
            format!("{:?}: {}", message.role, blocks.join(" | "))
        };
        messages.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_says_something_is_merged_and_clipped() {
        let cleared = HashSet::from([CallId("b".into())]);
        let excerpt = Excerpt::new(&talk(), &cleared, 3, "Sum up.".into());
        insta::assert_snapshot!(show(&excerpt.request(&[])), @r"
        User: <opening> | look | [image/png omitted] | <attached>
        Assistant: I look. | [a] | [b]
        User: a=日本⏎[… 3 characters omitted …]⏎語 | b=[old result omitted] | <remember>
        Assistant: Done.
        User: Sum up.
        ");
        let round = round(Message::reply(vec![thought("hm"), call("c")]), vec![result("c", "12345")], 3);
        insta::assert_snapshot!(show(&excerpt.request(&round)[5..]), @r"
        Assistant: [c]
        User: c=12⏎[… 2 characters omitted …]⏎5
        ");
    }

    #[test]
    fn an_instruction_may_hold_the_conversation() {
        let excerpt = Excerpt::new(&talk(), &HashSet::new(), 100, "Of <{messages}>: a list.".into());
        insta::assert_snapshot!(show(&excerpt.request(&[])), @r#"
        User: Of <[user]
        <opening>

        [user]
        look

        [user]
        [image/png omitted]

        [user]
        <attached>

        [assistant]
        I look.

        [calls Read] {"file_path":"a"}

        [calls Read] {"file_path":"b"}

        [result]
        日本語日本語

        [result]
        old

        [user]
        <remember>

        [assistant]
        Done.>: a list.
        "#);
    }

    #[test]
    fn the_oldest_rounds_are_left_out_whole() {
        let mut talk = Talk::new();
        talk.prompt(30);
        (0..4).for_each(|_| _ = talk.round("Read", &[30, 30]));
        talk.prompt(1);
        let mut excerpt = Excerpt::new(&talk.context().messages(), &HashSet::new(), 1_800, "Sum up.".into());
        let mut sizes = Vec::new();
        loop {
            let messages = excerpt.request(&[]);
            let calls: usize = messages.iter().map(|message| message.calls().count()).sum();
            let results: usize = messages.iter().map(|message| message.results().count()).sum();
            assert_eq!(calls, results);
            assert_eq!(messages[0].role, Role::User);
            assert!(messages.last().unwrap().text().ends_with("Sum up."));
            sizes.push(messages.len());
            match excerpt.shorter() {
                Some(shorter) => excerpt = shorter,
                None => break,
            }
        }
        assert!(sizes.len() > 2 && sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
        assert_eq!(Excerpt::new(&[], &HashSet::new(), 1, "x".into()).shorter(), None);
    }

    #[test]
    fn long_texts_are_cut_where_nothing_can_go() {
        let excerpt =
            Excerpt::new(&[Arc::new(Message::prompt("日本語の長い文"))], &HashSet::new(), 9, "Sum up.".into());
        assert_eq!((excerpt.longest(), excerpt.clipped(7)), (7, excerpt.clone()));
        assert_eq!(show(&excerpt.clipped(3).request(&[])), "User: 日本\n[… 4 characters omitted …]\n文 | Sum up.");
    }
}
