//! Hides what looks like a key or a password in a text.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What takes the place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// What keys look like wherever they stand. What stands for each may name a part that stays.
static KEYS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (
            r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
            HIDDEN,
        ),
        (
            r"(?i)\b(sk|pk|rk|ghp|gho|ghs|ghu|ghr|github_pat|glpat|xox[abeoprs]|xapp|hf|whsec|shpat|dop_v1)[-_][A-Za-z0-9_\-]{8,}",
            HIDDEN,
        ),
        (r"\bnpm_[A-Za-z0-9]{20,}|\bpypi-[A-Za-z0-9_\-]{32,}|\bAGE-SECRET-KEY-[A-Z0-9]{8,}", HIDDEN),
        (r"\bAIza[A-Za-z0-9_\-]{16,}|\bya29\.[\w\-]{8,}|\bGOCSPX-[\w\-]{8,}|\bSG\.[\w\-]{8,}\.[\w\-]+", HIDDEN),
        (r"\b(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{12,}", HIDDEN),
        (r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+", HIDDEN),
        (r"\bhooks\.slack\.com/services/[^\s\x22']+", "hooks.slack.com/services/[hidden]"),
        (r"://[^\s/:@]*:[^\s/@]+@|://[^\s/:@]{16,}@", "://[hidden]@"),
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._\-]{6,}", "$1 [hidden]"),
        (r#"(?i)\b((?:set-|set)?cookie["']?:\s*)[^\s"'][^\r\n"']*=[^\r\n"']*"#, "$1[hidden]"),
        (r#"(?i)(\s(?:-u|--user|--proxy-user)[ =]["']?[^\s:"']+:)[^\s"']+"#, "$1[hidden]"),
        // .netrc and .pgpass
        (r"(?im)(\blogin\s+\S+\s+password\s+|^[ \t]*password[ \t]+)\S+[ \t]*$", "$1[hidden]"),
        (r"(?m)^([\w.*\-]+:(?:\d+|\*):[^:\s]+:[^:\s]+:)\S+$", "$1[hidden]"),
    ];
    patterns.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
});

/// A value that is called a secret: its name with what joins them, then the value.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = "(?:api|access|account|private|signing|encryption|master|shared|session|deploy|auth)[_.-]?key|tokens?|secrets?|\
        secret[_.-][a-z0-9_.-]*|passw(?:or)?d|passphrase|pwd|[_.-]pass|credentials?|[_-]auth";
    let value = r#""(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[^\s,;"'()\[\]{}]+"#;
    Regex::new(&format!(r#"(?i)([a-z0-9_.\-]*(?:{name})\d*["']?\s*(?:=>|:=|[=:])\s*)({value})"#)).ok()
});

/// A word long enough for a key that nothing else tells.
static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/=_\-]{32,}").ok());

/// Values that tell nothing, whatever they are called: types, and nothing at all.
const TYPES: [&str; 17] = [
    "String",
    "string",
    "str",
    "&str",
    "&'static",
    "bytes",
    "boolean",
    "bool",
    "true",
    "false",
    "null",
    "none",
    "None",
    "undefined",
    "number",
    "usize",
    "Option<String>",
];

/// Whether the value says where a secret is, what it may be or how many there are.
fn is_harmless(name: &str, value: &str) -> bool {
    let inner = value.trim_matches(['"', '\'']);
    let counts = inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.chars().all(|c| c.is_ascii_digit() || "_.kKmM%".contains(c));
    let told = ["$", "<", "os.", "env.", "process.env", "std::", "self.", "args.", "config.", HIDDEN];
    let shell = name.trim_end_matches([' ', '=', ':', '"', '\'']);
    inner.len() < 4
        || TYPES.contains(&inner)
        || told.iter().any(|start| inner.starts_with(start))
        || counts && name.to_lowercase().contains("token")
        || matches!(shell, "PWD" | "OLDPWD")
}

/// Whether no person would write such a word: it mixes all kinds of characters at random. Hashes and ids are of fewer kinds.
fn is_random(word: &str) -> bool {
    let count = |kind: fn(&char) -> bool| word.chars().filter(kind).count();
    let kinds = [count(char::is_ascii_digit), count(char::is_ascii_uppercase), count(char::is_ascii_lowercase)];
    // Words stand beside each other in names and paths; in what is random the kinds change at every other character.
    let kind = |c: char| (c.is_ascii_digit(), c.is_ascii_uppercase(), c.is_ascii_lowercase());
    let changes = word.chars().zip(word.chars().skip(1)).filter(|(a, b)| kind(*a) != kind(*b)).count();
    kinds.into_iter().all(|of| of >= 3) && changes * 3 >= word.len()
}

/// The text without what looks like a key.
pub fn keys(text: &str) -> String {
    let text =
        KEYS.iter().fold(text.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned());
    let named = |found: &Captures<'_>| match is_harmless(&found[1], &found[2]) {
        true => found[0].to_owned(),
        false => format!("{}{HIDDEN}", &found[1]),
    };
    let text = NAMED.as_ref().map_or_else(|| text.clone(), |pattern| pattern.replace_all(&text, named).into_owned());
    let random = |found: &Captures<'_>| if is_random(&found[0]) { HIDDEN.to_owned() } else { found[0].to_owned() };
    WORDS.as_ref().map_or_else(|| text.clone(), |pattern| pattern.replace_all(&text, random).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden() {
        for (text, want) in [
            ("sk-ant-api03-abcDEF_123-x and sk-1", "[hidden] and sk-1"),
            ("postgres://me:pw@host/db and https://host/path", "postgres://[hidden]@host/db and https://host/path"),
            ("https://abcdef0123456789abcd@github.com/x", "https://[hidden]@github.com/x"),
            ("AKIA1234567890ABCD ASIA1234567890ABCD", "[hidden] [hidden]"),
            ("the password: hunter22, then", "the password: [hidden], then"),
            (r#"{"password": "hunter2", "user": "me"}"#, r#"{"password": [hidden], "user": "me"}"#),
            (r#""api_key": "abcd-efgh""#, r#""api_key": [hidden]"#),
            (r#"password = "pa ss wo rd" # x"#, "password = [hidden] # x"),
            (r#"password = "one \" two""#, "password = [hidden]"),
            (r#"password = "cut in the mid"#, "password = [hidden]"),
            ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[hidden]"),
            ("aws_secret_access_key = wJalrXUt", "aws_secret_access_key = [hidden]"),
            ("SECRET_KEY='django-insecure-x'", "SECRET_KEY=[hidden]"),
            ("DB_PASS=hunter2", "DB_PASS=[hidden]"),
            ("MYSQL_PWD=hunter2", "MYSQL_PWD=[hidden]"),
            ("clientSecret: abcdefgh", "clientSecret: [hidden]"),
            ("private_key: abcdefgh", "private_key: [hidden]"),
            ("passphrase=abcdefgh", "passphrase=[hidden]"),
            ("AccountKey=abcd1234==;EndpointSuffix=x", "AccountKey=[hidden];EndpointSuffix=x"),
            ("npm_abcdefghij0123456789", "[hidden]"),
            ("ghu_abcdefghij ghr_abcdefghij", "[hidden] [hidden]"),
            (
                "ya29.abcdefgh_ij GOCSPX-abcdefgh SG.abcdefgh.ijkl xapp-1-abcdefgh",
                "[hidden] [hidden] [hidden] [hidden]",
            ),
            ("https://hooks.slack.com/services/T0/B0/xyz", "https://hooks.slack.com/services/[hidden]"),
            ("whsec_abcdefgh dop_v1_abcdefgh", "[hidden] [hidden]"),
            ("Cookie: session=abc; x=y", "Cookie: [hidden]"),
            ("curl -u me:hunter2 http://x", "curl -u me:[hidden] http://x"),
            ("machine x login me password hunter2", "machine x login me password [hidden]"),
            ("localhost:5432:db:me:hunter2", "localhost:5432:db:me:[hidden]"),
            ("//registry.npmjs.org/:_authToken=abcdefgh", "//registry.npmjs.org/:_authToken=[hidden]"),
            (
                "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nc2g=\n-----END OPENSSH PRIVATE KEY-----\nb",
                "a\n[hidden]\nb",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMIIEv", "[hidden]"),
            ("x-api-key: abcdefgh", "x-api-key: [hidden]"),
            ("Authorization: Bearer abcdefgh", "Authorization: Bearer [hidden]"),
            ("got wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY0a", "got [hidden]"),
        ] {
            assert_eq!(keys(text), want);
            assert_eq!(keys(&keys(text)), want, "what is hidden stays as it is");
        }
    }

    #[test]
    fn what_is_no_key_stays() {
        for text in [
            "max_tokens = 5",
            "max_tokens: 128000, tokens=12.5k",
            "fn login(password: &str, token: Option<String>)",
            "password: String,",
            "TOKEN=$(cat token) and api_key = os.environ[\"KEY\"]",
            "api_key_env = \"ROUTER_API_KEY\"",
            "PWD=/home/me/project",
            "the password field comes first: see author: Jane",
            "commit 9e40a68f0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e",
            "8a54d77e-1c1b-4d7a-9b0a-6f1f0c2d3e4f",
            "src/backend/agent/compaction/tiers/full_of_long_names.rs",
            "tests::what_the_provider_counts_is_what_is_shown_V2_after_3_turns_in_1_session",
            "https://github.com/owner/name/blob/main/a/very/long/path/README.md",
            "key: value; cookie: string",
            "passed: 12 tests, bypass: enabled",
        ] {
            assert_eq!(keys(text), text);
        }
    }
}
