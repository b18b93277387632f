//! The calls that the model has made, and where their results stand.

use std::collections::HashMap;

use super::items::Estimate;
use crate::message::CallId;

/// One call of the projection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// Item and block that hold the result.
    pub(super) result: Option<(usize, usize)>,
    /// The result reads as a marker.
    pub(super) replaced: bool,
    /// Name of the tool.
    pub(super) tool: String,
    /// Estimate of the result as the model sees it.
    pub(super) tokens: Estimate,
}

/// All of them, in the order in which they were made; found by id, or without looking at ids by their number.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Calls {
    list: Vec<Call>,
    numbers: HashMap<CallId, usize>,
    /// Calls whose results read as they came, in the order of the results.
    whole: Vec<usize>,
}

impl Calls {
    /// Adds a call. False: its id was used before.
    pub(super) fn make(&mut self, id: &CallId, tool: &str) -> bool {
        let number = self.list.len();
        if self.numbers.contains_key(id) {
            return false;
        }
        self.numbers.insert(id.clone(), number);
        self.list.push(Call { result: None, replaced: false, tool: tool.to_owned(), tokens: Estimate::default() });
        true
    }

    /// Takes note of where a call is answered. False: nobody made it, or it is answered.
    pub(super) fn answer(&mut self, id: &CallId, at: (usize, usize)) -> bool {
        let Some(number) = self.numbers.get(id).copied() else { return false };
        let call = &mut self.list[number];
        if call.result.is_some() {
            return false;
        }
        call.result = Some(at);
        self.whole.push(number);
        true
    }

    pub(super) fn get(&self, id: &CallId) -> Option<&Call> {
        self.numbers.get(id).map(|number| &self.list[*number])
    }

    pub(super) fn get_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.numbers.get(id).map(|number| &mut self.list[*number])
    }

    /// Those whose results read as they came, in the order of the results.
    pub(super) fn whole(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.whole.iter().map(|number| &self.list[*number])
    }

    /// Takes results that were replaced off that list: once for all of an entry.
    pub(super) fn forget_replaced(&mut self) {
        let Calls { list, whole, .. } = self;
        whole.retain(|number| !list[*number].replaced);
    }
}
