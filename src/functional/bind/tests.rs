use super::*;
use crate::ops::{AttrKind, ParamKind};
use std::convert::Infallible;

/// Numbers and texts; a text `none` is no argument.
#[derive(Clone, Copy, Debug)]
enum Value {
    Number(i64),
    Text(&'static str),
}
use Value::{Number, Text};

/// A language whose list parameters take further values, and which has a keyword of its own.
struct Toy {
    words: bool,
    other: Option<i64>,
}

impl Language for Toy {
    type Value = Value;
    type Taken = String;
    type Error = &'static str;
    const WORDS: Words = Words::Python;

    fn is_absent(&self, p: &FnParam, value: Value) -> bool {
        matches!(value, Text("none")) && !p.is_required()
    }
    fn convert(&mut self, p: &FnParam, passed: &[Value]) -> Result<String, Unfit<&'static str>> {
        let [value] = *passed else {
            let members = passed.iter().map(|v| self.convert(p, &[*v]));
            return Ok(members.collect::<Result<Vec<_>, _>>()?.join("+"));
        };
        match (value, p.kind) {
            (Number(n), _) if n < 0 => Err(Unfit::Raise("a negative number")),
            (Number(n), ParamKind::Attr(AttrKind::Int | AttrKind::Ints)) => Ok(n.to_string()),
            (Text(t), ParamKind::Attr(AttrKind::Str)) => Ok(format!("{t:?}")),
            (Text("long"), _) => Err(Unfit::Text("too long".into())),
            _ => Err(Unfit::Type),
        }
    }
    fn other_keyword(&mut self, keyword: &str, value: Value) -> Result<bool, Unfit<&'static str>> {
        match (keyword, value) {
            ("other", Number(n)) => {
                self.other = Some(n);
                Ok(true)
            }
            ("other", _) => Err(Unfit::Text("other must be a number".into())),
            _ => Ok(false),
        }
    }
    fn left_out(&mut self, _: usize, p: &FnParam) -> Result<Option<String>, Unfit<&'static str>> {
        Ok(p.default.as_ref().map(|d| format!("default {d}")))
    }
    fn type_of(&self, p: &FnParam) -> String {
        p.kind.name().to_string()
    }
    fn describe(&self, value: Value) -> String {
        if self.words { "what was given".into() } else { format!("{value:?}") }
    }
}

/// Binds a call, and shows the arguments or why they do not fit.
fn bound(sig: &str, spreads: bool, values: &[Value], keywords: &[&str]) -> String {
    let sig = FnSig::parse(sig).unwrap();
    let given = Given::new(values, keywords);
    let mut toy = Toy { words: false, other: None };
    match bind(&mut toy, &sig, ByPosition { spreads, ..ByPosition::of(&sig) }, &given) {
        Ok(args) => {
            let all: Vec<String> = args.into_iter().map(|a| a.unwrap_or("-".into())).collect();
            let other = toy.other.map_or(String::new(), |n| format!("; other {n}"));
            all.join(", ") + &other
        }
        Err(Refused::Misfit(why)) => why.text(&toy, &sig, &given),
        Err(Refused::Raised(e)) => format!("raised: {e}"),
    }
}

#[test]
fn values_find_their_parameters() {
    const SIG: &str = "f(Int a, Int b=2, String? c, *, Int d=4) -> Void";
    for (values, keywords, found) in [
        (&[Number(1)][..], &[][..], "1, default 2, -, default 4"),
        (&[Number(1), Number(3), Text("x")], &[], "1, 3, \"x\", default 4"),
        (&[Text("x"), Number(1)], &["c", "a"], "1, default 2, \"x\", default 4"),
        (&[Number(1), Text("none"), Number(5)], &["d"], "1, default 2, -, 5"),
        (&[Number(1), Number(5)], &["other"], "1, default 2, -, default 4; other 5"),
        (&[], &[], "missing a required argument: 'a'"),
        (&[Number(1)], &["b"], "missing a required argument: 'a'"),
        (&[Text("none")], &[], "argument 'a' (position 1) must be Int, not Text(\"none\")"),
        (&[Number(1), Text("y")], &["b"], "argument 'b' must be Int, not Text(\"y\")"),
        (&[Number(1), Number(2), Text("x"), Number(4)], &[], "takes 3 positional arguments but 4 were given"),
        (&[Number(1), Number(2)], &["e"], "got an unexpected keyword argument 'e'"),
        (&[Number(1), Number(2)], &["a"], "got multiple values for argument 'a'"),
        (&[Number(1), Number(2), Number(3)], &["b", "b"], "got multiple values for argument 'b'"),
        (&[Number(1), Text("x")], &["other"], "other must be a number"),
        (&[Number(1), Text("long")], &[], "too long"),
        // What no call may have is found before values are converted.
        (&[Text("x"), Number(2)], &["e"], "got an unexpected keyword argument 'e'"),
        (&[Number(-1)], &[], "raised: a negative number"),
    ] {
        assert_eq!(bound(SIG, false, values, keywords), found, "{values:?} {keywords:?}");
    }
}

#[test]
fn the_last_list_by_position_takes_all_further_values() {
    const SIG: &str = "f(Int a, IntList b=[]) -> Void";
    for (values, keywords, found) in [
        (&[Number(1)][..], &[][..], "1, default []"),
        (&[Number(1), Number(2)], &[], "1, 2"),
        (&[Number(1), Number(2), Number(3)], &[], "1, 2+3"),
        (&[Number(1), Number(2), Text("x")], &[], "argument 'b' (position 3) must be IntList, not Text(\"x\")"),
        (&[Number(1), Number(2), Number(3), Number(4)], &["b"], "got multiple values for argument 'b'"),
    ] {
        assert_eq!(bound(SIG, true, values, keywords), found, "{values:?} {keywords:?}");
    }
    assert_eq!(bound(SIG, false, &[Number(1); 3], &[]), "takes 2 positional arguments but 3 were given");
}

#[test]
fn the_first_overload_that_fits_is_chosen() {
    let sigs = ["f(Int a) -> Void", "f(String a) -> Void", "f(String a, Int b=1) -> Void"];
    let sigs = sigs.map(|text| FnSig::parse(text).unwrap());
    let choose = |values: &[Value]| -> Result<Result<String, Vec<String>>, &'static str> {
        let given = Given::new(values, &[]);
        let mut toy = Toy { words: true, other: None };
        let chosen = first_fit(&sigs, |sig| bind(&mut toy, sig, ByPosition::of(sig), &given))?;
        Ok(match chosen {
            Ok((sig, args)) => Ok(format!("{sig}: {args:?}")),
            Err(misfits) => Err(sigs.iter().zip(&misfits).map(|(sig, why)| why.text(&toy, sig, &given)).collect()),
        })
    };
    assert_eq!(choose(&[Number(1)]), Ok(Ok("f(Int a) -> Void: [Some(\"1\")]".into())));
    assert_eq!(choose(&[Text("x")]), Ok(Ok("f(String a) -> Void: [Some(\"\\\"x\\\"\")]".into())));
    let two = "f(String a, Int b=1) -> Void: [Some(\"\\\"x\\\"\"), Some(\"2\")]";
    assert_eq!(choose(&[Text("x"), Number(2)]), Ok(Ok(two.into())));
    let reasons = choose(&[Number(1), Number(2)]).unwrap().unwrap_err();
    assert_eq!(reasons[..2], ["takes 1 positional argument but 2 were given"; 2]);
    assert_eq!(reasons[2], "argument 'a' (position 1) must be String, not what was given");
    // An error that is raised ends the choice.
    assert_eq!(choose(&[Number(-1)]), Err("a negative number"));
}

#[test]
fn plain_words_for_each_misfit() {
    struct Plain;
    impl Language for Plain {
        type Value = i64;
        type Taken = i64;
        type Error = Infallible;
        const WORDS: Words = Words::Plain;
        fn is_absent(&self, _: &FnParam, _: i64) -> bool {
            false
        }
        fn convert(&mut self, _: &FnParam, passed: &[i64]) -> Result<i64, Unfit<Infallible>> {
            passed.iter().copied().find(|value| *value != 0).ok_or(Unfit::Type)
        }
        fn left_out(&mut self, _: usize, _: &FnParam) -> Result<Option<i64>, Unfit<Infallible>> {
            Ok(None)
        }
        fn type_of(&self, _: &FnParam) -> String {
            "a number above 0".into()
        }
        fn describe(&self, value: i64) -> String {
            value.to_string()
        }
    }
    let sig = FnSig::parse("f(Int a, Int? b) -> Void").unwrap();
    for (values, keywords, why) in [
        (&[1, 2, 3][..], &[][..], "takes 2 positional arguments, 3 given"),
        (&[1, 2], &["c"], "has no parameter 'c'"),
        (&[1, 2], &["a"], "'a' is given twice: by its place and by its name"),
        (&[1, 2, 3], &["b", "b"], "'b' is given twice"),
        (&[], &[], "'a' is missing"),
        (&[0], &[], "'a' must be a number above 0, not 0"),
    ] {
        let given = Given::new(values, keywords);
        match bind(&mut Plain, &sig, ByPosition::of(&sig), &given) {
            Err(Refused::Misfit(misfit)) => assert_eq!(misfit.text(&Plain, &sig, &given), why),
            _ => panic!("{values:?} {keywords:?} fit"),
        }
    }
    assert_eq!(Given::new(&[1, 2], &["b"]).text("f", |v| v.to_string()), "f(1, b=2)");
}
