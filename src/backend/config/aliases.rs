//! Other names of settings, from earlier designs, which files may still use.

use toml::{Table, Value};

/// Another name, and the setting that it means.
const ALIASES: [(&str, &str); 22] = [
    ("thinking.keywords.deepthink", "thinking.keywords.deep"),
    ("thinking.keywords.ultrathink", "thinking.keywords.ultra"),
    ("thinking.budgets.deep_think", "thinking.budgets.deep"),
    ("thinking.budgets.ultra_think", "thinking.budgets.ultra"),
    ("compact.auto_compact_enabled", "compact.auto"),
    ("compact.autoCompactEnabled", "compact.auto"),
    ("compact.model_auto_compact_token_limit", "compact.auto_compact_threshold"),
    ("compact.micro_compact_min_tokens_to_save", "compact.micro.min_saving"),
    ("compact.micro_compact_keep_last_n_tools", "compact.micro.keep_last"),
    ("compact.preserve_recent_messages", "compact.keep_recent_messages"),
    ("compact.restore_max_files", "compact.restore.max_files"),
    ("compact.restore_tokens_per_file", "compact.restore.tokens_per_file"),
    ("compact.restore_total_file_budget", "compact.restore.total_file_budget"),
    ("compact.restore_todos", "compact.restore.todos"),
    ("compact.restore_plan", "compact.restore.plan"),
    ("compact.tool_summary", "compact.tool_output.summary"),
    ("compact.max_recoveries", "compact.guards.max_recoveries"),
    ("features.tengu_session_memory", "features.session_memory"),
    ("features.tengu_sm_compact", "features.session_memory_compact"),
    // These were at the top of a file.
    ("auto_compact_enabled", "compact.auto"),
    ("autoCompactEnabled", "compact.auto"),
    ("model_auto_compact_token_limit", "compact.auto_compact_threshold"),
];

/// The setting that another name means.
pub(super) fn own_name(key: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(key)).map(|(_, own)| *own)
}

/// The path of the setting that a path means.
pub(super) fn meant(path: Vec<String>) -> Vec<String> {
    own_name(&path.join(".")).map_or(path, |own| own.split('.').map(str::to_owned).collect())
}

/// Moves every setting to its own name. A name whose setting is given as well stays where it is, and is told by `clash`.
/// Returns the moves.
pub(super) fn resolve(table: &mut Table) -> Vec<(&'static str, &'static str)> {
    let mut moved = Vec::new();
    for (alias, own) in ALIASES {
        if at(table, own).is_some() || at(table, alias).is_none() {
            continue;
        }
        let blocked = own.rsplit_once('.').is_some_and(|(parents, _)| !open(table, parents));
        if blocked {
            continue;
        }
        let value = parent(table, alias).and_then(|(table, name)| table.remove(name));
        if let (Some(value), Some((table, name))) = (value, parent(table, own)) {
            table.insert(name.to_owned(), value);
            moved.push((alias, own));
        }
    }
    moved
}

/// What is wrong with a name that `resolve` left where it is.
pub(super) fn clash(key: &str) -> Option<String> {
    let (alias, own) = ALIASES.iter().find(|(alias, _)| *alias == key)?;
    Some(format!("`{alias}` is another name for `{own}`, which is also set here: keep one of them"))
}

fn at<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let mut parts = key.split('.');
    let first = table.get(parts.next()?)?;
    parts.try_fold(first, |value, name| value.as_table()?.get(name))
}

/// Whether these tables are there, or can be made.
fn open(table: &Table, key: &str) -> bool {
    let mut table = table;
    for name in key.split('.') {
        match table.get(name) {
            None => return true,
            Some(Value::Table(inner)) => table = inner,
            Some(_) => return false,
        }
    }
    true
}

/// The table that a key lies in, made where it is missing, and the key's last part.
fn parent<'a, 'b>(table: &'a mut Table, key: &'b str) -> Option<(&'a mut Table, &'b str)> {
    let (tables, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table = table;
    for part in tables.split('.').filter(|part| !part.is_empty()) {
        table = table.entry(part).or_insert_with(|| Value::Table(Table::new())).as_table_mut()?;
    }
    Some((table, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_to_their_settings() {
        fn check(text: &str, want: &str) {
            let mut table: Table = text.parse().unwrap();
            resolve(&mut table);
            assert_eq!(table, want.parse::<Table>().unwrap(), "{text}");
        }
        check("compact.auto_compact_enabled = false", "compact.auto = false");
        check("auto_compact_enabled = false\nmodel = 'x'", "model = 'x'\ncompact.auto = false");
        check("compact.micro_compact_keep_last_n_tools = 5", "compact.micro.keep_last = 5\n");
        check(
            "compact.micro.target = 1\ncompact.restore_todos = false",
            "compact.micro.target = 1\ncompact.restore.todos = false",
        );
        check("features.tengu_sm_compact = false", "features.session_memory_compact = false");
        // Two names of one setting: which one is meant is not guessed.
        check(
            "compact.auto = true\ncompact.auto_compact_enabled = false",
            "compact.auto = true\ncompact.auto_compact_enabled = false",
        );
        // The check reports what is not a table.
        check(
            "compact.micro = 3\ncompact.micro_compact_keep_last_n_tools = 5",
            "compact.micro = 3\ncompact.micro_compact_keep_last_n_tools = 5",
        );
        check("compact = 3", "compact = 3");
    }

    #[test]
    fn every_name_means_a_setting_of_its_own_that_exists() {
        let shape = super::super::shape::Shape::new();
        for (alias, own) in ALIASES {
            let path = |key: &str| key.split('.').map(str::to_owned).collect::<Vec<_>>();
            assert!(shape.node(&path(own)).is_ok(), "{own}");
            assert!(shape.node(&path(alias)).is_err(), "{alias}");
            assert_eq!(meant(path(alias)), path(own));
        }
        assert_eq!(meant(vec!["compact".into(), "auto".into()]), ["compact", "auto"]);
    }
}
