"""Packages that only one counter needs, and that are not installed with the rest."""

from importlib import import_module
from typing import Any

from processor.core.errors import ConfigError


def module_of_extra(module: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Return ``module``, imported.

    Args:
        module: Its name.
        extra: The extra of this package that installs it.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        message = f"{error.name} isn't installed; pip install 'poimen-processor[{extra}]'"
        raise ConfigError(message) from error
