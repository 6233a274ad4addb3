"""Saving and loading of forecasters as folders, without pickle.

`model.json` contains everything except arrays, and the hashes of all files including itself. Arrays
are stored as safetensors, scikit-learn estimators as skops files with a fixed list of allowed
types, LightGBM's trees as text. Models that cannot be stored safely are recorded by name and
attached again at load. All other files have their hash in their names, and `model.json` is replaced
last and atomically: an interrupted save leaves the old model unchanged, with its certificate and
report.
"""

from __future__ import annotations

from evenhand.store.models import CERTIFICATE as CERTIFICATE
from evenhand.store.models import REPORT as REPORT
from evenhand.store.models import digest as digest
from evenhand.store.models import foreign_parts as foreign_parts
from evenhand.store.models import ids_digest as ids_digest
from evenhand.store.models import is_model_folder as is_model_folder
from evenhand.store.models import load as load
from evenhand.store.models import load_with_hash as load_with_hash
from evenhand.store.models import pack as pack
from evenhand.store.models import people_record as people_record
from evenhand.store.models import read_certificate as read_certificate
from evenhand.store.models import save as save
from evenhand.store.models import write_model as write_model
