use oflow_kernels::{Builtin, DType};

#[test]
fn promotion_is_commutative_and_idempotent() {
    for a in DType::BUILTIN {
        assert_eq!(a.promote(a).unwrap(), a);
        for b in DType::BUILTIN {
            assert_eq!(a.promote(b).ok(), b.promote(a).ok(), "{a} {b}");
        }
    }
}

#[test]
fn names_round_trip() {
    for (d, b) in DType::BUILTIN.into_iter().zip(Builtin::ALL) {
        assert_eq!(d.name().parse::<DType>().unwrap(), d);
        assert_eq!(DType::of_fingerprint(d.fingerprint()), Some(d));
        assert_eq!((d.builtin(), d.storage(), d.size(), d.kind()), (Some(b), b, b.size(), b.kind()));
    }
    assert!("f8".parse::<DType>().unwrap_err().0.contains("known: bool"));
}

#[test]
fn the_order_is_the_declared_one() {
    assert!(DType::BUILTIN.is_sorted());
    assert_eq!(std::mem::size_of::<DType>(), 4);
}

mod quantised;
mod registered;
