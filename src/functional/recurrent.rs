//! Recurrent networks and their cells: PyTorch's functions on lists of weights.
//!
//! One product multiplies the inputs of all steps with the input weights; the loop over steps then has one product of a state each.
//! Everything is made of ops, so gradients of any order follow, and every layout works; a split batch needs no communication in
//! the loop.

use super::{invoke1, op, shape};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Networks";
    /// A long short-term memory over `[T, B, input]` (`batch_first`: `[B, T, input]`; without a batch `[T, input]`), from the states
    /// `hx`: h and c of shape `[layers · directions, B, hidden]`. `params` has for each layer and direction w_ih, w_hh and, with
    /// `has_biases`, b_ih and b_hh, whose rows are those of the gates i, f, g and o. `dropout` is between layers, where `train` is set.
    /// If h is narrower than c, the weights of each layer and direction end with w_hr `[width of h, hidden]`, which h is multiplied with.
    "lstm(Tensor x, TensorTuple hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n, Tensor c_n)" = lstm;
    /// Gated recurrent units over a sequence, as `lstm`; the gates are r, z and n.
    "gru(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)" = gru;
    /// A recurrent network with tanh over a sequence, as `lstm`.
    "rnn_tanh(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)" = rnn_tanh;
    /// A recurrent network with relu over a sequence, as `lstm`.
    "rnn_relu(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)" = rnn_relu;
    /// One step of a long short-term memory for `[B, input]` or `[input]`, from h and c: the new ones.
    "lstm_cell(Tensor x, TensorTuple hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> (Tensor h, Tensor c)" = lstm_cell;
    /// One step of gated recurrent units for `[B, input]` or `[input]`.
    "gru_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor" = gru_cell;
    /// tanh(x w_ihᵀ + b_ih + hx w_hhᵀ + b_hh).
    "rnn_tanh_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor" = rnn_tanh_cell;
    /// relu(x w_ihᵀ + b_ih + hx w_hhᵀ + b_hh).
    "rnn_relu_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor" = rnn_relu_cell;
}

#[derive(Clone, Copy, PartialEq)]
enum CellKind {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

impl CellKind {
    fn name(self) -> &'static str {
        match self {
            CellKind::Lstm => "lstm",
            CellKind::Gru => "gru",
            CellKind::Tanh => "rnn_tanh",
            CellKind::Relu => "rnn_relu",
        }
    }
    fn gates(self) -> usize {
        match self {
            CellKind::Lstm => 4,
            CellKind::Gru => 3,
            CellKind::Tanh | CellKind::Relu => 1,
        }
    }
    /// The new h and c, from what inputs and state give to the gates.
    fn step(
        self,
        from_x: &Tensor,
        from_h: &Tensor,
        h: &Tensor,
        c: Option<&Tensor>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        match self {
            CellKind::Tanh => Ok((from_x.add(from_h)?.tanh()?, None)),
            CellKind::Relu => Ok((from_x.add(from_h)?.relu()?, None)),
            CellKind::Gru => {
                let (x, s) = (from_x.chunk(3, -1)?, from_h.chunk(3, -1)?);
                let (r, z) = (x[0].add(&s[0])?.sigmoid()?, x[1].add(&s[1])?.sigmoid()?);
                let n = x[2].add(&r.mul(&s[2])?)?.tanh()?;
                // (1 - z) n + z h
                Ok((n.add(&z.mul(&h.sub(&n)?)?)?, None))
            }
            CellKind::Lstm => {
                let gates = from_x.add(from_h)?.chunk(4, -1)?;
                let kept = gates[1].sigmoid()?;
                let new = gates[0].sigmoid()?.mul(&gates[2].tanh()?)?;
                let c = match c {
                    Some(c) => kept.mul(c)?.add(&new)?,
                    None => new,
                };
                Ok((gates[3].sigmoid()?.mul(&c.tanh()?)?, Some(c)))
            }
        }
    }
}

/// How a network is put together.
struct Net {
    biases: bool,
    layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
}

/// One product of all steps, or of one.
fn product(x: &Tensor, w: &Tensor, b: Option<&Tensor>, site: CallSite) -> Result<Tensor> {
    super::nn::linear(x, w, b, site)
}

fn over_time(
    kind: CellKind,
    x: &Tensor,
    states: &[&Tensor],
    params: &[&Tensor],
    net: &Net,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let refused = |e: Error| {
        let shown = [x].into_iter().chain(states.iter().copied()).map(|t| t.short()).collect::<Vec<_>>().join(", ");
        e.in_call(|| format!("{}({shown})", kind.name())).at(site)
    };
    let last = |s: &Tensor| s.shape().last().copied().unwrap_or(0);
    // The width of h, and that of the gates.
    let (width, hidden) = (last(states[0]), states.get(1).map_or_else(|| last(states[0]), |c| last(c)));
    let narrower = usize::from(width != hidden);
    let (directions, per) = (1 + usize::from(net.bidirectional), narrower + if net.biases { 4 } else { 2 });
    let wanted = (net.layers.max(0) as usize).saturating_mul(directions * per);
    if net.layers < 1 || params.len() != wanted {
        let e = Error::argument(format!("there are {} weights; {} layers have {wanted}", params.len(), net.layers));
        return Err(refused(e.help("each layer and direction has w_ih, w_hh and, with biases, b_ih and b_hh; then w_hr where h is narrower than c")));
    }
    if !(0.0..=1.0).contains(&net.dropout) {
        return Err(refused(Error::argument(format!("the dropout is {}", net.dropout)).help("it is within 0 and 1")));
    }
    let layers = net.layers as usize;
    if x.ndim() != 2 && x.ndim() != 3 {
        return Err(refused(Error::shape(format!("a sequence has 2 or 3 dims, not {}", x.ndim()))));
    }
    let _scope = site.scope();
    let _inner = inner_calls();
    let batched = x.ndim() == 3;
    let mut input = match (batched, net.batch_first) {
        (false, _) => x.unsqueeze(1)?,
        (true, true) => x.transpose(0, 1)?,
        (true, false) => x.clone(),
    };
    let (steps, batch) = (input.shape()[0], input.shape()[1]);
    if steps == 0 {
        return Err(refused(Error::shape("the sequence has no steps")));
    }
    let states: Vec<Tensor> =
        states.iter().map(|s| if batched { Ok((*s).clone()) } else { s.unsqueeze(1) }).collect::<Result<_>>()?;
    for (s, n) in states.iter().zip([width, hidden]) {
        if s.shape() != [layers * directions, batch, n] {
            let e = Error::shape(format!("a state has shape {:?}", s.shape()));
            return Err(refused(e.help(format!("it is [{}, {batch}, {n}] here", layers * directions))));
        }
    }
    let rows = kind.gates() * hidden;
    let mut ends: Vec<Vec<Tensor>> = vec![vec![]; states.len()];
    for layer in 0..layers {
        let mut outs = vec![];
        for direction in 0..directions {
            let at = layer * directions + direction;
            let own = &params[at * per..(at + 1) * per];
            let given = input.shape()[2];
            let narrow = own.last().filter(|_| narrower == 1);
            if own[0].shape() != [rows, given] || own[1].shape() != [rows, width] {
                let e = Error::shape(format!(
                    "the weights of layer {layer} have shapes {:?} and {:?}, not [{rows}, {given}] and [{rows}, {width}]",
                    own[0].shape(),
                    own[1].shape()
                ));
                return Err(refused(e));
            }
            if let Some(w) = narrow.filter(|w| w.shape() != [width, hidden]) {
                let e =
                    Error::shape(format!("w_hr of layer {layer} has shape {:?}, not [{width}, {hidden}]", w.shape()));
                return Err(refused(e));
            }
            let bias = |i: usize| own.get(i).copied().filter(|_| net.biases);
            let from_x = product(&input, own[0], bias(2), site)?;
            let mut h = states[0].select(0, at)?;
            let mut c = states.get(1).map(|c| c.select(0, at)).transpose()?;
            let mut seen = vec![];
            for n in 0..steps {
                let t = if direction == 0 { n } else { steps - 1 - n };
                let from_h = product(&h, own[1], bias(3), site)?;
                (h, c) = kind.step(&from_x.select(0, t)?, &from_h, &h, c.as_ref())?;
                if let Some(w) = narrow {
                    h = product(&h, w, None, site)?;
                }
                seen.push(h.clone());
            }
            if direction == 1 {
                seen.reverse();
            }
            outs.push(shape::stack(&seen.iter().collect::<Vec<_>>(), 0, site)?);
            ends[0].push(h);
            if let (Some(c), Some(list)) = (c, ends.get_mut(1)) {
                list.push(c);
            }
        }
        input = match outs.len() {
            1 => outs.remove(0),
            _ => {
                invoke1(op!("concat"), &[Some(&outs[0]), Some(&outs[1])], smallvec![(-1i64).into()], smallvec![], site)?
            }
        };
        if net.train && net.dropout > 0.0 && layer + 1 < layers {
            input = input.dropout(net.dropout)?;
        }
    }
    let output = match (batched, net.batch_first) {
        (false, _) => input.squeeze(1)?,
        (true, true) => input.transpose(0, 1)?,
        (true, false) => input,
    };
    let mut results = vec![output];
    for list in ends {
        let s = shape::stack(&list.iter().collect::<Vec<_>>(), 0, site)?;
        results.push(if batched { s } else { s.squeeze(1)? });
    }
    Ok(results)
}

/// h and c.
fn two<'a>(name: &str, hx: &'a [&Tensor], site: CallSite) -> Result<[&'a Tensor; 2]> {
    match hx {
        [h, c] => Ok([h, c]),
        _ => Err(Error::argument(format!("there are {} states, not h and c", hx.len()))
            .in_call(|| format!("{name}()"))
            .at(site)),
    }
}

// As many as the function has.
#[allow(clippy::too_many_arguments)]
pub(super) fn lstm(
    x: &Tensor,
    hx: &[&Tensor],
    params: &[&Tensor],
    biases: bool,
    layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let states = two("lstm", hx, site)?;
    let net = Net { biases, layers, dropout, train, bidirectional, batch_first };
    over_time(CellKind::Lstm, x, &states, params, &net, site)
}

macro_rules! of_one_state {
    ($($name:ident, $cell:ident = $kind:expr;)*) => {$(
        // As many as the function has.
        #[allow(clippy::too_many_arguments)]
        pub(super) fn $name(
            x: &Tensor,
            hx: &Tensor,
            params: &[&Tensor],
            biases: bool,
            layers: i64,
            dropout: f64,
            train: bool,
            bidirectional: bool,
            batch_first: bool,
            site: CallSite,
        ) -> Result<Vec<Tensor>> {
            let net = Net { biases, layers, dropout, train, bidirectional, batch_first };
            over_time($kind, x, &[hx], params, &net, site)
        }

        pub(super) fn $cell(
            x: &Tensor,
            hx: &Tensor,
            w_ih: &Tensor,
            w_hh: &Tensor,
            b_ih: Option<&Tensor>,
            b_hh: Option<&Tensor>,
            site: CallSite,
        ) -> Result<Tensor> {
            Ok(one_step(stringify!($cell), $kind, x, [hx, hx], [w_ih, w_hh], [b_ih, b_hh], site)?.swap_remove(0))
        }
    )*};
}

of_one_state! {
    gru, gru_cell = CellKind::Gru;
    rnn_tanh, rnn_tanh_cell = CellKind::Tanh;
    rnn_relu, rnn_relu_cell = CellKind::Relu;
}

pub(super) fn lstm_cell(
    x: &Tensor,
    hx: &[&Tensor],
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    one_step("lstm_cell", CellKind::Lstm, x, two("lstm_cell", hx, site)?, [w_ih, w_hh], [b_ih, b_hh], site)
}

/// One step of a cell.
fn one_step(
    name: &str,
    kind: CellKind,
    x: &Tensor,
    [h, c]: [&Tensor; 2],
    [w_ih, w_hh]: [&Tensor; 2],
    [b_ih, b_hh]: [Option<&Tensor>; 2],
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let hidden = h.shape().last().copied().unwrap_or(0);
    let lead = &x.shape()[..x.ndim().saturating_sub(1)];
    let fits = (1..=2).contains(&x.ndim())
        && [h, c]
            .iter()
            .all(|s| s.ndim() == x.ndim() && s.shape()[..s.ndim() - 1] == *lead && s.shape().ends_with(&[hidden]))
        && w_hh.shape() == [kind.gates() * hidden, hidden];
    if !fits {
        let e = Error::shape(format!(
            "an input {:?}, a state {:?} and weights {:?} do not belong together",
            x.shape(),
            h.shape(),
            w_hh.shape()
        ));
        let rows = kind.gates();
        return Err(e
            .help(format!("they are [B, input], [B, hidden] and [{rows} hidden, hidden]"))
            .in_call(|| format!("{name}({}, {})", x.short(), h.short()))
            .at(site));
    }
    let _scope = site.scope();
    let _inner = inner_calls();
    let (from_x, from_h) = (product(x, w_ih, b_ih, site)?, product(h, w_hh, b_hh, site)?);
    let (h, c) = kind.step(&from_x, &from_h, h, (kind == CellKind::Lstm).then_some(c))?;
    Ok([Some(h), c].into_iter().flatten().collect())
}
