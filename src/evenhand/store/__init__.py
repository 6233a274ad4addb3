"""Save and load forecasters as folders without pickle.

`model.json` holds everything but arrays, a hash of each other file and one of itself; arrays are
safetensors, scikit-learn parts skops files with a fixed list of allowed types. Models that skops
cannot store safely are only named; they are attached again at load. Other files carry their hash in
their names and `model.json` is replaced last, in one step: a save that is interrupted leaves the
old model as it was, with its certificate and report.
"""

from evenhand.store.certificates import CERTIFICATE, REPORT, ids_digest, people_record
from evenhand.store.folder import check_folder, write_model
from evenhand.store.manifest import FORMAT
from evenhand.store.models import load, read_certificate, save
from evenhand.store.packing import PackedModel, pack

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
