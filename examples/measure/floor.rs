//! What the measuring itself costs: a program that prints what the model sends and runs what it asks for, and nothing
//! else. It has no screen of its own, keeps no log, asks nobody.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc;

use serde_json::Value;

/// Runs as the terminal program, or for one prompt.
///
/// # Errors
/// When there is no terminal, or the server hangs up.
pub(crate) fn run(prompt: Option<String>) -> io::Result<()> {
    let port = std::env::var("ANTHROPIC_BASE_URL").unwrap_or_default();
    let port = port.rsplit(':').next().unwrap_or_default().to_owned();
    let mut stream = None;
    if let Some(prompt) = prompt {
        return turn(&mut stream, &port, &prompt);
    }
    let mut modes = rustix::termios::tcgetattr(io::stdin())?;
    modes.make_raw();
    rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &modes)?;
    let (sender, lines) = mpsc::channel();
    print(b"> ")?;
    std::thread::spawn(move || keys(&sender));
    for line in lines {
        print(b"\r\n")?;
        turn(&mut stream, &port, &line)?;
        print(b"\r\n> ")?;
    }
    Ok(())
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Echoes keys and hands over lines.
fn keys(lines: &mpsc::Sender<String>) {
    let (mut line, mut buffer) = (Vec::new(), [0; 1024]);
    while let Ok(count @ 1..) = io::stdin().read(&mut buffer) {
        for byte in &buffer[..count] {
            let echo: &[u8] = match byte {
                b'\r' => {
                    let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                    if lines.send(text).is_err() {
                        return;
                    }
                    b""
                }
                0x7f => {
                    while line.pop().is_some_and(|byte| byte & 0xC0 == 0x80) {}
                    b"\x08 \x08"
                }
                byte => {
                    line.push(*byte);
                    std::slice::from_ref(byte)
                }
            };
            // Without a terminal there is nobody to see it.
            let _ = print(echo);
        }
    }
}

fn turn(stream: &mut Option<BufReader<TcpStream>>, port: &str, prompt: &str) -> io::Result<()> {
    let mut body = prompt.to_owned();
    loop {
        let stream = match stream {
            Some(stream) => stream,
            None => {
                let connection = TcpStream::connect(format!("127.0.0.1:{port}"))?;
                connection.set_nodelay(true)?;
                stream.insert(BufReader::new(connection))
            }
        };
        write!(stream.get_mut(), "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
        let Some(command) = answer(stream)? else { return Ok(()) };
        let output = Command::new("bash").args(["--norc", "--noprofile", "-c", &command]).output()?;
        print(&output.stdout)?;
        body.push_str(" \"tool_result\"");
    }
}

/// Prints an answer; the command that it asks for.
fn answer(stream: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let (mut input, mut line) = (String::new(), String::new());
    let mut out = io::stdout().lock();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(data) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(data)?;
            if let Some(text) = event["delta"]["text"].as_str() {
                out.write_all(text.replace('\n', "\r\n").as_bytes())?;
            }
            input.push_str(event["delta"]["partial_json"].as_str().unwrap_or_default());
        }
        if stream.buffer().is_empty() {
            out.flush()?;
        }
        // The size of the last chunk; the server cuts chunks between events only.
        if line.trim_end() == "0" {
            stream.read_line(&mut line)?;
            out.flush()?;
            let input: Option<Value> = serde_json::from_str(&input).ok();
            return Ok(input.and_then(|input| Some(input["command"].as_str()?.to_owned())));
        }
    }
}
