"""Server of the forecasts of one model, each of which is logged before it is sent.

    pip install 'evenhand[service]' fastapi uvicorn httptools uvloop
    export EVENHAND_MODEL=model EVENHAND_LOG=decisions.sqlite EVENHAND_CONTEXT=2026-11
    export EVENHAND_KEY_FILE=key EVENHAND_TOKEN_FILE=token
    uvicorn serve:app --workers 2 --limit-concurrency 500

Run it behind a proxy that adds TLS and limits slow and frequent requests.
"""

import gc
import hmac
import json
import logging
import os
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import ClientDisconnect
from typing_extensions import TypedDict

from evenhand import InputError, Service
from evenhand.draws import KeyedDraws
from evenhand.service import LogError, open_log

MOST_BYTES = 64 * 1024

model, log, context = (os.environ[f"EVENHAND_{name}"] for name in ("MODEL", "LOG", "CONTEXT"))
key = Path(os.environ["EVENHAND_KEY_FILE"]).read_bytes().strip(b"\r\n")
token = Path(os.environ["EVENHAND_TOKEN_FILE"]).read_bytes().strip()
if len(token) < 32:
    raise SystemExit("the token needs at least 32 characters, as secrets.token_hex() has")
service = Service(model, KeyedDraws(key, context), open_log(log))

types = {"number": float, "boolean": bool, "category": str, "date": str}
columns = {}
for column in service.schema.columns:
    kind = types.get(column.kind, str | float | bool | None)
    # null stands for a missing value, where training had some
    columns[column.name] = kind | None if column.n_missing else kind
Id = Annotated[str, Field(max_length=200)]


# strict, so that neither "1" nor true is a number
class Message(BaseModel, strict=True, extra="forbid", allow_inf_nan=False):
    """Body of a request."""


class Asked(Message):
    """Request for the forecast of a person."""

    person: Id
    row: TypedDict("Row", columns)


class Observed(Message):
    """Outcome of a forecast."""

    id: Id
    y: float


async def authorized(request: Request) -> None:
    """Refuse a request without the token, before its body is read."""
    given = request.headers.get("authorization", "").encode()
    if not hmac.compare_digest(given, b"Bearer " + token):
        raise HTTPException(401, "token missing or wrong", {"WWW-Authenticate": "Bearer"})


def body(kind: type[Message]) -> Any:
    """Return the dependency that reads the body of a request."""

    async def read(request: Request) -> Message:
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise HTTPException(415, "content-type: must be application/json")
        content = b""
        async for part in request.stream():
            content += part
            if len(content) > MOST_BYTES:
                raise HTTPException(413, f"body: must have at most {MOST_BYTES} bytes")
        message = kind.model_validate_json(content)
        json.loads(content, object_pairs_hook=refuse_repeated)
        return message

    return Depends(read)


def refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a repeated field, of which another program may read the other value."""
    name, times = Counter(name for name, _ in pairs).most_common(1)[0]
    if times > 1:
        raise HTTPException(422, f"{name}: the field is repeated")


# the address of a request may contain an id or the token by mistake
logging.getLogger("uvicorn.access").disabled = True
app = FastAPI(dependencies=[Depends(authorized)], openapi_url=None, redirect_slashes=False)


@app.post("/forecasts")
def forecast(asked: Annotated[Asked, body(Asked)]) -> JSONResponse:
    """Return the forecast of a person; the logged one if it was served before."""
    return JSONResponse(service.forecast(asked.person, asked.row).to_dict())


@app.post("/outcomes")
def outcome(observed: Annotated[Observed, body(Observed)]) -> JSONResponse:
    """Log the outcome of a forecast, or its correction."""
    return JSONResponse({"number": service.record_outcome(observed.id, observed.y).number})


# a plain route of Starlette, which needs no token
app.add_route("/health", lambda request: JSONResponse({"number": service.log.head().number}))


@app.exception_handler(ValidationError)
@app.exception_handler(InputError)
@app.exception_handler(ClientDisconnect)
async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer with one line that names the field; with 503 while nothing can be logged."""
    if isinstance(error, LogError):
        logging.getLogger("uvicorn.error").error(error)
        return JSONResponse({"detail": "the decision log cannot be used; try again later"}, 503)
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False)[0]
        field = ".".join(map(str, first["loc"]))[:200]
        error = f"{field or 'body'}: {first['msg']}"
    # clients need not know where the log is
    return JSONResponse({"detail": str(error).replace(service.log.source, "the log")}, 422)


# what was loaded stays: to look through it for garbage would stop all requests for 0.2 seconds
gc.freeze()
