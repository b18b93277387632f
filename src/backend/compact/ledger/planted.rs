//! Facts that are planted in long sessions, and counted after a compaction. Written before the rules that keep them, and
//! those of `HELD_OUT` never looked at while the rules were made.

/// Where a fact comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Prompt,
    /// To a question of the model's.
    Answer,
    /// Of a call, with a remark.
    Refusal,
    /// To a plan.
    Remark,
    Reply,
    /// A line in a file that is read.
    File,
    /// What a command prints.
    Command,
    /// What a command that fails prints.
    Failure,
    /// A path that is edited.
    Edit,
    Todo,
}

pub(super) struct Fact {
    pub(super) by: By,
    pub(super) text: &'static str,
    /// Stands in the context while the fact is alive.
    pub(super) needle: &'static str,
}

const fn fact(by: By, text: &'static str, needle: &'static str) -> Fact {
    Fact { by, text, needle }
}

use By::{Answer, Command, Edit, Failure, File, Prompt, Refusal, Remark, Reply, Todo};

pub(super) const FACTS: [Fact; 40] = [
    fact(Prompt, "Never touch anything under vendor/legacy, the auditors signed it off.", "vendor/legacy"),
    fact(Prompt, "All public functions must have a doc comment with an example.", "doc comment"),
    fact(Prompt, "Please don't add new dependencies, we are frozen until the 14th.", "new dependencies"),
    fact(Prompt, "Keep the CLI output stable: scripts of customers parse it.", "CLI output stable"),
    fact(Prompt, "Only Postgres 13 features, production is still on 13.4.", "13.4"),
    fact(Prompt, "Die Datei config/prod.yaml darf auf keinen Fall geändert werden.", "config/prod.yaml"),
    fact(Prompt, "本番のデータベースには絶対に接続しないでください。", "本番のデータベース"),
    fact(Prompt, "提交信息必须用英文写，不要用中文。", "提交信息必须用英文"),
    fact(Prompt, "Use tokio's mpsc instead of crossbeam for the queue.", "mpsc"),
    fact(Prompt, "Let's go with option B, the write-ahead log.", "write-ahead log"),
    fact(Answer, "Which cache do you want? → Redis with a TTL of 90 seconds", "90 seconds"),
    fact(Refusal, "don't run migrations here, use make db-dry", "make db-dry"),
    fact(Remark, "split step 3, the schema change goes into its own commit", "own commit"),
    fact(Prompt, "I prefer snake_case file names for the new modules.", "snake_case"),
    fact(Prompt, "The dev server listens on 8931.", "8931"),
    fact(Reply, "The rate limiter allows 42 requests per second per tenant.", "42 requests"),
    fact(File, "MAX_UPLOAD_BYTES = 26214400", "26214400"),
    fact(Command, "built in 91.4s, bundle 3.82 MB", "3.82 MB"),
    fact(Reply, "The regression came in with commit 7f3a9c1e.", "7f3a9c1e"),
    fact(Prompt, "budget is 250 ms p99 for the search endpoint", "250 ms"),
    fact(Command, "schema version: 2024.11.3", "2024.11.3"),
    fact(Reply, "The token expires after 3600 seconds, set in auth/session.ts.", "3600 seconds"),
    fact(Prompt, "The branch is feature/retry-budget, the PR goes against develop.", "feature/retry-budget"),
    fact(
        Reply,
        "`reconcile_ledger` in billing/sync.rs is the only caller of `PendingQueue::drain`.",
        "PendingQueue::drain",
    ),
    fact(Prompt, "it's tracked in PLAT-4471", "PLAT-4471"),
    fact(Prompt, "docs live at https://wiki.acme.test/x/92kd", "wiki.acme.test/x/92kd"),
    fact(Reply, "The flaky test is `it_survives_clock_skew`; it depends on the wall clock.", "it_survives_clock_skew"),
    fact(
        Reply,
        "Root cause: the iterator holds the read lock while `flush` waits for the write lock.",
        "holds the read lock",
    ),
    fact(
        Failure,
        "error[E0502]: cannot borrow `self.cache` as mutable because it is also borrowed as immutable\n  --> src/cache.rs:88:9",
        "E0502",
    ),
    fact(
        Failure,
        "src/app.js:14\n    return session.tenantId;\n                   ^\nTypeError: Cannot read properties of undefined (reading 'tenantId')",
        "(reading 'tenantId')",
    ),
    fact(
        Failure,
        "Traceback (most recent call last):\n  File \"report.py\", line 3, in <module>\npsycopg2.OperationalError: FATAL: role \"reporter\" does not exist",
        "role \"reporter\" does not exist",
    ),
    fact(
        Failure,
        "ld: symbol(s) not found for architecture arm64\nclang: error: linker command failed with exit code 1",
        "arm64",
    ),
    fact(Failure, "npm ERR! peer dep missing: react@^18, required by @acme/ui@4.2.0", "react@^18"),
    fact(Edit, "src/billing/invoice.rs", "src/billing/invoice.rs"),
    fact(Edit, "docs/adr/0012-queue.md", "0012-queue.md"),
    fact(Edit, "web/src/hooks/useTenant.ts", "useTenant.ts"),
    fact(Edit, "lib/names.py", "lib/names.py"),
    fact(Todo, "Add a benchmark for the decoder", "benchmark for the decoder"),
    fact(Todo, "Migrate the settings page", "Migrate the settings page"),
    fact(Todo, "Remove the feature flag NEW_NAV", "NEW_NAV"),
];

pub(super) const HELD_OUT: [Fact; 40] = [
    fact(Prompt, "Hands off the generated protobuf stubs, they come from CI.", "protobuf stubs"),
    fact(Prompt, "no force pushes pls", "force pushes"),
    fact(Prompt, "We're stuck on Node 18, so no top-level await in the workers.", "Node 18"),
    fact(Prompt, "Leave the old v1 endpoints exactly as they are.", "v1 endpoints"),
    fact(Prompt, "Whatever you do, stay out of the payroll schema.", "payroll schema"),
    fact(Prompt, "Logs mustn't contain email addresses.", "email addresses"),
    fact(Prompt, "Bitte keine englischen Fehlermeldungen in der Oberfläche, alles auf Deutsch.", "Fehlermeldungen"),
    fact(Prompt, "テストは必ず src の外に置いてください。", "必ず src の外"),
    fact(Prompt, "不能修改 api/v2 目录下的任何文件。", "api/v2"),
    fact(Prompt, "Stick with SQLite, we don't need a server.", "SQLite"),
    fact(Prompt, "Go for the blue-green rollout.", "blue-green"),
    fact(Prompt, "Nimm lieber vitest statt jest.", "vitest"),
    fact(Answer, "How should retries work? → exponential, capped at five minutes", "capped at five minutes"),
    fact(Answer, "Which region? → eu-central-1", "eu-central-1"),
    fact(Refusal, "not on the shared cluster, run it in kind", "run it in kind"),
    fact(Remark, "do the parser before the printer", "parser before the printer"),
    fact(Prompt, "The proxy sits at 10.20.0.7 and talks TLS 1.2 to the upstream.", "10.20.0.7"),
    fact(Prompt, "端口是 6443，证书在 /etc/acme/tls。", "6443"),
    fact(Prompt, "Customers upload files of up to 750 MB.", "750 MB"),
    fact(Prompt, "Marta owns the exporter, ask her before changing the format.", "Marta"),
    fact(Reply, "The worker pool is sized at 24 threads because of the NUMA layout.", "24 threads"),
    fact(Reply, "The checksum in the manifest is 9b1deb4d3b7d.", "9b1deb4d3b7d"),
    fact(Reply, "It only fails when the locale is tr_TR, since lowercasing `I` differs there.", "tr_TR"),
    fact(
        Reply,
        "The parser rejects trailing commas on purpose: `strict_commas` is set in Parser::new.",
        "strict_commas",
    ),
    fact(Reply, "The deadlock needs two writers and one compaction at the same time.", "two writers"),
    fact(File, "retention_days: 35", "retention_days: 35"),
    fact(File, "# Do not raise above 128, the firmware truncates the field.", "above 128"),
    fact(Command, "Server running at http://127.0.0.1:5178/", "5178"),
    fact(Command, "Applied migration 0047_add_tenant_quota", "0047_add_tenant_quota"),
    fact(Command, "Deployed revision billing-00031-qux (100% of traffic)", "billing-00031-qux"),
    fact(
        Failure,
        "thread 'main' panicked at src/wal.rs:212:18:\ncalled `Option::unwrap()` on a `None` value",
        "src/wal.rs:212",
    ),
    fact(
        Failure,
        "fatal: unable to access 'https://git.acme.test/core.git/': SSL certificate problem",
        "SSL certificate problem",
    ),
    fact(Failure, "src/index.ts(41,7): error TS2322: Type 'string' is not assignable to type 'number'.", "TS2322"),
    fact(Failure, "E       AssertionError: assert 17 == 18\ntests/test_quota.py:63: AssertionError", "assert 17 == 18"),
    fact(Edit, "crates/wire/src/frame.rs", "crates/wire/src/frame.rs"),
    fact(Edit, "deploy/helm/values.yaml", "deploy/helm/values.yaml"),
    fact(Edit, "app/models/tenant.rb", "app/models/tenant.rb"),
    fact(Todo, "Write the upgrade guide for 3.0", "upgrade guide"),
    fact(Todo, "Check the Windows path handling", "Windows path handling"),
    fact(Todo, "Backfill tenant_id in the events table", "Backfill tenant_id"),
];
