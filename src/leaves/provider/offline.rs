//! Models without a network: the deterministic assistant in the binary, and scripted conversations for tests and demos.

mod assistant;
pub mod script;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream;
use tokio::sync::mpsc;

use super::bounds::bounded;
use super::{BlockStart, Error, Provider, ReplyStream, Request, StreamEvent};
use crate::message::{StopReason, Usage, tokens};
use crate::stdx::process;
pub use assistant::reply;
use script::{Failure, Part, Script, Step};

/// What decides the next reply of an offline model.
enum Mind {
    Script(Mutex<Script>),
    /// Computes a reply from the request alone.
    Assistant(fn(&Request) -> Vec<Part>),
}

/// A provider that answers from within the process.
pub struct Offline {
    mind: Mind,
}

impl Offline {
    /// Plays a script; steps are chosen by purpose and by order within it, since requests may run in parallel.
    pub fn scripted(script: Script) -> Offline {
        Offline { mind: Mind::Script(Mutex::new(script)) }
    }

    /// Answers with what `reply` makes of the request.
    pub fn assistant(reply: fn(&Request) -> Vec<Part>) -> Offline {
        Offline { mind: Mind::Assistant(reply) }
    }

    fn next(&self, request: &Request) -> Result<Step, Error> {
        match &self.mind {
            Mind::Script(script) => script
                .lock()
                .map_err(|_| Error::Other("the script ended in the middle of a step".into()))?
                .next(request)
                .map_err(Error::Other),
            Mind::Assistant(reply) => Ok(Step::of(reply(request))),
        }
    }
}

impl Provider for Offline {
    fn wire(&self) -> &'static str {
        "offline"
    }

    fn stream(&self, request: Arc<Request>) -> ReplyStream {
        if process::begins_nothing() {
            return Box::pin(stream::pending());
        }
        let step = match self.next(&request) {
            Ok(step) => step,
            Err(error) => return Box::pin(stream::iter([Err(error)])),
        };
        #[cfg(debug_assertions)]
        if let Some(Part::Panic(text)) = step.reply.iter().find(|part| matches!(part, Part::Panic(_))) {
            panic!("{text}");
        }
        // A small buffer, so that a reader that is gone stops the playing at once.
        let (send, receive) = mpsc::channel(64);
        tokio::spawn(async move {
            // A closed channel means that nobody listens anymore; then there is nothing left to do.
            let _ = play(step, &request, &send).await;
        });
        bounded(stream::unfold(receive, |mut receive| async { Some((receive.recv().await?, receive)) }))
    }
}

type Sender = mpsc::Sender<Result<StreamEvent, Error>>;

async fn play(
    step: Step,
    request: &Request,
    send: &Sender,
) -> Result<(), mpsc::error::SendError<Result<StreamEvent, Error>>> {
    send.send(Ok(StreamEvent::Start { model: request.model.clone() })).await?;
    let (mut index, mut output, mut called, mut stop) = (0, 0, false, None);
    let mut usage = None;
    for part in step.reply {
        match part {
            Part::Text(text) | Part::Thinking(text) if text.is_empty() => {}
            Part::Text(text) => {
                output += tokens::text(&text);
                send.send(Ok(StreamEvent::BlockStart { index, block: BlockStart::Text })).await?;
                for piece in pieces(&text, step.chunk) {
                    send.send(Ok(StreamEvent::Text { index, text: piece.to_owned() })).await?;
                    pause(step.pace_ms).await;
                }
                send.send(Ok(StreamEvent::BlockEnd { index, wire: None })).await?;
                index += 1;
            }
            Part::Thinking(text) => {
                output += tokens::text(&text);
                send.send(Ok(StreamEvent::BlockStart { index, block: BlockStart::Thinking })).await?;
                for piece in pieces(&text, step.chunk) {
                    send.send(Ok(StreamEvent::Thinking { index, text: piece.to_owned() })).await?;
                    pause(step.pace_ms).await;
                }
                send.send(Ok(StreamEvent::BlockEnd { index, wire: None })).await?;
                index += 1;
            }
            Part::Tool { name, input } => {
                let json = input.to_string();
                output += tokens::text(&json);
                called = true;
                send.send(Ok(StreamEvent::BlockStart { index, block: BlockStart::ToolCall { name } })).await?;
                send.send(Ok(StreamEvent::ToolInput { index, json })).await?;
                send.send(Ok(StreamEvent::BlockEnd { index, wire: None })).await?;
                index += 1;
            }
            Part::DelayMs(millis) => pause(millis).await,
            Part::Usage { input, output } => {
                usage = Some(Usage { input, output, ..Usage::default() });
            }
            #[cfg(debug_assertions)]
            Part::Panic(_) => {}
            Part::Stop(reason) => stop = Some(reason),
            Part::Error(failure) => return send.send(Err(error_of(failure))).await,
        }
    }
    let counted = || Usage { input: estimate(request), output, ..Usage::default() };
    send.send(Ok(StreamEvent::Usage(usage.unwrap_or_else(counted)))).await?;
    let natural = if called { StopReason::ToolUse } else { StopReason::EndTurn };
    send.send(Ok(StreamEvent::End(stop.map_or(natural, script::stop_reason)))).await
}

async fn pause(millis: u64) {
    // Even a sleep of nothing waits for the timer's next tick.
    if millis > 0 {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

/// Splits a text into pieces of `chunk` characters.
fn pieces(text: &str, chunk: usize) -> impl Iterator<Item = &str> {
    let chunk = chunk.max(1);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(chunk).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// What a provider would have counted for the request.
fn estimate(request: &Request) -> u64 {
    let tools: u64 =
        request.tools.iter().map(|tool| tokens::text(&tool.description) + tokens::text(&tool.schema.to_string())).sum();
    let messages: u64 = request.messages.iter().map(|message| tokens::message(message)).sum();
    tokens::text(&request.system) + tools + messages
}

fn error_of(failure: Failure) -> Error {
    let message = failure.message.unwrap_or_else(|| "scripted failure".into());
    let retry_after = failure.retry_after_ms.map(Duration::from_millis);
    match failure.kind.as_str() {
        "rate_limited" => Error::RateLimited { message, retry_after },
        "server" => Error::Server { status: failure.status.unwrap_or(500), message, retry_after },
        "connect" => Error::Connect { url: "offline".into(), message },
        "ended_early" => Error::EndedEarly,
        "auth" => Error::Auth { status: 401, message, hint: "set the key".into() },
        "bad_request" => Error::BadRequest { status: 400, message },
        "context_too_long" => Error::ContextTooLong { tokens: failure.tokens, limit: failure.limit },
        _ => Error::Other(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::provider::{Purpose, Thinking};
    use futures_util::StreamExt;

    fn request(text: &str) -> Arc<Request> {
        Arc::new(Request {
            model: "scripted".into(),
            system: "".into(),
            tools: Arc::new([]),
            messages: vec![Arc::new(Message::prompt(text))],
            media: Default::default(),
            max_output: 100,
            thinking: Thinking::Unset,
            purpose: Purpose::Main,
            cache_key: String::new(),
            web_search: None,
            frontier: None,
        })
    }

    async fn trace(offline: &Offline, text: &str) -> Vec<String> {
        offline.stream(request(text)).map(|event| format!("{event:?}")).collect().await
    }

    #[tokio::test]
    async fn plays_steps_in_order_and_then_fails() {
        let script = Script::parse("- reply: [text: abc, tool: {name: LS, input: {path: .}}]\n  chunk: 2\n- reply: [error: {kind: ended_early}]\n").unwrap();
        let offline = Offline::scripted(script);
        assert_eq!(
            trace(&offline, "x").await,
            [
                r#"Ok(Start { model: "scripted" })"#,
                r#"Ok(BlockStart { index: 0, block: Text })"#,
                r#"Ok(Text { index: 0, text: "ab" })"#,
                r#"Ok(Text { index: 0, text: "c" })"#,
                r#"Ok(BlockEnd { index: 0, wire: None })"#,
                r#"Ok(BlockStart { index: 1, block: ToolCall { name: "LS" } })"#,
                r#"Ok(ToolInput { index: 1, json: "{\"path\":\".\"}" })"#,
                r#"Ok(BlockEnd { index: 1, wire: None })"#,
                r#"Ok(Usage(Usage { input: 1, output: 4, cache_read: 0, cache_write: 0, reasoning: 0 }))"#,
                r#"Ok(End(ToolUse))"#,
            ]
        );
        assert_eq!(trace(&offline, "x").await, [r#"Ok(Start { model: "scripted" })"#, "Err(EndedEarly)"]);
        assert_eq!(trace(&offline, "x").await, [r#"Err(Other("the script has no more replies for main"))"#]);
    }
}
