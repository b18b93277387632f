//! What hooks said, each alone and all together. Pure.

use serde_json::{Map, Value};

use super::command::{End, Ran, capped};
use super::config::OnFailure;
use super::event::Event;
use super::report::{Ended, Report};

/// What a hook says of a tool call; the stronger one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    Allow,
    Ask,
    Deny,
}

/// A decision with the reasons of all hooks that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: String,
}

/// What all hooks of one occasion said together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Of PreToolUse and PermissionRequest: deny before ask before allow.
    pub verdict: Option<Verdict>,
    /// Of the other events that can be blocked: the reasons.
    pub block: Option<String>,
    /// Everything is to stop, and why; shown to the user, never to the model.
    pub stop: Option<String>,
    /// The call's input as a hook rewrote it; of several the last in order of definition. It is checked like any other.
    pub input: Option<Value>,
    /// What joins the conversation.
    pub context: Vec<String>,
    /// What ran, in order of definition.
    pub reports: Vec<Report>,
    /// Ids of hooks that ran and must not run again in this session.
    pub once: Vec<String>,
}

impl Outcome {
    pub(super) fn add(&mut self, said: Said, report: Report) {
        match (&mut self.verdict, said.verdict) {
            (Some(before), Some(now)) if before.decision == now.decision => join(&mut before.reason, &now.reason),
            (Some(before), Some(now)) if before.decision < now.decision => *before = now,
            (before @ None, now) => *before = now,
            _ => {}
        }
        add(&mut self.block, said.block);
        add(&mut self.stop, said.stop);
        self.input = said.input.or(self.input.take());
        self.context.extend(said.context);
        self.reports.push(report);
    }
}

fn add(sum: &mut Option<String>, text: Option<String>) {
    match (sum.as_mut(), text) {
        (Some(sum), Some(text)) => join(sum, &text),
        (None, text) => *sum = text,
        _ => {}
    }
}

fn join(sum: &mut String, text: &str) {
    if !text.is_empty() {
        if !sum.is_empty() {
            sum.push('\n');
        }
        sum.push_str(text);
    }
}

/// What one hook said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    verdict: Option<Verdict>,
    block: Option<String>,
    stop: Option<String>,
    input: Option<Value>,
    context: Option<String>,
    /// For the user.
    note: Option<String>,
    quiet: bool,
    ended: Option<Ended>,
}

impl Said {
    /// This decision, with whatever else the other one says.
    fn with(self, other: Said) -> Said {
        let note = match (self.note, other.note) {
            (Some(own), Some(other)) => Some(format!("{own}\n{other}")),
            (own, other) => own.or(other),
        };
        Said { verdict: self.verdict.or(other.verdict), block: self.block, note, ..other }
    }

    /// The report about a hook that said this.
    pub(super) fn report(&self, ran: &Ran, mut report: Report) -> Report {
        report.millis = ran.millis;
        report.code = if let End::Exited(code) = ran.end { Some(code) } else { None };
        report.ended = self.ended.unwrap_or(Ended::Done);
        report.note.clone_from(&self.note);
        if !self.quiet {
            report.stdout = capped(&ran.stdout);
        }
        report.stderr = capped(&ran.stderr);
        report
    }
}

/// Reads what a hook said from how it ended and what it wrote.
pub(super) fn read(event: Event, ran: &Ran, on_failure: OnFailure) -> Said {
    let failed = |why: String, ended| {
        // To keep an agent going because a hook did not run costs requests and fixes nothing.
        let in_vain = matches!(event, Event::Stop | Event::SubagentStop) && !matches!(ran.end, End::Exited(_));
        let blocked = match on_failure {
            OnFailure::Block if !in_vain => blocked(event, why.clone()),
            _ => Said::default(),
        };
        Said { note: Some(why), ended: Some(ended), ..blocked }
    };
    let stdout = ran.stdout.trim();
    match &ran.end {
        End::Failed(why) => failed(why.clone(), Ended::Failed),
        End::TimedOut(after) => failed(format!("timed out after {} s", after.as_secs_f64()), Ended::TimedOut),
        End::Killed => failed("killed by a signal".into(), Ended::Failed),
        End::Exited(code) => match (code, written(stdout)) {
            (0 | 2, Written::Broken(why)) if on_failure == OnFailure::Block => failed(why, Ended::Failed),
            // It says more than a number can.
            (2, Written::Object(object)) => {
                let said = from_json(event, &object);
                let denied = said.verdict.as_ref().is_some_and(|verdict| verdict.decision == Decision::Deny);
                match denied || said.block.is_some() {
                    true => said,
                    false => Said { ended: Some(Ended::Blocked), ..objects(event, ran).with(said) },
                }
            }
            (_, Written::Object(object)) => from_json(event, &object),
            (0, Written::Broken(why)) => Said { note: Some(why), ..printed(event, stdout) },
            (0, Written::Text) => printed(event, stdout),
            (2, _) => Said { ended: Some(Ended::Blocked), ..objects(event, ran) },
            _ => {
                let words = capped(&ran.stderr);
                let why = if words.is_empty() { String::new() } else { format!(": {words}") };
                failed(format!("exit code {code}{why}"), Ended::Failed)
            }
        },
    }
}

/// What a hook wrote on its standard output.
enum Written {
    Object(Map<String, Value>),
    /// It begins like an object, and why it cannot be read as one.
    Broken(String),
    Text,
}

fn written(stdout: &str) -> Written {
    if !stdout.starts_with('{') {
        return Written::Text;
    }
    match serde_json::from_str::<Value>(stdout) {
        Ok(Value::Object(object)) => Written::Object(object),
        Ok(_) => Written::Text,
        Err(error) => Written::Broken(format!("its output looks like JSON but is not valid: {error}")),
    }
}

/// What is printed, where that joins the conversation.
fn printed(event: Event, stdout: &str) -> Said {
    let context = Some(capped(stdout)).filter(|text| event.prints_context() && !text.is_empty());
    Said { context, ..Said::default() }
}

/// Exit code 2: the reason is on standard error.
fn objects(event: Event, ran: &Ran) -> Said {
    let reason = capped(&ran.stderr);
    blocked(event, if reason.is_empty() { "the hook gave no reason".to_owned() } else { reason })
}

/// What a block means for the event.
fn blocked(event: Event, reason: String) -> Said {
    match event {
        Event::PreToolUse | Event::PermissionRequest | Event::PreModelSwitch => {
            Said { verdict: Some(Verdict { decision: Decision::Deny, reason }), ..Said::default() }
        }
        event if event.blocks() => Said { block: Some(reason), ..Said::default() },
        _ => Said { note: Some(reason), ..Said::default() },
    }
}

fn from_json(event: Event, object: &Map<String, Value>) -> Said {
    let text = |object: &Map<String, Value>, key: &str| object.get(key).and_then(Value::as_str).map(capped);
    let reason = text(object, "reason");
    let mut said = match object.get("decision").and_then(Value::as_str) {
        Some("block" | "deny") => {
            let reason = reason.unwrap_or_else(|| "the hook gave no reason".into());
            Said { ended: Some(Ended::Blocked), ..blocked(event, reason) }
        }
        Some("approve" | "allow") if matches!(event, Event::PreToolUse | Event::PermissionRequest) => {
            let verdict = Verdict { decision: Decision::Allow, reason: reason.unwrap_or_default() };
            Said { verdict: Some(verdict), ..Said::default() }
        }
        _ => Said::default(),
    };
    said.note = text(object, "systemMessage").filter(|text| !text.is_empty()).or(said.note);
    said.quiet = object.get("suppressOutput") == Some(&Value::Bool(true));
    if object.get("continue") == Some(&Value::Bool(false)) {
        said.stop = Some(text(object, "stopReason").unwrap_or_default());
        said.ended = Some(Ended::Blocked);
    }
    let Some(own) = object.get("hookSpecificOutput").and_then(Value::as_object) else { return said };
    let meant = own.get("hookEventName").and_then(Value::as_str);
    if let Some(other) = meant.filter(|name| *name != event.name()) {
        let note = format!("its `hookSpecificOutput` is for {other} and was ignored");
        said.note = Some(said.note.map_or_else(|| note.clone(), |before| format!("{before}\n{note}")));
        return said;
    }
    said.context = text(own, "additionalContext").filter(|text| !text.is_empty());
    match event {
        Event::PreToolUse | Event::PreModelSwitch => {
            let decision = match own.get("permissionDecision").and_then(Value::as_str) {
                Some("allow") => Some(Decision::Allow),
                Some("ask") => Some(Decision::Ask),
                Some("deny") => Some(Decision::Deny),
                _ => None,
            };
            let reason = text(own, "permissionDecisionReason").unwrap_or_default();
            said.verdict = decision.map(|decision| Verdict { decision, reason }).or(said.verdict);
            said.input = own.get("updatedInput").filter(|input| input.is_object()).cloned();
        }
        Event::PermissionRequest => {
            let Some(answer) = own.get("decision").and_then(Value::as_object) else { return said };
            let decision = match answer.get("behavior").and_then(Value::as_str) {
                Some("allow") => Some(Decision::Allow),
                Some("deny") => Some(Decision::Deny),
                _ => None,
            };
            let reason = text(answer, "message").unwrap_or_default();
            if decision == Some(Decision::Deny) && answer.get("interrupt") == Some(&Value::Bool(true)) {
                said.stop = Some(reason.clone());
            }
            said.verdict = decision.map(|decision| Verdict { decision, reason }).or(said.verdict);
            said.input = answer.get("updatedInput").filter(|input| input.is_object()).cloned();
        }
        _ => {}
    }
    if said.verdict.as_ref().is_some_and(|verdict| verdict.decision == Decision::Deny) {
        said.ended = Some(Ended::Blocked);
    }
    said
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::config::Origin;
    use super::*;

    fn read(event: Event, ran: &Ran) -> Said {
        super::read(event, ran, OnFailure::Continue)
    }

    fn ran(code: i32, stdout: &str, stderr: &str) -> Ran {
        Ran { end: End::Exited(code), stdout: stdout.into(), stderr: stderr.into(), millis: 7 }
    }

    /// Everything that is not as it is when a hook says nothing.
    fn shown(said: &Said) -> String {
        let mut parts = Vec::new();
        parts.extend(said.verdict.as_ref().map(|verdict| format!("{:?} {:?}", verdict.decision, verdict.reason)));
        parts.extend(said.block.as_ref().map(|text| format!("block {text:?}")));
        parts.extend(said.stop.as_ref().map(|text| format!("stop {text:?}")));
        parts.extend(said.input.as_ref().map(|input| format!("input {input}")));
        parts.extend(said.context.as_ref().map(|text| format!("context {text:?}")));
        parts.extend(said.note.as_ref().map(|text| format!("note {text:?}")));
        parts.extend(said.quiet.then(|| "quiet".to_owned()));
        parts.extend(said.ended.as_ref().map(|ended| format!("{ended:?}")));
        parts.join(" · ")
    }

    #[test]
    fn exit_codes_speak() {
        use Event::*;
        let check = |event: Event, ran: Ran, want: &str| assert_eq!(shown(&read(event, &ran)), want, "{event} {ran:?}");
        check(PreToolUse, ran(0, "fine", "noise"), "");
        check(PreToolUse, ran(2, "x", " no\n"), "Deny \"no\" · Blocked");
        check(PreToolUse, ran(2, "", ""), "Deny \"the hook gave no reason\" · Blocked");
        check(PermissionRequest, ran(2, "", "no"), "Deny \"no\" · Blocked");
        for event in [PostToolUse, PostToolUseFailure, UserPromptSubmit, PreCompact, Stop, SubagentStop] {
            check(event, ran(2, "", "no"), "block \"no\" · Blocked");
        }
        for event in [SessionStart, SessionEnd, PostCompact, SubagentStart, Notification] {
            check(event, ran(2, "", "no"), "note \"no\" · Blocked");
        }
        check(Stop, ran(1, "", "broken\n"), "note \"exit code 1: broken\" · Failed");
        check(Stop, ran(127, "", ""), "note \"exit code 127\" · Failed");
        check(UserPromptSubmit, ran(0, " more \n", ""), "context \"more\"");
        check(SessionStart, ran(0, "more", ""), "context \"more\"");
        check(SessionStart, ran(0, "\n", ""), "");
        let late = Ran { end: End::TimedOut(Duration::from_millis(500)), ..ran(0, "{}", "") };
        check(Stop, late, "note \"timed out after 0.5 s\" · TimedOut");
        check(Stop, Ran { end: End::Killed, ..ran(0, "", "") }, "note \"killed by a signal\" · Failed");
        check(Stop, Ran { end: End::Failed("no bash".into()), ..ran(0, "", "") }, "note \"no bash\" · Failed");
    }

    #[test]
    fn json_speaks() {
        use Event::*;
        let check =
            |event: Event, json: &str, want: &str| assert_eq!(shown(&read(event, &ran(0, json, ""))), want, "{json}");
        check(PreToolUse, "{}", "");
        check(PreToolUse, "[1]", "");
        check(
            PreToolUse,
            "{\"a\":",
            "note \"its output looks like JSON but is not valid: EOF while parsing a value at line 1 column 5\"",
        );
        check(
            UserPromptSubmit,
            "{oops",
            "context \"{oops\" · note \"its output looks like JSON but is not valid: key must be a string at line 1 column 2\"",
        );
        check(PreToolUse, r#"{"decision": "approve", "reason": "ok"}"#, "Allow \"ok\"");
        check(PreToolUse, r#"{"decision": "block", "reason": "no"}"#, "Deny \"no\" · Blocked");
        check(Stop, r#"{"decision": "block"}"#, "block \"the hook gave no reason\" · Blocked");
        check(Stop, r#"{"decision": "approve"}"#, "");
        check(SessionStart, r#"{"decision": "block", "reason": "no"}"#, "note \"no\" · Blocked");
        check(Stop, r#"{"continue": true, "suppressOutput": true, "systemMessage": "hi"}"#, "note \"hi\" · quiet");
        check(Stop, r#"{"continue": false, "stopReason": "enough"}"#, "stop \"enough\" · Blocked");
        check(Stop, r#"{"continue": "false", "systemMessage": 3}"#, "");
        let own =
            |event: &str, rest: &str| format!(r#"{{"hookSpecificOutput": {{"hookEventName": "{event}"{rest}}}}}"#);
        check(
            PreToolUse,
            &own("PreToolUse", r#", "permissionDecision": "allow", "updatedInput": {"a": 1}"#),
            "Allow \"\" · input {\"a\":1}",
        );
        check(
            PreToolUse,
            &own("PreToolUse", r#", "permissionDecision": "ask", "permissionDecisionReason": "sure?""#),
            "Ask \"sure?\"",
        );
        check(PreToolUse, &own("PreToolUse", r#", "permissionDecision": "deny""#), "Deny \"\" · Blocked");
        check(PreToolUse, &own("PreToolUse", r#", "permissionDecision": "maybe", "updatedInput": "ls""#), "");
        check(
            PreToolUse,
            &own("Stop", r#", "permissionDecision": "deny""#),
            "note \"its `hookSpecificOutput` is for Stop and was ignored\"",
        );
        check(
            PermissionRequest,
            &own("PermissionRequest", r#", "decision": {"behavior": "allow", "updatedInput": {}}"#),
            "Allow \"\" · input {}",
        );
        check(
            PermissionRequest,
            &own("PermissionRequest", r#", "decision": {"behavior": "deny", "message": "no", "interrupt": true}"#),
            "Deny \"no\" · stop \"no\" · Blocked",
        );
        check(PostToolUse, &own("PostToolUse", r#", "additionalContext": "lint: ok""#), "context \"lint: ok\"");
        check(
            UserPromptSubmit,
            &own("UserPromptSubmit", r#", "additionalContext": "it is Monday""#),
            "context \"it is Monday\"",
        );
    }

    #[test]
    fn json_speaks_whatever_the_exit_code() {
        use Event::*;
        let check = |event: Event, code, json: &str, want: &str| {
            assert_eq!(shown(&read(event, &ran(code, json, "words"))), want, "{code} {json}");
        };
        check(PreToolUse, 1, r#"{"decision": "approve", "reason": "ok"}"#, "Allow \"ok\"");
        check(Stop, 3, r#"{"decision": "block", "reason": "no"}"#, "block \"no\" · Blocked");
        check(Stop, 1, r#"{"systemMessage": "hi"}"#, "note \"hi\"");
        check(Stop, 1, "{", "note \"exit code 1: words\" · Failed");
        check(PreToolUse, 2, r#"{"decision": "approve"}"#, "Deny \"words\" · Blocked");
        check(PreToolUse, 2, r#"{"decision": "block", "reason": "no"}"#, "Deny \"no\" · Blocked");
        check(
            Stop,
            2,
            r#"{"systemMessage": "hi", "continue": false}"#,
            "block \"words\" · stop \"\" · note \"hi\" · Blocked",
        );
        check(Stop, 2, "{", "block \"words\" · Blocked");
        check(SessionStart, 2, r#"{"systemMessage": "hi"}"#, "note \"words\\nhi\" · Blocked");
    }

    #[test]
    fn a_failure_blocks_where_the_hook_says_so() {
        use Event::*;
        let check = |event: Event, ran: Ran, want: &str| {
            assert_eq!(shown(&super::read(event, &ran, OnFailure::Block)), want, "{event} {ran:?}");
        };
        let ended = |end| Ran { end, ..ran(0, "", "") };
        // What an agent that stops cannot fix does not keep it going.
        check(Stop, ended(End::Failed("no server".into())), "note \"no server\" · Failed");
        check(SubagentStop, ended(End::Killed), "note \"killed by a signal\" · Failed");
        check(
            PreToolUse,
            ended(End::Failed("no such host".into())),
            "Deny \"no such host\" · note \"no such host\" · Failed",
        );
        check(PreToolUse, ended(End::Killed), "Deny \"killed by a signal\" · note \"killed by a signal\" · Failed");
        let late = "timed out after 1 s";
        check(
            UserPromptSubmit,
            ended(End::TimedOut(Duration::from_secs(1))),
            &format!("block \"{late}\" · note \"{late}\" · TimedOut"),
        );
        check(Stop, ran(1, "", ""), "block \"exit code 1\" · note \"exit code 1\" · Failed");
        check(Stop, ran(1, r#"{"systemMessage": "hi"}"#, ""), "note \"hi\"");
        let broken = "its output looks like JSON but is not valid: EOF while parsing an object at line 1 column 1";
        check(Stop, ran(0, "{", ""), &format!("block \"{broken}\" · note \"{broken}\" · Failed"));
        check(Stop, ran(0, "fine", ""), "");
        check(Stop, ran(2, "", "no"), "block \"no\" · Blocked");
    }

    #[test]
    fn the_stronger_word_counts() {
        let event = Event::PreToolUse;
        let allow = r#"{"decision": "approve", "reason": "a"}"#;
        let ask = r#"{"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": {"x": 1}}}"#;
        let check = |all: &[Ran], want: Option<(Decision, &str)>| {
            let mut outcome = Outcome::default();
            for ran in all {
                let said = read(event, ran);
                let report = said.report(ran, Report::new(event, "x", "c", Origin::CommandLine));
                outcome.add(said, report);
            }
            assert_eq!(outcome.verdict.as_ref().map(|verdict| (verdict.decision, &*verdict.reason)), want);
            assert_eq!(outcome.reports.len(), all.len());
            outcome
        };
        check(&[], None);
        check(&[ran(0, "", ""), ran(0, allow, "")], Some((Decision::Allow, "a")));
        let outcome = check(&[ran(0, allow, ""), ran(0, ask, "")], Some((Decision::Ask, "")));
        assert_eq!(outcome.input.unwrap().to_string(), r#"{"x":1}"#);
        check(&[ran(2, "", "one"), ran(0, allow, ""), ran(2, "", "two")], Some((Decision::Deny, "one\ntwo")));
    }

    #[test]
    fn long_texts_are_cut_and_rewritten_input_is_not() {
        let long = "x".repeat(20_000);
        let json = format!(
            r#"{{"hookSpecificOutput": {{"additionalContext": "{long}", "updatedInput": {{"content": "{long}"}}}}}}"#
        );
        let said = read(Event::PreToolUse, &ran(0, &json, ""));
        assert!(said.context.as_ref().unwrap().len() < 10_100);
        assert_eq!(said.input.as_ref().unwrap()["content"], long);
        let said = read(Event::PreToolUse, &ran(2, "", &long));
        assert!(said.verdict.as_ref().unwrap().reason.len() < 10_100);
        let quiet = ran(0, r#"{"suppressOutput": true}"#, "e");
        let report =
            read(Event::Stop, &quiet).report(&quiet, Report::new(Event::Stop, "Stop", "c", Origin::CommandLine));
        assert_eq!((report.stdout.as_str(), report.stderr.as_str(), report.millis), ("", "e", 7));
    }
}
