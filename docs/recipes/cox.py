"""Survival probabilities of a Cox model, as columns of tables that evenhand reads.

    pip install evenhand lifelines scikit-survival
    python cox.py
    evenhand audit test.csv --forecast survival=s,event=died,horizon=10 --target years \
        --id id --groups decade,sex --out audit.html
    evenhand recalibrate past.csv --forecast survival=s,event=died,horizon=10 --target years \
        --by decade --out repaired
    evenhand predict test.csv --forecast repaired --id id \
        --keep years,died,age,decade,sex --out repaired.csv
    evenhand audit repaired.csv --forecast survival=survival_,event=died,horizon=10 --target years \
        --id id --groups decade,sex --features age,sex --out repaired.html
    evenhand randomize proof.csv --forecast survival=s,event=died,horizon=10 --target years \
        --entered year --id id --features age,sex --group-mass 0.5 --goal 0.4 \
        --out proven
    evenhand predict new.csv --forecast proven --id id --key-file draws.key --out served.csv

The people are residents of Olmsted County, Minnesota, aged 50 or older, whose blood was tested in
1995 to 2003 (flchain: Kyle et al., 2006; Dispenzieri et al., 2012). The model knows their sex and
two blood values, but not their age. By the end of the study, 13% had been followed for less than 10
years without dying: their times are cut off.
"""

import secrets
from pathlib import Path

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from sksurv.datasets import load_flchain

features, outcomes = load_flchain()
people = pd.DataFrame(
    {
        "id": [f"p{row}" for row in range(len(features))],
        "age": features["age"],
        "decade": pd.cut(features["age"], [0, 59, 69, 79, 120], labels=[50, 60, 70, 80]).astype(
            int
        ),
        "sex": features["sex"].astype(str),
        "year": features["sample.yr"].astype(int),
        "light_chains": np.log(features["kappa"] + features["lambda"]),
        # deaths on the day of the test are half a day later
        "years": np.maximum(outcomes["futime"], 0.5) / 365.25,
        "died": outcomes["death"].astype(int),
    }
)
people = people.sample(frac=1, random_state=0)
train, others = people[:1500], people[1500:]

model = CoxPHFitter().fit(train, "years", "died", formula="sex + light_chains")
times = np.arange(0.5, 10.1, 0.5)
curves = model.predict_survival_function(others, times=times).T.add_prefix("s")
others = pd.concat([others, curves], axis=1)

# each table has people that no other step has seen: audit, repair, certificate, service
for name, first, last in (("test", 0, 2200), ("past", 2200, 4400), ("proof", 4400, 6274)):
    others[first:last].to_csv(f"{name}.csv", index=False)
others[6274:].drop(columns=["years", "died"]).to_csv("new.csv", index=False)
key = Path("draws.key")
key.touch(mode=0o600)
key.write_text(secrets.token_hex(32))
