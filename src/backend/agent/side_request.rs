//! One request on the side of the conversation; nobody watches its answer arrive.

use std::sync::Arc;

use futures_util::StreamExt;

use super::Model;
use crate::message::{Message, Origin, Usage};
use crate::provider::reply::Fold;
use crate::provider::{Error, Request, StreamEvent};

/// Asks once. The usage counts whether an answer came or not. Calls are numbered from `first_call`.
pub(super) async fn send(model: &Model, request: Request, first_call: u64) -> (Result<Message, Error>, Usage) {
    let origin = Origin { provider: model.provider_name.clone(), model: request.model.clone() };
    let (mut fold, mut ended) = (Fold::new(first_call), false);
    let mut stream = model.provider.stream(Arc::new(request));
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                ended |= matches!(event, StreamEvent::End(_));
                fold.push(event);
            }
            Err(error) => return (Err(error), fold.usage().unwrap_or_default()),
        }
    }
    let usage = fold.usage().unwrap_or_default();
    let reply = if ended { Ok(fold.finish(origin)) } else { Err(Error::EndedEarly) };
    (reply, usage)
}
