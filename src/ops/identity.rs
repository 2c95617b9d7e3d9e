//! Identity of an op across ranks: a hash of all of its declaration that is data, and of which parts are code.
//!
//! Ranks compare the hash of all ops at their start, and that of each op with every call of it (the dispatch stream). So ranks that
//! declare an op differently, also one that is registered later, are told apart before data moves. Code that differs is not
//! seen: two closures cannot be compared.

use super::def::{DTypeRule, OpDef, SbpRule, ShapeRule};
use super::grad::Grad;
use crate::intern::FixedHasher;
use std::hash::Hasher;

impl OpDef {
    /// A hash of the declaration: name, domain, version, grammar, traits, rules, expressions, gradient, and which parts are code.
    /// Documentation, samples and kernels do not count: ranks may have kernels of their own. An op of a library has the hash of the
    /// library in it.
    pub fn identity(&self) -> u64 {
        let mut h = FixedHasher::default();
        // Each part with its length, so that no two lists of parts read alike.
        let mut add = |part: &str| {
            h.write(part.as_bytes());
            h.write_usize(part.len());
        };
        add(&self.full_name());
        add(&self.sig.to_string());
        let t = &self.traits;
        add(&format!("{:?}", [t.side_effect, t.strided, t.random, t.run_empty, t.separable, t.elementwise]));
        match &self.shape {
            ShapeRule::SameAsInput => add("same"),
            ShapeRule::Broadcast => add("broadcast"),
            ShapeRule::Attr => add("attribute"),
            ShapeRule::Text(text) => add(&text.to_string()),
            ShapeRule::Fn(_) => add("code"),
        }
        add(&match &self.dtype {
            DTypeRule::Promote => "promote".to_string(),
            DTypeRule::PromoteFloat => "promote to float".to_string(),
            DTypeRule::PromoteInt => "promote to int".to_string(),
            DTypeRule::Input(i) => format!("input {i}"),
            DTypeRule::Attr => "attribute".to_string(),
            DTypeRule::Fixed(all) => all.iter().map(|d| d.name()).collect::<Vec<_>>().join(" "),
            DTypeRule::Fn(_) => "code".to_string(),
        });
        add(&self.expr.as_ref().map_or(String::new(), |e| e.to_string()));
        for (input, e) in &self.derivatives {
            add(&format!("{input}: {e}"));
        }
        match &self.sbp {
            SbpRule::AllB => add("all B"),
            SbpRule::Elementwise => add("elementwise"),
            SbpRule::Factors(text) => add(&format!("{text} {:?}", self.linear)),
            SbpRule::Signatures(rows) => rows.iter().for_each(|row| add(row)),
            SbpRule::Fn(_) => add("code"),
        }
        self.nd_rows.iter().for_each(|row| add(row));
        let code = [
            self.nd_extra.is_some(),
            self.nd_infer.is_some(),
            self.nd_valid.is_some(),
            self.nd_choose.is_some(),
            self.check.is_some(),
            self.values.is_some(),
            self.localize.is_some(),
            self.flops.is_some(),
            self.view.is_some(),
        ];
        add(&format!("{code:?} {} {} {:?}", self.sbp_added.len(), self.lowerings.len(), self.addends));
        add(&match &self.grad {
            Grad::Wiring(w) => format!("{w:?}"),
            other => format!("{other:?}"),
        });
        add(&format!("{:?} {:?} {:?} {:?}", self.length, self.cast, self.layout, self.hooks.present()));
        if let Some(library) = &self.library {
            add(&format!("{} {}", library.name, library.hash));
        }
        h.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;

    fn leaky() -> Result<OpDef> {
        OpDef::elementwise("leaky(x: float; alpha: runtime float = 0.01) -> y", "select(x >= 0, x, alpha * x)")
    }

    #[test]
    fn declarations_that_differ_have_different_identities() {
        let product = || OpDef::new("prod(a: float, b: float) -> y");
        let all = [
            leaky(),
            OpDef::elementwise("leaky(x: float; alpha: runtime float = 0.02) -> y", "select(x >= 0, x, alpha * x)"),
            OpDef::elementwise("leaky(x: float; alpha: runtime float = 0.01) -> y", "select(x > 0, x, alpha * x)"),
            OpDef::elementwise("leaky(x: num; alpha: runtime float = 0.01) -> y", "select(x >= 0, x, alpha * x)"),
            leaky().map(|o| o.domain("mine")),
            leaky().map(|o| OpDef { version: 2, ..o }),
            leaky().and_then(|o| o.derivative(0, "select(x >= 0, 1, alpha)")),
            leaky().map(|o| o.grad(Grad::None)),
            leaky().map(|o| o.check(|_| Ok(()))),
            leaky().map(|o| o.dtype(DTypeRule::Input(0))),
            leaky().map(|o| o.traits(|t| t.random = true)),
            product(),
            product().map(|o| o.factors("ik, kj -> ij")),
            product().map(|o| o.factors("ik, jk -> ij")),
            product().map(|o| o.factors("ik, jk -> ij").linear_in(&["a"])),
            product().map(|o| o.factors("ik, jk -> ij").linear_in(&["b"])),
            product().map(|o| o.signatures(&["S(0), B -> S(0)"])),
            product().map(|o| o.signatures(&["S(0), B -> S(0)", "B, S(1) -> S(1)"])),
            product().map(|o| o.shape_rule(ShapeRule::Broadcast)),
        ];
        let mut found: Vec<u64> = all.into_iter().map(|o| o.unwrap().identity()).collect();
        let n = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), n);
    }

    #[test]
    fn equal_declarations_have_one_identity_whatever_they_say_of_themselves() {
        let plain = leaky().unwrap().identity();
        assert_eq!(leaky().unwrap().identity(), plain);
        assert_eq!(leaky().unwrap().doc("A sentence.").samples(&["f32[2]"]).identity(), plain);
    }
}
