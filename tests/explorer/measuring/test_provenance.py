import getpass
import json
import socket
from datetime import datetime
from pathlib import Path

import torch

from explorer.measuring import provenance


def test_what_is_said_and_what_is_not():
    facts = provenance.provenance(torch.device("cpu"))
    assert facts["device_kind"] == "cpu"
    assert facts["device"]
    assert facts["threads"] == torch.get_num_threads()
    assert facts["torch"] == torch.__version__.split("+")[0] or facts["torch"] == torch.__version__
    assert datetime.strptime(facts["date"], "%Y-%m-%dT%H:%M:%SZ")
    text = json.dumps(facts)
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text
    assert str(provenance.REPOSITORY) not in text
    assert getpass.getuser() not in text.replace("torch", "").split('"')


def test_an_absent_package_has_no_version():
    assert provenance.package_version("no-such-package-here") is None


def test_commit_without_git(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    provenance.commit.cache_clear()
    try:
        assert provenance.commit() is None
    finally:
        provenance.commit.cache_clear()
