"""Run as a script in a process of its own: asks the Hugging Face Hub, prints one line of JSON last.

    python -P hub_worker.py '{"do": "info", "repo": "org/name", "revision": null}'
    python -P hub_worker.py '{"do": "files", "repo": ..., "revision": commit, "files": [...], "folder": ...}'

It is a process so that a name server that never answers, or a transfer that must stop, can be ended.
"""

import json
import os
import sys
from typing import Any

QUESTION_TIMEOUT_S = 4.0


def info(task: dict[str, Any]) -> dict[str, Any]:
    """The commit, the licence, and every file's name, size and (where the Hub knows it) sha256."""
    from huggingface_hub import HfApi

    found = HfApi().model_info(task["repo"], revision=task["revision"], files_metadata=True, timeout=QUESTION_TIMEOUT_S)
    files = {
        file.rfilename: {"size": file.size, "sha256": file.lfs.sha256 if file.lfs else None}
        for file in found.siblings or ()
    }
    licence = getattr(found.card_data, "license", None)
    return {"commit": found.sha, "licence": licence if isinstance(licence, str) else None, "files": files}


def files(task: dict[str, Any]) -> dict[str, Any]:
    """Put the named files into the folder; those that an earlier attempt finished are not fetched again."""
    from huggingface_hub import hf_hub_download

    for name in task["files"]:
        hf_hub_download(task["repo"], name, revision=task["revision"], local_dir=task["folder"])
    return {}


def main() -> None:
    """Do the task given as the only argument; errors become the word `error` in the answer."""
    task = json.loads(sys.argv[1])
    # Otherwise huggingface_hub first asks for a list of programs to name in its user-agent.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
    except ImportError:
        answer = {"error": "no_library"}
    else:
        try:
            answer = {"info": info, "files": files}[task["do"]](task)
        except GatedRepoError:
            answer = {"error": "gated"}
        except (RepositoryNotFoundError, RevisionNotFoundError):
            answer = {"error": "not_found"}
        except Exception as error:
            answer = {"error": "unreachable", "kind": type(error).__name__}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
