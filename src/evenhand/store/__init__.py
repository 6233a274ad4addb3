"""Saving and loading of forecasters as folders, without pickle.

`model.json` contains everything except arrays, and the hashes of all files including itself. Arrays
are stored as safetensors, scikit-learn estimators as skops files with a fixed list of allowed
types. Models that skops cannot store safely are recorded by name and attached again at load. All
other files have their hash in their names, and `model.json` is replaced last and atomically: an
interrupted save leaves the old model unchanged, with its certificate and report.
"""

from evenhand.store.certificates import CERTIFICATE, REPORT, ids_digest, people_record
from evenhand.store.certificates import (
    read_forecast_certificate as read_forecast_certificate,
)
from evenhand.store.certificates import (
    write_forecast_certificate as write_forecast_certificate,
)
from evenhand.store.estimators import check_archive as check_archive
from evenhand.store.manifest import FORMAT, check_folder
from evenhand.store.manifest import digest as digest
from evenhand.store.manifest import sealed as sealed
from evenhand.store.models import CERTIFICATE_FOLDER as CERTIFICATE_FOLDER
from evenhand.store.models import MAPS_FOLDER as MAPS_FOLDER
from evenhand.store.models import MODEL_FOLDER as MODEL_FOLDER
from evenhand.store.models import certificate_at as certificate_at
from evenhand.store.models import folder_kind as folder_kind
from evenhand.store.models import load, read_certificate, save, write_model
from evenhand.store.models import load_with_hash as load_with_hash
from evenhand.store.packing import PackedModel, pack
from evenhand.store.packing import foreign_parts as foreign_parts

__all__ = [
    "CERTIFICATE",
    "FORMAT",
    "REPORT",
    "PackedModel",
    "check_folder",
    "ids_digest",
    "load",
    "pack",
    "people_record",
    "read_certificate",
    "save",
    "write_model",
]
