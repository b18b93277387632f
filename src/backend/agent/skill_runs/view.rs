//! Who may run which skill now.

use std::sync::Arc;

use crate::commands::{Catalog, Skill};

/// Who asks for a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum Caller {
    User,
    Model,
}

/// Looks skills up for a caller.
#[derive(Clone)]
pub(in crate::agent) struct View {
    pub(super) catalog: Arc<Catalog>,
    pub(super) running: Vec<String>,
}

impl View {
    /// The skill, if this caller may run it now.
    ///
    /// # Errors
    /// Why not, and what to do instead.
    pub(in crate::agent) fn find(&self, name: &str, caller: Caller) -> Result<Arc<Skill>, String> {
        let (now, _) = self.catalog.refresh();
        let name = name.trim().trim_start_matches('/');
        let Some((command, skill)) = now.named(name) else {
            let nearest = now.registry.nearest(name).filter(|near| now.named(near).is_some());
            let hint = nearest.map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("No skill `{name}`.{hint}"));
        };
        match caller {
            Caller::User if !command.user_invocable => {
                return Err(format!("`/{name}` is for the model only: its file says `user_invocable: false`."));
            }
            Caller::Model if skill.disable_model_invocation => {
                return Err(format!("Only the user can start the skill `{name}`, as `/{name}`."));
            }
            // What is in no list of its own was not offered to it.
            Caller::Model if !command.offered() => {
                return Err(format!(
                    "Only the user can start the skill `{name}`, as `/{name}`: its file has no description."
                ));
            }
            Caller::User | Caller::Model => {}
        }
        if self.running.contains(&skill.name) {
            return Err(format!("The skill `{name}` is already running: its instructions are above. Follow them."));
        }
        Ok(skill.clone())
    }
}
