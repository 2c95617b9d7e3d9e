use oflow_kernels::*;
use oflow_kernels::{Builtin, DType, Registered, Scalar};

#[test]
fn families_are_known_from_the_start() {
    let parsed: DType = "quint8(scale=0.25, zero=128)".parse().unwrap();
    assert_eq!(parsed, DType::quint8(0.25, 128).unwrap());
    assert_eq!(parsed, DType::quantised("quint8", 0.25, 128).unwrap());
    assert_eq!(parsed.quantization(), Some(Quantization { scale: 0.25, zero: 128, low: 0, high: 255 }));
    assert_eq!(parsed.number(Scalar::Int(130)), Some(Scalar::Float(0.5)));
    assert_eq!(DType::qint16(1e-3, -7).unwrap().storage(), Builtin::I16);
    assert_eq!(DType::U8.quantization(), None);
    let other = DType::register(Registered::new("q_other", Builtin::I8).parameter("scale", 1.0)).unwrap();
    assert_eq!(other.quantization(), None);
}

#[test]
fn parameters_that_quantise_nothing_are_refused() {
    let refused = |text: &str| text.parse::<DType>().unwrap_err().0;
    assert!(refused("qint8(scale=0.0, zero=0)").contains("greater than zero, not 0"));
    assert!(
        refused("qint8(scale=0.0000000000000000000000000000000000000001, zero=3)").contains("a normal number of f32")
    );
    assert!(DType::qint8(1e39, 0).is_err() && DType::qint8(f64::from(f32::MIN_POSITIVE), 0).is_ok());
    assert!(refused("qint8(scale=0.5, zero=128)").contains("from -128 to 127, not 128"));
    assert!(refused("quint8(scale=0.5, zero=-1)").contains("from 0 to 255, not -1"));
    assert!(refused("qint16(scale=1, zero=0)").contains("was registered as qint16(scale=1.0, zero=0)"));
    assert!(DType::qint8(f64::INFINITY, 0).is_err() && DType::quantised("qint4", 1.0, 0).is_err());
}
