//! Scratch memory per thread: ten thousand nodes need only one workspace per thread, which stays in
//! the cache.

use std::any::Any;
use std::cell::RefCell;

thread_local! {
    static FREE: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with this thread's workspace of a type; its content is arbitrary.
pub fn lent<W: Default + 'static>(f: impl FnOnce(&mut W)) {
    let found = FREE.with_borrow_mut(|free| {
        let at = free.iter().position(|workspace| workspace.is::<W>());
        at.map(|at| free.swap_remove(at))
    });
    let mut workspace = found.unwrap_or_else(|| Box::new(W::default()));
    f(workspace.downcast_mut().expect("a workspace of this type"));
    FREE.with_borrow_mut(|free| free.push(workspace));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_are_reused_and_never_shared() {
        lent(|outer: &mut Vec<u8>| {
            outer.push(1);
            lent(|inner: &mut Vec<u8>| assert!(inner.is_empty(), "lent twice"));
            lent(|other: &mut Vec<u16>| assert!(other.is_empty(), "of another type"));
        });
        // Both are reused, in either order.
        let mut lengths = Vec::new();
        lent(|a: &mut Vec<u8>| {
            lengths.push(a.len());
            lent(|b: &mut Vec<u8>| lengths.push(b.len()));
        });
        lengths.sort_unstable();
        assert_eq!(lengths, [0, 1]);
    }
}
