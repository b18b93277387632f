//! What the integration tests share.

pub(crate) mod fake_api;
pub(crate) mod harness;
pub(crate) mod program;
pub(crate) mod screen;

use std::path::Path;
use std::process::Command;

/// The cargo that built this test, with its own compiler and registry: works whatever HOME is.
pub(crate) fn cargo() -> Command {
    let cargo = Path::new(env!("CARGO"));
    let toolchain = cargo.parent().expect("cargo is in a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(toolchain).chain(std::env::split_paths(&path));
    let mut command = Command::new(cargo);
    command.env("PATH", std::env::join_paths(folders).expect("PATH can be joined"));
    if let Some(home) = option_env!("CARGO_HOME") {
        command.env("CARGO_HOME", home);
    }
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}
