//! Values that a call gives back through a mutable reference.

use syn::Expr;

/// Names of the variables that are lent mutably among the arguments of a call: it may have put the followed value there.
pub fn lent(args: &[&Expr]) -> Vec<String> {
    let name = |arg: &&Expr| match arg {
        Expr::Reference(syn::ExprReference { mutability: Some(_), expr, .. }) => match &**expr {
            Expr::Path(p) => p.path.get_ident().map(ToString::to_string),
            _ => None,
        },
        _ => None,
    };
    args.iter().filter_map(name).collect()
}
