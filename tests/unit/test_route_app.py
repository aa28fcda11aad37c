import pytest

from processor.core.errors import ConfigError
from processor.formats.format import FormatOptions
from processor.route_app import create_route_app, format_options
from processor.settings import Settings


def test_fields_are_lists_and_blanks_between_them_mean_nothing():
    settings = Settings(session_fields="a.b, c ,", header_fields="user-id=meta.user, n=x")
    assert format_options(settings) == FormatOptions(
        None, ("a.b", "c"), (("user-id", "meta.user"), ("n", "x"))
    )
    assert format_options(Settings()) == FormatOptions()


@pytest.mark.parametrize("text", ["user", "=path", "user=", "a=b,c"])
def test_header_without_name_or_path_is_refused(text):
    with pytest.raises(ConfigError, match="is not of the form header=path"):
        format_options(Settings(header_fields=text))


def test_format_that_there_is_not_is_refused_before_anything_starts():
    settings = Settings(app_id="app", telemetry_format="otl")
    with pytest.raises(ConfigError, match="no format 'otl'; choose from"):
        create_route_app(settings)
