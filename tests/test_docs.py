"""The documents say what is there: README, requirements, CI script, texts in both languages, nothing private."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import gradio as gr
import pytest
import yaml
from packaging.requirements import Requirement

from explorer.cli.main import COMMANDS
from explorer.labs.base import LABS
from explorer.text import LANGUAGES
from pages import PAGES, _content
from pages._page import Ctx, Page

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
UNLISTED = {".git", ".gitignore", ".github", ".venv", ".gradio", ".artifacts", "__pycache__"}
TEXT_SUFFIXES = {".py", ".md", ".txt", ".toml", ".json", ".js", ".css", ".svg", ".yml", ".yaml", ""}


def tracked() -> list[Path]:
    """The files of the repository; all files where this is no git checkout."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False)
    names = listed.stdout.splitlines() if listed.returncode == 0 else [str(path) for path in ROOT.rglob("*")]
    return [ROOT / name for name in names if (ROOT / name).is_file() and UNLISTED.isdisjoint(Path(name).parts)]


def front_matter() -> dict[str, object]:
    return yaml.safe_load(README.split("---")[1])


def block(name: str) -> str:
    """The command between `<!-- name -->` and `<!-- end -->`, as .ci/run reads it."""
    found = re.search(rf"<!-- {name} -->\n```bash\n(.+)\n```\n<!-- end -->", README)
    assert found, f"README.md has no one-line command between <!-- {name} --> and <!-- end -->"
    return found[1]


def requirements(name: str) -> dict[str, Requirement]:
    lines = [line.strip() for line in (ROOT / name).read_text().splitlines()]
    parsed = [Requirement(line) for line in lines if line and not line.startswith(("#", "-r"))]
    return {each.name: each for each in parsed}


def test_the_readme_is_short_and_its_picture_is_there_and_small() -> None:
    assert len(README.splitlines()) <= 150
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 500_000


@pytest.mark.parametrize("name", ["open", "tests"])
def test_the_files_that_a_command_names_exist(name: str) -> None:
    steps = [step.split() for step in block(name).split("&&")]
    assert steps[0] == ["python3", "-m", "venv", ".venv"]
    files = [word for step in steps for word in step if word.endswith((".py", ".txt"))]
    assert len(files) >= 2
    for file in files:
        assert (ROOT / file).is_file()


def test_ci_runs_the_readmes_test_command_and_nothing_can_hide_a_failure() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "<!-- tests -->" in script and "set -euo pipefail" in script
    assert 'bash -euo pipefail -c "$command"' in script
    assert "||" not in script.replace('|| { echo "README.md', "")
    for check in ("ruff check", "ruff format --check", "mypy"):
        assert f".venv/bin/{check}" in script


def test_every_command_of_the_command_line_is_documented_and_no_other() -> None:
    documented = re.findall(r"^\| `(\w+)", README, flags=re.MULTILINE)
    assert sorted(documented) == sorted(COMMANDS)


def test_the_tree_lists_each_top_level_entry_and_no_other() -> None:
    tree = re.search(r"## What lies where\n\n```\n(.+?)```", README, flags=re.DOTALL)
    assert tree
    columns = [re.split(r"\s{2,}", line) for line in tree[1].splitlines() if not line.startswith(" ")]
    listed = {word.rstrip("/") for words in columns for word in words if re.fullmatch(r"[.\w-]+/?", word)}
    there = {path.relative_to(ROOT).parts[0] for path in tracked()} - UNLISTED
    assert listed == there


def test_the_tree_lists_each_package_of_the_explorer() -> None:
    listed = set(re.findall(r"^  (\w+)/ ", README, flags=re.MULTILINE))
    parts = [path.relative_to(ROOT).parts for path in tracked()]
    assert listed == {part[1] for part in parts if part[0] == "explorer" and len(part) > 2}


def test_the_number_of_pages_and_labs_is_the_true_one() -> None:
    words = {10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen"}
    assert f"it has {words[len(PAGES)]} pages" in README
    assert f"{words[len(LABS.names())]} labs and the command line" in README


def test_the_readmes_example_page_can_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"## Add a page in one file.+?```python\n(.+?)```", README, flags=re.DOTALL)
    assert code
    made: dict[str, Page] = {}
    exec(compile(code[1], "README.md", "exec"), made)
    page = made["PAGE"]
    for kind, name, text in (
        ("strings", "choosing.json", '{"headline": "A choice"}'),
        ("content", "choosing.md", "<!-- lede -->\nFirst.\n<!-- why -->\nBecause."),
    ):
        for lang in LANGUAGES:
            (tmp_path / kind / lang).mkdir(parents=True)
            (tmp_path / kind / lang / name).write_text(text)
    for lang in LANGUAGES:
        shutil.copy(ROOT / "assets/strings" / lang / "frame.json", tmp_path / "strings" / lang)
    monkeypatch.setattr(_content, "ASSETS", tmp_path)
    for lang in LANGUAGES:
        with gr.Blocks() as blocks:
            page.build(Ctx(lang, page, blocks, (*PAGES, page)))
        assert "Because." in json.dumps(blocks.get_config_file()["components"])
    assert (page.part, page.order) not in {(each.part, each.order) for each in PAGES}, "the example's place is taken"


def test_the_front_matter_is_what_a_space_accepts() -> None:
    fields = front_matter()
    assert fields["sdk"] == "gradio" and fields["app_file"] == "app.py" and (ROOT / "app.py").is_file()
    assert fields["python_version"] == "3.12" and fields["license"] == "apache-2.0"
    assert len(str(fields["short_description"])) <= 60
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {fields["colorFrom"], fields["colorTo"]} <= colours
    assert fields["tags"]


def test_the_requirements_contain_what_a_space_brings() -> None:
    needed = requirements("requirements.txt")
    assert needed["gradio"].specifier.contains(str(front_matter()["sdk_version"]))
    for version in ("2.8.0", "2.9.1", "2.10.0", "2.11.0"):
        assert needed["torch"].specifier.contains(version)
    assert needed["triton"].marker is not None and not needed["triton"].marker.evaluate({"sys_platform": "darwin"})
    assert not {"kernels", "spaces"} & set(needed)


def test_the_licence_is_the_one_that_is_named() -> None:
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence and "Version 2.0, January 2004" in licence and "END OF TERMS" in licence


@pytest.mark.parametrize("kind", ["content", "strings"])
def test_each_text_has_its_twin_in_the_other_language(kind: str) -> None:
    here, there = ({path.name for path in (ROOT / "assets" / kind / lang).iterdir()} for lang in ("en", "zh"))
    assert here and here == there


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "assets/strings/en").iterdir()))
def test_both_languages_have_the_same_labels(name: str) -> None:
    english, chinese = (json.loads((ROOT / "assets/strings" / lang / name).read_text()) for lang in ("en", "zh"))
    assert list(english) == list(chinese)
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[key])), key


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "assets/content/en").iterdir()))
def test_both_languages_have_the_same_sections(name: str) -> None:
    marks = [
        re.findall(r"^<!-- ([a-z0-9_-]+) -->$", (ROOT / "assets/content" / lang / name).read_text(), flags=re.MULTILINE)
        for lang in ("en", "zh")
    ]
    assert marks[0] == marks[1]


def test_no_file_holds_a_path_of_a_machine_or_the_host_of_a_registry() -> None:
    here = "|".join(re.escape(str(path)) for path in {ROOT, Path.home()})
    machine = re.compile(rf"(?<![\w.>}}])(/(work|root|farm)|{here})/\w")
    hosts = re.compile("|".join(re.escape(f"{name}.{end}") for name, end in HOSTS))
    found = []
    for path in tracked():
        if path.suffix in TEXT_SUFFIXES:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if machine.search(line) or hosts.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert not found, "\n".join(found)


# Written in two halves, or this file would hold what it forbids.
HOSTS = (("pypi", "org"), ("pythonhosted", "org"), ("deb.debian", "org"), ("npmjs", "org"), ("npmjs", "com"))
