//! Hides what looks like a key or a password in a text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What takes the place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// What keys look like wherever they stand. What stands for each may name a part that stays. Keys are ASCII: `\w` and `\d`
/// would mean every script, and a repetition of one takes a megabyte.
static KEYS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pem = "(?: BLOCK)?-----";
    let patterns = [
        &*format!(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY{pem}.*?(?:-----END [A-Z ]*PRIVATE KEY{pem}|\z)"),
        r"(?i)\b(?:ghp|gho|ghs|ghu|ghr|github_pat|glpat|xox[abeoprs]|xapp|whsec|shpat|dop_v1)[-_][A-Za-z0-9_\-]{8,}",
        r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,}|\b(?:sk|pk|rk)-[A-Za-z_\-]*[0-9][A-Za-z0-9_\-]{6,}",
        r"(?i)\bsk-[A-Za-z0-9_\-]{8,}",
        r"\b(?:hf|npm)_[A-Za-z0-9]{20,}|\bpypi-[A-Za-z0-9_\-]{32,}|\bAGE-SECRET-KEY-[A-Z0-9]{8,}",
        r"\bAIza[A-Za-z0-9_\-]{16,}|\bya29\.[A-Za-z0-9_\-]{8,}|\bGOCSPX-[A-Za-z0-9_\-]{8,}|\bSG\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]+",
        r"\b(?:xai|pplx|nvapi|tvly|gldt|sq0atp|pul)-[A-Za-z0-9_\-]{16,}|\bhvs\.[A-Za-z0-9_\-]{16,}",
        r"\b(?:gsk|r8|dckr_pat|lin_api|sbp|rubygems)_[A-Za-z0-9_\-]{16,}",
        r"\b(?:glsa|figd|shpss)_[A-Za-z0-9_\-]{16,}|\b(?:NRAK|PMAK)-[A-Za-z0-9\-]{16,}|\bATATT[A-Za-z0-9_\-=]{16,}|\bdapi[0-9a-f]{16,}",
        r"\b(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{12,}",
        r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+",
    ];
    let parts = [
        (r"\bhooks\.slack\.com/services/[^\s\x22']+", "hooks.slack.com/services/[hidden]"),
        (r"://[^\s/:@]*:[^\s/@]+@|://[^\s/:@]{16,}@", "://[hidden]@"),
        (r#"(?i)\b(authorization["']?\s*[:=]\s*["']?[a-z]+)\s+[^\s"']{6,}"#, "$1 [hidden]"),
        (r"(?i)\b(bearer)\s+[A-Za-z+/=._\-]*[0-9][A-Za-z0-9+/=._\-]{8,}", "$1 [hidden]"),
        (r#"(?i)\b((?:set-|set)?cookie["']?:\s*)[^\s"'][^\r\n"']*=[^\r\n"']*"#, "$1[hidden]"),
        (
            r#"(?i)(\b(?:curl|wget|https?)\b[^\n|;&]*?\s(?:-u|--user|--proxy-user)[ =]["']?[^\s:"']+:)[^\s"']+"#,
            "$1[hidden]",
        ),
        (
            r#"(?i)(\s--(?:[a-z\-]+-)?(?:pass(?:word|phrase)?|token|secret(?:-key)?|api-key)[= ]["']?)[^\s"'\-$<][^\s"']{3,}"#,
            "$1[hidden]",
        ),
        (r"(?i)\b(sshpass\s+-p\s*|[?&](?:sig|x-amz-signature)=)[^\s&]{4,}", "$1[hidden]"),
        (r#"(\b[A-Z][A-Z0-9_]*_KEY\s*=\s*["']?)[A-Za-z_\-]*[0-9][A-Za-z0-9_\-]{5,}"#, "$1[hidden]"),
        (r"(?i)(<[A-Za-z0-9_.:\-]*(?:password|secret|token|apikey)>)[^<>\s]{4,}(</)", "$1[hidden]$2"),
        // .netrc and .pgpass
        (r"(?im)(\blogin\s+\S+\s+password\s+)\S+", "$1[hidden]"),
        (r"(?im)^([ \t]*password[ \t]+)\S*[0-9]\S*[ \t]*$", "$1[hidden]"),
        (r"(?m)^([A-Za-z0-9_.*\-]+:(?:[0-9]{4,5}|\*):[A-Za-z*][^:\s]*:[^:\s]+:)[^:\s]+$", "$1[hidden]"),
    ];
    let whole = patterns.iter().map(|pattern| (*pattern, HIDDEN));
    whole.chain(parts).filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
});

/// A value that is called a secret: its name, what joins them, the value. It may also be an argument, the `value`
/// beside a `name`, what is used when a variable is missing, or stand behind a type.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = "(?:api|access|account|private|signing|encryption|master|shared|session|deploy|auth)[_.-]?key|tokens?|secrets?|\
        secret[_.-][a-z0-9_.-]*|passw(?:or)?d|passphrase|pwd|[_.-]pass|credentials?|[_-]auth|\
        \\b(?:pass|pw|auth)";
    let quoted = r#""""[^"]*"""|\\+"[^"\\\n]*\\*"?|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?"#;
    // A new parameter of an address begins at `&`, which otherwise begins a type.
    let bare = r#"\[hidden\]|[^\s,;"'()\[\]{}&]+|&[^\s,;"'()\[\]{}]*"#;
    let ways = [
        format!(
            r"(?P<set>\bset_?(?:password|secret|token|api_?key)\(\s*|#define\s+[a-z0-9_]*(?:{name})\s+)(?P<argument>{quoted})"
        ),
        format!(
            r#"(?P<list>\b(?:name|key)["']?\s*[:=]\s*["']?[a-z0-9_.\-]*(?:{name})["']?[,\s]+["']?value["']?\s*[:=]\s*)(?P<item>{quoted}|{bare})"#
        ),
        format!(r#"(?P<variable>(?-i:["'][A-Z0-9_]*(?:PASSWORD|SECRET|TOKEN|KEY)["']\s*,\s*))(?P<default>{quoted})"#),
        format!(r"(?P<typed>[a-z0-9_]*(?:{name})\s*:\s*&?[a-z_][a-z0-9_<>:'& ]*=\s*)(?P<constant>{quoted})"),
        format!(
            r#"(?P<name>[a-z0-9_.\-]*(?:{name})[0-9]*)(?P<joint>\\*["']?\s*(?:=>|:=|[=:])\s*)(?P<value>{quoted}|{bare})"#
        ),
    ];
    Regex::new(&format!("(?i){}", ways.join("|"))).ok()
});

/// The ways to join a name and a value of which the value is hidden without a look at the name.
const JOINED: [(&str, &str); 4] =
    [("set", "argument"), ("list", "item"), ("variable", "default"), ("typed", "constant")];

/// A word long enough for a key that nothing else tells.
static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/=_\-]{32,}").ok());

/// Values that tell nothing, whatever they are called: types, modes, and nothing at all.
const WORDS_OF_CODE: &str =
    "string boolean number bytes true false null none undefined include omit same-origin required optional";

/// Whether the value says what a secret is, where it is or how many there are. `after` is the text behind it.
fn is_harmless(name: &str, joint: &str, value: &str, after: &str) -> bool {
    let inner = value.trim_matches(['"', '\'', '\\']);
    let counts = inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.chars().all(|c| c.is_ascii_digit() || "_.kKmM%".contains(c));
    if inner.len() < 4
        || inner.starts_with(['$', '<'])
        || inner == HIDDEN
        || WORDS_OF_CODE.split(' ').any(|word| word.eq_ignore_ascii_case(inner))
        || counts && name.to_lowercase().contains("token")
    {
        return true;
    }
    if inner.len() < value.len() {
        return false;
    }
    // As in a file of variables; everything else without quotes may be code, which names things.
    if joint == "=" && !name.contains(|c: char| c.is_ascii_lowercase()) {
        return matches!(name, "PWD" | "OLDPWD");
    }
    let names = value.chars().all(|c| c.is_ascii_alphabetic() || "_.-".contains(c));
    let is_code =
        value.contains("::") || value.contains(['<', '>', '`', '&', '|']) || after.starts_with(['(', '[', '{']);
    names || is_code || value.starts_with(['=', ':', '/', '~', '.', '*', '!']) || joint.contains("=>")
}

/// Whether the value is what variables of the environment are called.
fn is_variable(value: &str) -> bool {
    value.trim_matches(['"', '\'']).bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// Whether it has the line for itself, as in a file of settings; code would end it.
fn is_a_line(text: &str, at: &Range<usize>) -> bool {
    let before = text[..at.start].rsplit('\n').next().unwrap_or_default().trim();
    let after = text[at.end..].split('\n').next().unwrap_or_default().trim();
    matches!(before, "" | "-" | "export") && after.is_empty()
}

/// Whether the value of a setting is a word that a person may have chosen, and not the name of a thing.
fn is_word(name: &str, value: &str) -> bool {
    let chosen = |c: char| c.is_ascii_lowercase() || c == '-';
    let told = WORDS_OF_CODE.split(' ').any(|word| word == value) || name.to_lowercase().contains(value);
    value.len() >= 8 && value.chars().all(chosen) && !told
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
    let named = |found: &Captures<'_>| {
        let part = |name: &str| found.name(name).map_or("", |part| part.as_str());
        let at = found.get(0).map_or(0..0, |whole| whole.range());
        if let Some((before, value)) = JOINED.iter().find(|(before, _)| found.name(before).is_some()) {
            let (before, value) = (part(before), part(value));
            let harmless = is_harmless("", ":", value, "") || is_variable(value);
            return if harmless { found[0].to_owned() } else { format!("{before}{HIDDEN}") };
        }
        let (name, joint, value) = (part("name"), part("joint"), part("value"));
        let data = is_a_line(&text, &at) && is_word(name, value);
        match is_harmless(name, joint, value, &text[at.end..]) && !data {
            true => found[0].to_owned(),
            false => format!("{name}{joint}{HIDDEN}"),
        }
    };
    let text = NAMED.as_ref().map_or_else(|| text.clone(), |pattern| pattern.replace_all(&text, named).into_owned());
    let random = |found: &Captures<'_>| {
        let before = found.get(0).map_or("", |word| &text[..word.start()]);
        let told = before.ends_with("base64,") || found[0].starts_with("sha") && found[0].contains('-');
        if !told && is_random(&found[0]) { HIDDEN.to_owned() } else { found[0].to_owned() }
    };
    WORDS.as_ref().map_or_else(|| text.clone(), |pattern| pattern.replace_all(&text, random).into_owned())
}

/// What a field of data holds, if its name does not say that it is a secret.
pub fn field(name: &str, value: &str) -> String {
    let secret = keys(&format!("{name}=\"any value\"")).ends_with(HIDDEN);
    if secret && !is_harmless(name, "=", &format!("\"{value}\""), "") { HIDDEN.to_owned() } else { keys(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_little_memory() {
        let patterns = KEYS.iter().map(|(pattern, _)| pattern).chain(NAMED.iter()).chain(WORDS.iter());
        for pattern in patterns {
            let small = regex::RegexBuilder::new(pattern.as_str()).size_limit(200_000).build();
            assert!(small.is_ok(), "{pattern}");
        }
    }

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
            ("aws_secret_access_key = wJalrXU8", "aws_secret_access_key = [hidden]"),
            ("SECRET_KEY='django-insecure-x'", "SECRET_KEY=[hidden]"),
            ("DB_PASS=hunter2", "DB_PASS=[hidden]"),
            ("MYSQL_PWD=hunter2", "MYSQL_PWD=[hidden]"),
            ("clientSecret: abcdefg8", "clientSecret: [hidden]"),
            ("private_key: abcdefg8", "private_key: [hidden]"),
            ("passphrase=abcdefg8", "passphrase=[hidden]"),
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
            (r#"{\"password\": \"hunter2\", \"a\": 1}"#, r#"{\"password\": [hidden], \"a\": 1}"#),
            (r#"password = """hunter2""""#, "password = [hidden]"),
            (r#"{"auth": "aGVsbG86", "pass": "hunter"}"#, r#"{"auth": [hidden], "pass": [hidden]}"#),
            ("deploy --password hunter2 --api-key=abcdefg8", "deploy --password [hidden] --api-key=[hidden]"),
            ("sshpass -p hunter2 ssh h", "sshpass -p [hidden] ssh h"),
            ("<password>hunter2</password>", "<password>[hidden]</password>"),
            ("xai-abcdefghijklmnop gsk_abcdefghijklmnop hvs.abcdefghijklmnop", "[hidden] [hidden] [hidden]"),
            ("curl -u me:hunter2 http://x", "curl -u me:[hidden] http://x"),
            ("machine x login me password hunter2", "machine x login me password [hidden]"),
            ("localhost:5432:db:me:hunter2", "localhost:5432:db:me:[hidden]"),
            ("//registry.npmjs.org/:_authToken=abcdefg8", "//registry.npmjs.org/:_authToken=[hidden]"),
            (
                "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nc2g=\n-----END OPENSSH PRIVATE KEY-----\nb",
                "a\n[hidden]\nb",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMIIEv", "[hidden]"),
            ("x-api-key: abcdefg8", "x-api-key: [hidden]"),
            ("Authorization: Bearer abcdefgh", "Authorization: Bearer [hidden]"),
            ("https://x/?access_token=hunter2x&y=1", "https://x/?access_token=[hidden]&y=1"),
            ("client_secret=abc123def&scope=y", "client_secret=[hidden]&scope=y"),
            (r#"const PASSWORD: &str = "hunter2";"#, "const PASSWORD: &str = [hidden];"),
            (r#"let password: Option<String> = "hunter2".into();"#, "let password: Option<String> = [hidden].into();"),
            ("f(password: str = 'hunter2')", "f(password: str = [hidden])"),
            (r#"#define DB_PASSWORD "hunter2""#, "#define DB_PASSWORD [hidden]"),
            (r#"setPassword("hunter2"); set_api_key('hunter2')"#, "setPassword([hidden]); set_api_key([hidden])"),
            (r#"define('DB_PASSWORD', 'hunter2')"#, "define('DB_PASSWORD', [hidden])"),
            (r#"env.get("API_TOKEN", "hunter2x")"#, r#"env.get("API_TOKEN", [hidden])"#),
            ("- name: DB_PASSWORD\n  value: hunter2", "- name: DB_PASSWORD\n  value: [hidden]"),
            (r#"{"name":"DB_PASSWORD","value":"hunter2"}"#, r#"{"name":"DB_PASSWORD","value":[hidden]}"#),
            (r#"<add key="Password" value="hunter2"/>"#, r#"<add key="Password" value=[hidden]/>"#),
            ("  password: correcthorse\nuser: me", "  password: [hidden]\nuser: me"),
            ("password=correct-horse", "password=[hidden]"),
            ("OPENAI_KEY=abcdefgh12345678 x", "OPENAI_KEY=[hidden] x"),
            ("glsa_abcdefghijklmnop1 PMAK-abcdefghijklmnop1", "[hidden] [hidden]"),
            ("x --pass hunter2 --secret-key abcd1234", "x --pass [hidden] --secret-key [hidden]"),
            ("got wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY0a", "got [hidden]"),
        ] {
            assert_eq!(keys(text), want);
            assert_eq!(keys(&keys(text)), want, "what is hidden stays as it is");
        }
    }

    #[test]
    fn a_field_is_hidden_by_its_name() {
        for (name, value, want) in [
            ("password", "hunter\"s", HIDDEN),
            ("DB_PASS", "zxcvbnm9", HIDDEN),
            ("x-api-key", "qwertyui", HIDDEN),
            ("command", "API_KEY=abcdefg8 make", "API_KEY=[hidden] make"),
            ("file_path", "src/token.rs", "src/token.rs"),
            ("max_tokens", "4096", "4096"),
        ] {
            assert_eq!(field(name, value), want, "{name}");
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
            "let token = lexer.next_token(); tokens = line.split(1)",
            "token: Token, tokens: Vec<Token2>, private_key: PathBuf",
            "token == Token::Ident2 && match token { Token::Plus => 1 }",
            "let credentials = Credentials::default(); fetch(url, { credentials: \"same-origin\" })",
            "password=password, password: z.string().min(8), api_key=settings.api_key",
            "hf_hub_download(repo) sk_buff_allocation pk_constraint_name",
            "error: unexpected token: `else`, SyntaxError: Unexpected token: punc",
            "Basic authentication is used, a basic understanding of the bearer of it",
            "The secret: write small functions; secret.rs: module; pwd: /home/me2/project",
            "password reset",
            "  token: Token\n  auth: required\n  password: password\n",
            "for name in [\"API_TOKEN\", \"DB_PASSWORD\"] { PRIMARY_KEY=customer_id }",
            "let token: Option<&str> = next(); #define TOKEN_LIMIT 5000",
            "if (password && token) { setToken(next) }",
            "Cargo.toml:3:9:warning:unused",
            "a.rs:10:fn:main:x",
            "2026-11-24T02:54:30:foo:1:a:b",
            "docker run -u root:root img; git push -u origin:main",
            "\"integrity\": \"sha512-wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY0a==\"",
            "data:image/png;base64,wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY0a",
        ] {
            assert_eq!(keys(text), text);
        }
    }
}
