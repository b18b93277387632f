//! What the rows of each list say, and what choosing one means.

use super::{Choice, Item, Picker};
use crate::commands::report::SkillRow;
use crate::permission::Behavior;
use crate::protocol::{
    Access, FoundRow, ListKind, Listed, MemoryRow, ModelRow, ProviderRow, RewindWhat, RuleRow, SessionRow, SettingRow,
    Word,
};
use crate::report;
use crate::session::entry::Seq;
use crate::tui::leaving::Leave;

impl Picker {
    /// Asks what to rewind.
    pub fn rewind(seq: Seq) -> Picker {
        let rows = [
            ("Code and conversation", RewindWhat::Both),
            ("Conversation only", RewindWhat::Conversation),
            ("Code only", RewindWhat::Code),
        ];
        let item = |(label, what): (&str, RewindWhat)| Item::new(label, "", Choice::Rewind(seq, what));
        Picker::new("Restore what?", None, rows.map(item).into())
    }

    /// Asks what becomes of commands in the background.
    pub fn leaving(running: usize) -> Picker {
        let rows = [
            // First what ends nothing: Enter is pressed too soon at times.
            ("Wait, then exit", "", Choice::Leave(Leave::Later)),
            ("Stop and exit", "What they wrote is kept", Choice::Leave(Leave::Now)),
            ("Stay", "", Choice::Nothing),
        ];
        let title = match running {
            1 => "Exit? 1 task runs in the background".to_owned(),
            running => format!("Exit? {running} tasks run in the background"),
        };
        Picker::new(title, None, rows.map(|(label, detail, choice)| Item::new(label, detail, choice)).into())
    }

    /// Asks before a rule is revoked.
    pub fn revoke(rule: &str) -> Picker {
        let rows =
            vec![Item::new("Revoke it", "", Choice::Revoke(rule.into())), Item::new("Keep it", "", Choice::Nothing)];
        Picker::new(format!("Revoke {rule}?"), None, rows)
    }
}

/// The rows of a list, with the word about what was last done in it; none where no picker shows it.
pub(super) fn of(listed: Listed) -> Option<(ListKind, Vec<Item>, Option<Word>)> {
    let (kind, items) = match listed {
        Listed::Sessions(rows) => (ListKind::Sessions, rows.into_iter().map(session).collect()),
        Listed::Found(list) => {
            let word = list.problem.map(|text| Word::Failed { text });
            return Some((ListKind::Found, list.rows.into_iter().map(found).collect(), word));
        }
        Listed::Models(list) => {
            return Some((ListKind::Models, list.providers.into_iter().flat_map(provider).collect(), list.word));
        }
        Listed::Settings(list) => {
            return Some((ListKind::Settings, list.rows.into_iter().map(setting).collect(), list.word));
        }
        Listed::Rules(rows) => (ListKind::Rules, rows.into_iter().map(rule).collect()),
        Listed::Memory(rows) => (ListKind::Memory, rows.into_iter().map(memory).collect()),
        Listed::Skills(rows) => (ListKind::Skills, rows.into_iter().map(skill).collect()),
        // The view folds the prompts from events, and keeps the history itself.
        Listed::Prompts(_)
        | Listed::History(_)
        | Listed::Changes(_)
        | Listed::Agent(_)
        | Listed::Earlier(_)
        | Listed::Resources(_) => {
            return None;
        }
    };
    Some((kind, items, None))
}

fn session(row: SessionRow) -> Item {
    Item::new(row.title, row.detail, Choice::Session(row.id))
}

fn found(row: FoundRow) -> Item {
    Item::new(row.text.clone(), row.detail.clone(), Choice::Found(Box::new(row)))
}

/// A provider and below it its models.
fn provider(row: ProviderRow) -> Vec<Item> {
    let ProviderRow { name, title, access, current, models } = row;
    let first = models.first().map(|model| Choice::Model(model.id.clone()));
    let key = Choice::Key { provider: name, title: title.clone() };
    let (choice, does) = match &access {
        Access::NoKey => (key, "Enter: paste one"),
        Access::Refused { .. } => (key, "Enter: paste another"),
        Access::NoServer { asked: true, .. } => (Choice::FindServer, "r: look again"),
        Access::NoServer { asked: false, .. } => (Choice::FindServer, "r: look for one"),
        Access::Offline => (Choice::Model("offline/offline".into()), ""),
        Access::Key { .. } | Access::Open | Access::Server { .. } => (first.unwrap_or(Choice::Nothing), ""),
    };
    let mut parts = vec![report::access(&access)];
    if current && models.is_empty() {
        parts.insert(0, "✓ in use".to_owned());
    }
    parts.extend((!does.is_empty()).then(|| does.to_owned()));
    let head = Item { words: title.clone(), ..Item::new(title.clone(), parts.join(" · "), choice) };
    let model = |row: ModelRow| {
        let bare = row.id.split_once('/').map_or(row.id.as_str(), |(_, id)| id);
        let detail = if row.current { format!("{} · ✓ in use", row.detail) } else { row.detail };
        Item {
            words: format!("{title} {}", row.id),
            alone: Some(row.id.clone()),
            current: row.current,
            ..Item::new(format!("  {bare}"), detail, Choice::Model(row.id))
        }
    };
    let current = current && models.is_empty();
    std::iter::once(Item { current, ..head }).chain(models.into_iter().map(model)).collect()
}

fn setting(row: SettingRow) -> Item {
    let value = row.shown();
    Item {
        words: row.key.clone(),
        value,
        ..Item::new(row.key.clone(), row.source.clone(), Choice::Setting(Box::new(row)))
    }
}

fn rule(row: RuleRow) -> Item {
    let name = match row.behavior {
        Behavior::Allow => "allow",
        Behavior::Ask => "ask  ",
        Behavior::Deny => "deny ",
    };
    let choice = match row.fixed {
        None => Choice::Rule(row.rule.clone()),
        Some(why) => Choice::Stay(why),
    };
    Item::new(format!("{name} {}", row.rule), row.source, choice)
}

fn memory(row: MemoryRow) -> Item {
    let detail = match row.lines {
        Some(lines) => format!("{lines} line{}", if lines == 1 { "" } else { "s" }),
        None => "new: instructions for this project".into(),
    };
    Item::new(row.name, detail, Choice::File(row.path))
}

fn skill(row: SkillRow) -> Item {
    Item::new(row.command.unwrap_or(row.name), row.detail, row.path.map_or(Choice::Nothing, Choice::File))
}
