"""Where the tests' browser comes from: what is chosen, what is tried, and that giving up says so."""

import subprocess
from collections.abc import Callable

import pytest

from tests.browser import chromium


def test_a_chosen_browser_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/some/browser")
    assert chromium.find() == "/some/browser"


@pytest.mark.parametrize(
    ("debian", "uid", "order"), [(True, 0, ["apt", "own"]), (True, 1000, ["own"]), (False, 0, ["own"])]
)
def test_a_way_that_fails_is_followed_by_the_next_and_the_end_is_one_line(
    debian: bool, uid: int, order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def fails(name: str) -> Callable[[], None]:
        def way() -> None:
            tried.append(name)
            raise subprocess.CalledProcessError(1, name)

        return way

    monkeypatch.setattr(chromium, "_from_debian", fails("apt"))
    monkeypatch.setattr(chromium, "_from_playwright", fails("own"))
    monkeypatch.setattr(chromium, "_is_debian", lambda: debian)
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setattr(chromium, "find", lambda: None)
    with pytest.raises(SystemExit, match="set CHROMIUM="):
        chromium.install()
    assert tried == order


def test_the_first_way_that_works_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    here: list[str] = []
    monkeypatch.setattr(chromium, "_is_debian", lambda: True)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(chromium, "_from_debian", lambda: here.append("/usr/bin/chromium"))
    monkeypatch.setattr(chromium, "_from_playwright", lambda: pytest.fail("not needed"))
    monkeypatch.setattr(chromium, "find", lambda: here[-1] if here else None)
    assert chromium.install() == "/usr/bin/chromium"


def test_without_the_shell_debian_gives_the_whole_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def apt(command: list[str], **_: object) -> None:
        asked.append(command[-1])
        if command[-1] == chromium.SHELL:
            raise subprocess.CalledProcessError(100, command)

    monkeypatch.setattr(subprocess, "run", apt)
    chromium._from_debian()
    assert asked == ["-q", "chromium-headless-shell", "chromium"]


def test_the_shell_is_preferred_to_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert chromium.find() == "/usr/bin/chromium-headless-shell"
