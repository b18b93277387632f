//! The clipboard: takes a picture out of it, by the program that the platform has for it, and says what goes into it.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use base64::Engine;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::app::App;
use super::msg::Effect;
use crate::config::paths::Env;
use crate::protocol::Picture;
use crate::session::{LARGEST_PICTURE, Pictures};
use crate::stdx::hash::sha256_hex;
use crate::stdx::process::{Unconfined, run_captured};

/// How long its programs may take: they are asked at once, and one may hang.
const LIMIT: Duration = Duration::from_secs(2);

/// How a program prints a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bytes,
    Base64,
    /// `«data PNGf89504E47…»`, as AppleScript does.
    AppleScript,
}

/// What the names of pictures that were kept from the clipboard begin with.
pub(super) const KEPT_AS: &str = "clipboard-";

/// A program with its arguments.
type Source = (&'static str, &'static [&'static str], Form);

const WAYLAND: Source = ("wl-paste", &["--no-newline", "--type", "image/png"], Form::Bytes);
const X11: Source = ("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"], Form::Bytes);
const PNGPASTE: Source = ("pngpaste", &["-"], Form::Bytes);
const OSASCRIPT: Source = ("osascript", &["-e", "get the clipboard as «class PNGf»"], Form::AppleScript);
const POWERSHELL: Source = (
    "powershell.exe",
    &[
        "-NoProfile",
        "-NonInteractive",
        "-STA",
        "-Command",
        "Add-Type -AssemblyName System.Windows.Forms,System.Drawing; $i = [Windows.Forms.Clipboard]::GetImage(); \
         if ($i) { $m = New-Object IO.MemoryStream; $i.Save($m, [Drawing.Imaging.ImageFormat]::Png); \
         [Convert]::ToBase64String($m.ToArray()) }",
    ],
    Form::Base64,
);

/// The programs to try, the likeliest first.
fn sources(env: &Env, mac: bool) -> Vec<Source> {
    let set = |name| env.get(name).is_some_and(|value| !value.is_empty());
    let mut sources = Vec::new();
    if mac {
        sources.extend([PNGPASTE, OSASCRIPT]);
    }
    if set("WSL_DISTRO_NAME") || set("WSL_INTEROP") {
        sources.push(POWERSHELL);
    }
    if set("WAYLAND_DISPLAY") {
        sources.push(WAYLAND);
    }
    if set("DISPLAY") {
        sources.push(X11);
    }
    sources
}

/// Where a picture comes from, and where it is kept.
#[derive(Debug, Clone)]
pub struct Clipboard {
    sources: Vec<Source>,
    ssh: bool,
    path: Option<String>,
    pictures: Pictures,
    /// Variables that no other program gets to see.
    secrets: Vec<String>,
    limit: Duration,
}

impl Clipboard {
    pub fn new(env: &Env, pictures: Pictures, secrets: Vec<String>) -> Clipboard {
        let sources = sources(env, cfg!(target_os = "macos"));
        let path = env.get("PATH").map(str::to_owned);
        Clipboard { sources, ssh: env.get("SSH_CONNECTION").is_some(), path, pictures, secrets, limit: LIMIT }
    }

    /// Keeps the picture that the clipboard has as a file. Its programs end when this is dropped.
    ///
    /// # Errors
    /// Why there is no picture, with what was tried.
    pub async fn picture(&self) -> Result<Picture, String> {
        if self.sources.is_empty() {
            let why = if self.ssh { "over SSH a terminal passes text only" } else { "no desktop in reach" };
            return Err(format!("no clipboard for images ({why}): paste the path of an image file"));
        }
        let mut asked = JoinSet::new();
        for (at, &(program, args, form)) in self.sources.iter().enumerate() {
            let mut command = Command::new(program);
            command.args(args).envs(self.path.iter().map(|path| ("PATH", path)));
            for name in &self.secrets {
                command.env_remove(name);
            }
            let limit = self.limit;
            asked.spawn(async move { (at, ask(command, form, limit).await) });
        }
        let mut answers = vec![None; self.sources.len()];
        while let Some(Ok((at, answer))) = asked.join_next().await {
            answers[at] = Some(answer);
            // The likeliest wins, so the ones before it must have answered.
            if let Some(Ok(bytes)) = answers.iter().map_while(Option::as_ref).find(|answer| answer.is_ok()) {
                return self.keep(bytes);
            }
        }
        let reasons = answers.iter().flatten().filter_map(|answer| answer.as_ref().err());
        let tried: Vec<String> =
            self.sources.iter().zip(reasons).map(|((program, ..), why)| format!("{program}: {why}")).collect();
        Err(format!("no image in the clipboard ({})", tried.join("; ")))
    }

    fn keep(&self, bytes: &[u8]) -> Result<Picture, String> {
        if bytes.len() as u64 > LARGEST_PICTURE {
            return Err("the image in the clipboard is larger than 20 MB".to_owned());
        }
        let name = format!("{KEPT_AS}{}.{}", &sha256_hex(bytes)[..8], ending(bytes).unwrap_or("png"));
        let path = self.pictures.keep(OsStr::new(&name), bytes);
        let path = path.map_err(|error| format!("cannot keep the image: {error}"))?;
        Ok(Picture { path, bytes: bytes.len() as u64 })
    }
}

/// The picture that a program prints, or why it has no picture.
async fn ask(command: Command, form: Form, limit: Duration) -> Result<Vec<u8>, String> {
    // Text in hexadecimal has two bytes for each.
    let ran = run_captured(command, Unconfined::Clipboard, b"", limit, 3 * LARGEST_PICTURE as usize).await;
    match ran {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err("not installed".to_owned()),
        Err(error) => Err(error.to_string()),
        Ok(ran) if ran.timed_out => Err(format!("no answer in {} s", limit.as_secs())),
        Ok(ran) => read(&ran.stdout, form).ok_or_else(|| "no image".to_owned()),
    }
}

fn read(printed: &[u8], form: Form) -> Option<Vec<u8>> {
    match form {
        Form::Bytes => Some(printed.to_vec()),
        Form::Base64 => {
            let text: Vec<u8> = printed.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            base64::engine::general_purpose::STANDARD.decode(text).ok()
        }
        Form::AppleScript => {
            let text = std::str::from_utf8(printed).ok()?.trim();
            let hex = text.strip_prefix("«data PNGf")?.strip_suffix('»')?;
            let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
            (0..hex.len()).step_by(2).map(byte).collect()
        }
    }
    .filter(|bytes| ending(bytes).is_some())
}

/// The ending of a picture's name, by its first bytes.
fn ending(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("png"),
        [0xff, 0xd8, 0xff, ..] => Some("jpg"),
        [b'G', b'I', b'F', b'8', ..] => Some("gif"),
        _ => None,
    }
}

/// Copies the last answer, or a block of its code by its number.
pub(super) fn copy(app: &mut App, which: &str, now: Instant) -> Vec<Effect> {
    let text = match which.parse::<usize>() {
        Ok(n) => app.transcript.code_blocks().into_iter().nth(n.wrapping_sub(1)).map(|block| block.code),
        Err(_) if which.is_empty() => app.transcript.last_answer().map(str::to_owned),
        Err(_) => {
            app.tell("/copy takes the number of a code block, or nothing to copy the whole answer", now);
            return Vec::new();
        }
    };
    if text.is_none() {
        app.tell("nothing to copy", now);
    }
    text.map(Effect::Copy).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_form_is_read_and_nothing_but_pictures() {
        let png = PNG.to_vec();
        assert_eq!(read(&png, Form::Bytes), Some(png.clone()));
        assert_eq!(read(b"iVBORw0K\r\nGgo=\r\n", Form::Base64), Some(png.clone()));
        assert_eq!(read("«data PNGf89504E470D0A1A0A»\n".as_bytes(), Form::AppleScript), Some(png));
        for (printed, form) in [
            (&b"just text"[..], Form::Bytes),
            (b"", Form::Bytes),
            (b"", Form::Base64),
            (b"no base64!", Form::Base64),
            ("«data PNGf89504»".as_bytes(), Form::AppleScript),
            (b"some text", Form::AppleScript),
        ] {
            assert_eq!(read(printed, form), None, "{form:?}");
        }
    }

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    /// What comes of it with these programs alone: their names, and what they do as a shell.
    async fn ask_all(vars: &[(&str, &str)], mac: bool, programs: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("bin");
        std::fs::create_dir(&folder).unwrap();
        for (program, does) in programs {
            let text = format!("#!/bin/sh\n{does}\n");
            crate::stdx::replace::replace(&folder.join(program), text.as_bytes(), Some(0o755)).unwrap();
        }
        let env = Env::fake(temp.path(), vars);
        let mut clipboard = Clipboard::new(&env, Pictures::new(temp.path()), Vec::new());
        clipboard.sources = sources(&env, mac);
        clipboard.path = Some(folder.to_str().unwrap().to_owned());
        // Long enough for any that ends, and over at once where none does.
        let hangs = programs.iter().any(|(_, does)| does.contains(HANGS));
        clipboard.limit = if hangs { Duration::from_secs(1) } else { Duration::from_secs(60) };
        let picture = clipboard.picture().await?;
        assert!(picture.path.starts_with(temp.path().join("cocode/pictures")), "{picture:?}");
        Ok(std::fs::read(picture.path).unwrap())
    }

    const HANGS: &str = "exec /bin/sleep 1000";

    #[tokio::test]
    async fn every_platform_gives_its_picture_or_says_what_was_tried() {
        let bytes = r"printf '\211PNG\r\n\032\n'";
        let base64 = "echo iVBORw0KGgo=";
        let hex = "echo '«data PNGf89504E470D0A1A0A»'";
        let (wayland, x11, wsl) = (("WAYLAND_DISPLAY", "w"), ("DISPLAY", ":0"), ("WSL_DISTRO_NAME", "Ubuntu"));
        let tried = |what: &str| Err(format!("no image in the clipboard ({what})"));
        let none = |why: &str| Err(format!("no clipboard for images ({why}): paste the path of an image file"));
        for (vars, mac, programs, want) in [
            (&[wayland][..], false, &[("wl-paste", bytes)][..], Ok(PNG.to_vec())),
            (&[x11], false, &[("xclip", bytes)], Ok(PNG.to_vec())),
            (&[wayland, x11], false, &[("wl-paste", "exit 1"), ("xclip", bytes)], Ok(PNG.to_vec())),
            (&[wayland, x11], false, &[("xclip", bytes)], Ok(PNG.to_vec())),
            (&[wsl, x11], false, &[("powershell.exe", base64)], Ok(PNG.to_vec())),
            (&[], true, &[("pngpaste", "echo no image >&2; exit 1"), ("osascript", hex)], Ok(PNG.to_vec())),
            (&[wayland, x11], false, &[("wl-paste", HANGS), ("xclip", bytes)], Ok(PNG.to_vec())),
            (&[x11], false, &[("xclip", HANGS)], tried("xclip: no answer in 1 s")),
            (&[wayland, x11], false, &[("wl-paste", "echo text")], tried("wl-paste: no image; xclip: not installed")),
            (&[], true, &[], tried("pngpaste: not installed; osascript: not installed")),
            (&[], false, &[], none("no desktop in reach")),
            (&[("SSH_CONNECTION", "x")], false, &[], none("over SSH a terminal passes text only")),
        ] {
            assert_eq!(ask_all(vars, mac, programs).await, want, "{vars:?} {programs:?}");
        }
    }

    #[test]
    fn the_platform_tells_the_program() {
        let check = |vars: &[(&str, &str)], mac: bool, want: &[&str]| {
            let env = Env::fake(Path::new("/h"), vars);
            let names: Vec<&str> = sources(&env, mac).iter().map(|source| source.0).collect();
            assert_eq!(names, want);
        };
        check(&[], false, &[]);
        check(&[], true, &["pngpaste", "osascript"]);
        check(&[("DISPLAY", ":0")], false, &["xclip"]);
        check(&[("DISPLAY", ":0"), ("WAYLAND_DISPLAY", "wayland-0")], false, &["wl-paste", "xclip"]);
        check(&[("WSL_DISTRO_NAME", "Ubuntu")], false, &["powershell.exe"]);
    }
}
