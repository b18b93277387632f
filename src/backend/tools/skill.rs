//! Skill: starts one of the skills that the model was told of.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::permission::Access;

use super::call::Typed;
use super::{After, Call, Context, Dirs, Manners, Output};

pub(super) struct Skill;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Its name, as in the list of skills
    skill: String,
    /// Arguments for the skill
    #[serde(default)]
    args: Option<String>,
}

impl Typed for Skill {
    type Input = Input;

    const NAME: &'static str = "Skill";
    const ABOUT: &'static str = include_str!("../../../assets/tools/skill.md");
    const MANNERS: Manners = Manners { clearable: false, matched: "skill", needs_room: true, ..Manners::CHANGES };

    fn call(&self, Input { skill, args }: Input, _dirs: &Dirs) -> Result<Call, String> {
        let (name, args) = (skill.trim().trim_start_matches('/').to_owned(), args.unwrap_or_default());
        let title = format!("{skill} {args}").lines().next().unwrap_or_default().trim_end().to_owned();
        let access = Access::Skill { name: name.clone() };
        let work = |context: Context| async move {
            match context.host.skill(&name) {
                Ok(()) => {
                    let after = vec![After::Skill { name, args }];
                    Output { after, ..Output::ok("The skill has started; its instructions follow.") }
                }
                Err(problem) => Output::error(problem),
            }
        };
        Ok(Call::new(access, title, work))
    }
}
