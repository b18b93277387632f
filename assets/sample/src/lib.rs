//! Splits a list into pages.

/// How many pages it takes to show all items.
pub fn page_count(items: usize, per_page: usize) -> usize {
    (items + per_page - 1) / per_page
}

/// The items of one page; pages count from 0.
pub fn page<T>(items: &[T], number: usize, per_page: usize) -> &[T] {
    let start = (number * per_page).min(items.len());
    let end = (start + per_page - 1).min(items.len());
    &items[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_last_page_that_is_not_full() {
        assert_eq!(page_count(7, 3), 3);
    }

    #[test]
    fn a_page_holds_as_many_items_as_asked_for() {
        assert_eq!(page(&[1, 2, 3, 4, 5], 0, 2), &[1, 2]);
        assert_eq!(page(&[1, 2, 3, 4, 5], 2, 2), &[5]);
    }
}
