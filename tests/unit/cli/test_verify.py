import pytest
from click.testing import CliRunner

from processor.cli.verify import verify
from processor.cli.verify_position import Position
from processor.core.errors import ConfigError
from tests.unit.proof.verifying import verify as verified

ABOUT = {"topics": ["records", "chunks"], "session": None}


def test_partition_that_is_done_comes_back_after_a_kill(tmp_path):
    path = tmp_path / "position"
    report = verified()
    position = Position(path, ABOUT)
    assert position.of(0) is None
    position.keep(0, report, b"\x00\xff")
    path.write_bytes(path.read_bytes() + b'{"partition": 1, "rep')  # killed while it wrote
    position = Position(path, ABOUT)
    found, keys = position.of(0)
    assert found.as_json() == report.as_json()
    assert keys == b"\x00\xff"
    assert position.of(1) is None
    position.keep(1, report, b"")
    assert Position(path, ABOUT).of(1) is not None
    position.end()
    assert not path.exists()


def test_position_of_another_verification_is_refused(tmp_path):
    path = tmp_path / "position"
    Position(path, ABOUT)
    with pytest.raises(ConfigError, match="is of another verification"):
        Position(path, {**ABOUT, "session": "a"})
    path.write_bytes(b"a letter\n")
    with pytest.raises(ConfigError, match="is no file of verify --resume"):
        Position(path, ABOUT)
    assert path.read_bytes() == b"a letter\n"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--since", "yesterday"], "is no time such as"),
        (["--recompute", "--chunks-only"], "--recompute needs the log"),
        (["--session", ""], "a session is named by"),
    ],
)
def test_call_without_sense_is_refused(args, told):
    done = CliRunner().invoke(verify, args)
    assert done.exit_code == 2
    assert told in done.output
