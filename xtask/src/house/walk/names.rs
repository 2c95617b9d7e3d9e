//! Names of methods and macros that a walk knows without finding them.

/// Methods of std that return what they are called on, or a part of it of the same type.
pub const HANDS_ON: &[&str] = &[
    "as_ref", "as_mut", "as_deref", "as_slice", "clone", "iter", "iter_mut", "by_ref", "borrow", "copied", "cloned",
    "flatten", "filter", "take", "rev", "skip",
];

/// Further methods of std. On a receiver of an unknown type one of these is never taken for the room's only method of that name.
pub const OF_STD: &[&str] = &[
    "collect", "sum", "next", "first", "last", "get", "get_mut", "insert", "push", "pop", "extend", "len", "is_empty",
    "map", "and_then", "contains", "lock", "read", "write", "join", "find", "position", "all", "any", "min", "max",
    "new", "set", "unwrap", "expect", "into", "drop", "replace", "swap", "end", "start", "min_by", "max_by", "zip",
    "chain", "count", "fold", "run", "name", "index", "list", "value", "key", "of", "at",
];

/// Methods and functions whose closure is only called for an error.
pub const FOR_ERRORS: &[&str] = &["map_err", "ok_or_else", "or_else", "in_call", "inspect_err", "with_context"];

/// Macros that make text or a panic.
pub const TEXT: &[&str] = &[
    "format",
    "println",
    "eprintln",
    "write",
    "writeln",
    "panic",
    "unreachable",
    "assert",
    "assert_eq",
    "debug_assert",
    "debug_assert_eq",
    "trace",
    "debug",
    "debug_span",
    "trace_span",
    "info",
    "warn",
    "bail",
    "matches",
];
