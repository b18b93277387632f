//! Bounds of a reply: what no model sends, and what would take all memory if a server did.

use std::collections::HashSet;
use std::future::ready;

use futures_util::{Stream, StreamExt};

use super::{BlockStart, Error, ReplyStream, StreamEvent};

/// Most bytes of text, thoughts and arguments together.
const REPLY: usize = 64 << 20;
/// Most bytes of the arguments of one call.
const ARGUMENTS: usize = 16 << 20;
/// Most blocks.
const BLOCKS: usize = 4096;
/// Most calls.
const CALLS: usize = 256;

/// The stream, which fails where a reply goes beyond its bounds.
pub(super) fn bounded(stream: impl Stream<Item = Result<StreamEvent, Error>> + Send + 'static) -> ReplyStream {
    Box::pin(stream.scan(Some(Measure::default()), |measure, event| {
        ready(match (measure.as_mut(), event) {
            (None, _) => None,
            (Some(_), Err(error)) => Some(Err(error)),
            (Some(of), Ok(event)) => match of.take(&event) {
                None => Some(Ok(event)),
                Some(what) => {
                    *measure = None;
                    Some(Err(Error::Other(format!("the reply was cut off: it has more than {what}"))))
                }
            },
        })
    }))
}

#[derive(Default)]
struct Measure {
    bytes: usize,
    /// Of the call that is being written: its block, and the bytes of its arguments.
    arguments: (usize, usize),
    last: Option<usize>,
    blocks: HashSet<usize>,
    calls: usize,
}

impl Measure {
    /// Counts an event. Some: it is too much, and of what.
    fn take(&mut self, event: &StreamEvent) -> Option<String> {
        let (index, bytes) = match event {
            StreamEvent::Text { index, text } | StreamEvent::Thinking { index, text } => (*index, text.len()),
            StreamEvent::ToolInput { index, json } => {
                let before = if self.arguments.0 == *index { self.arguments.1 } else { 0 };
                self.arguments = (*index, before + json.len());
                (*index, json.len())
            }
            StreamEvent::BlockStart { index, block } => {
                self.calls += usize::from(matches!(block, BlockStart::ToolCall { .. }));
                (*index, 0)
            }
            StreamEvent::BlockEnd { index, .. } => (*index, 0),
            StreamEvent::Start { .. } | StreamEvent::Usage(_) | StreamEvent::End(_) => return None,
        };
        self.bytes += bytes;
        if self.last != Some(index) {
            self.last = Some(index);
            self.blocks.insert(index);
        }
        if self.bytes > REPLY {
            Some(format!("{} MiB", REPLY >> 20))
        } else if self.arguments.1 > ARGUMENTS {
            Some(format!("{} MiB of arguments for one call", ARGUMENTS >> 20))
        } else if self.calls > CALLS {
            Some(format!("{CALLS} tool calls"))
        } else if self.blocks.len() > BLOCKS {
            Some(format!("{BLOCKS} blocks"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// How many events pass, and the error behind them.
    async fn passed(events: impl Iterator<Item = StreamEvent> + Send + 'static) -> (usize, Option<String>) {
        let mut stream = bounded(stream::iter(events.map(Ok)));
        let mut count = 0;
        while let Some(event) = stream.next().await {
            match event {
                Ok(_) => count += 1,
                Err(error) => {
                    assert!(stream.next().await.is_none(), "nothing follows the error");
                    return (count, Some(error.to_string()));
                }
            }
        }
        (count, None)
    }

    #[tokio::test]
    async fn a_reply_is_cut_off_where_no_model_goes() {
        let mib = "x".repeat(1 << 20);
        let text = {
            let mib = mib.clone();
            move |index| StreamEvent::Text { index, text: mib.clone() }
        };
        let json = move |index| StreamEvent::ToolInput { index, json: mib.clone() };
        let call = |index| StreamEvent::BlockStart { index, block: BlockStart::ToolCall { name: "Bash".into() } };
        let empty = |index| StreamEvent::Text { index, text: String::new() };
        let cut = |what: &str| Some(format!("the reply was cut off: it has more than {what}"));
        let one = text.clone();
        assert_eq!(passed((0..64).map(move |_| one(0))).await, (64, None));
        assert_eq!(passed((0..200).map(text)).await, (64, cut("64 MiB")));
        let args = json.clone();
        assert_eq!(passed((0..200).map(move |_| args(1))).await, (16, cut("16 MiB of arguments for one call")));
        assert_eq!(passed((0..200).map(json)).await, (64, cut("64 MiB")));
        assert_eq!(passed((0..1000).map(call)).await, (256, cut("256 tool calls")));
        assert_eq!(passed((0..10_000).map(empty)).await, (4096, cut("4096 blocks")));
    }
}
