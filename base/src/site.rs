//! Where in the user's program a call stands: its line, and the name scope that it was reached in.

use crate::guard_stack::GuardStack;
use crate::intern::FixedMap;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{LazyLock, RwLock};

/// A line of the user's program. It is a value, and not only a `#[track_caller]` location, because calls by name, from plug-ins
/// or from other languages pass their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSite {
    /// Source file of the call.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
    /// The name scope in which the line was reached.
    pub scope: NameScope,
}

impl CallSite {
    /// A line, in no name scope.
    pub const fn at(file: &'static str, line: u32) -> CallSite {
        CallSite { file, line, scope: NameScope(0) }
    }

    /// A line, in the name scope that this thread is in: for calls from another language, which know their own line.
    pub fn in_scope(file: &'static str, line: u32) -> CallSite {
        CallSite { file, line, scope: NAME.get() }
    }

    /// A line as texts tell it: its file, and the path of its name scope. Each text is kept once, as those of [`name_scope`] are.
    pub fn told(file: &str, line: u32, scope: &str) -> CallSite {
        CallSite { file: NameScope::of(file).path(), line, scope: NameScope::of(scope) }
    }

    /// Returns the line that called the current function, which must be `#[track_caller]`. Inside a [`CallSite::scope`] of this
    /// thread it is the line of the scope.
    #[track_caller]
    #[inline]
    pub fn here() -> CallSite {
        match SITE.get() {
            Some(site) => site,
            None => {
                let l = Location::caller();
                CallSite { file: l.file(), line: l.line(), scope: NAME.get() }
            }
        }
    }

    /// Makes [`CallSite::here`] return this line on this thread until the guard is dropped. A function that calls other functions
    /// for its caller opens a scope, so that errors name the caller's line and none inside.
    pub fn scope(self) -> SiteGuard {
        let before = SITE.replace(Some(self));
        SiteGuard { number: SITES.with_borrow_mut(|held| held.begin(before)), _not_send: PhantomData }
    }

    /// Runs the body of a function that calls others for its caller: comm records, gradients and errors name this line, also errors that
    /// the body makes itself.
    ///
    /// ```
    /// use oflow_base::{CallSite, Error, Result};
    /// #[track_caller]
    /// fn half(n: u32) -> Result<u32> {
    ///     CallSite::here().run(|| if n % 2 == 0 { Ok(n / 2) } else { Err(Error::argument(format!("{n} is odd"))) })
    /// }
    /// let line = line!() + 1;
    /// let error = half(3).unwrap_err();
    /// assert_eq!(error.site().map(|site| site.line), Some(line));
    /// ```
    ///
    /// # Errors
    /// Those of the body.
    pub fn run<R>(self, body: impl FnOnce() -> crate::Result<R>) -> crate::Result<R> {
        let _scope = self.scope();
        body().map_err(|e| e.at(self))
    }
}

thread_local! {
    static SITE: Cell<Option<CallSite>> = const { Cell::new(None) };
    static NAME: Cell<NameScope> = const { Cell::new(NameScope(0)) };
    /// The scopes that are open.
    static SITES: RefCell<GuardStack<Option<CallSite>>> = const { RefCell::new(GuardStack::new()) };
    static NAMES: RefCell<GuardStack<NameScope>> = const { RefCell::new(GuardStack::new()) };
}

/// Ends a [`CallSite::scope`] when dropped. Guards may be dropped in any order.
#[must_use = "the scope ends when the guard is dropped"]
pub struct SiteGuard {
    number: u64,
    // Scopes are per thread: the guard must be dropped where it was made.
    _not_send: PhantomData<*const ()>,
}

impl Drop for SiteGuard {
    fn drop(&mut self) {
        // The list is gone only when the thread ends.
        let now = SITES.try_with(|held| held.borrow_mut().end(self.number, |_, _| true));
        if let Ok(Some(site)) = now {
            SITE.set(site);
        }
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match self.scope.path() {
            "" => Ok(()),
            path => write!(f, " in {path}"),
        }
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A path of names, such as `blocks.3.attn`, that a part of a program gives to the calls in it: see [`name_scope`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameScope(u32);

/// More paths are not kept: a program that counts its steps in a name would fill the memory.
const PATHS: usize = 1 << 16;

/// Nor are longer ones, in bytes.
const LONGEST: usize = 4096;

/// Stands for all others.
const BEYOND: NameScope = NameScope(u32::MAX);

/// Paths by text, and files that texts told; the number of one is its place, from 1. They live as long as the process.
static ALL: LazyLock<RwLock<FixedMap<&'static str, ()>>> = LazyLock::new(|| RwLock::new(FixedMap::default()));

impl NameScope {
    /// The path; empty outside of all scopes.
    pub fn path(self) -> &'static str {
        match self {
            NameScope(0) => "",
            BEYOND => "...",
            NameScope(n) => {
                let all = ALL.read().unwrap_or_else(|e| e.into_inner());
                all.get_index(n as usize - 1).map_or("", |(path, ())| path)
            }
        }
    }

    /// A number that no other path of this process has; 0 outside of all scopes.
    pub fn number(self) -> u32 {
        self.0
    }

    fn inner(self, name: &str) -> NameScope {
        match self.path() {
            "" => Self::of(name),
            _ if self == BEYOND => BEYOND,
            outer => Self::of(&format!("{outer}.{name}")),
        }
    }

    /// The scope of a path.
    fn of(path: &str) -> NameScope {
        if path.is_empty() {
            return NameScope::default();
        }
        let number = |i: usize| NameScope(i as u32 + 1);
        if let Some(i) = ALL.read().unwrap_or_else(|e| e.into_inner()).get_index_of(path) {
            return number(i);
        }
        let mut all = ALL.write().unwrap_or_else(|e| e.into_inner());
        match all.get_index_of(path) {
            Some(i) => number(i),
            None if all.len() >= PATHS || path.len() > LONGEST => BEYOND,
            None => number(all.insert_full(String::leak(path.to_string()), ()).0),
        }
    }
}

impl fmt::Debug for NameScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.path())
    }
}

/// Ends a [`name_scope`] when dropped. Guards may be dropped in any order.
#[must_use = "the scope ends when the guard is dropped"]
pub struct NameGuard {
    number: u64,
    // Scopes are per thread: the guard must be dropped where it was made.
    _not_send: PhantomData<*const ()>,
}

impl Drop for NameGuard {
    fn drop(&mut self) {
        let now = NAMES.try_with(|held| held.borrow_mut().end(self.number, |_, _| true));
        if let Ok(Some(scope)) = now {
            NAME.set(scope);
        }
    }
}

/// Gives the calls of this thread a name until the guard is dropped: errors, comm records and reports show it behind the line of the
/// call, and those of backward show that of the forward call. Scopes nest: `attn` inside of `blocks.3` is `blocks.3.attn`. Modules
/// of `nn` that have parts open a scope for each part.
///
/// The paths of a process are kept until it ends, at most 65,536 of them; do not put the number of a step into a name.
pub fn name_scope(name: &str) -> NameGuard {
    let before = NAME.get();
    NAME.set(before.inner(name));
    NameGuard { number: NAMES.with_borrow_mut(|held| held.begin(before)), _not_send: PhantomData }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_end() {
        let path = || CallSite::here().scope.path();
        assert_eq!(path(), "");
        let outer = name_scope("blocks.3");
        {
            let _inner = name_scope("attn");
            assert_eq!(path(), "blocks.3.attn");
            assert_eq!(CallSite::in_scope("a.py", 3).to_string(), "a.py:3 in blocks.3.attn");
            let line = CallSite::here();
            assert!(line.to_string().ends_with(" in blocks.3.attn"), "{line}");
            // Of another thread it is not.
            assert_eq!(std::thread::spawn(|| CallSite::here().scope.path()).join().unwrap_or("panic"), "");
            // A line that a function passes on keeps its name.
            let _site = line.scope();
            let _other = name_scope("inside");
            assert_eq!(path(), "blocks.3.attn");
        }
        assert_eq!(path(), "blocks.3");
        drop(outer);
        assert_eq!(path(), "");
        // A path has one number.
        let _again = name_scope("blocks.3");
        assert_eq!(NAME.get(), NameScope(1));
        let told = CallSite::told("a.rs", 7, "blocks.3");
        assert_eq!((told, told.scope), (CallSite { scope: NameScope(1), ..CallSite::at("a.rs", 7) }, NameScope(1)));
        assert_eq!(CallSite::told("a.rs", 7, ""), CallSite::at("a.rs", 7));
        assert_eq!(CallSite::told(&"x".repeat(LONGEST + 1), 7, "").file, "...");
    }
}
