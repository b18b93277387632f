//! A prompt on its way into the conversation, with what the user attached to it.

use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::agent::mailbox::{Mailbox, Prompt};
use crate::mcp;
use crate::message::{Attachment, Block, Content, Message, Outcome, ToolResult};
use crate::protocol::Event;
use crate::session::{self, Pictures};
use crate::tools::mcp_call;

/// Adds what the user typed, then what they attached to it: a rewind to the prompt takes both.
pub(super) async fn push(
    agent: &mut Agent,
    (mailbox, cancel): (&Mailbox, &CancellationToken),
    prompt: Prompt,
) -> Result<(), session::Error> {
    agent.thinking.note(&prompt, &agent.settings.thinking);
    let mut blocks = vec![Block::text(prompt.text.clone())];
    let mut attached = Vec::new();
    for path in &prompt.attachments {
        // Naming a file brings it into the workspace; what is denied or asked about even there is left to the Read tool,
        // which asks.
        let mut places = agent.policy.places_of(&agent.conversation);
        places.added.push(agent.policy.dirs(&agent.conversation).absolute(&path.to_string_lossy()));
        // A picture that came back with its prompt lies in our own folder, where all else asks.
        let kept = Pictures::new(&places.cocode_home).find(path);
        places.free_reads.extend(kept);
        match agent.attach(path, places, mailbox).await {
            Err(decision) => {
                let reason = decision.reasons.into_iter().next().unwrap_or_default();
                let text = format!("{} was not attached: {reason}", path.display());
                mailbox.emit(Event::Notice { text: text.clone() }).await;
                attached.push(Message::attachment(Attachment::File, &text));
            }
            Ok(ToolResult { outcome: Outcome::Ok, content, effects, .. }) => {
                for part in content {
                    match part {
                        Content::Media(media) => blocks.push(Block::Media(media)),
                        Content::Text { text } => {
                            let text = format!("The user attached {}:\n\n{text}", path.display());
                            attached.push(Message {
                                effects: effects.clone(),
                                ..Message::attachment(Attachment::File, &text)
                            });
                        }
                    }
                }
            }
            Ok(failed) => {
                let problem = failed.text();
                let text = format!("The user attached {}, but it could not be read: {problem}", path.display());
                attached.push(Message::attachment(Attachment::File, &text));
            }
        }
    }
    if let Some(servers) = agent.policy.servers.clone() {
        for (server, uri) in servers.mentioned(&prompt.typed()) {
            let read = tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                read = servers.read(&server, &uri) => read,
            };
            let text = match read {
                Ok(got) => {
                    let (text, pictures) = mcp_call::resource(&got, agent.conversation.session.store());
                    blocks.extend(pictures);
                    format!("The user attached the resource {uri} of the MCP server {server}:\n\n{text}")
                }
                Err(problem) => {
                    let problem = mcp::told(&problem);
                    let text = format!("The resource {uri} of the MCP server {server} was not attached: {problem}");
                    mailbox.emit(Event::Notice { text: text.clone() }).await;
                    text
                }
            };
            attached.push(Message::attachment(Attachment::File, &text));
        }
    }
    agent.conversation.push(Message { blocks, data: prompt.data, ..Message::prompt("") }, mailbox).await?;
    for message in attached {
        agent.conversation.push(message, mailbox).await?;
    }
    Ok(())
}
