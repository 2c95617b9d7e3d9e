//! Values that a call gives back through a mutable reference.

use super::{Env, Followed};
use syn::Expr;

/// Follows the variables that are lent mutably beside the followed value: the call may have put it there.
pub(super) fn lent(args: &[&Expr], env: &mut Env) {
    for arg in args {
        if let Expr::Reference(syn::ExprReference { mutability: Some(_), expr, .. }) = arg
            && let Expr::Path(p) = &**expr
            && let Some(val) = p.path.get_ident().and_then(|name| env.get_mut(&name.to_string()))
        {
            val.how = Followed::Value;
        }
    }
}
