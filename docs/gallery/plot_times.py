"""
Times that are cut off: audit and repair a Cox model
====================================================

A Cox model predicts when breast cancer recurs, without knowing in how many lymph nodes it was
found. Many women were followed for less than three years. An audit compares the predicted
probability of a recurrence within three years with the Kaplan-Meier estimate of each group, and a
recalibration map for each group brings them together.
"""

import matplotlib.pyplot as plt
import numpy as np
from lifelines import CoxPHFitter
from lifelines.datasets import load_lymph_node
from sklearn.frozen import FrozenEstimator

from evenhand import Outcomes, RecalibratedRegressor, Search, audit
from evenhand.figures import plot_survival
from evenhand.forecasters import SurvivalModel

# %%
# The table is bundled with lifelines: 686 women in a study of the German Breast Cancer Study Group.
# The event is a recurrence; for 387 of them the time is cut off.

women = load_lymph_node().sample(frac=1, random_state=0).reset_index(drop=True)
women["hormones"] = np.where(women["hormone"] == 2, "yes", "no")
women["affected"] = np.where(women["nodes"] < 4, "1 to 3 nodes", "4 nodes or more")
fitted, repaired, audited = women[:150], women[150:450], women[450:]

cox = CoxPHFitter().fit(fitted, "rectime", "censrec", formula="age + size + grade + hormones")
three_years = 3 * 365
model = SurvivalModel(cox, horizon=three_years)


def known_of(rows):
    return Outcomes(rows["rectime"], rows["censrec"], horizon=three_years)


repair = RecalibratedRegressor(FrozenEstimator(model), by="affected", random_state=0)
repair.fit(repaired, known_of(repaired))

# %%
# Both are audited on the same 236 rows, which neither has seen. ``km_error`` is the size of an
# error by the Kaplan-Meier estimate, and ``most_error`` its largest value whatever happened to the
# women who were lost before three years.


def audit_of(forecaster):
    return audit(
        forecaster,
        audited,
        known_of(audited),
        groups=["affected"],
        search=Search(learned_masses=()),
        random_state=0,
    )


audits = {"Cox model": audit_of(model), "Repaired by number of nodes": audit_of(repair)}
columns = ["group", "n", "off", "km_error"]
columns += ["km_error_low", "km_error_high", "least_error", "most_error"]
audits["Cox model"].groups[columns].round(3)

# %%
# Diamonds are predicted probabilities, and intervals those of the Kaplan-Meier estimates, for all
# groups simultaneously. The grey range counts all women who were lost as no recurrence, or as a
# recurrence: it assumes nothing.

fig, axes = plt.subplots(2, 1, figsize=(7, 5.4), sharex=True, layout="constrained")
for ax, (name, found) in zip(axes, audits.items(), strict=True):
    plot_survival(found.survival, ax)
    ax.set_title(name)
    ax.get_legend().remove()
fig.suptitle("Recurrence within three years")
axes[0].set(xlabel="", xlim=(0, 1))
axes[1].set_xlabel("Probability")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
