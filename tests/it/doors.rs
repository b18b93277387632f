//! `/model` and `/config` on the real binary: a key is pasted, settings change while it runs.

use std::path::Path;

use super::support::program::Program;
use super::support::screen::Screen;
use super::terminal::{launch, leave};

const ESC: &str = "\x1b";
const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const KEY: &str = "sk-test-0123456789-abcdefghij";

/// Opens a list by its command.
fn open(screen: &Screen, command: &str, shows: &str) {
    screen.wait_text("Ask anything");
    screen.send(command);
    screen.wait_text(&format!("> {command}"));
    screen.send("\r");
    screen.wait_text(shows);
}

/// Every file below a folder that holds the text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).contains(text) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn a_pasted_key_is_stored_and_found_nowhere_else() {
    let program = Program::new().home_file("config.toml", "probe_local = false\nlog.level = 'debug'\n");
    let mut screen = launch(&program, (80, 24), &[]);
    open(&screen, "/model", "Enter: paste one");
    // From the row in use up to the third provider; a key that is pasted there is one.
    screen.send(UP);
    screen.send(UP);
    screen.send(format!("\x1b[200~{KEY}\n\x1b[201~"));
    screen.wait_text("Paste the key for Gemini");
    screen.wait_text("29 characters");
    screen.resize(40, 12);
    // Only a screen that was drawn again has it so: the terminal itself cuts the rows of the wider one.
    screen.wait_text("credentials.toml, which\nonly you can read");
    screen.wait_text("•   29\n");
    screen.resize(80, 24);
    screen.send("\r");
    screen.wait_text("Key stored in");
    screen.wait_text("key from credentials.toml");
    screen.send(ESC);
    screen.wait_text("Ask anything");
    open(&screen, "/status", "Session");
    let shown = screen.scrollback_text();
    leave(&mut screen);
    assert!(!shown.contains("sk-test"), "{shown}");
    let folder = program.home();
    let mut found = holding(folder.parent().unwrap_or(&folder), "sk-test-0123");
    found.dedup();
    assert_eq!(found, ["credentials.toml"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut files = Vec::new();
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false if entry.file_name() == "credentials.toml" => files.push(entry.path()),
                    false => {}
                }
            }
        }
        let mode = std::fs::metadata(&files[0]).unwrap().permissions().mode();
        assert_eq!((files.len(), mode & 0o777), (1, 0o600));
    }
}

#[test]
fn settings_change_while_the_program_runs() {
    let program = Program::new().home_file("config.toml", "probe_local = false\n");
    let mut screen = launch(&program, (80, 24), &[]);
    open(&screen, "/config", "of 1");
    screen.send("tui.th");
    screen.wait_text("‹auto›");
    screen.send("\r");
    screen.wait_text("✓ in use");
    screen.send(DOWN);
    screen.wait_text("// why");
    screen.send("\r");
    screen.wait_text("Saved to config.toml");
    screen.wait_text("changed just now");
    // The same for this project alone, and back.
    screen.send(format!("{DOWN}{UP}p"));
    screen.wait_text("Settings for this project");
    screen.send("\r");
    screen.wait_text("tui.theme for this project");
    screen.send(format!("{DOWN}\r"));
    screen.wait_text("Saved to config.local.toml");
    screen.send(format!("{DOWN}{UP}d"));
    screen.wait_text("removed from config.local.toml");
    screen.send(ESC);
    screen.wait_text("Ask anything");
    leave(&mut screen);
    let local = program.project().join(".cocode/config.local.toml");
    assert_eq!(std::fs::read_to_string(local).unwrap(), "");
}
