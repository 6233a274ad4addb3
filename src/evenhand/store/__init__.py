"""Saving and loading of forecasters as folders, without pickle.

`model.json` contains everything except arrays, and the hashes of all files including itself. Arrays
are stored as safetensors, scikit-learn estimators as skops files with a fixed list of allowed
types, LightGBM's trees as text. Models that cannot be stored safely are recorded by name and
attached again at load. All other files have their hash in their names, and `model.json` is replaced
last and atomically: an interrupted save leaves the old model unchanged, with its certificate and
report.
"""

from evenhand.store.models import (
    CERTIFICATE,
    REPORT,
    digest,
    foreign_parts,
    ids_digest,
    is_model_folder,
    load,
    load_with_hash,
    pack,
    people_record,
    read_certificate,
    save,
    write_model,
)
