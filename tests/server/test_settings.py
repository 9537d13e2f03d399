"""Settings: three sources, their order, and what none but the user may set."""

from typing import Any

import pytest

from skyline_lsp.server.settings import LogLevel, RunConfiguration, Settings, Source, read_settings


def check_problem(expected: str, **sources: Any) -> None:
    (problem,) = read_settings(**sources).problems
    assert expected in problem.message


def test_nothing_set_gives_the_defaults_without_complaint() -> None:
    """Absent, null and empty sources are all the same."""
    assert read_settings().settings == Settings()
    assert read_settings(configuration=None, initialization={}, pyproject=b"").settings == Settings()
    assert read_settings(configuration={"python": None, "hints": None}).problems == ()


def test_each_setting_comes_from_its_weightiest_source() -> None:
    """The editor's settings outweigh its initialization options, these outweigh pyproject.toml; key by key."""
    reading = read_settings(
        configuration={"hints": {"thresholdPercent": 3}},
        initialization={"hints": {"thresholdPercent": 5, "memory": False}, "profileOnSave": True},
        pyproject=b"[tool.skyline]\nprofile-on-save = false\ndevice = 'cpu'\nhints.threshold-percent = 9\n",
    )
    settings = reading.settings
    assert (settings.hints_threshold_percent, settings.hints_memory) == (3.0, False)
    assert (settings.profile_on_save, settings.device) == (True, "cpu")
    assert reading.problems == ()


@pytest.mark.parametrize(
    ("key", "toml"),
    [
        ("python", "python = '/evil/python'"),
        ("workerCommand", "worker-command = ['sh', '-c', 'evil']"),
        ("env", "[tool.skyline.env]\nLD_PRELOAD = '/evil.so'"),
        ("entryPoint", "entryPoint = 'evil.py'"),
        ("run", "[tool.skyline.run.default]\nprogram = 'evil.py'"),
        ("runConfiguration", "run_configuration = 'evil'"),
        ("trusted", "trusted = true"),
    ],
)
def test_the_repository_can_not_decide_what_is_executed(key: str, toml: str) -> None:
    """What starts programs is refused in pyproject.toml, and the user is told at the line."""
    reading = read_settings(pyproject=f"[tool.skyline]\n{toml}\n".encode())
    assert reading.settings == Settings()
    assert {problem.key for problem in reading.problems} == {key}
    assert all(problem.source is Source.PROJECT and problem.line == 2 for problem in reading.problems)
    assert "decides what is executed" in reading.problems[0].message


def test_advice_is_switched_off_by_its_code() -> None:
    """A project may switch advice off; a code that there is not is reported, with those that there are."""
    toml = b"[tool.skyline]\nadvice.disabled = ['zero-grad', 'graph-break']\n"
    assert read_settings(pyproject=toml).settings.advice_disabled == ("zero-grad", "graph-break")
    check_problem("has `zerograd`, which is none of", configuration={"advice": {"disabled": ["zerograd"]}})


def test_distrust_from_any_source_stands() -> None:
    """A workspace's own settings can't grant the trust that the editor denied."""
    assert not read_settings(configuration={"trusted": True}, initialization={"trusted": False}).settings.trusted
    assert not read_settings(configuration={"trusted": False}, initialization={"trusted": True}).settings.trusted
    assert read_settings(initialization={"trusted": True}).settings.trusted


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"python": 3}, "`python` in the editor's settings must be a text, not 3; it is ignored."),
        ({"workerCommand": "ssh host"}, "must be a list of texts"),
        ({"profileOnSave": "yes"}, "must be true or false"),
        ({"hints": {"thresholdPercent": 400}}, "must be a number from 0 to 100, not 400"),
        ({"predictionBudgetSeconds": 0}, "must be a number above 0"),
        ({"timeLimitSeconds": True}, "must be a number above 0"),
        ({"logLevel": "loud"}, 'must be one of "error", "warning", "info", "debug"'),
        ({"run": {"a": {"program": "x.py", "module": "y"}}}, "has `a` with both `program` and `module`"),
        ({"run": {"a": {"argz": []}}}, "has `a.argz`, which is none of `program`"),
        ({"env": {"A": [1]}}, "`A` is [1]"),
        ({"runConfiguration": "b", "run": {"a": {}}}, "names `b`, which is not in `run` (`a`)"),
    ],
)
def test_bad_values_are_named_and_passed_over(given: dict[str, Any], expected: str) -> None:
    """The message says which setting, where, what is expected and what was found."""
    check_problem(expected, configuration=given)


def test_a_bad_value_leaves_the_next_source_in_force() -> None:
    """One slip does not cost the other settings."""
    reading = read_settings(configuration={"device": 1, "profileOnSave": False}, initialization={"device": "cuda"})
    assert (reading.settings.device, reading.settings.profile_on_save) == ("cuda", False)


def test_run_configurations_are_read_whole() -> None:
    """Every field, and a single configuration is the one in use."""
    given = {
        "run": {
            "base": {
                "program": "train.py",
                "args": ["--epochs", "3"],
                "cwd": "sub",
                "env": {"A": "1"},
                "iteration": "train.py:12",
            }
        }
    }
    settings = read_settings(initialization={"skyline": given}).settings
    expected = RunConfiguration(
        name="base",
        program="train.py",
        arguments=("--epochs", "3"),
        working_directory="sub",
        environment=(("A", "1"),),
        iteration="train.py:12",
    )
    assert settings.run == (expected,)
    assert settings.active_run == expected


def test_dotted_names_and_foreign_names_of_clients_are_fine() -> None:
    """Some clients send `hints.enabled` flat, and keep settings of their own beside ours."""
    reading = read_settings(configuration={"hints.enabled": False, "logLevel": "DEBUG", "trace": {"server": "off"}})
    assert not reading.settings.hints_enabled
    assert reading.settings.log_level is LogLevel.DEBUG
    assert reading.problems == ()


def test_a_misspelt_name_in_pyproject_is_reported() -> None:
    """Nobody else keeps settings there, so it is a mistake."""
    check_problem("`hints.enable` is not a setting", pyproject=b"[tool.skyline.hints]\nenable = false\n")


def test_a_broken_pyproject_is_reported_once() -> None:
    """And the rest of the settings count."""
    check_problem("can't be read", pyproject=b"[tool.skyline\n", configuration={"device": "cpu"})
