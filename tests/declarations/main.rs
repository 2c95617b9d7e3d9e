//! What a program declares itself: ops, functions, gradient rules and backends, and the search for faults in them.

mod backend;
mod conformance;
mod functions;
mod hints;
mod op_hooks;
mod planted_faults;
mod rule_functions;
mod runtime_op;
mod wrong_rules;
