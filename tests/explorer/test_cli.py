import functools
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from explorer.cli.main import main
from explorer.labs import base
from explorer.measuring import lock
from explorer.measuring.record import Record
from explorer.registry import Registry
from tests.explorer.labs.toy import ToyLab

WITH_TOY = (
    "import sys; from pathlib import Path; from explorer.labs.base import LABS; from explorer.measuring import lock;"
    "from tests.explorer.labs.toy import ToyLab; LABS._discovered = True; LABS.register(ToyLab);"
    "lock._SHARED.append(lock.DeviceLock());"
    "from explorer.cli.main import main, set_up; set_up([]); sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture(autouse=True)
def only_the_toy(monkeypatch):
    toys: Registry = Registry("lab", "explorer.labs")
    toys._discovered = True
    toys.register(ToyLab)
    for module in ("explorer.cli.running", "explorer.cli.labs", "explorer.cli.doctor"):
        monkeypatch.setattr(f"{module}.LABS", toys)
    monkeypatch.setattr(lock, "_SHARED", [lock.DeviceLock()])
    assert base.LABS is not toys


def call(capsys, *words):
    code = main(list(words))
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


def test_run_prints_the_record_last(capsys):
    code, out, err = call(capsys, "run", "toy-sum", "--set", "rows=2", "--json", "--device", "cpu")
    assert code == 0
    record = json.loads(out.splitlines()[-1])
    assert list(record) == ["lab", "params", "columns", "rows", "summary", "provenance"]
    assert record["columns"][1] == {"name": "sum_ms", "unit": "ms", "origin": "measured"}
    assert [row["count"] for row in record["rows"]] == [1, 2]
    assert record["summary"] == {"numbers": 3}
    assert "toy-sum: [0/2] row 1" in err
    assert len(out.splitlines()) == 1


def test_run_as_text(capsys):
    code, out, _ = call(capsys, "run", "toy-sum", "--set", "rows=2")
    assert code == 0
    assert "count [numbers]  sum_ms [ms]" in out
    assert "implementation" in out and "torch.sum" in out


def test_files_hold_the_record(capsys, tmp_path):
    csv, out = tmp_path / "rows.csv", tmp_path / "记录.json"
    code, printed, _ = call(capsys, "run", "toy-sum", "--json", "--csv", str(csv), "--out", str(out))
    assert code == 0
    record = Record.from_json(out.read_text(encoding="utf-8"))
    assert json.loads(record.to_json()) == json.loads(printed.splitlines()[-1])
    assert csv.read_text() == record.to_csv()
    assert csv.read_text().splitlines()[0] == "count,sum_ms,sum_p20_ms,sum_p80_ms"


ODD = ["1e999", "nan", "-5", str(10**30), "", "🙂", "0x10", "9" * 5000, "1.5", "שלום", "\x00", "a\nb", "True", "None"]


# "1.5" is a good number of seconds.
ODD_PAIRS = [
    (name, value) for name in ("rows", "pause_s", "mode") for value in ODD if (name, value) != ("pause_s", "1.5")
]


@pytest.mark.parametrize(("name", "value"), ODD_PAIRS, ids=range(len(ODD_PAIRS)))
def test_odd_values_are_refused_in_one_line(capsys, name, value):
    code, out, err = call(capsys, "run", "toy-sum", "--set", f"{name}={value}", "--json")
    assert (code, out) == (2, "")
    assert_one_line(err)
    assert name in err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["run"],
        ["run", ""],
        ["run", "toy-sun"],
        ["run", "x" * 10_000],
        ["run", "\x1b[31m"],
        ["run", "\udcff"],
        ["run", "toy-sum", "--set"],
        ["run", "toy-sum", "--set", "rows"],
        ["run", "toy-sum", "--set", "=3"],
        ["run", "toy-sum", "--set", "rows=1", "--set", "rows=2"],
        ["run", "toy-sum", "--set", "lines=1"],
        ["run", "toy-sum", "--set", "label=" + "x" * 21],
        ["run", "toy-sum", "--set", "label="],
        ["run", "toy-sum", "--frobnicate"],
        ["run", "toy-sum", "--jso"],
        ["run", "toy-sum", "extra"],
        ["run", "toy-sum", "--deadline", "0"],
        ["run", "toy-sum", "--deadline", "nan"],
        ["run", "toy-sum", "--csv", ""],
        ["run", "toy-sum", "--csv", "/"],
        ["run", "toy-sum", "--csv", "/no/such/folder/x.csv"],
        ["run", "toy-sum", "--out", "\x00"],
        ["run", "toy-sum", "--out", "x" * 5000],
        ["run", "toy-sum", "--out", "same", "--csv", "./same"],
        ["run", "toy-sum", "--model", ""],
        ["run", "toy-sum", "--model", "not a model"],
        ["run", "toy-sum", "--model", "../x"],
        ["run", "toy-sum", "--model", "🙂/🙂"],
        ["run", "toy-sum", "--model", "pyproject.toml"],
        ["bench", "--model", "x" * 5000],
        ["estimate"],
        ["estimate", "llama-3.1-8b"],
        ["estimate", "llama-3.1-8b", "--tokens", "many"],
        ["estimate", "llama-3.1-8b", "--tokens", "-5"],
        ["estimate", "llama-3.1-8b", "--tokens", "1e999"],
        ["estimate", "llama-3.1-8b", "--tokens", str(10**30)],
        ["estimate", "llama-3.1-8b", "--tokens", "10", "--batch", "0"],
        ["estimate", "llama-3.1-8b", "--tokens", "10", "--dtype", "int3"],
        ["estimate", "llama-9", "--tokens", "10"],
        ["estimate", "", "--tokens", "10"],
        ["estimate", "\x00", "--tokens", "10"],
        ["estimate", "/etc/passwd", "--tokens", "10"],
        ["estimate", "/", "--tokens", "10"],
        ["fetch", "not a model"],
        ["fetch", ""],
        ["fetch", "../../etc"],
        ["frobnicate"],
        ["--frobnicate"],
        ["bench", "--record", "/no/such/folder/x.json"],
        ["labs", "all"],
        ["doctor", "--set", "a=1"],
    ],
    ids=lambda words: " ".join(words)[:40].encode("ascii", "replace").decode(),
)
def test_bad_input_is_one_line_and_exit_2(capsys, words):
    code, out, err = call(capsys, *words)
    assert (code, out) == (2, "")
    assert_one_line(err)


def assert_one_line(err):
    assert err.startswith("explorer: ")
    assert err.count("\n") == 1 and err.endswith("\n")
    assert err[:-1].isprintable()
    assert 20 < len(err) < 420


def test_the_nearest_name_is_offered(capsys):
    assert "did you mean 'toy-sum'?" in call(capsys, "run", "toy_sums")[2]
    assert "did you mean 'doctor'?" in call(capsys, "docter")[2]


def test_a_failed_run_exits_1(capsys):
    for mode, words in {"fault": "the run failed (KeyError)", "memory": "not enough memory"}.items():
        code, out, err = call(capsys, "run", "toy-sum", "--set", f"mode={mode}", "--json")
        assert (code, out) == (1, "")
        assert words in err.splitlines()[-1]
        assert "/secret" not in err
    assert call(capsys, "run", "toy-sum", "--device", "cuda:99")[0] == 1
    assert call(capsys, "run", "toy-sum", "--set", "pause_s=50", "--deadline", "1")[0] == 1


def test_an_unexpected_fault_is_one_line_too(capsys, monkeypatch):
    monkeypatch.setattr("explorer.cli.labs.describe", lambda lab: {}[lab])
    code, out, err = call(capsys, "labs", "--json")
    assert (code, out) == (1, "")
    assert err.startswith("explorer: unexpected KeyError") and err.count("\n") == 1


def test_labs(capsys):
    code, out, _ = call(capsys, "labs", "--json")
    assert code == 0
    (lab,) = json.loads(out.splitlines()[-1])["labs"]
    assert lab["name"] == "toy-sum"
    rows = lab["params"][0]
    assert (rows["name"], rows["type"], rows["default"], rows["minimum"], rows["maximum"]) == ("rows", "int", 3, 1, 500)
    assert lab["params"][2]["choices"][0] == "plain"
    assert call(capsys, "labs")[1].startswith("toy-sum: Toy sum")


def test_estimate(capsys):
    code, out, _ = call(capsys, "estimate", "llama-3.1-8b", "--tokens", "131072", "--json")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["total_bytes"] == 2 * 32 * 8 * 128 * 2 * 131072
    assert "16.00 GiB" in call(capsys, "estimate", "llama-3.1-8b", "--tokens", "131072")[1]


def test_doctor(capsys):
    start = time.monotonic()
    code, out, _ = call(capsys, "doctor", "--json")
    assert time.monotonic() - start < 5
    found = json.loads(out.splitlines()[-1])
    assert code == (1 if found["problems"] else 0)
    assert found["device"]["threads"] >= 1
    assert found["versions"]["torch"]
    assert {"present", "model"} <= set(found["weights"])
    assert isinstance(found["triton"]["can_run"], bool)


def test_doctor_sees_the_package_that_takes_our_name(capsys, monkeypatch):
    monkeypatch.setattr("explorer.cli.doctor.package_version", lambda name: "0.18.2")
    code, out, _ = call(capsys, "doctor")
    assert code == 1
    assert "pip uninstall kernels" in out


def test_listing_is_quick_and_takes_no_torch():
    script = "import sys; from explorer.cli.main import main; main(['--help']); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=20, capture_output=True)


def start(*words):
    # A job in the background is born deaf to Ctrl-C, and so would be all that it starts.
    listens = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        [sys.executable, "-c", WITH_TOY, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=listens,
    )  # fmt: skip


def test_ctrl_c_keeps_the_rows(tmp_path):
    out, csv = tmp_path / "kept.json", tmp_path / "kept.csv"
    process = start("run", "toy-sum", "--set", "rows=300", "--set", "pause_s=0.3", "--out", str(out), "--csv", str(csv))
    seen = []
    for line in process.stderr:
        seen.append(line)
        if "count=" in line:
            break
    process.send_signal(signal.SIGINT)
    printed, rest = process.communicate(timeout=20)
    assert process.returncode == 130, "".join(seen) + rest
    assert printed == ""
    assert "Traceback" not in rest
    record = Record.from_json(out.read_text())
    assert 1 <= len(record.rows) < 300
    assert record.provenance["complete"] is False
    assert csv.read_text() == record.to_csv()


def test_ctrl_c_before_a_row_leaves_no_file(tmp_path):
    process = start("run", "toy-sum", "--set", "pause_s=50", "--out", str(tmp_path / "kept.json"))
    for line in process.stderr:
        if "row 1" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert not list(tmp_path.iterdir())


def test_a_closed_pipe_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", WITH_TOY, "labs"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=30
    )
    os.close(write)
    assert "Traceback" not in done.stderr and "Error" not in done.stderr


def test_output_survives_a_narrow_terminal_encoding():
    done = subprocess.run(
        [sys.executable, "-c", WITH_TOY, "labs", "--json"],
        capture_output=True,
        timeout=30,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["labs"][0]["title"]["zh"] == "示例求和"
