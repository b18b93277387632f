//! What is known of commands: which run without a question, and which options make a command dangerous.

pub(super) mod git;
