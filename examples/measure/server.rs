//! A scripted model on loopback that speaks the Anthropic wire. The prompt says what to answer:
//! `BENCH:<kind>:<count>:<tag>` with the kinds `plain`, `deltas`, `slow` (100 deltas a second), `word` (of so many bytes),
//! `items` (of a list), `tools` and `grep`. Every turn ends with the word `DONE<tag>`, which the prompt itself does not
//! contain.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// Lines of Rust in an answer of this many deltas or more.
const CODE_FROM_DELTAS: usize = 10_000;
const CODE_LINES: usize = 1_000;
/// Bytes of an endless word in one delta.
const WORD: usize = 10_000;

/// The running server; its thread ends with the program.
pub(crate) struct Server {
    pub(crate) port: u16,
    sizes: Arc<Mutex<Vec<usize>>>,
}

impl Server {
    /// # Errors
    /// When loopback has no free port.
    pub(crate) fn start() -> std::io::Result<Server> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sizes);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                // A client that hangs up in the middle of an answer is what an interrupt looks like.
                std::thread::spawn(move || drop(serve(&stream, &seen)));
            }
        });
        Ok(Server { port, sizes })
    }

    /// Sizes in bytes of the requests since the last call, in order.
    pub(crate) fn take_requests(&self) -> Vec<usize> {
        std::mem::take(&mut self.sizes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn serve(stream: &TcpStream, sizes: &Mutex<Vec<usize>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some((path, body)) = request(&mut reader)? {
        if !path.starts_with("/v1/messages") || path.contains("count_tokens") {
            writer.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        sizes.lock().unwrap_or_else(PoisonError::into_inner).push(body.len());
        writer
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
        answer(writer, &String::from_utf8_lossy(&body))?;
        writer.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

/// Reads one request with a body of known length; none at the end of the connection.
fn request(reader: &mut impl BufRead) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((first.split(' ').nth(1).unwrap_or_default().to_owned(), body)))
}

fn answer(stream: &TcpStream, body: &str) -> std::io::Result<()> {
    let (task, after) = match body.rfind("BENCH:") {
        Some(start) => body[start + 6..].split_once(['"', '\\', '\n', ' ']).unwrap_or((&body[start + 6..], "")),
        None => ("plain:0:", ""),
    };
    let mut fields = task.split(':');
    let kind = fields.next().unwrap_or_default();
    let count: usize = fields.next().and_then(|count| count.parse().ok()).unwrap_or(0);
    let done = format!("\n\nDONE{}", fields.next().unwrap_or_default());
    let mut out = Events { stream, pending: Vec::new() };
    out.event(&json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "measured", "content": [],
        "stop_reason": null, "usage": {"input_tokens": body.len() / 4, "output_tokens": 1}}}))?;
    let rounds = after.matches("\"tool_result\"").count();
    let mut stop = "end_turn";
    out.event(&json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}))?;
    match kind {
        "deltas" => {
            for text in deltas(count) {
                out.text(&text)?;
            }
            out.text(&done)?;
        }
        "slow" => {
            for index in 0..count {
                out.text(&format!("word{index} "))?;
                out.flush()?;
                std::thread::sleep(Duration::from_millis(10));
            }
            out.text(&done)?;
        }
        "word" => {
            for _ in 0..count.div_ceil(WORD) {
                out.text(&"x".repeat(WORD))?;
            }
            out.text(&done)?;
        }
        "items" => {
            for index in 0..count {
                out.text(&format!("- item {index}\n"))?;
            }
            out.text(&done)?;
        }
        "tools" | "grep" if rounds < count => {
            out.text(&format!("Round {} of {count}: checking the output.", rounds + 1))?;
            out.event(&json!({"type": "content_block_stop", "index": 0}))?;
            let (name, input) = match kind {
                "grep" => ("Grep", json!({"pattern": "needle"})),
                _ => ("Bash", json!({"command": format!("echo bench-round-{rounds}"), "description": "Echo"})),
            };
            out.event(&json!({"type": "content_block_start", "index": 1, "content_block":
                {"type": "tool_use", "id": format!("toolu_{rounds}"), "name": name, "input": {}}}))?;
            let input = input.to_string();
            out.event(&json!({"type": "content_block_delta", "index": 1, "delta":
                {"type": "input_json_delta", "partial_json": input}}))?;
            stop = "tool_use";
        }
        _ => out.text(&format!("All is well.{done}"))?,
    }
    let last = if stop == "tool_use" { 1 } else { 0 };
    out.event(&json!({"type": "content_block_stop", "index": last}))?;
    out.event(&json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": count + 1}}))?;
    out.event(&json!({"type": "message_stop"}))?;
    out.flush()
}

/// The texts of an answer: prose, and in a long one a thousand lines of Rust.
fn deltas(count: usize) -> Vec<String> {
    let mut texts = Vec::with_capacity(count);
    if count >= CODE_FROM_DELTAS {
        texts.push("\n\n```rust\n".to_owned());
        for line in 0..CODE_LINES {
            let code = format!("    let value_{line} = parse(\"line {line}\", {line}).unwrap_or(0) + total; // sum\n");
            texts.extend(code.split_inclusive(' ').map(str::to_owned));
        }
        texts.push("```\n\n".to_owned());
    }
    for index in texts.len()..count {
        texts.push(if index % 60 == 59 { format!("end{index}.\n\n") } else { format!("word{index} ") });
    }
    texts
}

/// Events of one answer, gathered into chunks.
struct Events<'a> {
    stream: &'a TcpStream,
    pending: Vec<u8>,
}

impl Events<'_> {
    fn text(&mut self, text: &str) -> std::io::Result<()> {
        self.event(&json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}))
    }

    fn event(&mut self, event: &Value) -> std::io::Result<()> {
        let name = event["type"].as_str().unwrap_or_default();
        write!(self.pending, "event: {name}\ndata: {event}\n\n")?;
        if self.pending.len() > 16 * 1024 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", self.pending.len()).into_bytes();
        chunk.append(&mut self.pending);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk)
    }
}
