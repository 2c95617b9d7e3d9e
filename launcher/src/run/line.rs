//! One line of cases: what it asks, read and checked before a rank is started.

use oflow::placement::{Device, Placement};

use super::addends::Addends;
use super::json::Json;
use crate::inspect;

/// Most ranks that a line may ask for: each is a thread.
pub const MOST_RANKS: usize = 64;

/// Most bytes of a function's name: a name that no function has is compared with all that there are.
const MOST_LETTERS: usize = 200;

/// Call that a line asks for.
#[derive(Debug)]
pub struct Case {
    /// Name of the function.
    pub call: String,
    /// Arguments by place.
    pub args: Vec<Json>,
    /// Arguments by name.
    pub named: Vec<(String, Json)>,
    /// The mesh of tensors that name none; none for a line without a mesh, whose tensors are local.
    pub mesh: Option<Placement>,
    /// How many ranks run.
    pub ranks: usize,
    /// Arguments of which the line wants gradients.
    pub grad: Wanted,
    /// Gradients of the outputs, `null` for ones.
    pub grad_outputs: Option<Vec<Json>>,
    /// The seed of random ops and of addends.
    pub seed: u64,
    /// How large addends are.
    pub addends: Addends,
}

/// Arguments that gradients are wanted of.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// Gradients of no argument.
    None,
    /// Every float tensor.
    All,
    /// Gradients of the arguments of these names.
    Named(Vec<String>),
}

/// The names that a line may have, in the order of the documentation.
const NAMES: [&str; 11] =
    ["call", "args", "kwargs", "mesh", "ranks", "grad", "grad_outputs", "seed", "addends", "id", "comment"];

/// The `id` of a line, if it is JSON and has one.
pub fn id_of(line: &Json) -> Option<&Json> {
    match line {
        Json::Object(members) => members.iter().find(|(name, _)| name == "id").map(|(_, id)| id),
        _ => None,
    }
}

impl Case {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: Json) -> Result<Case, String> {
        let Json::Object(members) = line else {
            return Err(format!(
                "a line is an object such as {{\"call\": \"relu\", \"args\": {{…}}}}, not {}",
                line.what()
            ));
        };
        let mut case = Case {
            call: String::new(),
            args: Vec::new(),
            named: Vec::new(),
            mesh: None,
            ranks: 0,
            grad: Wanted::None,
            grad_outputs: None,
            seed: 0,
            addends: Addends::default(),
        };
        for (name, value) in members {
            case.set(&name, value).map_err(|why| format!("\"{name}\" {why}"))?;
        }
        if case.call.is_empty() {
            return Err("\"call\" is missing: the name of a function".into());
        }
        let needed = case.mesh.iter().flat_map(|m| m.ranks()).max().map_or(1, |last| last + 1);
        case.ranks = case.ranks.max(needed);
        match case.ranks {
            1..=MOST_RANKS => Ok(case),
            n => Err(format!("the line needs {n} ranks; there can be {MOST_RANKS}")),
        }
    }

    fn set(&mut self, name: &str, value: Json) -> Result<(), String> {
        let must = |what: &str, value: &Json| Err(format!("must be {what}, not {}", value.what()));
        match (name, value) {
            // As if it were left out.
            (n, Json::Null) if n != "call" && NAMES.contains(&n) => {}
            ("call", Json::Text(t)) if t.len() <= MOST_LETTERS => self.call = t,
            ("call", v) => return must("the name of a function", &v),
            ("args", Json::Object(named)) => self.add_named(named)?,
            ("args", v) => match v.members() {
                Some(all) => self.args = all,
                None => return must("an object (arguments by name) or a list (by place)", &v),
            },
            ("kwargs", Json::Object(named)) => self.add_named(named)?,
            ("kwargs", v) => return must("an object of arguments by name", &v),
            ("mesh", v) => self.mesh = Some(placement(&v)?),
            ("ranks", Json::Int(n)) if (1..=MOST_RANKS as i64).contains(&n) => self.ranks = n as usize,
            ("ranks", v) => return must(&format!("a number of ranks from 1 to {MOST_RANKS}"), &v),
            ("grad", Json::Bool(on)) => self.grad = if on { Wanted::All } else { Wanted::None },
            ("grad", v) => match texts(&v) {
                Some(names) => self.grad = Wanted::Named(names),
                None => return must("true, false or a list of arguments", &v),
            },
            ("grad_outputs", v) => match v.members() {
                Some(all) => self.grad_outputs = Some(all),
                None => return must("a list: the data of a gradient, or null, for each output", &v),
            },
            ("seed", Json::Int(n)) => self.seed = n as u64,
            ("seed", v) => return must("an integer", &v),
            ("addends", Json::Text(t)) if t == "like" => self.addends = Addends::Like,
            ("addends", Json::Text(t)) if t == "large" => self.addends = Addends::Large,
            ("addends", v) => return must("\"like\" or \"large\"", &v),
            ("id" | "comment", _) => {}
            (_, _) => return Err(format!("is nothing that a line has; it has {}", NAMES.join(", "))),
        }
        Ok(())
    }

    fn add_named(&mut self, named: Vec<(String, Json)>) -> Result<(), String> {
        if let Some((twice, _)) = named.iter().find(|(n, _)| self.named.iter().any(|(m, _)| m == n)) {
            return Err(format!("has '{twice}', which \"args\" and \"kwargs\" give twice"));
        }
        self.named.extend(named);
        Ok(())
    }
}

/// A list of texts; an empty list too.
pub fn texts(value: &Json) -> Option<Vec<String>> {
    let one = |v: Json| match v {
        Json::Text(t) => Some(t),
        _ => None,
    };
    value.members()?.into_iter().map(one).collect()
}

/// Reads a mesh: sizes (`[2, 2]`), a text of `oflow sbp --mesh` (`"dp=2,tp=2"`, `"2@2"`), or an object with `mesh`, and with
/// `ranks` (one for each place of the mesh, row-major) and `device`.
///
/// # Errors
/// It is no mesh.
pub fn placement(value: &Json) -> Result<Placement, String> {
    match value {
        Json::Int(n) => placement(&Json::Ints(vec![*n])),
        Json::Ints(sizes) => {
            let bad = || format!("is not a mesh of 1 to {MOST_RANKS} ranks: {}", value.what());
            let sizes: Vec<usize> =
                sizes.iter().map(|n| usize::try_from(*n)).collect::<Result<_, _>>().map_err(|_| bad())?;
            let ranks = sizes.iter().try_fold(1usize, |n, size| n.checked_mul(*size)).filter(|n| *n <= MOST_RANKS);
            let ranks: Vec<usize> = (0..ranks.ok_or_else(bad)?).collect();
            Placement::new(Device::Cpu, &ranks, &sizes).map_err(|e| format!("is not a mesh: {}", e.message()))
        }
        Json::Text(text) => inspect::mesh(text),
        Json::Object(members) => {
            let of = |name: &str| members.iter().find(|(n, _)| n == name).map(|(_, v)| v);
            if let Some((other, _)) = members.iter().find(|(n, _)| !["mesh", "ranks", "device"].contains(&n.as_str())) {
                return Err(format!("has '{other}'; a mesh has mesh, ranks and device"));
            }
            let mut mesh = placement(of("mesh").ok_or("has no 'mesh'")?)?;
            if let Some(ranks) = of("ranks") {
                let Json::Ints(ranks) = ranks else {
                    return Err(format!("has 'ranks' {}, no list of ranks", ranks.what()));
                };
                let ranks: Option<Vec<usize>> = ranks.iter().map(|r| usize::try_from(*r).ok()).collect();
                let ranks = ranks.ok_or("has a negative rank")?;
                let named: Option<Vec<(&str, usize)>> =
                    mesh.names().iter().zip(mesh.dims()).map(|(name, size)| Some((name.as_deref()?, *size))).collect();
                let flat = Placement::new(Device::Cpu, &ranks, mesh.dims()).map_err(|e| e.message().to_string())?;
                mesh = match named {
                    Some(axes) => flat.mesh(&axes).map_err(|e| e.message().to_string())?,
                    None => flat,
                };
            }
            match of("device") {
                None => Ok(mesh),
                Some(Json::Text(name)) => Ok(mesh.on(name.parse().map_err(|e: oflow::Error| e.message().to_string())?)),
                Some(v) => Err(format!("has the device {}", v.what())),
            }
        }
        v => Err(format!("must be sizes such as [2, 2], or a text such as \"dp=2,tp=2\", not {}", v.what())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Case, String> {
        Case::read(Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn lines_read() {
        let case =
            read(r#"{"call":"add","args":[1],"kwargs":{"b":2},"mesh":[2,2],"grad":true,"seed":-1,"id":7}"#).unwrap();
        assert_eq!((case.call.as_str(), case.ranks, case.seed), ("add", 4, u64::MAX));
        assert_eq!((case.args.len(), case.named.len(), case.grad), (1, 1, Wanted::All));
        let case = read(r#"{"call":"f","args":{},"mesh":"dp=2@3","grad":["x"],"kwargs":null}"#).unwrap();
        assert_eq!((case.ranks, case.grad), (5, Wanted::Named(vec!["x".into()])));
        let mesh =
            read(r#"{"call":"f","mesh":{"mesh":"a=2,b=1","ranks":[3,0],"device":"cpu"}}"#).unwrap().mesh.unwrap();
        assert_eq!(mesh.to_string(), "cpu[a=2, b=1] of ranks [3, 0]");
        assert!(read(r#"{"call":"f"}"#).unwrap().mesh.is_none());
    }

    #[test]
    fn wrong_lines_say_what_is_wrong() {
        for (text, why) in [
            ("[]", "a line is an object"),
            ("{}", "\"call\" is missing"),
            (r#"{"call":""}"#, "\"call\" is missing"),
            (r#"{"call":1}"#, "\"call\" must be the name of a function, not 1"),
            (r#"{"call":null}"#, "\"call\" must be"),
            (r#"{"call":"f","arg":{}}"#, "\"arg\" is nothing that a line has; it has call, args"),
            (r#"{"call":"f","args":3}"#, "\"args\" must be an object"),
            (r#"{"call":"f","args":{"x":1},"kwargs":{"x":1}}"#, "has 'x', which"),
            (r#"{"call":"f","mesh":[65]}"#, "is not a mesh of 1 to 64 ranks"),
            (r#"{"call":"f","mesh":[4294967296,4294967296]}"#, "is not a mesh of 1 to 64 ranks"),
            (r#"{"call":"f","mesh":[-1]}"#, "is not a mesh"),
            (r#"{"call":"f","mesh":[]}"#, "is not a mesh"),
            (r#"{"call":"f","mesh":[0]}"#, "is not a mesh"),
            (r#"{"call":"f","mesh":"9999"}"#, "needs 9999 ranks; there can be 64"),
            (r#"{"call":"f","ranks":65}"#, "a number of ranks from 1 to 64"),
            (r#"{"call":"f","seed":0.5}"#, "\"seed\" must be an integer"),
            (r#"{"call":"f","addends":"huge"}"#, "\"like\" or \"large\""),
            (r#"{"call":"f","mesh":{"mesh":[2],"ranks":[0,0]}}"#, "rank 0 is in the placement twice"),
        ] {
            let e = read(text).unwrap_err();
            assert!(e.contains(why), "{text}: {e}");
        }
    }
}
