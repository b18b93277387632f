//! `/model`: another model takes over, unless a hook has something against it.

use super::{Engine, forecast};
use crate::agent::events;
use crate::agent::prefix::Next;
use crate::hooks::Occasion;

pub(super) async fn model(engine: &mut Engine, name: &str) {
    if let Some(id) = name.strip_prefix("local/") {
        engine.agree_to_server(id);
    }
    let model = match engine.models.named(name) {
        Ok(model) => model,
        Err(text) => return engine.fail(text).await,
    };
    let (from, to) = (engine.agent.model.name(), model.name());
    match events::refused(&mut engine.agent, Occasion::pre_model_switch(&from, &to), &engine.mailbox).await {
        Ok(None) => {}
        Ok(Some(why)) => return engine.fail(format!("The model stays `{from}`: {why}")).await,
        Err(error) => return engine.fail(error).await,
    }
    let unknown = (!model.spec.known)
        .then(|| format!(" The catalog does not know it; assuming a window of {} tokens.", model.spec.window));
    let text = format!("The model is now `{}`.{}", model.name(), unknown.unwrap_or_default());
    engine.take_model(model).await;
    events::beside(&mut engine.agent, Occasion::post_model_switch(&from, &to));
    engine.tell(text).await;
    forecast::tell(engine, Next::AsIs).await;
}
