//! Where the paths in a command's words lead: a rule that covers what stays in the folder goes by that, not by their names.

use super::super::commands::covered;
use super::super::files::Files;
use super::super::paths::{self, Cwd};
use super::super::places::Places;
use super::super::shell::{MANY, Piece, Word};

/// Most signs in one word behind which a path may begin.
const MAX_SIGNS: usize = 64;

/// The words as rules that allow see them, with [`ONE`](super::super::shell::ONE) and [`MANY`] for what is not known. A path
/// of the workspace is one from its top, and one that leads out through a link is the one where it leads.
pub(super) fn placed(words: &[Word], cwd: &Cwd, places: &Places, files: &dyn Files) -> Vec<String> {
    let name = words.first().and_then(Word::literal).unwrap_or_default();
    // Their paths start in no other folder, whatever their options say.
    let plain = covered::starts_here(name.rsplit('/').next().unwrap_or_default());
    let place = |text: &str| -> Option<String> {
        let up = plain && text.split('/').any(|part| part == "..");
        let absolute = text.starts_with('/');
        let starts =
            if absolute { vec!["/".into()] } else { cwd.0.clone().unwrap_or_else(|| vec![places.cwd.clone()]) };
        let outside = starts.iter().map(|start| start.join(text)).find(|path| !places.inside(path, files));
        match outside {
            Some(path) => Some(files.resolve(&path).to_str()?.to_owned()).filter(|real| real.starts_with('/')),
            None if absolute || up => {
                let path = files.resolve(&starts[0].join(text));
                let root = places.workspace().find_map(|root| path.strip_prefix(files.resolve(root)).ok())?;
                Some(format!("./{}", root.to_str()?))
            }
            None => None,
        }
    };
    // Of one without a table, what comes before a colon may be a path of its own.
    let lists = !covered::describes(&name);
    let listed = |text: &str| -> Option<String> {
        let (first, rest) = text.split_once(':').filter(|_| lists)?;
        Some(format!("{}:{rest}", place(first)?))
    };
    let of = |word: &Word| {
        // A number is a number, such as that of processors.
        let count = |piece: &Piece| matches!(piece, Piece::Dynamic(one) if one.starts_with_digit());
        let told = word.pieces.iter().any(count).then(|| {
            let tell = |piece: &Piece| if count(piece) { Piece::Text("0".to_owned()) } else { piece.clone() };
            word.with_pieces(word.pieces.iter().map(tell).collect())
        });
        let word = told.as_ref().unwrap_or(word);
        let text = word.possible();
        if files.spend(4) || text.len() > 4096 {
            return MANY.to_string();
        }
        if word.has_glob() {
            let Some(paths) = paths::paths(word, cwd, places, files) else { return text };
            // What matches nothing is passed on as it is, and is the last.
            let out = paths.iter().any(|path| !places.inside(path, files));
            return if out { format!("/{text}") } else { text };
        }
        // Where nobody knows the folder, a link in it may lead anywhere.
        if cwd.0.is_none() && text.contains('/') && !text.starts_with('/') && !text.contains("://") {
            return format!("{MANY}{text}");
        }
        if word.is_dynamic() || text.contains("://") || covered::is_device(&text) {
            return text;
        }
        // What an option names, in the same word; a list of files, and what a sign says to read.
        let signs = text.match_indices(['=', '@', '<', ',', ';']).map(|(at, _)| at + 1);
        if signs.clone().count() > MAX_SIGNS {
            return MANY.to_string();
        }
        let behind = signs.map(|at| text.len() - text[at..].trim_start().len());
        let glued = text.starts_with('-') && !text.starts_with("--");
        let cuts = (2..text.len().min(if glued { 32 } else { 0 })).filter(|at| text.is_char_boundary(*at));
        let starts = if text.starts_with('-') { None } else { Some(0) }.into_iter().chain(behind).chain(cuts);
        for at in starts {
            let end = text[at..].find(['@', '<', ',', ';']).map_or(text.len(), |end| at + end);
            if let Some(path) = listed(&text[at..]).or_else(|| place(&text[at..])).filter(|_| at < text.len()) {
                return format!("{}{path}", &text[..at]);
            }
            if let Some(path) = place(text[at..end].trim_end()).filter(|_| at < end && end < text.len()) {
                return format!("{}{path}{}", &text[..at], &text[end..]);
            }
        }
        text
    };
    let rest = words.iter().skip(1).map(of);
    words.first().map(Word::possible).into_iter().chain(rest).collect()
}
