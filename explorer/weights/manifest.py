"""manifest.json: which weights a cached folder holds, and how every file looked when it was complete."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from explorer.weights.model_files import ModelFiles

FILE_NAME = "manifest.json"
FORMAT = 1


@dataclass(frozen=True)
class StoredFile:
    """One file as it was written.

    Attributes:
        size: bytes.
        modified_ns: its time stamp. A copy to another machine changes it, and is hashed once there.
        sha256: of its content.
    """

    size: int
    modified_ns: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The fields of `ModelFiles` that do not depend on where the cache lies, and the files."""

    name: str
    weight_hash: str
    hash_of: str
    source: str
    detail: str
    dtype: str
    quantisation: str | None = None
    licence: str | None = None
    files: dict[str, StoredFile] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """The folder's manifest, or None if there is none that can be understood."""
        try:
            content: dict[str, Any] = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                return None
            content["files"] = {name: StoredFile(**stored) for name, stored in content["files"].items()}
            return cls(**content)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def write(self, folder: Path) -> "Manifest":
        """Hash all files of `folder`, flush them to the disk, and write the manifest last."""
        files = {}
        for path in sorted(folder.iterdir()):
            if path.name == FILE_NAME or not path.is_file():
                continue
            with path.open("rb+") as file:
                os.fsync(file.fileno())
            stat = path.stat()
            files[path.name] = StoredFile(stat.st_size, stat.st_mtime_ns, sha256_of(path))
        complete = replace(self, files=files)
        complete._store(folder)
        return complete

    def holds(self, folder: Path, *, verify: bool = False) -> bool:
        """Whether the folder's files still are what the manifest says.

        Sizes are always compared; content where the time stamp differs, or everywhere with `verify`.
        """
        touched = False
        for name, stored in self.files.items():
            try:
                stat = (folder / name).stat()
            except OSError:
                return False
            if stat.st_size != stored.size:
                return False
            moved = stat.st_mtime_ns != stored.modified_ns
            if (moved or verify) and sha256_of(folder / name) != stored.sha256:
                return False
            touched = touched or moved
        if touched:
            self._remember_times(folder)
        return bool(self.files)

    def files_at(self, folder: Path, *, from_cache: bool) -> ModelFiles:
        """The same as `ModelFiles`, for a folder at this place."""
        return ModelFiles(
            name=self.name,
            path=folder,
            weight_hash=self.weight_hash,
            source=self.source,
            detail=self.detail,
            hash_of=self.hash_of,
            dtype=self.dtype,
            quantisation=self.quantisation,
            licence=self.licence,
            from_cache=from_cache,
        )

    def _remember_times(self, folder: Path) -> None:
        """So that a copied cache is hashed once and not at every start; a read-only cache is hashed every time."""
        files = {
            name: replace(stored, modified_ns=(folder / name).stat().st_mtime_ns) for name, stored in self.files.items()
        }
        try:
            replace(self, files=files)._store(folder)
        except OSError:
            return

    def _store(self, folder: Path) -> None:
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1, sort_keys=True)
        draft = folder / f"{FILE_NAME}.{os.getpid()}"
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / FILE_NAME)


def sha256_of(path: Path) -> str:
    """Hexadecimal sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
