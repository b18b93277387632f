//! The budgets of `Settings` as they are in one window: none may take more than its share of what is available.

use super::Settings;

/// Tokens, each the configured constant or its share of what is available, whichever is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All that there is.
    pub available: u64,
    pub free_space: u64,
    pub warning: u64,
    pub error: u64,
    pub remaining: u64,
    pub keep_recent: u64,
    pub user_messages: u64,
    pub summary: u64,
    pub ledger: u64,
    /// All that a boundary brings along and keeps, but for the environment and what is being worked on.
    pub carry: u64,
    pub memory_net_saving: u64,
    pub memory_summary: u64,
    pub micro_target: u64,
    pub micro_saving: u64,
    pub persist_above: u64,
    /// All that is restored together.
    pub restored: u64,
    pub file: u64,
    pub files: u64,
    pub todos: u64,
    pub plan: u64,
    pub skill: u64,
    pub skills: u64,
    pub tasks: u64,
    pub hooks: u64,
    pub clip: u64,
    pub note: u64,
}

impl Limits {
    /// Fits the budgets to so many tokens of `available`.
    pub fn new(settings: &Settings, available: u64) -> Limits {
        let share = |constant: u64, parts: u64| constant.min(available / parts);
        let Settings { micro, session_memory: memory, restore, guards, .. } = settings;
        // The one table of shares: each budget may take one part in so many of what is available.
        Limits {
            available,
            free_space: share(settings.free_space_buffer, 6),
            warning: share(settings.warning_threshold, 4),
            error: share(settings.error_threshold, 4),
            // Room for one more round between the tiers and the trim.
            remaining: share(settings.min_context_remaining, 16),
            keep_recent: share(settings.keep_recent_tokens, 4),
            user_messages: share(settings.user_message_max_tokens, 4),
            summary: share(settings.max_summary_tokens, 4),
            carry: share(settings.carry_tokens, 3),
            ledger: share(settings.ledger_tokens, 4),
            memory_net_saving: share(memory.min_net_saving, 10),
            memory_summary: share(memory.max_summary, 4),
            micro_target: share(micro.target, 5),
            micro_saving: share(micro.min_saving, 10),
            persist_above: share(micro.persist_above, 10),
            restored: share(settings.carry_tokens, 4),
            file: share(restore.tokens_per_file, 8),
            files: share(restore.total_file_budget, 4),
            todos: share(restore.todos_tokens, 16),
            plan: share(restore.plan_tokens, 8),
            skill: share(restore.tokens_per_skill, 16),
            skills: share(restore.total_skill_budget, 8),
            tasks: share(restore.tasks_tokens, 16),
            hooks: share(restore.hook_tokens, 16),
            clip: share(guards.clip_tokens, 10),
            note: share(guards.note_tokens, 10),
        }
    }
}
