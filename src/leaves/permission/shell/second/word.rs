//! The second reading of words, quotes, expansions and redirections.

use super::super::guard;
use super::{Done, Kind, Second, ends_word, name_length};

impl Second<'_> {
    pub(super) fn redirect(&mut self) -> Result<bool, String> {
        let bytes = &self.text.as_bytes()[self.at..];
        let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
        const OPERATORS: [&str; 12] = ["<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">", "&>>", "&>"];
        let operator = OPERATORS.into_iter().find(|operator| bytes[digits..].starts_with(operator.as_bytes()));
        let Some(operator) = operator.filter(|operator| digits == 0 || !operator.starts_with('&')) else {
            return Ok(false);
        };
        let end = digits + operator.len();
        if bytes.get(end) == Some(&b'(') {
            // `<(…)` is a word.
            return if digits == 0 && operator.len() == 1 { Ok(false) } else { Err("an odd redirection".into()) };
        }
        self.at += end;
        self.blanks();
        let start = self.at;
        self.word(Kind::Target)?;
        if matches!(self.byte(), Some(b'<' | b'>')) {
            return Err("two redirections that join".into());
        }
        let target = &self.text[start..self.at];
        match operator {
            "<<" | "<<-" => {
                let quoted = ['\'', '"'].iter().find_map(|quote| target.strip_prefix(*quote)?.strip_suffix(*quote));
                let name = quoted.unwrap_or(target);
                if name.is_empty() || name_length(name) < name.len() {
                    return Err("an odd here-document delimiter".into());
                }
                self.pending.push((name, operator == "<<-", quoted.is_some()));
            }
            // Closes a descriptor.
            "<&" | ">&" if target == "-" => {
                self.tokens.pop();
            }
            _ => {}
        }
        Ok(true)
    }

    pub(super) fn word(&mut self, kind: Kind) -> Done {
        let start = self.at;
        if self.next_is("<(") || self.next_is(">(") {
            self.at += 1;
            self.substitution()?;
            if self.byte().is_some_and(|byte| !ends_word(byte)) {
                return Err("a process substitution within a word".into());
            }
        }
        while let Some(byte) = self.byte().filter(|byte| !ends_word(*byte)) {
            match byte {
                b'\\' => self.escaped()?,
                b'\'' => {
                    let quoted = self.rest()[1..].split_once('\'').ok_or("a quote without an end")?.0;
                    self.lines_in(quoted.contains('\n'))?;
                    self.at += quoted.len() + 2;
                }
                b'"' => self.double_quoted()?,
                b'$' if self.next_is("$'") || self.next_is("$\"") => {
                    return Err("a $'…' or $\"…\" string".into());
                }
                b'$' => self.dollar()?,
                b'`' => return Err("a backtick".into()),
                _ => self.at += 1,
            }
        }
        if self.at == start {
            return Err("a word is missing".into());
        }
        let joins = self.text[start..self.at].starts_with('{') && matches!(self.byte(), Some(b'<' | b'>'));
        if joins || self.byte() == Some(b'(') && kind != Kind::Name {
            return Err("a word that joins what is behind it".into());
        }
        self.token(start, kind)
    }

    /// A newline that is text, which would hide where a here-document starts.
    fn lines_in(&self, has: bool) -> Done {
        if has && !self.pending.is_empty() {
            return Err("a here-document whose start is unclear".into());
        }
        Ok(())
    }

    fn escaped(&mut self) -> Done {
        let escaped = self.rest()[1..].chars().next().ok_or("a backslash at the end")?;
        if escaped == '\n' {
            return Err("a word continued on the next line".into());
        }
        self.at += 1 + escaped.len_utf8();
        Ok(())
    }

    fn double_quoted(&mut self) -> Done {
        self.at += 1;
        loop {
            match self.byte().ok_or("a quote without an end")? {
                b'"' => break,
                b'\\' => self.escaped()?,
                b'`' => return Err("a backtick".into()),
                b'$' => self.dollar()?,
                byte => {
                    self.lines_in(byte == b'\n')?;
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(())
    }

    fn dollar(&mut self) -> Done {
        self.at += 1;
        let rest = &self.text.as_bytes()[self.at..];
        match rest.first() {
            Some(b'(') if rest.starts_with(b"((") => {
                let inner = rest[2..].iter().position(|b| !(b.is_ascii_alphanumeric() || b"_ +-*/%".contains(b)));
                let end = inner.filter(|end| rest[2 + end..].starts_with(b"))")).ok_or("arithmetic")?;
                if !guard::counts(&self.text[self.at + 2..self.at + 2 + end], self.text) {
                    return Err("arithmetic".into());
                }
                self.at += end + 4;
            }
            Some(b'(') => self.substitution()?,
            Some(b'{') => {
                let inner =
                    rest[1..].iter().position(|b| !(b.is_ascii_alphanumeric() || b"_ ./*-:,#%^@?+=![]".contains(b)));
                let end =
                    inner.filter(|end| rest[1 + end] == b'}').ok_or("an expansion that may do more than expand")?;
                self.at += end + 2;
            }
            Some(b'[') => return Err("arithmetic".into()),
            Some(b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-' | b'0'..=b'9') => self.at += 1,
            _ => self.at += name_length(self.rest()),
        }
        Ok(())
    }

    /// From its parenthesis to behind the other.
    fn substitution(&mut self) -> Done {
        self.lines_in(true)?;
        self.deeper(|line| {
            line.at += 1;
            line.list()?;
            line.lines_in(true)?;
            line.expect(")")
        })
    }
}
