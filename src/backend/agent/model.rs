//! Who answers.

use std::sync::Arc;

use crate::protocol::ModelInfo;
use crate::provider::Provider;
use crate::provider::catalog::ModelSpec;

/// Who answers: a provider, and one of its models.
#[derive(Clone)]
pub struct Model {
    pub provider: Arc<dyn Provider>,
    /// Its name in the configuration.
    pub provider_name: String,
    pub id: String,
    pub spec: ModelSpec,
}

impl Model {
    /// As sessions and `/model` name it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider_name, self.id)
    }

    /// As front ends show it.
    pub fn info(&self) -> ModelInfo {
        ModelInfo {
            provider: self.provider_name.clone(),
            model: self.id.clone(),
            window: self.spec.window,
            known: self.spec.known,
            probing: false,
            local: self.provider.local(),
        }
    }
}
