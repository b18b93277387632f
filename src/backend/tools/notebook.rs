//! Jupyter notebooks as text: cells with their outputs.

use std::fmt::Write;

use serde_json::Value;

/// Most characters of one cell's outputs.
const OUTPUT: usize = 4000;

/// Shows a notebook cell by cell; `None` if the bytes are not a notebook.
pub(super) fn render(bytes: &[u8]) -> Option<String> {
    let notebook: Value = serde_json::from_slice(bytes).ok()?;
    let cells = notebook.get("cells")?.as_array()?;
    let mut text = String::new();
    for (at, cell) in cells.iter().enumerate() {
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("code");
        let _ = writeln!(text, "<cell id=\"{}\" type=\"{kind}\">", id_of(cell, at));
        let _ = writeln!(text, "{}\n</cell>", joined(cell.get("source")).trim_end_matches('\n'));
        let outputs: String = cell.get("outputs").and_then(Value::as_array).into_iter().flatten().map(output).collect();
        let outputs = crate::stdx::ansi::clean(outputs.trim_end());
        if !outputs.is_empty() {
            let cut = outputs.char_indices().nth(OUTPUT).map_or(outputs.len(), |(end, _)| end);
            let more = if cut < outputs.len() { "\n[output cut]" } else { "" };
            let _ = writeln!(text, "<output>\n{}{more}\n</output>", &outputs[..cut]);
        }
    }
    if cells.is_empty() {
        text.push_str("[The notebook has no cells.]");
    }
    Some(text)
}

/// The name by which a cell is edited: its own id, else its position.
pub(super) fn id_of(cell: &Value, at: usize) -> String {
    cell.get("id").and_then(Value::as_str).map_or_else(|| format!("cell-{at}"), String::from)
}

/// Text that a notebook keeps as one string or as a list of lines.
fn joined(source: Option<&Value>) -> String {
    match source {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn output(output: &Value) -> String {
    let text = match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => joined(output.get("text")),
        Some("error") => {
            let part = |name| output.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("{}: {}", part("ename"), part("evalue"))
        }
        _ => match output.get("data") {
            Some(data) if data.get("text/plain").is_some() => joined(data.get("text/plain")),
            Some(Value::Object(data)) => format!("[{}]", data.keys().cloned().collect::<Vec<_>>().join(", ")),
            _ => String::new(),
        },
    };
    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_and_outputs() {
        let notebook = json!({"cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {"cell_type": "code", "id": "abc", "source": "print(1)", "outputs": [
                {"output_type": "stream", "text": ["\u{1b}[31m1\u{1b}[0m\n"]},
                {"output_type": "display_data", "data": {"image/png": "…"}},
                {"output_type": "error", "ename": "E", "evalue": "bad"},
            ]},
        ]});
        assert_eq!(
            render(notebook.to_string().as_bytes()).unwrap(),
            "<cell id=\"cell-0\" type=\"markdown\">\n# Title\ntext\n</cell>\n\
             <cell id=\"abc\" type=\"code\">\nprint(1)\n</cell>\n<output>\n1\n[image/png]\nE: bad\n</output>\n"
        );
        assert_eq!(render(b"{}"), None);
        assert_eq!(render(b"not json"), None);
    }
}
