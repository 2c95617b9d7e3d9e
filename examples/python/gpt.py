"""Trains a byte-level GPT on a text and samples from it, on one rank or on several:

    oflaunch --nproc 2 examples/python/gpt.py -- --parallel tp

It computes what examples/gpt.rs computes: the same data, seeds and losses. The model is in common/model.py.
"""

import pathlib

import oflow
from common import Parser, Setup
from common.model import Gpt
from common.options import count
from common.tokens import BYTES, draw, synthetic_loader, text_loader, uniform
from oflow.optim import AdamW, Schedule, clip_grad_norm_

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "data" / "corpus.txt"
# Vocabulary, layers, heads, width, context length, rows of a batch.
PRESETS = {"tiny": (BYTES, 4, 4, 256, 128, 16), "gpt2": (50_304, 12, 12, 768, 1024, 8)}


@oflow.no_grad()
def sample(model, mesh, seq, prompt, length, temperature, seed):
    """Continues ``prompt`` by ``length`` bytes. Reading the logits gives every rank the same numbers, so all draw the same bytes."""
    text = bytearray(prompt.encode())
    whole = {"placement": mesh, "sbp": (oflow.sbp.broadcast,) * 2}
    for i in range(length):
        # The window has a fixed length. Attention is causal, so the padding after the last byte has no effect.
        window = text[-seq:]
        ids = oflow.distribute(oflow.tensor([[*window, *([0] * (seq - len(window)))]]), **whole)
        logits = model(ids).tolist()[0][len(window) - 1]
        text.append(draw(logits, temperature, uniform(seed, i)))
    return text.decode(errors="replace")


def options():
    parser = Parser("Trains a byte-level GPT and prints a sample.")
    add = parser.add_argument
    add("--preset", choices=PRESETS, default="tiny", help="sizes; the options below override them. gpt2 has 124M parameters")
    add("--text", metavar="FILE", default=CORPUS, help="training text")
    add("--synthetic", action="store_true", help="random tokens instead of a text (always if the vocabulary is not 256)")
    for name, what in zip(
        ("vocab", "layers", "heads", "dim", "seq", "batch"),
        ("size of the vocabulary", "number of blocks", "attention heads of a block", "width", "tokens of context", "rows of a batch"),
    ):
        add(f"--{name}", type=count, help=f"{what} (default: of the preset)")
    add("--steps", type=count, default=300, help="training steps")
    add("--lr", type=float, default=1e-3, help="learning rate")
    add("--clip", type=float, default=1.0, help="largest norm of all gradients; 0 does not clip")
    add("--dropout", type=float, default=0.0, help="probability of dropping on the residual branches")
    add("--sample", type=int, help="bytes to generate at the end (default: 300 after a text, else 0)")
    add("--temperature", type=float, default=0.7, help="of the sample; 0 takes the most likely byte")
    o = parser.parse()
    for name, value in zip(("vocab", "layers", "heads", "dim", "seq", "batch"), PRESETS[o.preset]):
        if getattr(o, name) is None:
            setattr(o, name, value)
    o.synthetic = o.synthetic or o.vocab != BYTES
    if o.sample is None:
        o.sample = 0 if o.synthetic else 300
    if o.sample and o.vocab != BYTES:
        parser.error("--sample writes bytes: it needs --vocab 256")
    return o


def main():
    o = options()
    setup = Setup(o)
    mesh, seed, B = setup.mesh, setup.seed, oflow.sbp.broadcast

    tied = o.preset == "gpt2"
    layout = {"placement": mesh, "sbp": (B, B), "dtype": setup.dtype}
    model = Gpt(o.vocab, o.layers, o.dim, o.heads, o.seq, dropout=o.dropout, tied=tied, **layout)
    if setup.splits_weights:
        model.to_global(mesh, rules=Gpt.SPLIT_RULES)
    setup.describe(model)
    if o.synthetic:
        train = synthetic_loader(mesh, o.batch, o.vocab, o.seq, seed)
    else:
        train = text_loader(pathlib.Path(o.text).read_bytes(), mesh, o.batch, o.seq, seed)
    batches = train.stream()
    opt = AdamW(model.parameters(), lr=o.lr)
    schedule = Schedule.warmup_cosine(warmup=o.steps // 15, total=o.steps, floor=0.1)

    training = setup.start(o.steps, {"model": model, "opt": opt, "data": batches})
    for step in training.steps():
        seen, following = next(batches)
        with setup.autocast():
            loss = oflow.cross_entropy(model(seen), following, dim=-1)
        opt.zero_grad()
        training.backward(loss)
        training.unscale(opt)
        if o.clip > 0:
            clip_grad_norm_(model.parameters(), o.clip)
        opt.param_groups[0]["lr"] = o.lr * schedule.at(step)
        training.step(opt)
        training.after(step, loss)
    outcome = training.finish()

    model.eval()
    if o.sample > 0:
        outcome.say(sample(model, mesh, o.seq, "The ", o.sample, o.temperature, seed))
    outcome.print(tokens_per_s=o.batch * o.seq / outcome.ms * 1e3)
    learned = o.synthetic or outcome.last < 0.7 * outcome.first
    outcome.expect(200, learned, f"the loss is still {outcome.last:.2f}, after {outcome.first:.2f}")


if __name__ == "__main__":
    main()
