//! Settings of a thread that guards change: each guard ends its own change, in whatever order they end.

/// The changes of a thread's settings that have not ended, in the order in which they began, each with the value before it.
///
/// A guard that is dropped before a later one of the same setting must not end that one, nor may its own change come back when that one
/// ends:
///
/// ```
/// let (mut held, mut on) = (oflow_base::GuardStack::new(), true);
/// let first = held.begin(std::mem::replace(&mut on, false));
/// let second = held.begin(std::mem::replace(&mut on, false));
/// assert_eq!(held.end(first, |_, _| true), None); // the second is in force
/// on = held.end(second, |_, _| true).unwrap();
/// assert!(on);
/// ```
pub struct GuardStack<T> {
    next: u64,
    before: Vec<(u64, T)>,
}

impl<T> GuardStack<T> {
    /// A stack of guards without entries.
    pub const fn new() -> GuardStack<T> {
        GuardStack { next: 0, before: Vec::new() }
    }

    /// Begins a change. `before` is the value that was in force. Returns the number of the change, by which it is ended.
    #[inline]
    pub fn begin(&mut self, before: T) -> u64 {
        self.next += 1;
        self.before.push((self.next, before));
        self.next
    }

    /// Ends a change, and returns the value that is in force now. `None` if the change has ended already, or if a later one of the
    /// `same` setting is in force: the value before the ended change is then the one before the later change.
    #[inline]
    pub fn end(&mut self, number: u64, same: impl Fn(&T, &T) -> bool) -> Option<T> {
        // Mostly the last.
        let at = self.before.iter().rposition(|(n, _)| *n == number)?;
        let (_, before) = self.before.remove(at);
        match self.before[at..].iter_mut().find(|(_, later)| same(&before, later)) {
            Some((_, later)) => {
                *later = before;
                None
            }
            None => Some(before),
        }
    }
}

impl<T> Default for GuardStack<T> {
    fn default() -> GuardStack<T> {
        GuardStack::new()
    }
}
