//! Recorded streams: `tests/data/sse/<wire>/<case>.sse` in, `<case>.events` out, whatever the chunking.
//!
//! `UPDATE_EVENTS=1` writes what is decoded now; read the difference like code.

use std::path::{Path, PathBuf};

use cocode::message::Origin;
use cocode::provider::codec::codec;
use cocode::provider::reply::Fold;
use cocode::provider::settings::WireName;
use cocode::provider::{StreamEvent, sse};
use proptest::prelude::*;

/// The decoded events, one JSON line each; a failure is the last line.
fn decode(wire: WireName, bytes: &[u8], chunk: usize) -> Vec<String> {
    let mut parser = sse::Parser::new();
    let mut decoder = codec(wire).decoder("asked-model");
    let (mut events, mut out) = (Vec::new(), Vec::new());
    let failure = 'stream: {
        for piece in bytes.chunks(chunk.max(1)) {
            parser.push(piece, &mut events).expect("recorded events are small");
            for event in events.drain(..) {
                if let Err(error) = decoder.event(&event, &mut out) {
                    break 'stream Some(error);
                }
            }
        }
        decoder.end(&mut out).err()
    };
    let mut lines: Vec<String> = out.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    lines.extend(failure.map(|error| format!("error: {error:?}")));
    lines
}

fn cases(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "sse")).collect();
    cases.sort();
    cases
}

fn check(wire: WireName, folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sse").join(folder);
    let cases = cases(&folder);
    assert!(!cases.is_empty(), "no recorded stream in {}", folder.display());
    for case in cases {
        let bytes = std::fs::read(&case).unwrap();
        let got = decode(wire, &bytes, bytes.len()).join("\n") + "\n";
        let expected = case.with_extension("events");
        if std::env::var_os("UPDATE_EVENTS").is_some() {
            std::fs::write(&expected, &got).unwrap();
        }
        let want = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(got, want, "{}", case.display());
        for chunk in [1, 7, 64] {
            assert_eq!(decode(wire, &bytes, chunk).join("\n") + "\n", want, "{} by {chunk}", case.display());
        }
        // Carriage returns as other servers send them.
        let text = String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
        for end in ["\r\n", "\r"] {
            let other = text.replace('\n', end);
            assert_eq!(decode(wire, other.as_bytes(), 5).join("\n") + "\n", want, "{} with {end:?}", case.display());
        }
        cut_anywhere(wire, &text, &case);
    }
}

/// A stream that is cut before its last event neither finishes nor panics.
fn cut_anywhere(wire: WireName, text: &str, case: &Path) {
    let whole = decode(wire, text.as_bytes(), usize::MAX);
    let first_end = text.find("\n\n").unwrap_or(0);
    for cut in (0..first_end).step_by(11).filter(|cut| text.is_char_boundary(*cut)) {
        let lines = decode(wire, &text.as_bytes()[..cut], usize::MAX);
        assert_eq!(lines, ["error: EndedEarly"], "{} cut at {cut}", case.display());
    }
    for (cut, _) in text.match_indices("\n\n") {
        let lines = decode(wire, &text.as_bytes()[..cut + 2], usize::MAX);
        let shown = lines.iter().zip(&whole).take_while(|(a, b)| a == b).count();
        let ended = lines.iter().any(|line| {
            serde_json::from_str::<StreamEvent>(line).is_ok_and(|event| matches!(event, StreamEvent::End(_)))
        });
        let failed = lines.last().is_some_and(|line| line.starts_with("error: "));
        assert!(ended != failed, "{} cut at {cut}: {lines:?}", case.display());
        // What was shown before the cut is in the whole answer, too.
        assert!(shown + 4 >= lines.len() || ended, "{} cut at {cut}: {lines:?}", case.display());
    }
}

#[test]
fn anthropic() {
    check(WireName::Anthropic, "anthropic");
}

#[test]
fn openai() {
    check(WireName::Openai, "openai");
}

#[test]
fn openai_chat() {
    check(WireName::OpenaiChat, "openai-chat");
}

#[test]
fn gemini() {
    check(WireName::Gemini, "gemini");
}

const FOLDERS: [(WireName, &str); 4] = [
    (WireName::Anthropic, "anthropic"),
    (WireName::Openai, "openai"),
    (WireName::OpenaiChat, "openai-chat"),
    (WireName::Gemini, "gemini"),
];

proptest! {
    /// A damaged stream is an answer or an error, of whichever wire it is taken to be; never a panic.
    #[test]
    fn damage_is_survived(
        wire in 0..4usize,
        taken_for in 0..4usize,
        case in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"{}[]\",:0n\n \xFF".to_vec())), 0..6),
        removed in any::<prop::sample::Index>(),
        chunk in 1..200usize,
    ) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sse").join(FOLDERS[wire].1);
        let cases = cases(&folder);
        let mut bytes = std::fs::read(case.get(&cases)).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let from = removed.index(bytes.len());
        bytes.drain(from..(from + chunk / 4).min(bytes.len()));
        let mut fold = Fold::new(0);
        for line in decode(FOLDERS[taken_for].0, &bytes, chunk) {
            if let Ok(event) = serde_json::from_str(&line) {
                fold.push(event);
            }
        }
        fold.finish(Origin { provider: "p".into(), model: "m".into() });
    }
}
