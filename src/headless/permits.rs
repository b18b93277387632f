//! Questions about permission as the SDKs know them: `can_use_tool`, and what its answers mean.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::message::CallId;
use crate::permission::Mode;
use crate::protocol::{Answer, Approval, Ask, AskId, Choices, GrantScope, Op, Question};
use crate::stdx::outside;

/// The last call of each tool.
pub(super) type Calls = HashMap<String, CallId>;

/// What the tool is called that a question is about; none where no call is asked about.
fn tool(question: &Question) -> Option<&str> {
    Some(match question {
        Question::Permission { tool, .. } => tool,
        Question::Connect { .. } => "SandboxNetworkAccess",
        Question::EnterPlan { .. } => "EnterPlanMode",
        Question::Plan { .. } => "ExitPlanMode",
        Question::Choices { .. } => "AskUserQuestion",
        Question::Trust { .. }
        | Question::LocalServer { .. }
        | Question::Repeated { .. }
        | Question::Unrecorded { .. }
        | Question::Locked { .. }
        | Question::Import { .. } => return None,
    })
}

/// The call that a question is about: its own, or the last one of its tool.
pub(super) fn call_of(question: &Question, calls: &Calls) -> String {
    match question {
        Question::Permission { call, .. } | Question::Connect { call, .. } => call.to_string(),
        other => tool(other).and_then(|tool| calls.get(tool)).map(CallId::to_string).unwrap_or_default(),
    }
}

/// What a call was asked to do, as the SDKs are told.
pub(super) fn input(question: &Question) -> Value {
    match question {
        Question::Permission { input, .. } => input.clone(),
        Question::Connect { command, place, .. } => {
            let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
            json!({ "host": host, "place": place, "command": command })
        }
        Question::EnterPlan { reason } => reason.as_ref().map_or(json!({}), |reason| json!({ "reason": reason })),
        Question::Plan { plan, path } => json!({ "plan": plan, "planFilePath": path }),
        Question::Choices { questions } => json!({ "questions": questions.iter().map(choices).collect::<Vec<_>>() }),
        _ => json!({}),
    }
}

fn choices(asked: &Choices) -> Value {
    json!({
        "question": asked.question,
        "header": asked.header,
        "options": asked.options,
        "multiSelect": asked.multi,
    })
}

/// The request for a question; none where the SDKs have no such question.
pub(super) fn request(ask: &Ask, call: impl FnOnce(&Question) -> String) -> Option<Value> {
    let question = &ask.question;
    let tool = tool(question)?;
    let mut request = json!({
        "subtype": "can_use_tool",
        "tool_name": tool,
        "input": input(question),
        "tool_use_id": call(question),
    });
    if let Question::Permission { title, reasons, suggestions, all_edits, session_only, .. } = question {
        if !reasons.is_empty() {
            request["decision_reason"] = reasons.join("; ").into();
            request["decision_reason_type"] = "other".into();
        }
        if !title.is_empty() {
            request["description"] = title.as_str().into();
        }
        let mut offered = Vec::new();
        if !suggestions.is_empty() {
            let destination = if *session_only { "session" } else { "localSettings" };
            let rules: Vec<Value> = suggestions.iter().map(|rule| split(rule)).collect();
            offered
                .push(json!({ "type": "addRules", "rules": rules, "behavior": "allow", "destination": destination }));
        }
        if *all_edits {
            offered.push(json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" }));
        }
        if !offered.is_empty() {
            request["permission_suggestions"] = offered.into();
        }
    }
    match question {
        Question::Connect { reasons, suggestions, .. } => {
            request["decision_reason"] = reasons.join("; ").into();
            request["decision_reason_type"] = "sandboxOverride".into();
            let rules: Vec<Value> = suggestions.iter().map(|rule| split(rule)).collect();
            if !rules.is_empty() {
                request["permission_suggestions"] = json!([
                    { "type": "addRules", "rules": rules, "behavior": "allow", "destination": "localSettings" }
                ]);
            }
        }
        Question::Plan { .. } | Question::Choices { .. } => request["requires_user_interaction"] = true.into(),
        _ => {}
    }
    if let Some(asker) = &ask.asker {
        request["agent_id"] = asker.agent.as_str().into();
    }
    Some(request)
}

/// A rule in two parts: `Bash(git log:*)`.
fn split(rule: &str) -> Value {
    match rule.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?))) {
        Some((tool, content)) => json!({ "toolName": tool, "ruleContent": content }),
        None => json!({ "toolName": rule }),
    }
}

fn rule(given: &Value) -> Option<String> {
    let tool = given["toolName"].as_str()?;
    Some(match given["ruleContent"].as_str() {
        Some(content) => format!("{tool}({content})"),
        None => tool.to_owned(),
    })
}

/// What an answer makes the engine do; and the call that was denied, for the result.
pub(super) fn answered(
    id: AskId,
    (question, call): (&Question, &str),
    answer: outside::Answer,
) -> Vec<(Op, Option<Value>)> {
    let denied = |answer: Answer| {
        let denial = json!({ "tool_name": tool(question), "tool_use_id": call, "tool_input": input(question) });
        (Op::Answer { id, answer }, Some(denial))
    };
    let answer = match answer {
        Ok(answer) => answer,
        // The program failed: nobody has agreed.
        Err(why) => {
            return vec![denied(Answer::Nobody { told: format!("Permission could not be asked for: {why}") })];
        }
    };
    let words = answer["message"].as_str().map(str::to_owned).filter(|words| !words.trim().is_empty());
    match answer["behavior"].as_str() {
        Some("allow") => allowed(id, question, &answer),
        Some("deny") if answer["interrupt"] == true => {
            let feedback = Some(words.unwrap_or_else(|| "Stop.".to_owned()));
            vec![denied(Answer::No { feedback }), (Op::Interrupt, None)]
        }
        Some("deny") => {
            let told = words.unwrap_or_else(|| "The user denied this call.".to_owned());
            vec![denied(match question {
                // What is to be done instead.
                Question::Plan { .. } | Question::Choices { .. } => Answer::No { feedback: Some(told) },
                _ => Answer::Nobody { told },
            })]
        }
        _ => vec![denied(Answer::Nobody { told: "The answer to a question about permission was not valid.".into() })],
    }
}

fn allowed(id: AskId, question: &Question, answer: &Value) -> Vec<(Op, Option<Value>)> {
    let updates = answer["updatedPermissions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |kind: &'static str| updates.iter().filter(move |update| update["type"] == kind);
    let mut ops = Vec::new();
    for update in of("setMode") {
        if let Ok(mode) = serde_json::from_value::<Mode>(update["mode"].clone()) {
            ops.push((Op::SetMode { mode }, None));
        }
    }
    let mut grants = Vec::new();
    for update in of("addRules").chain(of("replaceRules")) {
        let rules: Vec<String> = update["rules"].as_array().into_iter().flatten().filter_map(rule).collect();
        let scope = match update["destination"].as_str() {
            Some("userSettings") => GrantScope::User,
            Some("projectSettings" | "localSettings") => GrantScope::Project,
            _ => GrantScope::Session,
        };
        match update["behavior"].as_str() {
            Some("allow") => grants.push((rules, scope)),
            // A rule that denies from now on, or asks.
            _ => tracing::warn!(?rules, "only rules that allow are taken from an answer"),
        }
    }
    let input = answer.get("updatedInput").filter(|input| input.is_object());
    let answer = match question {
        Question::Choices { questions } => Answer::Chosen { answers: chosen(questions, input) },
        Question::Plan { .. } => {
            let edits =
                of("setMode").any(|update| update["mode"] == "acceptEdits" || update["mode"] == "bypassPermissions");
            Answer::Approve { how: if edits { Approval::AcceptEdits } else { Approval::AskEach } }
        }
        _ => {
            let yes = match grants.len() {
                0 => Answer::Yes,
                _ => {
                    let scope = grants[0].1;
                    Answer::Always { rules: grants.into_iter().flat_map(|(rules, _)| rules).collect(), scope }
                }
            };
            match input {
                Some(input) if *input != self::input(question) && matches!(question, Question::Permission { .. }) => {
                    Answer::Changed { input: input.clone(), then: Box::new(yes) }
                }
                _ => yes,
            }
        }
    };
    ops.push((Op::Answer { id, answer }, None));
    ops
}

/// The answers to questions of the model's own: `{"answers": {"<question>": "<label>, <label>"}}`.
fn chosen(questions: &[Choices], input: Option<&Value>) -> Vec<Vec<String>> {
    let none = Map::new();
    let answers = input.and_then(|input| input["answers"].as_object()).unwrap_or(&none);
    let labels = |asked: &Choices| match answers.get(&asked.question).or_else(|| answers.get(&asked.header)) {
        Some(Value::String(text)) => {
            let known = |label: &str| asked.options.iter().any(|option| option.label == label);
            match asked.multi && !known(text) {
                true => text.split(',').map(|label| label.trim().to_owned()).collect(),
                false => vec![text.clone()],
            }
        }
        Some(Value::Array(labels)) => labels.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    questions.iter().map(labels).collect()
}
