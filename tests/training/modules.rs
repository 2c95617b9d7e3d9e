//! Modules against PyTorch's (`tests/golden/modules.json`, made by `tests/golden/modules.py`): values and gradients of inputs and
//! parameters for the same weights under PyTorch's names, of local modules and of global ones whose parameters and inputs lie in
//! several ways; buffers, frozen parameters, replaced modules, loading by name.

use oflow::BackwardOptions;
use oflow::functional::grad_from;
use oflow::nn::{
    BagMode, Buffer, Dropout, Embedding, EmbeddingBag, Gru, LayerNorm, Linear, Lstm, Masks, Module, MultiheadAttention,
    MultiheadOptions, Nonlinearity, RecurrentOptions, Rnn, Sequential, replace,
};
use oflow::optim::{AdamW, AdamWOptions};
use oflow::prelude::*;
use oflow::state::{LoadState, SaveState, Stateful};
use oflow_tests::golden::{cases, near, tensor};
use serde_json::Value as Json;

/// Any module of the file.
enum Any {
    Lstm(Lstm),
    Gru(Gru),
    Rnn(Rnn),
    Mha(MultiheadAttention),
    Bag(EmbeddingBag),
    Embedding(Embedding),
    Sequential(Sequential),
}

impl Any {
    fn new(kind: &str, config: &Json) -> Result<Any> {
        let f64s = Device::Cpu.dtype(DType::F64);
        let size = |name: &str| config[name].as_u64().unwrap() as usize;
        Ok(match kind {
            "lstm" => Any::Lstm(Lstm::new(serde_json::from_value(config.clone()).unwrap(), f64s)?),
            "gru" => Any::Gru(Gru::new(serde_json::from_value(config.clone()).unwrap(), f64s)?),
            "rnn" => {
                let mut config = config.clone();
                let how = config.as_object_mut().unwrap().remove("nonlinearity").unwrap();
                let how: Nonlinearity = serde_json::from_value(how).unwrap();
                Any::Rnn(Rnn::new(serde_json::from_value(config).unwrap(), how, f64s)?)
            }
            "mha" => Any::Mha(MultiheadAttention::new(serde_json::from_value(config.clone()).unwrap(), f64s)?),
            "bag" => {
                let mode: BagMode = serde_json::from_value(config["mode"].clone()).unwrap();
                let bag = EmbeddingBag::new(size("rows"), size("width"), mode, f64s)?;
                let padding_idx = config.get("padding_idx").map(|_| size("padding_idx"));
                Any::Bag(EmbeddingBag { padding_idx, ..bag })
            }
            "embedding" => {
                Any::Embedding(Embedding::new(size("rows"), size("width"), f64s)?.with_padding(size("padding_idx"))?)
            }
            _ => {
                let linear = |a, b| Linear::new(a, b, Device::Cpu.dtype(DType::F64));
                let norm = LayerNorm::new(5, Device::Cpu.dtype(DType::F64))?;
                let net = Sequential::new().add(linear(4, 5)?).function(|x| x.tanh()).add(norm).add(linear(5, 3)?);
                Any::Sequential(net)
            }
        })
    }
    fn module(&self) -> &dyn Module {
        match self {
            Any::Lstm(m) => m,
            Any::Gru(m) => m,
            Any::Rnn(m) => m,
            Any::Mha(m) => m,
            Any::Bag(m) => m,
            Any::Embedding(m) => m,
            Any::Sequential(m) => m,
        }
    }
    fn lay_out(&mut self, mesh: &Placement, rules: &[(&str, NdSbp)]) -> Result<()> {
        match self {
            Any::Lstm(m) => m.to_global(mesh, rules),
            Any::Gru(m) => m.to_global(mesh, rules),
            Any::Rnn(m) => m.to_global(mesh, rules),
            Any::Mha(m) => m.to_global(mesh, rules),
            Any::Bag(m) => m.to_global(mesh, rules),
            Any::Embedding(m) => m.to_global(mesh, rules),
            Any::Sequential(m) => m.to_global(mesh, rules),
        }
    }
    fn run(&self, x: &[Tensor], options: &Json, place: &dyn Fn(&Json) -> Result<Tensor>) -> Result<Vec<Tensor>> {
        match self {
            Any::Lstm(m) => {
                let state = (x.len() == 3).then(|| [&x[1], &x[2]]);
                let (out, [h, c]) = m.forward(&x[0], state)?;
                Ok(vec![out, h, c])
            }
            Any::Gru(m) => {
                let (out, h) = m.forward(&x[0], x.get(1))?;
                Ok(vec![out, h])
            }
            Any::Rnn(m) => {
                let (out, h) = m.forward(&x[0], x.get(1))?;
                Ok(vec![out, h])
            }
            Any::Mha(m) => {
                let (k, v) = if x.len() == 1 { (&x[0], &x[0]) } else { (&x[1], &x[2]) };
                let mask = |name: &str| options.get(name).map(place).transpose();
                let (padding, attn) = (mask("key_padding_mask")?, mask("attn_mask")?);
                let each_head = options.get("average_attn_weights") == Some(&Json::Bool(false));
                let need_weights = options.get("need_weights") != Some(&Json::Bool(false));
                let masks = Masks {
                    key_padding: padding.as_ref(),
                    attn: attn.as_ref(),
                    causal: false,
                    need_weights,
                    each_head,
                };
                let (y, weights) = m.forward_with(&x[0], k, v, &masks)?;
                Ok([Some(y), weights].into_iter().flatten().collect())
            }
            Any::Bag(m) => Ok(vec![m.forward(&x[0], x.get(1))?]),
            Any::Embedding(m) => Ok(vec![m.forward(&x[0])?]),
            Any::Sequential(m) => Ok(vec![m.forward(&x[0])?]),
        }
    }
}

/// Runs a case, local or with the parameters and inputs that lie as the layouts say, as far as they have the dims.
fn check(number: usize, case: &Json, mesh: Option<(&Placement, Sbp, Sbp)>) -> Result<()> {
    let what = format!("case {number}, {} {}", case["kind"], case["config"]);
    let mut module = Any::new(case["kind"].as_str().unwrap(), &case["config"])?;
    let of = |sbp: Sbp, t: &Tensor| match sbp {
        Sbp::Split(d) if d < t.ndim() => NdSbp::from(Sbp::Split(d)),
        Sbp::Split(_) => NdSbp::from(Sbp::Broadcast),
        s => NdSbp::from(s),
    };
    let names: Vec<(String, NdSbp)> = match mesh {
        Some((_, parameters, _)) => {
            module.module().named_parameters().into_iter().map(|(n, t)| (n, of(parameters, &t))).collect()
        }
        None => vec![],
    };
    if let Some((mesh, ..)) = mesh {
        let rules: Vec<(&str, NdSbp)> = names.iter().map(|(n, s)| (n.as_str(), s.clone())).collect();
        module.lay_out(mesh, &rules)?;
    }
    let state: Vec<(String, Tensor)> =
        case["state"].as_object().unwrap().iter().map(|(n, v)| Ok((n.clone(), tensor(v)?))).collect::<Result<_>>()?;
    module.module().load_tensors(&state, true)?;
    let place = |v: &Json| -> Result<Tensor> {
        let t = tensor(v)?;
        match mesh {
            None => Ok(t),
            Some((mesh, _, inputs)) => distribute(&t, (mesh, of(inputs, &t))),
        }
    };
    let inputs: Vec<Tensor> = case["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| {
            let t = place(v)?;
            if t.dtype().is_float() { t.requires_grad_(true) } else { Ok(t) }
        })
        .collect::<Result<_>>()?;
    let outs = module.run(&inputs, &case["options"], &place)?;
    let wants = case["outputs"].as_array().unwrap();
    assert_eq!(outs.len(), wants.len(), "{what}");
    for (i, (o, w)) in outs.iter().zip(wants).enumerate() {
        near(&format!("{what}: output {i}"), o, w, 1e-11)?;
    }
    let dy: Vec<Option<Tensor>> =
        case["dy"].as_array().unwrap().iter().map(|v| place(v).map(Some)).collect::<Result<_>>()?;
    let named = module.module().named_parameters();
    let wrt: Vec<&Tensor> = inputs.iter().filter(|t| t.requires_grad()).chain(named.iter().map(|(_, t)| t)).collect();
    let mut found = grad_from(&outs, &wrt, &dy, &BackwardOptions::default())?.into_iter();
    let wanted = case["grads"].as_array().unwrap().iter().filter(|v| !v.is_null());
    let wanted = wanted.chain(named.iter().map(|(n, _)| &case["parameter_grads"][n]));
    for (i, w) in wanted.enumerate() {
        near(&format!("{what}: gradient {i}"), &found.next().flatten().unwrap(), w, 1e-11)?;
    }
    Ok(())
}

#[test]
fn modules_give_pytorchs_values_and_gradients() {
    for (i, case) in cases(include_str!("../golden/modules.json")).iter().enumerate() {
        check(i, case, None).unwrap();
    }
}

#[test]
fn and_so_they_do_on_ranks_in_any_layout() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        for (i, case) in cases(include_str!("../golden/modules.json")).iter().enumerate() {
            for parameters in [Sbp::Broadcast, Sbp::Split(0), Sbp::Split(1)] {
                for inputs in [Sbp::Broadcast, Sbp::Split(0), Sbp::Split(1), Sbp::Split(2)] {
                    check(i, case, Some((&mesh, parameters, inputs)))?;
                }
            }
        }
        Ok(())
    })
    .unwrap();
}

#[derive(oflow::nn::Module)]
struct Net {
    fc: Linear,
    drop: Dropout,
    mean: Buffer,
    table: Buffer,
    rest: Vec<Linear>,
}

fn net() -> Result<Net> {
    let of = |n: f64| full([4], n, Device::Cpu);
    Ok(Net {
        fc: Linear::new(3, 4, Device::Cpu)?,
        drop: Dropout::new(0.5),
        mean: Buffer::new(of(1.0)?),
        table: Buffer::transient(of(2.0)?),
        rest: vec![Linear::without_bias(4, 2, Device::Cpu)?],
    })
}

#[test]
fn buffers_are_placed_and_kept_and_not_trained() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let mut m = net()?;
        assert_eq!(m.parameters().len(), 3);
        m.to_global(&mesh, &[("mean", sbp![S(0)])])?;
        assert_eq!((m.mean.tensor().sbp()?, m.table.tensor().sbp()?), (&sbp![S(0)], &sbp![B]));
        assert!(!m.mean.tensor().requires_grad());
        m.mean.tensor().copy_(&full([4], 7.0, (&mesh, sbp![S(0)]))?)?;
        let mut to = SaveState::new();
        m.save_state(&mut to)?;
        let (tensors, values) = to.into_parts();
        let names: Vec<&str> = tensors.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["fc.weight", "fc.bias", "rest.0.weight", "mean"]);
        let mut other = net()?;
        let mut from = LoadState::new(names.iter().copied(), &values);
        other.load_state(&mut from)?;
        assert_eq!(from.into_asked().fills.len(), 4);
        let back = other.load_tensors(
            &tensors.iter().map(|(n, t)| Ok((n.clone(), t.to_local()?))).collect::<Result<Vec<_>>>()?[..0],
            false,
        )?;
        assert_eq!(back.missing.len(), 4);
        let e = m.to_global(&mesh, &[("men", sbp![B])]).unwrap_err().to_string();
        assert!(e.contains("'men' matches no parameter") && e.contains("mean"), "{e}");
        let e = m.to_global(&mesh, &[("mean", sbp![S(1)])]).unwrap_err().to_string();
        assert!(e.contains("buffer 'mean'"), "{e}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn loads_tell_what_is_missing_and_what_is_too_much() {
    let m = net().unwrap();
    let mut given = m.state_tensors();
    given[0].1 = full([4, 3], 5.0, Device::Cpu).unwrap();
    assert_eq!(m.load_tensors(&given, true).unwrap(), Default::default());
    assert_eq!(m.fc.weight.to_vec::<f32>().unwrap(), [5.0; 12]);
    given[0].0 = "fc.wight".into();
    given[1].1 = full([4], 9.0, Device::Cpu).unwrap();
    let e = m.load_tensors(&given, true).unwrap_err().to_string();
    assert!(e.contains("missing names: fc.weight; unexpected names: fc.wight"), "{e}");
    assert!(m.fc.bias.as_ref().unwrap().to_vec::<f32>().unwrap() != [9.0; 4]);
    let left = m.load_tensors(&given, false).unwrap();
    assert_eq!((left.missing, left.unexpected), (vec!["fc.weight".to_string()], vec!["fc.wight".to_string()]));
    assert_eq!(m.fc.bias.as_ref().unwrap().to_vec::<f32>().unwrap(), [9.0; 4]);
    given[1].1 = full([5], 1.0, Device::Cpu).unwrap();
    let e = m.load_tensors(&given, false).unwrap_err().to_string();
    assert!(e.contains("'fc.bias' has shape [5], in the module [4]"), "{e}");
}

#[test]
fn frozen_parameters_stay() {
    let m = net().unwrap();
    m.freeze("fc.*").unwrap();
    let mut opt = AdamW::new(m.parameters(), AdamWOptions::default());
    let x = ones([2, 3], Device::Cpu).unwrap();
    let before = m.fc.weight.to_vec::<f32>().unwrap();
    let run = || m.rest[0].forward(&m.fc.forward(&x).unwrap()).unwrap().sum(()).unwrap().backward().unwrap();
    run();
    assert!(m.fc.weight.grad().is_none() && m.rest[0].weight.grad().is_some());
    assert!(m.unused_parameters().is_empty());
    opt.step().unwrap();
    assert_eq!(m.fc.weight.to_vec::<f32>().unwrap(), before);
    m.unfreeze("*").unwrap();
    run();
    opt.step().unwrap();
    assert!(m.fc.weight.to_vec::<f32>().unwrap() != before);
    let e = m.freeze("fd.*").unwrap_err().to_string();
    assert!(e.contains("'fd.*' matches no parameter") && e.contains("fc.weight"), "{e}");
}

#[test]
fn a_replaced_module_is_noticed_by_its_optimizer() {
    let mut m = net().unwrap();
    let mut opt = AdamW::new(m.parameters(), AdamWOptions::default());
    let old = replace(&mut m.fc, Linear::new(3, 4, Device::Cpu).unwrap());
    assert!(!old.weight.same(&m.fc.weight));
    let x = ones([2, 3], Device::Cpu).unwrap();
    m.rest[0].forward(&m.fc.forward(&x).unwrap()).unwrap().sum(()).unwrap().backward().unwrap();
    let e = opt.step().unwrap_err().to_string();
    assert!(e.contains("modules.rs") && e.contains("got another tensor in its place"), "{e}");
    let mut net = Sequential::new().add(Linear::new(2, 2, Device::Cpu).unwrap());
    assert!(net.replace("0", Dropout::new(0.0)).is_ok() && net.parameters().is_empty());
    assert!(net.replace("1", Dropout::new(0.0)).err().unwrap().to_string().contains("unknown module '1'"));
}

#[test]
fn errors_of_modules_name_the_module_and_the_shapes() {
    let x = ones([2, 3], Device::Cpu).unwrap();
    let net = Sequential::new()
        .add(Linear::new(3, 4, Device::Cpu).unwrap())
        .named("head", Linear::new(5, 2, Device::Cpu).unwrap());
    let e = net.forward(&x).unwrap_err().to_string();
    assert!(e.contains("modules.rs") && e.contains("in head"), "{e}");
    let lstm = Lstm::new(RecurrentOptions::new(3, 4), Device::Cpu).unwrap();
    let e = lstm.forward(&ones([2, 2, 5], Device::Cpu).unwrap(), None).err().unwrap().to_string();
    assert!(e.contains("lstm(") && e.contains("[16, 3]"), "{e}");
    let e = lstm.forward(&ones([0, 2, 3], Device::Cpu).unwrap(), None).err().unwrap().to_string();
    assert!(e.contains("no steps"), "{e}");
    let e = MultiheadAttention::new(MultiheadOptions::new(5, 2), Device::Cpu).err().unwrap().to_string();
    assert!(e.contains("cannot be cut into 2 heads"), "{e}");
}

/// Dropout between layers and of attention weights only drops in training.
#[test]
fn dropout_of_networks_ends_with_training() {
    oflow::manual_seed(3);
    let options = RecurrentOptions { num_layers: 2, dropout: 0.5, ..RecurrentOptions::new(3, 4) };
    let mut lstm = Lstm::new(options, Device::Cpu).unwrap();
    let x = randn([5, 2, 3], Device::Cpu).unwrap();
    let run = |lstm: &Lstm| lstm.forward(&x, None).unwrap().0.to_vec::<f32>().unwrap();
    assert!(run(&lstm) != run(&lstm));
    lstm.train(false);
    assert_eq!(run(&lstm), run(&lstm));
    let mut heads =
        MultiheadAttention::new(MultiheadOptions { dropout: 0.5, ..MultiheadOptions::new(4, 2) }, Device::Cpu).unwrap();
    let q = randn([5, 2, 4], Device::Cpu).unwrap();
    let run = |m: &MultiheadAttention| m.forward(&q, &q, &q).unwrap().to_vec::<f32>().unwrap();
    assert!(run(&heads) != run(&heads));
    heads.train(false);
    assert_eq!(run(&heads), run(&heads));
}
