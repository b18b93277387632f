//! TaskOutput: what a task in the background has written. Models are not told of it, since Read and Grep do as well; skills
//! and settings that name it, or its older name, work.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::Effect;
use crate::permission::Access;

use super::background::State;
use super::call::Typed;
use super::task_stop::{find, named};
use super::{Call, Context, Dirs, Manners, Offered, Output};

/// Most bytes of the output that are shown: its end.
const SHOWN: u64 = 30_000;
/// How long the end is waited for, in milliseconds: where the call does not say, and at most.
const WAIT: u64 = 30_000;
const WAIT_MOST: u64 = 600_000;

pub(super) struct TaskOutput;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    #[serde(default)]
    task_id: Option<String>,
    /// Old name of task_id
    #[serde(default)]
    bash_id: Option<String>,
    /// Wait for its end
    #[serde(default)]
    block: Option<bool>,
    /// How long, in milliseconds
    #[serde(default)]
    timeout: Option<u64>,
}

impl Typed for TaskOutput {
    type Input = Input;

    const NAME: &'static str = "TaskOutput";
    const ABOUT: &'static str = "Shows what a task in the background has written.";
    const MANNERS: Manners =
        Manners { offered: Offered::Nobody, needs_room: true, aliases: &["BashOutput"], ..Manners::READS };

    fn call(&self, input: Input, _dirs: &Dirs) -> Result<Call, String> {
        // The tool of the older name never waited.
        let wait = input.block.unwrap_or(input.bash_id.is_none());
        let wait = wait.then(|| Duration::from_millis(input.timeout.unwrap_or(WAIT).min(WAIT_MOST)));
        let id = named([input.task_id, input.bash_id]);
        let title = id.clone();
        Ok(Call::new(Access::Free, title, move |context| async move { show(&id, wait, &context).await }))
    }
}

async fn show(id: &str, wait: Option<Duration>, context: &Context) -> Output {
    let shell = match find(id, context) {
        Ok(shell) => shell,
        Err(problem) => return Output::error(problem),
    };
    let ended = match shell.state {
        State::Ended(ended) => Some(ended),
        State::Running(mut stopper) => match wait {
            Some(time) => tokio::select! {
                ended = stopper.ended() => ended,
                () = tokio::time::sleep(time) => None,
                () = context.cancel.cancelled() => None,
            },
            None => stopper.ended.borrow().clone(),
        },
    };
    let (state, effects) = match &ended {
        Some(ended) => (ended.line(), vec![Effect::Told { task: ended.task.clone() }]),
        None => (shell.begun.runs(), Vec::new()),
    };
    let path = shell.output.display();
    let text = match tail(&shell.output, SHOWN) {
        Ok((0, _)) if ended.is_some() => format!("{state}. It wrote nothing."),
        Ok((0, _)) => format!("{state}. It has written nothing yet."),
        Ok((bytes, text)) if bytes <= SHOWN => format!("{state}. Its output ({path}):\n{text}"),
        Ok((bytes, text)) => format!("{state}. The end of its output, {bytes} bytes in all ({path}):\n{text}"),
        Err(error) => format!("{state}. Its output in {path} cannot be read: {error}"),
    };
    Output { effects, ..Output::ok(text) }
}

/// The length of a file, and its end of at most so many bytes: whole lines, where there are any.
///
/// # Errors
/// What the file system says.
pub fn tail(path: &Path, most: u64) -> io::Result<(u64, String)> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        // Something else may lie there by now: a link leads elsewhere, and a pipe would be waited for.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let mut file = options.open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let length = found.len();
    let start = length.saturating_sub(most);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    // The first character may be half a one.
    let whole = if start == 0 { 0 } else { bytes.iter().take(4).take_while(|byte| (**byte as i8) < -64).count() };
    let text = String::from_utf8_lossy(&bytes[whole..]);
    let text = match text.find('\n').filter(|at| start > 0 && at + 1 < text.len()) {
        Some(at) => &text[at + 1..],
        None => &text,
    };
    Ok((length, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_file() {
        let path = tempfile::NamedTempFile::new().unwrap();
        for (text, most, want) in [
            ("", 8, (0, "")),
            ("one\ntwo\n", 8, (8, "one\ntwo\n")),
            ("one\ntwo\n", 7, (8, "two\n")),
            // No line fits: the end of it, from a whole character on.
            ("日本語日本語", 7, (18, "本語")),
            ("one long line\n", 5, (14, "line\n")),
        ] {
            std::fs::write(path.path(), text).unwrap();
            assert_eq!(tail(path.path(), most).unwrap(), (want.0, want.1.to_owned()), "{text:?} {most}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_regular_file_is_read() {
        let root = tempfile::tempdir().unwrap();
        let (file, link, pipe) = (root.path().join("file"), root.path().join("link"), root.path().join("pipe"));
        std::fs::write(&file, "secret").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        for path in [link, pipe, root.path().to_owned()] {
            assert!(tail(&path, 8).is_err(), "{}", path.display());
        }
    }
}
