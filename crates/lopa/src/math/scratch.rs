//! Workspaces that threads keep and lend: ten thousand nodes need no more of them than there are
//! threads, and what all nodes use in turn stays in the cache.

use std::any::Any;
use std::cell::RefCell;

thread_local! {
    static KEPT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with this thread's workspace of a type; what it holds is of no meaning.
pub fn lent<W: Default + 'static>(f: impl FnOnce(&mut W)) {
    let kept = KEPT.with_borrow_mut(|kept| {
        let at = kept.iter().position(|one| one.is::<W>());
        at.map(|at| kept.swap_remove(at))
    });
    let mut one = kept.unwrap_or_else(|| Box::new(W::default()));
    f(one.downcast_mut().expect("it is of this type"));
    KEPT.with_borrow_mut(|kept| kept.push(one));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_kept_and_lent_to_one_at_a_time() {
        lent(|outer: &mut Vec<u8>| {
            outer.push(1);
            lent(|inner: &mut Vec<u8>| assert!(inner.is_empty(), "lent twice"));
            lent(|other: &mut Vec<u16>| assert!(other.is_empty(), "of another type"));
        });
        // The one that was given back last comes first or last: both are kept.
        let mut lengths = Vec::new();
        lent(|a: &mut Vec<u8>| {
            lengths.push(a.len());
            lent(|b: &mut Vec<u8>| lengths.push(b.len()));
        });
        lengths.sort_unstable();
        assert_eq!(lengths, [0, 1]);
    }
}
