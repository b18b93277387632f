//! `/output-style`: lists the output styles, or chooses one.

use std::fmt::Write;

use super::Engine;
use crate::config::styles::{self, DEFAULT};

/// The setting that names the style.
const KEY: &str = "output_style";

/// Without a name it lists the styles.
pub(super) async fn choose(engine: &mut Engine, name: &str) {
    let name = name.trim();
    if name.is_empty() {
        return engine.tell(list(engine)).await;
    }
    match styles::find(&engine.setup.paths, &engine.setup.project, name) {
        Ok(style) => {
            let name = style.map_or_else(|| DEFAULT.to_owned(), |style| style.name);
            engine.configure(&format!("{KEY} {name:?}")).await;
        }
        Err(unknown) => engine.fail(unknown).await,
    }
}

fn list(engine: &Engine) -> String {
    let now = &engine.loaded.config.output_style;
    let mut text = "Output styles (a change holds from the next session on, also after /clear):".to_owned();
    let mut row = |name: &str, source: &str, about: &str| {
        let mark = if name.eq_ignore_ascii_case(now) { "*" } else { "-" };
        let about = if about.is_empty() { String::new() } else { format!(": {about}") };
        let _ = write!(text, "\n{mark} {name} ({source}){about}");
    };
    row(DEFAULT, "shipped", "Replies as usual");
    for style in styles::all(&engine.setup.paths, &engine.setup.project) {
        row(&style.name, style.source, &style.description);
    }
    text
}
