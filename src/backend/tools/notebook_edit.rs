//! NotebookEdit: replaces, inserts or deletes one cell of a Jupyter notebook.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};

use crate::permission::{Matches, Ruled};

use super::Manners;
use super::change::{ChangesFile, Known};
use super::file::{self, Change};
use super::notebook::id_of;

pub(super) struct NotebookEdit;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    notebook_path: String,
    /// As shown by Read; insert adds a cell after it, or at the start if it is missing
    cell_id: Option<String>,
    /// Empty for delete
    #[serde(default)]
    new_source: String,
    cell_type: Option<CellType>,
    /// Default: replace
    edit_mode: Option<EditMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CellType {
    Code,
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EditMode {
    Replace,
    Insert,
    Delete,
}

impl ChangesFile for NotebookEdit {
    type Input = Input;

    const NAME: &'static str = "NotebookEdit";
    const ABOUT: &'static str = include_str!("../../../assets/tools/notebook_edit.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Path, under: Some(super::EDIT), shows: None },
        clearable: false,
        matched: "notebook_path",
        needs_room: true,
        ..Manners::CHANGES
    };

    fn path(input: &Input) -> &str {
        &input.notebook_path
    }

    fn work_out(input: &Input, path: PathBuf, _known: Known<'_>) -> Result<Change, String> {
        let shown = path.display();
        if path.extension().is_none_or(|extension| extension != "ipynb") {
            return Err(format!("{shown} is not an .ipynb notebook. Use Edit for other files."));
        }
        let Some(before) = file::snapshot(&path)? else {
            return Err(format!("{shown} does not exist. Use Write to create a notebook."));
        };
        let mut notebook: Value = serde_json::from_slice(&before.bytes)
            .map_err(|error| format!("{shown} is not a valid notebook: {error}. Use Edit to fix it."))?;
        let ids = has_ids(&notebook);
        let cells = notebook.get_mut("cells").and_then(Value::as_array_mut);
        let cells = cells.ok_or_else(|| format!("{shown} is not a valid notebook: it has no list of cells."))?;
        let told = edit(input, cells, ids)?;
        let after = serialize(&notebook, &before.bytes).map_err(|error| format!("Cannot write {shown}: {error}."))?;
        Ok(Change { told: format!("{told} in {shown}."), path, before: Some(before), after })
    }
}

/// Makes the change in the list of cells; says what was done.
fn edit(input: &Input, cells: &mut Vec<Value>, ids: bool) -> Result<String, String> {
    let place = input.cell_id.as_deref().filter(|id| !id.is_empty()).map(|id| find(cells, id)).transpose()?;
    let named = || place.ok_or("Parameter `cell_id` is missing; it names the cell to change.".to_string());
    match input.edit_mode.unwrap_or(EditMode::Replace) {
        EditMode::Delete => {
            let at = named()?;
            let id = id_of(&cells[at], at);
            cells.remove(at);
            Ok(format!("Deleted cell {id}"))
        }
        EditMode::Insert => {
            let kind =
                input.cell_type.ok_or("Parameter `cell_type` is missing; insert needs \"code\" or \"markdown\".")?;
            let at = place.map_or(0, |at| at + 1);
            let mut cell = Map::new();
            cell.insert("cell_type".into(), Value::Null);
            if ids {
                cell.insert("id".into(), json!(uuid::Uuid::new_v4().simple().to_string()[..8]));
            }
            cell.insert("metadata".into(), json!({}));
            let mut cell = Value::Object(cell);
            fill(&mut cell, kind, &input.new_source);
            let id = id_of(&cell, at);
            cells.insert(at, cell);
            Ok(format!("Inserted cell {id}"))
        }
        EditMode::Replace => {
            let at = named()?;
            let cell = &mut cells[at];
            let kind = input.cell_type.unwrap_or(match cell.get("cell_type").and_then(Value::as_str) {
                Some("code") | None => CellType::Code,
                Some(_) => CellType::Markdown,
            });
            fill(cell, kind, &input.new_source);
            Ok(format!("Replaced cell {}", id_of(cell, at)))
        }
    }
}

/// Finds a cell by its id, or by `cell-N` counted from 0.
fn find(cells: &[Value], id: &str) -> Result<usize, String> {
    let by_id = cells.iter().position(|cell| cell.get("id").and_then(Value::as_str) == Some(id));
    let by_place = || id.strip_prefix("cell-").and_then(|n| n.parse().ok()).filter(|n| *n < cells.len());
    by_id.or_else(by_place).ok_or_else(|| {
        let ids: Vec<String> = cells.iter().enumerate().take(30).map(|(at, cell)| id_of(cell, at)).collect();
        format!("No cell {id:?}. The cells are: {}.", ids.join(", "))
    })
}

/// Gives a cell its kind and source. Outputs of the old source go.
fn fill(cell: &mut Value, kind: CellType, source: &str) {
    let Some(cell) = cell.as_object_mut() else { return };
    let raw = cell.get("cell_type").is_some_and(|kind| kind == "raw");
    let name = match kind {
        CellType::Code => "code",
        // A raw cell that is replaced without a new kind stays raw.
        CellType::Markdown if raw => "raw",
        CellType::Markdown => "markdown",
    };
    cell.insert("cell_type".into(), json!(name));
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    if kind == CellType::Code {
        cell.insert("execution_count".into(), Value::Null);
        cell.insert("outputs".into(), json!([]));
    } else {
        cell.shift_remove("execution_count");
        cell.shift_remove("outputs");
    }
    cell.insert("source".into(), json!(lines));
}

/// Whether cells of this notebook have ids: from format 4.5 on.
fn has_ids(notebook: &Value) -> bool {
    let number = |name| notebook.get(name).and_then(Value::as_u64).unwrap_or(0);
    (number("nbformat"), number("nbformat_minor")) >= (4, 5)
}

/// Writes a notebook with the indent and the last line end that it had.
fn serialize(notebook: &Value, before: &[u8]) -> serde_json::Result<Vec<u8>> {
    let second = before.iter().position(|byte| *byte == b'\n').map_or(&before[..0], |at| &before[at + 1..]);
    let indent = second.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let mut after = Vec::with_capacity(before.len() + 1024);
    if second.is_empty() && !before.contains(&b'\n') {
        serde_json::to_writer(&mut after, notebook)?;
    } else {
        let indent = if indent == 0 { b" " } else { &second[..indent] };
        let mut serializer = serde_json::Serializer::with_formatter(&mut after, PrettyFormatter::with_indent(indent));
        notebook.serialize(&mut serializer)?;
    }
    if before.ends_with(b"\n") {
        after.push(b'\n');
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::fixture::Fixture;
    use crate::tools::read::Read;

    const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aa",
   "metadata": {},
   "source": [
    "# é"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "bb",
   "metadata": {},
   "outputs": [
    1
   ],
   "source": [
    "x"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

    /// The parts of the cells that count: kind, source, outputs.
    async fn check(input: Value, want: Result<Value, &str>) {
        let mut fixture = Fixture::new();
        fixture.file("n.ipynb", NOTEBOOK);
        fixture.ok(&Read, json!({"file_path": "n.ipynb"})).await;
        let mut input = input;
        input["notebook_path"] = json!("n.ipynb");
        let output = fixture.run(&NotebookEdit, input).await;
        let content = fixture.content("n.ipynb");
        match want {
            Err(want) => {
                assert!(fixture.text(&output).contains(want), "{}", fixture.text(&output));
                assert_eq!(content, NOTEBOOK);
            }
            Ok(want) => {
                let notebook: Value = serde_json::from_str(&content).unwrap();
                let cells = notebook["cells"].as_array().unwrap();
                let cells: Vec<Value> =
                    cells.iter().map(|cell| json!([cell["cell_type"], cell["source"], cell["outputs"]])).collect();
                assert_eq!(json!(cells), want);
                assert!(cells.len() != 2 || content.starts_with("{\n \"cells\": [\n  {\n") && content.ends_with("}\n"));
            }
        }
    }

    #[tokio::test]
    async fn edits() {
        let (one, two) = (json!(["markdown", ["# é"], null]), json!(["code", ["x"], [1]]));
        check(json!({"cell_id": "bb", "new_source": "y\nz"}), Ok(json!([one, ["code", ["y\n", "z"], []]]))).await;
        check(json!({"cell_id": "cell-0", "new_source": "y"}), Ok(json!([["markdown", ["y"], null], two]))).await;
        check(
            json!({"cell_id": "bb", "new_source": "t", "cell_type": "markdown"}),
            Ok(json!([one, ["markdown", ["t"], null]])),
        )
        .await;
        check(json!({"cell_id": "aa", "edit_mode": "delete"}), Ok(json!([two]))).await;
        check(
            json!({"cell_id": "aa", "edit_mode": "insert", "cell_type": "code", "new_source": "n"}),
            Ok(json!([one, ["code", ["n"], []], two])),
        )
        .await;
        check(
            json!({"edit_mode": "insert", "cell_type": "markdown", "new_source": "n"}),
            Ok(json!([["markdown", ["n"], null], one, two])),
        )
        .await;
        check(json!({"cell_id": "zz", "new_source": "y"}), Err("No cell \"zz\". The cells are: aa, bb.")).await;
        check(json!({"new_source": "y"}), Err("Parameter `cell_id` is missing")).await;
        check(json!({"edit_mode": "insert", "new_source": "y"}), Err("insert needs \"code\" or \"markdown\"")).await;
    }

    #[tokio::test]
    async fn what_is_not_touched_stays_as_it_is() {
        let mut fixture = Fixture::new();
        fixture.file("n.ipynb", NOTEBOOK);
        let input = json!({"notebook_path": "n.ipynb", "cell_id": "aa", "new_source": "# é!"});
        assert!(fixture.error(&NotebookEdit, input.clone()).await.contains("you have not read it"));
        fixture.ok(&Read, json!({"file_path": "n.ipynb"})).await;
        fixture.ok(&NotebookEdit, input).await;
        assert_eq!(fixture.content("n.ipynb"), NOTEBOOK.replace("# é", "# é!"));
    }
}
