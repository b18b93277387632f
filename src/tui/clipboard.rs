//! Takes a picture out of the clipboard, by the program that the platform has for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;

use super::composer::chip::Picture;
use crate::config::paths::Env;
use crate::stdx::hash::sha256_hex;
use crate::stdx::replace;

/// Largest picture, in bytes.
const LARGEST: usize = 20 << 20;

/// How a program prints a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bytes,
    Base64,
    /// `«data PNGf89504E47…»`, as AppleScript does.
    AppleScript,
}

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

/// Keeps the picture of the clipboard as a file in `folder`.
///
/// # Errors
/// A word on why there is none.
pub(super) fn picture(env: &Env, folder: &Path, secrets: &[String]) -> Result<Picture, String> {
    let sources = sources(env, cfg!(target_os = "macos"));
    if sources.is_empty() {
        let over = if env.get("SSH_CONNECTION").is_some() { " over SSH" } else { "" };
        return Err(format!("no clipboard for images{over}: paste the path of an image file instead"));
    }
    let mut missing = Vec::new();
    for (program, args, form) in sources {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stderr(Stdio::null());
        for name in secrets {
            command.env_remove(name);
        }
        match command.output() {
            Err(_) => missing.push(program),
            Ok(output) => {
                if let Some(bytes) = read(&output.stdout, form) {
                    return keep(&bytes, folder);
                }
            }
        }
    }
    Err(match missing.as_slice() {
        [] => "the clipboard holds no image".to_owned(),
        missing => format!("the clipboard gave no image; not installed: {}", missing.join(", ")),
    })
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

fn keep(bytes: &[u8], folder: &Path) -> Result<Picture, String> {
    if bytes.len() > LARGEST {
        return Err("the image of the clipboard is larger than 20 MB".to_owned());
    }
    let name = format!("clipboard-{}.{}", &sha256_hex(bytes)[..8], ending(bytes).unwrap_or("png"));
    let path: PathBuf = folder.join(name);
    let written = replace::replace(&path, bytes, Some(0o600));
    written.map_err(|error| format!("cannot keep the image: {error}"))?;
    Ok(Picture { path, bytes: bytes.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_nothing_but_pictures() {
        let png = b"\x89PNG\r\n\x1a\n".to_vec();
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
