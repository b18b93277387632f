//! Names of what runs or grants powers when it is written.

/// Folders that are protected wherever they stand: what lies in them runs, or grants powers, unasked, or is the only copy
/// of a history.
pub const FOLDERS: [&str; 17] = [
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".claude",
    ".cocode",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".husky",
    ".githooks",
    ".cursor",
    ".codex",
    ".gemini",
    ".direnv",
    ".mvn",
];

/// Files whose purpose is to tell a shell, git or another program what to run, to load or whom to obey: who writes one has
/// it executed by the next harmless command. Files that describe a build and that people edit all day are not here, though
/// they run, too: `package.json`, `Makefile`, `Cargo.toml`, `build.rs`, `conftest.py`, CI workflows. Nor is `*.pth`, which is
/// more often a model than a list of modules.
pub const PROFILES: &[&str] = &[
    // Shells, terminals and sessions.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".xprofile",
    ".tmux.conf",
    ".screenrc",
    // Git, hooks and environments of a folder.
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".hgrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    "lefthook-local.yml",
    "lefthook-local.yaml",
    "lefthook-local.toml",
    "lefthook-local.json",
    ".lefthook.yml",
    ".envrc",
    ".direnvrc",
    ".rvmrc",
    "mise.toml",
    "mise.local.toml",
    ".mise.toml",
    ".mise.local.toml",
    ".tool-versions",
    ".devcontainer.json",
    ".mcp.json",
    // Package managers and toolchains.
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    "bunfig.toml",
    ".bazelrc",
    ".pypirc",
    ".condarc",
    "pip.conf",
    "rust-toolchain",
    "rust-toolchain.toml",
    // What other programs read at each start.
    ".ripgreprc",
    ".curlrc",
    ".wgetrc",
    ".netrc",
    ".gdbinit",
    ".lldbinit",
    ".ghci",
    ".irbrc",
    ".pryrc",
    ".pdbrc",
    ".psqlrc",
    ".sqliterc",
    ".rprofile",
    ".vimrc",
    ".nvimrc",
    ".exrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".nvim.lua",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Endings of names that are the same.
pub const PROFILE_ENDINGS: [&str; 1] = [".code-workspace"];

/// The same as the last parts of a path: folders, and files whose name alone says too little.
pub const PROFILE_PATHS: [&[&str]; 11] = [
    &[".config", "mise"],
    &[".config", "fish"],
    &[".config", "git"],
    &[".ssh"],
    &[".zsh"],
    &[".oh-my-zsh"],
    &[".cargo", "config"],
    &[".cargo", "config.toml"],
    &[".bundle", "config"],
    &[".yarn", "releases"],
    &[".yarn", "plugins"],
];

/// What runs or is obeyed in a home alone: elsewhere these names say nothing.
pub(super) const HOME: &[&[&str]] = &[
    // Claude Code's servers, and what agents are told in every project.
    &[".claude.json"],
    &["CLAUDE.md"],
    &["AGENTS.md"],
    &[".xinitrc"],
    &[".xsession"],
    &[".xsessionrc"],
    &[".pam_environment"],
    &[".bash_completion"],
    &[".zsh_aliases"],
    &[".emacs"],
    &[".emacs.d"],
    &[".vim"],
    &[".ipython", "profile_default", "startup"],
    &[".cargo", "env"],
    &[".nvm", "nvm.sh"],
    &[".aws", "config"],
    &[".aws", "credentials"],
    &[".kube", "config"],
    &[".docker", "config.json"],
    &[".gnupg", "gpg.conf"],
    &[".gnupg", "gpg-agent.conf"],
    &[".m2", "settings.xml"],
    &[".gradle", "init.d"],
    &[".gradle", "init.gradle"],
    &[".gradle", "gradle.properties"],
    &[".local", "share", "applications"],
    &[".local", "share", "systemd"],
];

/// The settings of all programs of a home, and what of that is no more than their state.
pub(super) const SETTINGS: &str = ".config";
pub(super) const STATES: [&[&str]; 2] = [&["configstore"], &["go", "telemetry"]];
