//! Server-sent events: bytes in, events out, whatever the chunking.
//!
//! Accepts LF, CR and CRLF, a byte order mark, comments and multi-line data. Invalid UTF-8 becomes U+FFFD.

/// Most bytes of one unfinished event.
const CAP: usize = 16 << 20;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field; empty if it is missing.
    pub name: String,
    /// The `data` lines, joined by newlines; never empty.
    pub data: String,
}

/// One event grew beyond 16 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("one event is larger than 16 MiB")]
pub struct TooLong;

/// Splits a stream into events; holds what is not yet complete.
#[derive(Debug, Default)]
pub struct Parser {
    /// The line that has no end yet.
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// What the stream continues after, and how long to wait before, in milliseconds.
    last_id: Option<String>,
    retry: Option<u64>,
    /// The last byte was a CR: a LF right after it belongs to the same line end.
    after_cr: bool,
    /// A first line was seen, so a byte order mark can no longer come.
    begun: bool,
}

impl Parser {
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Takes the next bytes and appends the events that they complete.
    ///
    /// # Errors
    /// When one event grows beyond 16 MiB; the parser is of no further use then.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Event>) -> Result<(), TooLong> {
        loop {
            if self.after_cr && !bytes.is_empty() {
                self.after_cr = false;
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else { break };
            if self.line.is_empty() {
                self.take_line(&bytes[..end], out);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.take_line(&line, out);
                line.clear();
                self.line = line;
            }
            self.within_cap()?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
        }
        self.line.extend_from_slice(bytes);
        self.within_cap()
    }

    /// The id of the last event; a stream that broke off continues after it. None: it cannot.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// How long the server wants to be left alone before the stream is opened again, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Ends the stream: what is left without its blank line. It may be cut short, so the caller has to check that it
    /// is whole before believing it.
    pub fn finish(mut self) -> Option<Event> {
        let mut out = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut out);
        }
        self.take_line(b"", &mut out);
        out.pop()
    }

    fn within_cap(&self) -> Result<(), TooLong> {
        if self.line.len() + self.event.data.len() > CAP { Err(TooLong) } else { Ok(()) }
    }

    fn take_line(&mut self, line: &[u8], out: &mut Vec<Event>) {
        let line = if self.begun { line } else { line.strip_prefix(BOM).unwrap_or(line) };
        self.begun = true;
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            self.has_data = false;
            if !event.data.is_empty() {
                out.push(event);
            }
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.last_id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => self.retry = std::str::from_utf8(value).ok().and_then(|ms| ms.parse().ok()).or(self.retry),
            // Comments have an empty field.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8], size: usize) -> Vec<(String, String)> {
        let mut parser = Parser::new();
        let mut out = Vec::new();
        for chunk in bytes.chunks(size.max(1)) {
            parser.push(chunk, &mut out).expect("small events");
        }
        out.extend(parser.finish());
        out.into_iter().map(|event| (event.name, event.data)).collect()
    }

    fn check(text: &str, want: &[(&str, &str)]) {
        let want: Vec<(String, String)> =
            want.iter().map(|(name, data)| (name.to_string(), data.to_string())).collect();
        for size in [1, 2, 3, 7, text.len()] {
            assert_eq!(parse(text.as_bytes(), size), want, "{text:?} in chunks of {size}");
        }
    }

    #[test]
    fn events() {
        check("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check("event: x\ndata: a\n\n", &[("x", "a")]);
        check("event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", &[("x", "a"), ("", "b")]);
        check("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check("\u{FEFF}data: a\n\n", &[("", "a")]);
        check(": ping\n\n: ping\ndata:a\n\n", &[("", "a")]);
        check("data: a\ndata:\ndata:  b\n\n", &[("", "a\n\n b")]);
        check("data\n\nevent: lone\n\ndata: a\n\n", &[("", "a")]);
        check("id: 7\nretry: 5\nunknown\ndata: é日本\u{1F600}\n\n", &[("", "é日本\u{1F600}")]);
        check("data: a\n\ndata: unfinished\n", &[("", "a"), ("", "unfinished")]);
        check("data: [DONE]", &[("", "[DONE]")]);
        check("", &[]);
        check("<!doctype html>\n<p>data</p>\n", &[]);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(parse(b"data: a\xFFb\n\n", 1), [("".to_string(), "a\u{FFFD}b".to_string())]);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut parser = Parser::new();
        let mut out = Vec::new();
        let block = vec![b'x'; 1 << 20];
        assert_eq!((0..17).find_map(|_| parser.push(&block, &mut out).err()), Some(TooLong));
        let mut parser = Parser::new();
        let line = [b"data: ".as_slice(), &block, b"\n"].concat();
        assert_eq!((0..17).find_map(|_| parser.push(&line, &mut out).err()), Some(TooLong));
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(
            parts in prop::collection::vec(
                prop::sample::select(vec!["\n", "\r", "\r\n", "data: ", "data:", "event: x", ": c", "é", "\u{FEFF}", "a", "😀"]),
                0..40,
            ),
            cuts in prop::collection::vec(1usize..9, 1..40),
        ) {
            let text = parts.concat();
            let whole = parse(text.as_bytes(), text.len());
            let (mut parser, mut out, mut rest) = (Parser::new(), Vec::new(), text.as_bytes());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at((*cut).min(rest.len()));
                parser.push(chunk, &mut out).expect("small events");
                rest = after;
            }
            out.extend(parser.finish());
            let split: Vec<(String, String)> = out.into_iter().map(|event| (event.name, event.data)).collect();
            prop_assert_eq!(split, whole);
        }
    }
}
