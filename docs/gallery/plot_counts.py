"""
Counts: audit and repair a Poisson model
========================================

A mean alone suggests a Poisson distribution. Visits to a doctor vary much more than that, so 80%
intervals cover far too few of them. An audit shows it for each insurance plan, and a recalibration
map for each plan repairs it.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand import CountRegressor, RecalibratedRegressor, Search, audit
from evenhand.figures import as_percent

# %%
# The table is bundled with statsmodels: visits within a year, from the RAND health insurance
# experiment. It has several rows of most people and no ids; one row is kept of all that agree in
# what belongs to a person.

table = sm.datasets.randhie.load_pandas().data
table = table.drop_duplicates(["lncoins", "idp", "lpi", "fmde", "physlm", "disea"])
table = table.sample(frac=1, random_state=0).reset_index(drop=True)
X, y = table.drop(columns="mdvis"), table["mdvis"]
X["plan"] = np.where(X["lncoins"] == 0, "free", "shares costs")
fitted, repaired, audited = slice(0, 750), slice(750, 1500), slice(1500, None)

used = ["lncoins", "disea", "physlm", "hlthg", "hlthf", "hlthp"]
means = make_pipeline(make_column_transformer((StandardScaler(), used)), PoissonRegressor(alpha=0))
model = CountRegressor(means, family="poisson", random_state=0).fit(X[fitted], y[fitted])
repair = RecalibratedRegressor(FrozenEstimator(model), by="plan", random_state=0)
repair = repair.fit(X[repaired], y[repaired])

# %%
# Both are audited on the same 800 rows, which neither has seen.

models = {"Poisson": model, "repaired by plan": repair}
audits = {
    name: audit(
        one,
        X[audited],
        y[audited],
        groups=["plan"],
        search=Search(learned_masses=()),
        random_state=0,
    )
    for name, one in models.items()
}
audits["Poisson"].groups[["group", "n", "error", "coverage_80"]].round(3)

# %%
# Left, the PITs of all rows. A count has a cell of PITs, whose length is its probability, and is
# spread evenly over its cell. Under calibration each of the 20 bins contains 5% of the outcomes;
# the first and the last contain far more, as Poisson forecasts are too narrow. Right, the share of
# outcomes that 80% intervals cover, averaged over the cells.

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
colours = ("#d55e00", "#0072b2")
for (name, found), colour, offset in zip(audits.items(), colours, (0.18, -0.18), strict=True):
    bins = found.histogram
    edges = [*bins["start"], 1]
    left.stairs(bins["share"], edges, baseline=None, color=colour, linewidth=2, label=name)
    rows = found.groups
    place = np.arange(len(rows))[::-1] + offset
    right.barh(place, rows["coverage_80"], height=0.34, color=colour, label=name)
left.axhline(0.05, color="#757575", linestyle="--", linewidth=1)
left.set(
    title="PITs of all people",
    xlabel="PIT",
    ylabel="share of outcomes",
    ylim=(0, None),
    xlim=(0, 1),
)
right.axvline(0.8, color="#757575", linestyle="--", linewidth=1)
right.set_yticks(np.arange(len(rows))[::-1], [name.replace("= ", "=\n") for name in rows["group"]])
right.set(title="Coverage of 80% intervals", xlabel="share of outcomes", xlim=(0, 1))
left.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.set_major_formatter(as_percent)
left.yaxis.set_major_formatter(as_percent)
