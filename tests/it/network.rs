//! Real programs reach a server through the proxy of a session, with nothing but the variables that a command gets.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use cocode::sandbox::proxy::env::{Loopback, variables};
use cocode::sandbox::proxy::{Knock, Limits, Proxy, System, Verdict};
use cocode::sandbox::{Level, Sandbox};
use tokio::process::Command;

use super::support::program::Program;
use super::terminal::scripted;

/// Serves the files of a folder, one request a connection. A client that does not speak HTTP is greeted like one of ssh.
fn server(folder: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, folder) = (stream.unwrap(), folder.clone());
            std::thread::spawn(move || {
                let (mut got, mut piece) = (Vec::new(), [0; 4096]);
                while !got.ends_with(b"\r\n\r\n") && !got.starts_with(b"SSH-") {
                    match stream.read(&mut piece) {
                        Ok(count @ 1..) => got.extend_from_slice(&piece[..count]),
                        _ => return,
                    }
                }
                let text = String::from_utf8_lossy(&got);
                let path = text.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
                let answer = match std::fs::read(folder.join(path.trim_start_matches('/'))) {
                    _ if got.starts_with(b"SSH-") => b"SSH-1.0-too_old\r\n".to_vec(),
                    Ok(content) => {
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
                        [head.as_bytes(), &content].concat()
                    }
                    Err(_) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
                };
                let _ = stream.write_all(&answer);
            });
        }
    });
    port
}

/// What a line of a shell says with a proxy that lets nothing but `allowed` through, and what was knocked for.
async fn through(line: &str, allowed: &str, cwd: &Path) -> (String, String) {
    let proxy = Proxy::start(Limits::default(), Box::new(System), |_| None).await.unwrap();
    let mut pass = proxy.pass();
    let given = variables(&pass.url(), Loopback::Shared, Path::new(env!("CARGO_BIN_EXE_cocode")), None);
    let (knocks, allowed) = (Arc::<Mutex<Vec<String>>>::default(), allowed.to_owned());
    let written = knocks.clone();
    let holder = tokio::spawn(async move {
        while let Some(Knock { contact, answer }) = pass.knock().await {
            let place = format!("{}:{}", contact.host, contact.port);
            let verdict = if place == allowed { Verdict::Open } else { Verdict::Closed(format!("{place} is denied")) };
            written.lock().unwrap().push(place);
            let _ = answer.send(verdict);
        }
    });
    let run = Command::new("bash")
        .args(["-c", line])
        .current_dir(cwd)
        .envs(given)
        .env("HOME", cwd)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .output();
    let output = run.await.unwrap();
    holder.abort();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let knocks = knocks.lock().unwrap().join(" ");
    (text, knocks)
}

#[tokio::test]
async fn programs_find_the_proxy_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page"), "the page").unwrap();
    let git = "git init -q a && cd a && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m one && \
               git clone -q --bare . ../a.git && cd ../a.git && git update-server-info";
    assert!(std::process::Command::new("bash").args(["-c", git]).current_dir(&folder).status().unwrap().success());
    let port = server(folder.path().to_owned());
    let place = format!("127.0.0.1:{port}");
    let python = "import urllib.request as u; print(u.urlopen(u.Request('URL')).read().decode())";
    for (line, want) in [
        ("curl -sS http://PLACE/page".to_owned(), "the page"),
        ("curl -sS --proxytunnel http://PLACE/page".to_owned(), "the page"),
        ("curl -sS --proxy ${HTTP_PROXY/http:/socks5h:} http://PLACE/page".to_owned(), "the page"),
        ("curl -sS http://odd@0x7f.1:PORT/page".to_owned(), "the page"),
        (format!("python3 -c \"{}\"", python.replace("URL", "http://PLACE/page")), "the page\n"),
        ("git ls-remote http://PLACE/a.git | cut -f2".to_owned(), "HEAD\n"),
        // The server is no server of ssh: that it was asked like one is enough.
        ("git ls-remote ssh://git@PLACE/x 2>&1 | grep -o 'protocol.*too_old\\|major versions.*'".to_owned(), ""),
    ] {
        let line = line.replace("PLACE", &place).replace("PORT", &port.to_string());
        let (text, knocks) = through(&line, &place, folder.path()).await;
        assert!(text.starts_with(want) && !text.contains("cannot"), "{line}: {text}");
        assert!(knocks.split(' ').all(|knock| knock == place), "{line}: {knocks}");
        assert!(!knocks.is_empty(), "{line}: {text}");
    }
    // What is denied says why, in the program's own words.
    for (line, want) in [
        ("curl -sS http://127.0.0.2:PORT/page".to_owned(), "cocode: 127.0.0.2:PORT is denied"),
        ("curl -sS --proxytunnel http://127.0.0.2:PORT/page".to_owned(), "response 403"),
        (
            format!("python3 -c \"{}\" 2>&1", python.replace("URL", "http://127.0.0.2:PORT/page")),
            "127.0.0.2:PORT is denied",
        ),
        ("git ls-remote ssh://git@127.0.0.2:PORT/x".to_owned(), "cocode did not connect to 127.0.0.2:PORT: 403"),
        // Without a pass.
        ("curl -sS -x 127.0.0.1:${HTTP_PROXY##*:} http://PLACE/page".to_owned(), "belongs to a session of cocode"),
        (
            "COCODE_PROXY= && unset COCODE_PROXY; cocode=${GIT_SSH_COMMAND#*=}; ${cocode%% *} __connect a 1".to_owned(),
            "COCODE_PROXY is not set",
        ),
    ] {
        let put = |text: &str| text.replace("PLACE", &place).replace("PORT", &port.to_string());
        let (text, _) = through(&put(&line), &place, folder.path()).await;
        assert!(text.contains(&put(want)), "{line}: {text}");
    }
}

/// A program whose commands run in the workspace sandbox, with a page to fetch, and the line that fetches it.
fn fetching() -> (Program, String, String) {
    let settings = "[sandbox]\napproved = \"workspace\"\n[permissions]\nallow = [\"Bash\"]\n";
    let program = Program::new().home_file(".config/cocode/config.toml", settings);
    std::fs::write(program.project().join("page"), "the page").unwrap();
    let port = server(program.project());
    let line = format!("curl -sS -o got http://127.0.0.1:{port}/page");
    let script = serde_json::json!([
        {"reply": [{"tool": {"name": "Bash", "input": {"command": line}}}]},
        {"reply": [{"text": "That is all."}]},
    ]);
    (program, format!("127.0.0.1:{port}"), script.to_string())
}

/// Whether a command can be held to the port of the proxy here.
async fn is_held() -> bool {
    Sandbox::new(Some(Program::binary().into())).probe().await > Level::None
}

/// The connection waits for the answer of the person at the terminal, and the answer is what becomes of it.
#[tokio::test]
async fn a_first_contact_asks_on_the_screen() {
    if !is_held().await {
        return;
    }
    for (key, got) in [("y", "the page"), ("\x1b", "")] {
        let (program, place, script) = fetching();
        let screen = scripted(&program, (80, 24), &script);
        screen.send("fetch it\r");
        screen.wait_live(&format!("A command wants to connect to {place}"));
        assert_eq!(std::fs::read_to_string(program.project().join("got")).unwrap_or_default(), "");
        screen.send(key);
        screen.wait_text("That is all.");
        let page = std::fs::read_to_string(program.project().join("got")).unwrap_or_default();
        assert_eq!(page == "the page", !got.is_empty(), "{}", screen.text());
    }
}

/// Where nobody can answer, it is denied at once; the result says what was denied, and which rule would allow it.
#[tokio::test]
async fn a_first_contact_without_anybody_is_denied() {
    if !is_held().await {
        return;
    }
    for (rule, got) in [(None, ""), (Some("WebFetch(domain:127.0.0.1)"), "the page")] {
        let (program, place, script) = fetching();
        let script = program.script("script.yaml", &script);
        let mut args = vec!["-p", "go", "--offline-script", &script, "--output-format", "stream-json"];
        args.extend(rule.iter().flat_map(|rule| ["--allowed-tools", rule]));
        let done = program.run(&args);
        let page = std::fs::read_to_string(program.project().join("got")).unwrap_or_default();
        assert_eq!(page == "the page", !got.is_empty(), "{done:#?}");
        let told =
            format!("The sandbox denied connecting to {place}; the rule WebFetch(domain:{place}) would allow it");
        assert_eq!(done.out.contains(&told), rule.is_none(), "{done:#?}");
        assert_eq!(done.code, Some(if rule.is_none() { 3 } else { 0 }), "{done:#?}");
    }
}
