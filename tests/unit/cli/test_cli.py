import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

import processor.cli
from processor.cli import VERBS, cli, main
from processor.cli.options import output_option, session_options, settings_options
from processor.core import errors
from processor.settings import flag_names


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run ``main`` with a verb ``probe`` that calls what the test gives it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(processor.cli, "VERBS", {"probe": "made_here:probe"})

    def run_probe(action, *args):
        @click.command()
        def probe():
            return action()

        monkeypatch.setitem(sys.modules, "made_here", SimpleNamespace(probe=probe))
        monkeypatch.setattr(sys, "argv", ["processor", *(args or ["probe"])])
        return main()

    return run_probe


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UnreachableError("said so"), 69),
        (errors.FencedError("said so"), 70),
        (errors.StaleGenerationError("said so"), 70),
        (errors.ChangelogError("said so"), 70),
        (errors.ConfigError("said so"), 78),
        (errors.NoSessionError("said so"), 1),
        (click.ClickException("said so"), 1),
        (click.UsageError("said so"), 2),
        (KeyError("said so"), 1),
    ],
)
def test_error_ends_with_its_code_and_its_message_alone(run, capsys, monkeypatch, error, code):
    monkeypatch.delenv("PROCESSOR_LOG_LEVEL", raising=False)
    assert run(raising(error)) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "said so" in printed.err
    assert "Traceback" not in printed.err


def test_message_of_an_error_is_one_line(run, capsys):
    run(raising(errors.ConfigError("set it")))
    assert capsys.readouterr().err == "processor: set it\n"


def test_traceback_is_shown_at_log_level_debug(run, capsys, monkeypatch):
    monkeypatch.setenv("PROCESSOR_LOG_LEVEL", "debug")
    run(raising(errors.ConfigError("set it")))
    assert "Traceback" in capsys.readouterr().err


def test_interrupt_ends_with_130(run):
    assert run(raising(KeyboardInterrupt())) == 130


def test_success_is_0_and_a_verb_can_return_its_own_code(run):
    assert run(lambda: None) == 0
    assert run(lambda: 1) == 1
    assert run(raising(click.exceptions.Exit(1))) == 1


def test_unknown_verb_is_a_usage_error(run, capsys):
    assert run(lambda: None, "prob") == 2
    assert "No such command 'prob'" in capsys.readouterr().err


def test_closed_pipe_ends_without_a_word():
    read, write = os.pipe()
    os.close(read)
    done = run_python("import sys; from processor.cli import main; sys.exit(main())", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def run_python(script, stdout=subprocess.PIPE):
    return subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", script, "config", "show"],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=Path(processor.__file__).parents[1],
    )


def test_verb_is_imported_only_when_it_is_asked_for():
    heavy = "{'aiokafka', 'faust'}"
    done = run_python(f"import sys, processor.cli.config; print({heavy} & sys.modules.keys())")
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_verbs_are_listed_in_the_order_of_the_table():
    assert cli.list_commands(click.Context(cli)) == list(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_row_of_the_table_leads_to_a_command_of_that_name(verb):
    assert cli.get_command(click.Context(cli), verb).name == verb


def commands(command, name):
    """Yield a command with its name, and those below it."""
    if isinstance(command, click.Group):
        for below, it in (
            (it, command.get_command(None, it)) for it in command.list_commands(None)
        ):
            yield from commands(it, f"{name} {below}".lstrip())
    else:
        yield name, command


ASK_FOR_A_SESSION = {
    name: parameter
    for name, command in commands(cli, "")
    for parameter in command.params
    if parameter.name == "session"
}


@pytest.mark.parametrize("verb", ASK_FOR_A_SESSION)
@pytest.mark.parametrize("name", ["", "\udcff"])
def test_what_can_name_no_session_is_refused_by_every_verb(verb, name):
    """Symptom: `processor tail --session $'\\xff'`: `unexpected UnicodeEncodeError`, exit 1."""
    parameter = ASK_FOR_A_SESSION[verb]
    with pytest.raises(click.BadParameter, match="a session is named by UTF-8 text"):
        parameter.process_value(click.Context(click.Command(verb)), name)


@click.command()
@click.argument("word")
@output_option
@session_options
@settings_options("app_id", "max_tokens", "create_topics")
def everything(settings, rule, word, output):
    click.echo(f"{settings.app_id} {settings.max_tokens} {settings.create_topics}")
    click.echo(f"{rule.name} {rule.field} {word} {output}")


def invoke(*args, env=None):
    return CliRunner().invoke(everything, args, env=env, catch_exceptions=True)


@pytest.mark.usefixtures("quiet_log")
def test_flags_become_settings_and_rule():
    flags = ["--app-id", "a", "--max-tokens", "7", "--no-create-topics", "--session", "s"]
    result = invoke("word", *flags, "--output", "json")
    assert result.stdout.split() == ["a", "7", "False", "s", "None", "word", "json"]


@pytest.mark.usefixtures("quiet_log")
def test_what_no_flag_says_comes_from_the_environment_or_the_file(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text("max_tokens = 8")
    env = {"PROCESSOR_APP_ID": "b"}
    result = invoke("word", "--config-file", str(file), "--session-field", "x.y", env=env)
    assert result.stdout.split() == ["b", "8", "True", "None", "x.y", "word", "text"]


@pytest.mark.usefixtures("quiet_log")
def test_verb_that_offers_an_app_id_needs_one():
    assert isinstance(invoke("word").exception, errors.ConfigError)


@pytest.mark.usefixtures("quiet_log")
def test_session_and_session_field_exclude_each_other():
    result = invoke("word", "--app-id", "a", "--session", "s", "--session-field", "f")
    assert result.exit_code == 2


def test_help_of_a_flag_names_variable_and_default():
    text = " ".join(invoke("--help").stdout.split())
    for part in (
        "--app-id TEXT Name of the deployment",
        "--max-tokens N Budget of a chunk, in tokens. [PROCESSOR_MAX_TOKENS; default: 5000]",
        "--create-topics / --no-create-topics",
        "--log-level debug|info|warning|error",
    ):
        assert part in text


def test_every_field_can_be_offered_as_a_flag():
    fields = flag_names().keys() - {"log_format", "log_level"}  # always offered
    command = click.command()(settings_options(*fields)(print))
    offered = {option for parameter in command.params for option in parameter.opts}
    assert offered == {*flag_names().values(), "--config-file"}
