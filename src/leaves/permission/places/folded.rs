//! Paths as careless file systems read them: other spellings of the same names.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

pub(super) fn folded_path(path: &Path) -> PathBuf {
    path.components().map(|part| PathBuf::from(&*folded(part))).collect()
}

pub(super) fn folded(part: Component<'_>) -> Cow<'_, str> {
    match part.as_os_str().to_str() {
        Some(name) => fold(name),
        None => fold(&part.as_os_str().to_string_lossy()).into_owned().into(),
    }
}

/// A name as careless file systems read it: without case, trailing dots and spaces, streams, or ignorable characters.
fn fold(name: &str) -> Cow<'_, str> {
    // Nearly every name: a line may hold ten thousand.
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.');
    if name.bytes().all(plain) && !name.ends_with('.') {
        return Cow::Borrowed(name);
    }
    let name = name.split(':').next().unwrap_or_default();
    let name: String = name
        .chars()
        .filter(
            |c| !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'),
        )
        .collect();
    name.trim_end_matches(['.', ' ']).to_lowercase().into()
}

/// The folded parts of `path` below `base`.
pub(super) fn strip(path: &Path, base: &Path) -> Option<Vec<String>> {
    let mut rest = path.components().map(folded);
    let same = base.components().map(folded).all(|want| rest.next().is_some_and(|part| part == want));
    same.then(|| rest.map(Cow::into_owned).collect())
}

pub(super) fn under(path: &Path, base: &Path) -> bool {
    let mut parts = path.components();
    let same = |part: Component, want: Component| part == want || folded(part) == folded(want);
    !base.as_os_str().is_empty() && base.components().all(|want| parts.next().is_some_and(|part| same(part, want)))
}
