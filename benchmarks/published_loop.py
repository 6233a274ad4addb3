"""One model of the paper: the published training loop and evaluation, compared with ours.

The plain loop follows the paper: a network module, Adam with step 1e-4, batches of 128 from a data
loader, dropout 0.5, a check of the validation loss every 100 steps, and early stopping after 20
checks without improvement. Both stop on the same validation rows, and are compared by the paper's
loss on them over the same draws. The evaluation is the published one (2,000 passes for every person
and size, of which a few are timed) against `worst_group_curve` over 64 draws at 50 sizes. Both run
in turn in one process, so that a busy machine slows both; medians of ratios are compared. Exits
with 1 if training takes more than a tenth, evaluation more than a hundredth, or our loss is worse.

    python benchmarks/record.py published_loop
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from evenhand import PAICRegressor
from evenhand.draws import jittered
from evenhand.search import worst_group_curve
from worst_groups import PASSES, published_group

# tables of the studies, which lie beside this folder, outside the package
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reproduction.datasets import load_crime

ALPHA = 0.1
CHECK_EVERY, PATIENCE, MOST_STEPS = 100, 20, 10_000
OUR_STEPS = 300
"""The step size falls to a tenth within these: more of them gain nothing for a single alpha
here."""

N_VALIDATION = 500
SIZES = np.linspace(0.02, 1.0, 50)


class Network(nn.Module):
    """Three hidden layers of 100; the draw joins the inputs of the second and third."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.first, self.second, self.third = (
            nn.Linear(n_inputs, 100),
            nn.Linear(101, 100),
            nn.Linear(101, 100),
        )
        self.last, self.dropout = nn.Linear(100, 2), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation, both of shape (n,)."""
        out = nn.functional.leaky_relu(self.first(x))
        out = nn.functional.leaky_relu(self.second(torch.cat([out, r[:, None]], dim=1)))
        out = nn.functional.leaky_relu(self.third(torch.cat([out, r[:, None]], dim=1)))
        out = self.last(self.dropout(out))
        return out[:, 0], 5 * torch.sigmoid(out[:, 1]) + 0.01


def loss_of(
    mean: torch.Tensor, std: torch.Tensor, y: torch.Tensor, r: torch.Tensor
) -> torch.Tensor:
    """The paper's loss of each row."""
    predicted = torch.distributions.Normal(mean, std)
    return (1 - ALPHA) * (predicted.cdf(y) - r).abs() - ALPHA * predicted.log_prob(y)


def plain_loop(
    X: torch.Tensor, y: torch.Tensor, X_val: torch.Tensor, y_val: torch.Tensor, seed: int
) -> Network:
    """Train as published."""
    torch.manual_seed(seed)
    model = Network(X.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(X, y), batch_size=128, shuffle=True
    )
    best, kept, waited, step = np.inf, model.state_dict(), 0, 0
    while True:
        for x_batch, y_batch in loader:
            model.train()
            r = torch.rand(len(x_batch))
            optimizer.zero_grad()
            loss_of(*model(x_batch, r), y_batch, r).mean().backward()
            optimizer.step()
            step += 1
            if step % CHECK_EVERY == 0:
                model.eval()
                with torch.no_grad():
                    r = torch.rand(len(X_val))
                    value = float(loss_of(*model(X_val, r), y_val, r).mean())
                waited = 0 if value < best else waited + 1
                if value < best:
                    best, kept = value, {name: p.clone() for name, p in model.state_dict().items()}
                if waited >= PATIENCE or step >= MOST_STEPS:
                    model.load_state_dict(kept)
                    return model.eval()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="communities.data, if it is not fetched or in EVENHAND_DATA")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    crime = load_crime(options.data)
    X, y = crime.X.to_numpy(dtype=np.float64), crime.y.to_numpy(dtype=np.float64)
    draws = jittered(N_VALIDATION, 64, 0)
    training, evaluation, losses = [], [], []
    for seed in range(options.repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        held, learn = order[:N_VALIDATION], order[N_VALIDATION:]
        center, scale = X[learn].mean(axis=0), X[learn].std(axis=0) + 1e-12
        x = torch.as_tensor((X - center) / scale, dtype=torch.float32)
        target = torch.tensor(y, dtype=torch.float32)

        start = time.perf_counter()
        network = plain_loop(x[learn], target[learn], x[held], target[held], seed)
        plain = time.perf_counter() - start
        start = time.perf_counter()
        model = PAICRegressor(ALPHA, max_steps=OUR_STEPS, random_state=seed)
        model.fit(X[learn], y[learn], X_val=X[held], y_val=y[held])
        training.append((time.perf_counter() - start) / plain)

        def pit_of_plain(
            r: np.ndarray,
            network: Network = network,
            rows: torch.Tensor = x[held],
            y: torch.Tensor = target[held],
        ) -> np.ndarray:
            with torch.no_grad():
                mean, std = network(rows, torch.as_tensor(r, dtype=torch.float32))
                return torch.distributions.Normal(mean, std).cdf(y).double().numpy()

        start = time.perf_counter()
        published_group(pit_of_plain, N_VALIDATION, N_VALIDATION // 5, np.random.default_rng(seed))
        plain_evaluation = (time.perf_counter() - start) * len(SIZES)
        start = time.perf_counter()
        worst_group_curve(model.forecast(X[held], draws).pit(y[held]), SIZES, random_state=0)
        evaluation.append((time.perf_counter() - start) / plain_evaluation)

        ours = model.forecast(X[held], draws)
        own = (1 - ALPHA) * np.abs(ours.pit(y[held]) - draws) - ALPHA * ours.logpdf(y[held])
        with torch.no_grad():
            columns = [torch.as_tensor(column, dtype=torch.float32) for column in draws.T]
            theirs = torch.stack([loss_of(*network(x[held], r), target[held], r) for r in columns])
        losses.append((float(own.mean()), float(theirs.mean())))
        print(
            f"split {seed}: training {training[-1]:.3f} of {plain:.1f} s, validation loss"
            f" {losses[-1][0]:.4f} against {losses[-1][1]:.4f}; evaluation {evaluation[-1]:.5f} of"
            f" {plain_evaluation:.0f} s",
            flush=True,
        )
    better = np.mean([ours <= theirs for ours, theirs in losses])
    mean_ours, mean_theirs = np.mean(losses, axis=0)
    print(f"training: median ratio {np.median(training):.3f}, required: at most 0.1")
    print(
        f"evaluation ({PASSES} passes a size): median ratio {np.median(evaluation):.5f},"
        " required: at most 0.01"
    )
    print(
        f"validation loss: mean {mean_ours:.4f} against {mean_theirs:.4f}; ours is no worse on"
        f" {better:.0%} of splits"
    )
    good = np.median(training) <= 0.1 and np.median(evaluation) <= 0.01 and mean_ours <= mean_theirs
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
