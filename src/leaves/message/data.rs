//! What came with the words of a prompt: a paste, piped input.

use std::ops::Range;

/// The text with at most `most` bytes of each range of data in it, marked as such: what somebody typed is all there.
pub fn typed(text: &str, data: &[Range<usize>], most: usize) -> String {
    let (mut typed, mut from) = (String::new(), 0);
    for part in data {
        let (Some(before), Some(came)) = (text.get(from..part.start), text.get(part.clone())) else { continue };
        let kept = &came[..came.floor_char_boundary(most)];
        typed.push_str(before);
        match came.len() - kept.len() {
            _ if kept.is_empty() => typed.push('\n'),
            0 => typed.push_str(&format!("[came with it: {kept}]")),
            more => typed.push_str(&format!("[came with it: {kept}… and {more} more bytes]")),
        }
        from = part.end;
    }
    typed.push_str(text.get(from..).unwrap_or_default());
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_cut_and_words_stay() {
        let text = "one [äöü] two [x] three";
        let check = |data: &[Range<usize>], most, want: &str| assert_eq!(typed(text, data, most), want);
        check(&[], 0, text);
        check(&[4..12, 17..20], 9, "one [came with it: [äöü]] two [came with it: [x]] three");
        check(&[4..12, 17..20], 0, "one \n two \n three");
        check(&[4..12, 17..20], 4, "one [came with it: [ä… and 5 more bytes] two [came with it: [x]] three");
        check(&[5..6, 20..99], 0, text);
    }
}
