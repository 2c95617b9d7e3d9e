use oflow_kernels::{Builtin, DType, DTypeKind, ReduceOp, Registered, Scalar};

fn quantised(name: &str, scale: f64, zero: i64) -> Registered {
    Registered::new(name, Builtin::I8).parameter("scale", scale).parameter("zero", zero)
}

#[test]
fn name_and_parameters_are_the_identity() {
    let a = DType::register(quantised("q_a", 0.5, 3)).unwrap();
    assert_eq!(DType::register(quantised("q_a", 0.5, 3)).unwrap(), a);
    let b = DType::register(quantised("q_a", 1e-7, 3)).unwrap();
    assert_ne!(a, b);
    for d in [a, b] {
        assert_eq!(d.name().parse::<DType>().unwrap(), d);
        assert_eq!(DType::of_fingerprint(d.fingerprint()), Some(d));
        assert_eq!((d.family(), d.size(), d.storage(), d.kind()), ("q_a", 1, Builtin::I8, DTypeKind::Opaque));
        assert!(!d.is_float() && !d.is_builtin() && d.builtin().is_none() && d.integers().is_none());
        assert!([ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min].iter().all(|op| !d.reduces(*op)));
    }
    assert_ne!(a.fingerprint(), b.fingerprint());
    assert_eq!(a.name(), "q_a(scale=0.5, zero=3)");
    assert_eq!((b.parameter("scale"), b.parameter("none")), (Some(Scalar::Float(1e-7)), None));
    let plain = DType::register(Registered::new("e5m2_a", Builtin::U8)).unwrap();
    assert_eq!((plain.name(), plain.parameters().len()), ("e5m2_a", 0));
    assert_eq!("e5m2_a".parse::<DType>().unwrap(), plain);
}

#[test]
fn a_text_of_a_known_family_is_a_dtype() {
    DType::register(quantised("q_b", 0.5, 3)).unwrap();
    let other: DType = "q_b(scale=2.0, zero=-1)".parse().unwrap();
    assert_eq!(DType::register(quantised("q_b", 2.0, -1)).unwrap(), other);
    let refused = |text: &str| text.parse::<DType>().unwrap_err().0;
    // An integer is no scale of this family, and parameters have an order.
    assert!(refused("q_b(scale=2, zero=-1)").contains("was registered as q_b(scale=0.5, zero=3) stored as i8"));
    assert!(refused("q_b(zero=-1, scale=2.0)").contains("was registered as"));
    assert!(refused("q_b").contains("was registered as"));
    for bad in ["q_c(scale=2.0)", "q_b(scale=2.0, zero=-1", "q_b(scale)", "q_b(scale=x, zero=1)"] {
        assert!(refused(bad).contains("unknown dtype"), "{bad}");
    }
}

#[test]
fn illegal_declarations_are_refused() {
    let refused = |r: Registered| DType::register(r).unwrap_err().0;
    assert!(refused(Registered::new("f32", Builtin::U8)).contains("it is built in"));
    assert!(refused(Registered::new("Q 8", Builtin::U8)).contains("'Q 8' is not a name"));
    assert!(refused(Registered::new("q_d", Builtin::Bool)).contains("stored as bool"));
    assert!(refused(quantised("q_d", f64::NAN, 0)).contains("parameter 'scale' is NaN"));
    let twice = Registered::new("q_d", Builtin::U8).parameter("a", 1).parameter("a", 2);
    assert!(refused(twice).contains("two parameters 'a'"));
    DType::register(quantised("q_d", 0.5, 3)).unwrap();
    let other = Registered::new("q_d", Builtin::U8).parameter("scale", 0.5).parameter("zero", 3);
    assert!(refused(other).contains("q_d(scale=0.5, zero=3) stored as u8 was registered as"));
}

#[test]
fn nothing_promotes_with_a_registered_dtype() {
    let q = DType::register(quantised("q_e", 0.5, 3)).unwrap();
    assert_eq!(q.promote(q).unwrap(), q);
    for d in DType::BUILTIN {
        let e = q.promote(d).unwrap_err().0;
        assert_eq!(e, format!("q_e(scale=0.5, zero=3) and {d} do not promote to a common dtype"));
        assert!(d.promote(q).is_err() && d < q);
    }
}

#[test]
fn registered_dtypes_are_ordered_by_text() {
    let late = DType::register(Registered::new("q_g", Builtin::U8)).unwrap();
    let early = DType::register(Registered::new("q_f", Builtin::I64)).unwrap();
    assert!(early < late);
    assert_eq!((early.size(), late.size()), (8, 1));
}

#[test]
fn numbers_are_what_the_declaration_says() {
    let value = |d: DType, x: Scalar| (x.to_f64() - d.parameter("zero").map_or(0.0, Scalar::to_f64)) * 0.5;
    let q = DType::register(quantised("q_h", 0.5, 3).to_f64(value)).unwrap();
    assert_eq!(q.number(Scalar::Int(7)), Some(Scalar::Float(2.0)));
    // Another dtype of the family has the same decoder.
    let other: DType = "q_h(scale=0.5, zero=1)".parse().unwrap();
    assert_eq!(other.number(Scalar::Int(7)), Some(Scalar::Float(3.0)));
    let plain = DType::register(Registered::new("q_i", Builtin::U8)).unwrap();
    assert_eq!(plain.number(Scalar::Int(7)), None);
}
