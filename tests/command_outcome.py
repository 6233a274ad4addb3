"""What a call of the command did, and files, for tests of it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """What a call of the command did."""

    code: int
    out: str
    err: str

    def done(self):
        """Return the outcome of a call that must succeed."""
        assert self.code == 0, self.err + self.out
        return self

    def complaint(self):
        """Return the one line on standard error of a call that was refused."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.count("\n") == 1
        assert self.err.startswith("error: ")
        assert self.err.rstrip("\n").isprintable()
        return self.err


KEY = b"a secret of enough bytes"


def written(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False, date_format="%Y-%m-%d")
    return path


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def predict_args(place, table, out, *more, model="model"):
    """Return a call that serves the forecasts of a model in a folder, with the key there."""
    names = ("--forecast", place / model, "--id", "id", "--key-file", place / "key")
    return ("predict", table, *names, "--out", out, *more)


def key_file(path, key=KEY):
    """Write a key that its owner alone can read."""
    path.write_bytes(key)
    path.chmod(0o600)
    return path
