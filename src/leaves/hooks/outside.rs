//! Asks the program that runs us what a hook of its own says, and reads the answer as what a command printed.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::command::{End, Ran};
use crate::stdx::outside::{Call, Outside};

/// Asks, for as long as the hook may take. What is not an object is a failure, as is what the program calls one.
pub(super) async fn ask(name: &str, timeout: Duration, input: &[u8], outside: Option<&Outside>) -> Ran {
    let started = Instant::now();
    let input: Value = serde_json::from_slice(input).unwrap_or_default();
    let call = input["tool_use_id"].as_str().map(str::to_owned);
    let answer = async {
        let outside = outside.ok_or("no program runs cocode that could answer")?;
        outside.call(Call::Hook { hook: name.to_owned(), input, call }).await
    };
    let answer = tokio::time::timeout(timeout, answer).await;
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let ended = |end, stdout: String| Ran { end, stdout, stderr: String::new(), millis };
    match answer {
        Ok(Ok(Value::Null)) => ended(End::Exited(0), String::new()),
        Ok(Ok(answer @ Value::Object(_))) => ended(End::Exited(0), answer.to_string()),
        Ok(Ok(_)) => ended(End::Failed("the answer is not a JSON object".to_owned()), String::new()),
        Ok(Err(why)) => ended(End::Failed(why), String::new()),
        Err(_) => ended(End::TimedOut(timeout), String::new()),
    }
}
