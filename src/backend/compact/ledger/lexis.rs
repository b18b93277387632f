//! What words tell without a model: sentences, figures, names, and the turns of phrase by which people forbid, choose and
//! change their minds. A few languages are known by their words; every other one by its figures and names.

use std::sync::LazyLock;

use regex::Regex;

/// Characters of a line that is remembered.
const LONGEST: usize = 220;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Plain,
    /// A port, a version, a limit, a hash.
    Figure,
    /// A path, a function, a branch, an issue.
    Name,
}

/// Turns of phrase, one pattern each.
pub(super) struct Turns {
    pattern: LazyLock<Option<Regex>>,
}

impl Turns {
    const fn new(make: fn() -> Option<Regex>) -> Turns {
        Turns { pattern: LazyLock::new(make) }
    }

    pub(super) fn found_in(&self, text: &str) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }

    /// What the first group in a text that has one holds.
    pub(super) fn group_in<'a>(&self, text: &'a str) -> Option<&'a str> {
        let groups = self.pattern.as_ref()?.captures(text)?;
        groups.iter().skip(1).flatten().next().map(|group| group.as_str().trim())
    }

    /// Bytes of the first one.
    pub(super) fn place_in(&self, text: &str) -> Option<std::ops::Range<usize>> {
        self.pattern.as_ref()?.find(text).map(|found| found.range())
    }
}

/// Words that stand alone, and those of scripts that are not Latin, wherever they stand.
fn any_of(words: &str, wide: &str) -> Option<Regex> {
    let alternatives = match wide.is_empty() {
        true => format!(r"(?i)\b(?:{words})\b"),
        false => format!(r"(?i)\b(?:{words})\b|{wide}"),
    };
    pattern(&alternatives)
}

/// A pattern whose `\b` and `\d` know ASCII only, and whose `\w` is whatever is not between words: with all letters of the
/// world a pattern takes milliseconds to make, and a text that is not English a hundred times as long to search.
pub(super) fn pattern(text: &str) -> Option<Regex> {
    let narrow = text.replace(r"\b", r"(?-u:\b)").replace(r"\d", "[0-9]").replace(r"\w", r"[^\s.,;:!?]");
    Regex::new(&narrow).ok()
}

/// Somebody forbids or demands.
pub(super) static OBLIGES: Turns = Turns::new(|| {
    any_of(
        r"never|always|must|mustn['’]?t|don['’]?t|do not|doesn['’]?t need to|shouldn['’]?t|should not|may not|can['’]?t|cannot|won['’]?t|only|avoid|without|no (?:\w+ ){0,3}\w+|not? (?:allowed|to)|except|unless|forbidden|off[- ]limits|hands off|stay (?:out|away|off)|keep|leave|ensure|make sure|required?|has to|have to|needs? to|stick (?:to|with)|exactly as|at (?:most|least)|up to|under no|ask (?:\w+ )?before|before (?:you|any|changing|touching)|nie|niemals|nicht|kein\w*|immer|nur|muss|müssen|darf|dürfen|soll\w*|ohne|verboten|auf keinen fall|unbedingt|lass\w*|jamais|toujours|ne \w+ pas|pas de|doit|doivent|seulement|sans|interdit|nunca|siempre|jamás|debe\w*|solo|sólo|sin|prohibido|não|sempre|deve\w*|apenas|sem|mai|deve|senza|nooit|altijd|niet|geen|moet\w*|nigdy|zawsze|asla|her zaman",
        "никогда|всегда|нельзя|только| не |должн| без |不要|不能|不得|不可|不准|不许|禁止|必须|务必|一定要|只能|只用|仅|别|避免|保持|勿|ないで|てはいけ|てはなら|ではいけ|禁止|必ず|絶対|だけ|のみ|せずに|なければ|ないよう|変えない|触らない|하지 ?마|말아|반드시|절대|금지|항상|만 ",
    )
});

/// Somebody chooses.
pub(super) static CHOOSES: Turns = Turns::new(|| {
    any_of(
        r"use|using|instead|rather|prefer\w*|let['’]?s|go (?:with|for)|go ahead with|pick|choose|chose|decided?|we['’]?ll|switch\w*|stick (?:to|with)|call it|name it|default to|i want|i['’]?d like|nimm|nehmen|verwende\w*|benutz\w*|statt|lieber|stattdessen|bevorzug\w*|utilise\w*|plutôt|préfère|usa\w*|prefiero|en vez de|em vez de|invece|liever|gebruik|używaj",
        "используй|вместо|лучше|使用|用|改用|选|采用|而不是|代替|宁可|使って|使用し|にして|ではなく|代わりに|選|採用|でお願い|사용|대신|쓰",
    )
});

/// What is said takes the place of something said before.
pub(super) static CHANGES: Turns = Turns::new(|| {
    any_of(
        r"actually|instead|now|change[ds]?|changing|switch\w*|correction|correct that|make (?:it|that)|no longer|anymore|any more|moved?|renamed?|update[ds]?|scratch that|on second thought|changed my mind|new|bump\w*|raise[ds]?|lower(?:ed)?|wrong|was|from|doch|jetzt|nun|stattdessen|nicht mehr|geändert|neu\w*|maintenant|désormais|ahora|en vez|agora",
        "теперь|вместо|改成|改为|改用|变成|现在|换成|不再|更新|変更|今は|に変え|やっぱり|これから|もう|代わりに|ではなく|이제|변경|대신",
    )
});

/// What follows was so, and is not any more.
pub(super) static OUTDATES: Turns = Turns::new(|| {
    any_of(
        r"instead of|rather than|no longer|not|replac\w+|drop(?:ped|ping)?|forget(?: about)?|scratch|was|from|over|statt|anstelle von|anstatt|nicht mehr|nicht|au lieu de|plutôt que|en vez de|em vez de|invece di|in plaats van",
        "вместо|不是|而不是|代替|替换|不再用|不再是|不用|取代",
    )
});

/// The same, where what was so is before it.
pub(super) static OUTDATED: Turns =
    Turns::new(|| pattern("ではなく|じゃなく|の代わりに|に代えて|をやめ|から|改成|改为|换成|대신|에서"));

/// Something that was forbidden is allowed.
pub(super) static LIFTS: Turns = Turns::new(|| {
    any_of(
        r"(?:may|can|could) now|now (?:may|can|be)|(?:it['’]?s|is|are) (?:now )?(?:ok|okay|fine|allowed)(?: now| again| to)|no longer (?:forbidden|off|frozen|applies|needed|required)|forget (?:what|about|the)|ignore (?:what i|my|the rule|the earlier)|lifted|you have my (?:ok|okay|permission)|feel free to|darfst (?:jetzt|nun|wieder)|wieder erlaubt",
        "可以改|可以修改|现在可以|允许了|取消|もう(?:触って|変えて|使って)も|してもいい|しても大丈夫|해도 (?:돼|됩)",
    )
});

/// Somebody found something out.
pub(super) static FINDS: Turns = Turns::new(|| {
    any_of(
        r"root cause|because|since|turns? out|the (?:cause|reason|culprit|bug|problem|issue|fix|trick|catch)|depends? on|only (?:when|if|fails?|works?|caller)|caused by|due to|requires?|needs?|rejects?|expects?|assumes?|must|never|always|cannot|fails? (?:when|if|because|on)|limit(?:ed)?|default(?:s)?|expires?|allows?|sized|defined in|set (?:in|by|to)|lives? in|comes? from|came in with|introduced|decided|we agreed|on purpose|deprecated|weil|liegt an|hängt|ursache|grund|parce que|porque",
        "потому|原因|因为|由于|取决于|需要|必须|原因は|ため|依存|により|必要|때문",
    )
});

/// Somebody says what they do, not how things are.
pub(super) static NARRATES: Turns = Turns::new(|| {
    pattern(
        r"(?i)^(?:ok(?:ay)?[,.! ]+|sure[,.! ]+|great[,.! ]+|good[,.! ]+|now[, ]+|next[, ]+|first[, ]+|then[, ]+|alright[,.! ]+)*(?:let me|let['’]s|i['’]?ll|i will|i['’]?m going to|i am going to|i['’]?m |i am \w+ing|i need to|i should|i can|i['’]?d (?:like|now|push|remove|also)|next would|one (?:thing|decision|question|more)|i (?:read|looked|checked|ran|opened|see)|looking|reading|checking|running|opening|continuing|moving on|going|working|starting|here(?:['’]s| is)|as (?:you|requested)|done|finished)\b",
    )
});

/// Somebody says what they are after: a wish, not a rule.
pub(super) static WANTS: Turns = Turns::new(|| {
    pattern(
        r"(?i)\b(?:we|i) (?:\w+ )?(?:need|have|want|would like) (?:to|you to)\b|^(?:(?:ok(?:ay)?|now|next|then|please|and|also|thanks|great|good)[,.! ]+)*(?:have|take) a look\b",
    )
});

/// What is said before it comes to the point.
static LEADS: Turns = Turns::new(|| {
    pattern(
        r"(?i)^(?:(?:(?:ok(?:ay)?|right|yes|yeah|no|nice|great|good|cool|perfect|thanks|thank you|hi|hello|hey|well|oh|btw|by the way|whatever you do)[,.!:]+ |(?:and|so|also|but|please|pls|then) )+|[^:]{0,60}\b(?:things?|rules?|notes?|points?|requests?)\b[^:]{0,30}: )+",
    )
});

/// The user is said to have agreed to something.
pub(super) static CONSENTS: Turns = Turns::new(|| {
    pattern(
        r"(?i)\buser (?:\w+ )?(?:agreed|approved|confirmed|accepted|allowed|permitted|authori[sz]ed|decided|consented)\b",
    )
});

/// All is said to be done.
pub(super) static ENDS: Turns = Turns::new(|| {
    pattern(
        r"(?i)\bnothing (?:is |else |more )?(?:is )?(?:left|remains|open|to do)\b|\b(?:everything|all (?:tasks?|todos?|steps?|items?|work))\b.{0,20}\b(?:done|completed?|finished)\b",
    )
});

/// Somebody asks for a piece of work.
pub(super) static REQUESTS: Turns = Turns::new(|| {
    pattern(
        r"(?i)^(?:(?:ok(?:ay)?|now|next|then|please|pls|and|also|great|good|thanks|bitte|could you|can you|would you)[,.! ]+)*(?:add|fix|write|implement|refactor|rename|remove|delete|update|check|look|read|run|test|create|make|move|change|continue|carry on|go\s+on|proceed|explain|show|find|review|clean|commit|push|build|investigate|debug|improve|extend|do|try|start|finish|mach|schreib|füge|prüf|weiter)\b",
    )
});

/// Words by which text tries to give orders to a model. No line with them is kept, no matter who said it: the
/// user's own words are next to the ledger anyway.
pub(super) static COMMANDS: Turns = Turns::new(|| {
    any_of(
        r"(?:ignore|disregard|forget|override) (?:all |any |the |your |every )*(?:previous|prior|earlier|above|preceding|other|system)(?: \w+)? ?(?:instructions?|prompts?|rules?|messages?|context)|(?:ignore|disregard) (?:what )?the user|you are now|new instructions?|system prompt|developer message|act as|do anything now|jailbreak\w*|(?:the )?assistant (?:must|should|will) (?:now|immediately)|without (?:telling|informing) the user|do not (?:tell|inform|mention (?:this )?to) the user|ignoriere (?:alle|die) (?:vorherigen|bisherigen)",
        r"</?system(?:-reminder)?\s*>|<\|im_(?:start|end)\|>|\[/?INST\]|(?:curl|wget) [^|\n]*\| ?(?:sudo )?(?:ba|z)?sh\b|忽略(?:之前|以上|所有)|無視して|以前の指示|이전 지시",
    )
});

/// A line of output that says what went wrong.
pub(super) static FAILS: Turns = Turns::new(|| {
    pattern(
        r"(?i)\berror\b ?(?:\[|:|\(|ts\d|cs\d|c\d)|\b[A-Za-z0-9_.]*(?:error|exception)\b:|panicked at|^fatal\b|\bfatal:|\bFAILED\b|^FAIL\b|npm ERR!|\bundefined (?:reference|symbol|method)|not found|no such file|permission denied|cannot |can't |could not |unable to |refused|timed? ?out|denied|segmentation fault|assertion|\bE\d{3,}\b|unexpected|invalid|missing|does not exist|fehler|失败|错误|エラー|失敗",
    )
});

/// The line of a failure that names it, where there are several.
pub(super) static NAMES_FAILURE: Turns = Turns::new(|| {
    pattern(
        r"^(?:\w+: )?(?:[A-Za-z0-9_.]*(?:Error|Exception|Panic)\b.*:|error(?:\[[A-Z]?\d+\])?:|fatal: |ld: |FATAL|E {3,}\S|npm ERR! \S+ \S+)|panicked at|\berror (?:TS|CS|C)\d+|: error: |AssertionError",
    )
});

/// A test that failed, as runners name it: pytest, cargo, go, TAP, GoogleTest, Jest and Vitest, Mocha, RSpec.
pub(super) static FAILED_TEST: Turns = Turns::new(|| {
    pattern(
        r"^_{3,} (\S.*?) _{3,}$|^FAILED (\S+::\S+)|^test (\S+) \.\.\. FAILED$|^\s*--- FAIL: (\S+)|^\s*not ok \d+ (?:- )?([^#]+)|^\[  FAILED  \] (\w+\.\w+)|^\s*● (\S.* › .+)|^\s*(?:FAIL|×) +\S+ > (.+)|^rspec \S+ # (.+)|^\s*✖ (\S[^(]*) \(",
    )
});

/// Where a failure happened.
pub(super) static PLACES_FAILURE: Turns =
    Turns::new(|| pattern(r#"(?:-->|^\s*at |File "|[A-Za-z0-9_./-]+\.\w{1,5}[:(]\d+)"#));

/// A label with a value.
pub(super) static LABELS: Turns =
    Turns::new(|| pattern(r#"[A-Za-z0-9_.\-\]"']{2,}"?\s*(?:[:=]|=>|→)\s*["'`]?[^\s"'`,;)]*\d"#));

/// Whether a character belongs to a script without spaces.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}' | '\u{20000}'..='\u{3FFFF}')
}

/// The words of a text, with what each is. A run of a script without spaces is one word.
pub(super) fn words(text: &str) -> impl Iterator<Item = (Sort, &str)> {
    let breaks = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '"' | ','
                    | ';'
                    | '!'
                    | '?'
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '{'
                    | '}'
                    | '<'
                    | '>'
                    | '|'
                    | '='
                    | '*'
                    | '…'
                    | '→'
                    | '“'
                    | '”'
                    | '„'
                    | '«'
                    | '»'
                    | '「'
                    | '」'
                    | '『'
                    | '』'
                    | '、'
                    | '。'
                    | '，'
                    | '；'
                    | '：'
                    | '！'
                    | '？'
                    | '（'
                    | '）'
                    | '·'
            )
    };
    let mut rest = text;
    let mut quoted = false;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(breaks);
            if let Some(after) = rest.strip_prefix('`') {
                (rest, quoted) = (after, !quoted);
                continue;
            }
            let first = rest.chars().next()?;
            let wide = is_wide(first);
            let ends = |(at, c): &(usize, char)| {
                breaks(*c)
                    || *c == '`'
                    || is_wide(*c) != wide
                    || *c == ':'
                        && rest[at + 1..].chars().next().is_none_or(|next| next.is_whitespace() || is_wide(next))
            };
            let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at).max(first.len_utf8());
            let (word, behind) = rest.split_at(end);
            rest = behind;
            let word = word.trim_matches(|c| {
                matches!(c, '.' | ':' | '\'' | '’' | '‘' | '-' | '_')
                    && !word.starts_with("--")
                    && !word.starts_with("./")
            });
            if !word.is_empty() {
                return Some((sort(word, quoted), word));
            }
        }
    })
}

fn sort(word: &str, quoted: bool) -> Sort {
    const PAIRS: [&str; 14] = [
        "and/or",
        "yes/no",
        "read/write",
        "input/output",
        "client/server",
        "he/she",
        "on/off",
        "pass/fail",
        "true/false",
        "tcp/ip",
        "ci/cd",
        "start/stop",
        "either/or",
        "n/a",
    ];
    let bytes = word.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    if digits > 0 {
        let leads = bytes[0].is_ascii_digit()
            || matches!(bytes[0], b'$' | b'~' | b'#' | b'+' | b'-') && bytes.get(1).is_some_and(u8::is_ascii_digit)
            || bytes[0] == b'v' && bytes.get(1).is_some_and(u8::is_ascii_digit);
        let hash = bytes.len() >= 7 && letters > 0 && bytes.iter().all(u8::is_ascii_hexdigit);
        if leads && !word.contains('/') || hash {
            return Sort::Figure;
        }
    }
    if letters == 0 {
        return Sort::Plain;
    }
    let inner = |test: fn(u8, u8) -> bool| bytes.windows(2).any(|pair| test(pair[0], pair[1]));
    let dotted = bytes
        .windows(3)
        .any(|three| three[1] == b'.' && three[0].is_ascii_alphanumeric() && three[2].is_ascii_alphanumeric())
        && !matches!(word, "e.g" | "i.e" | "etc");
    let named = quoted
        || word.contains('_')
        || word.contains("::")
        || word.contains("->")
        || word.contains('/') && letters > 2 && !PAIRS.contains(&word.to_ascii_lowercase().as_str())
        || dotted
        || inner(|a, b| a.is_ascii_lowercase() && b.is_ascii_uppercase())
        || digits > 0 && letters > 1 && word.contains('-')
        || matches!(bytes[0], b'@' | b'$' | b'#') && letters > 1
        || word.starts_with("--")
        || letters >= 3 && letters + digits == bytes.len() && !bytes.iter().any(u8::is_ascii_lowercase) && digits > 0;
    if named { Sort::Name } else { Sort::Plain }
}

/// What a text is about, figures aside: lower case, without the small words that change from one telling to the next.
/// Digits within names count alike where `blind`: what differs in them alone is routine.
pub(super) fn subject(text: &str, blind: bool) -> String {
    const SMALL: &str = " a an the this that these those it its is are was were be been being am do does did done has have had of to in on at by for with and or but so as from into than then there here we you i he she they our your my me us please pls just now actually instead use using used make makes made set sets run runs listen listens should must will would can could may let lets go want new also still again ok okay not no der die das den dem ein eine einen ist sind war wird und oder für auf mit von zu bitte jetzt doch nun statt verwende nimm benutze ";
    let mut subject = String::new();
    for (sort, word) in words(text) {
        match sort {
            Sort::Figure => continue,
            Sort::Name if !blind => {
                subject.push(' ');
                subject.push_str(word);
            }
            Sort::Name | Sort::Plain => {
                let lower = word.to_lowercase();
                if SMALL.contains(&format!(" {lower} ")) {
                    continue;
                }
                subject.push(' ');
                match blind {
                    true => push_blind(&mut subject, &lower),
                    false => subject.push_str(&lower),
                }
            }
        }
    }
    subject.trim_start().to_owned()
}

/// Digits as one mark.
fn push_blind(to: &mut String, word: &str) {
    let mut digit = false;
    for c in word.chars() {
        if !c.is_ascii_digit() {
            to.push(c);
        } else if !digit {
            to.push('#');
        }
        digit = c.is_ascii_digit();
    }
}

/// Figures and names of a text.
pub(super) fn marks(text: &str) -> Vec<&str> {
    words(text).filter(|(sort, word)| *sort != Sort::Plain && word.len() > 1).map(|(_, word)| word).collect()
}

/// Words of a text that are written as names are: with a capital letter, not at the start. In a language that writes all nouns
/// so they tell nothing.
pub(super) fn proper(text: &str) -> usize {
    // What is quoted is a name as well.
    let found = capitals(text).count() + text.matches(['「', '“']).count();
    if found * 4 > words(text).count().max(4) { 0 } else { found }
}

/// Those words.
pub(super) fn capitals(text: &str) -> impl Iterator<Item = &str> {
    words(text).skip(1).map(|(_, word)| word).filter(|word| {
        let capital = word.chars().next().is_some_and(char::is_uppercase) && word.chars().nth(2).is_some();
        capital && word.chars().any(char::is_lowercase)
    })
}

/// How many figures and names a text has.
pub(super) fn telling(text: &str) -> usize {
    marks(text).len() + proper(text)
}

/// A text without what is said before it comes to the point.
pub(super) fn without_lead(text: &str) -> &str {
    let from = LEADS.place_in(text).map_or(0, |lead| lead.end);
    match marks(&text[..from]).is_empty() && text.len() > from + 8 {
        true => &text[from..],
        false => text,
    }
}

/// The sentences of what somebody wrote. Blocks of code are left out: they are what it is about.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced || line.is_empty() || line.starts_with('>') || line.starts_with('|') {
            continue;
        }
        let line = line.trim_start_matches(['#', '-', '*', '•', ' ']);
        let line = unnumbered(line);
        let mut start = 0;
        for (at, c) in line.char_indices() {
            let end = at + c.len_utf8();
            let next = line[end..].chars().next();
            let ends = match c {
                '。' | '！' | '？' | '；' => true,
                '.' | '!' | '?' | ';' => {
                    next.is_none_or(char::is_whitespace)
                        && !line[start..at].ends_with("e.g")
                        && !line[start..at].ends_with("i.e")
                }
                _ => false,
            };
            if ends {
                push(&mut sentences, &line[start..end]);
                start = end;
            }
        }
        push(&mut sentences, &line[start..]);
    }
    sentences
}

fn push<'a>(sentences: &mut Vec<&'a str>, sentence: &'a str) {
    let sentence = sentence.trim();
    if sentence.chars().any(char::is_alphanumeric) {
        sentences.push(sentence);
    }
}

fn unnumbered(line: &str) -> &str {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(['.', ')']) {
        Some(rest) if digits > 0 && rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    }
}

/// A text on one line and cut to what a line may hold: around the first turn or mark in it.
pub(super) fn clip(text: &str, around: Option<usize>) -> String {
    let longest = if text.is_ascii() { LONGEST } else { LONGEST * 2 / 3 };
    if text.chars().take(longest + 1).count() <= longest {
        return one_line(text);
    }
    let from = around.map_or(0, |at| at.saturating_sub(longest / 3));
    let from = if from < longest / 4 { 0 } else { text.floor_char_boundary(from) };
    let cut: String = text[from..].chars().take(longest).collect();
    let (before, after) = (if from > 0 { "…" } else { "" }, if from + cut.len() < text.len() { "…" } else { "" });
    format!("{before}{}{after}", one_line(&cut))
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        fn check(text: &str, want: &str) {
            let shown = |(sort, word): (Sort, &str)| match sort {
                Sort::Plain => word.to_owned(),
                Sort::Figure => format!("#{word}"),
                Sort::Name => format!("@{word}"),
            };
            assert_eq!(words(text).map(shown).collect::<Vec<_>>().join(" "), want);
        }
        check("use port 8931, v1.2.3 and 250 ms.", "use port #8931 #v1.2.3 and #250 ms");
        check("`flush` in src/a.rs: Foo::bar, and/or PLAT-4471", "@flush in @src/a.rs @Foo::bar and/or @PLAT-4471");
        check("ポートは8931です。", "ポートは #8931 です");
        check("端口是 6443，证书在 /etc/acme/tls。", "端口是 #6443 证书在 @/etc/acme/tls");
        check(
            "don't touch --force or 7f3a9c1e: https://x.test/a",
            "don't touch @--force or #7f3a9c1e @https://x.test/a",
        );
    }

    #[test]
    fn sentences_end_where_people_end_them() {
        fn check(text: &str, want: &[&str]) {
            assert_eq!(sentences(text), want);
        }
        check("One. Two! e.g. this is 1.5. Three", &["One.", "Two!", "e.g. this is 1.5.", "Three"]);
        check("- a\n2. b\n```\ncode\n```\n> quoted\n一。二！", &["a", "b", "一。", "二！"]);
    }

    #[test]
    fn a_line_begins_where_it_comes_to_the_point() {
        fn check(text: &str, want: &str) {
            assert_eq!(without_lead(text), want);
        }
        check("And whatever you do, leave legacy/fares alone", "leave legacy/fares alone");
        check("Two more rules: every line needs an id", "every line needs an id");
        check("No force pushes, please", "No force pushes, please");
        check("src/rules.rs: every line needs an id", "src/rules.rs: every line needs an id");
        check("Right.", "Right.");
    }

    #[test]
    fn names_of_people_and_things_are_told_by_their_capitals() {
        fn check(text: &str, want: usize) {
            assert_eq!(proper(text), want, "{text}");
        }
        check("The file names Marit Solheim as the owner.", 2);
        check("Everything is done, and the tests pass.", 0);
        check("Die Prüfung der Datei vor dem Bau der Ausgabe.", 0);
        check("用語集は「便」を使う", 1);
    }

    #[test]
    fn long_lines_keep_what_they_are_about() {
        let text = format!("{}never touch vendor {}", "so ".repeat(200), "and ".repeat(200));
        let clipped = clip(&text, OBLIGES.place_in(&text).map(|place| place.start));
        assert!(clipped.contains("never touch vendor") && clipped.chars().count() <= LONGEST + 2, "{clipped}");
    }
}
