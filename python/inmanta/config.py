"""Settings that modules read.

A value comes from, in this order: the environment variable INMANTA_<SECTION>_<NAME>, what :meth:`Config.set` was told, the files
that were loaded, the default. Hyphens and underscores in names are the same.
"""

from __future__ import annotations

import configparser
import os
import re
import uuid
from typing import Any, Callable, ClassVar, Generic, Optional, TypeVar, Union

T = TypeVar("T")

Validator = Callable[[Any], Any]


def _name(text: str) -> str:
    return text.replace("_", "-")


class LenientConfigParser(configparser.ConfigParser):
    """A parser to which hyphens and underscores are the same."""

    def optionxform(self, optionstr: str) -> str:
        return _name(optionstr).lower()


class Config:
    """The settings of this process."""

    __instance: ClassVar[Optional[LenientConfigParser]] = None
    __definitions: ClassVar[dict[str, dict[str, Option[Any]]]] = {}

    @classmethod
    def get_instance(cls) -> LenientConfigParser:
        """The parser that holds what was loaded and set."""
        if cls.__instance is None:
            cls.__instance = LenientConfigParser(interpolation=None)
        return cls.__instance

    @classmethod
    def _reset(cls) -> None:
        cls.__instance = None

    @classmethod
    def load_config(
        cls, min_c_config_file: Optional[str] = None, config_dir: Optional[str] = None, main_cfg_file: str = "/etc/inmanta/inmanta.cfg"
    ) -> None:
        """Loads the files that the user has: the main one, config_dir/*.cfg, those of the home and the current directory."""
        files = [main_cfg_file]
        if config_dir and os.path.isdir(config_dir):
            files += sorted(os.path.join(config_dir, f) for f in os.listdir(config_dir) if f.endswith(".cfg"))
        files += [os.path.expanduser("~/.inmanta.cfg"), ".inmanta", ".inmanta.cfg"]
        if min_c_config_file:
            files.append(min_c_config_file)
        cls.__instance = LenientConfigParser(interpolation=None)
        cls.__instance.read(files)

    @classmethod
    def register_option(cls, option: Option[Any]) -> None:
        """Makes an option known, so that its values are checked."""
        cls.__definitions.setdefault(_name(option.section), {})[_name(option.name)] = option

    @classmethod
    def get_config_options(cls) -> dict[str, dict[str, Option[Any]]]:
        """The known options by section and name."""
        return cls.__definitions

    @classmethod
    def validate_option_request(cls, section: str, name: str, default_value: Any = None) -> Optional[Option[Any]]:
        """The known option of that name, or None."""
        return cls.__definitions.get(_name(section), {}).get(_name(name))

    @classmethod
    def is_set(cls, section: str, name: str) -> bool:
        """Reports whether somebody gave a value."""
        return cls._raw(section, name) is not None

    @classmethod
    def _raw(cls, section: str, name: str) -> Optional[str]:
        variable = re.sub(r"[^A-Z0-9]", "_", f"INMANTA_{section}_{name}".upper())
        if variable in os.environ:
            return os.environ[variable]
        parser = cls.get_instance()
        for known in parser.sections():
            if _name(known) == _name(section):
                value = parser.get(known, name, fallback=None)
                if value is not None:
                    return value
        return None

    @classmethod
    def get(cls, section: Optional[str] = None, name: Optional[str] = None, default_value: Any = None) -> Any:
        """A value; default_value when nobody gave one. Without arguments the parser itself."""
        if section is None:
            return cls.get_instance()
        if name is None:
            return dict(cls.get_instance().items(section)) if cls.get_instance().has_section(section) else {}
        option = cls.validate_option_request(section, name)
        raw = cls._raw(section, name)
        if raw is not None:
            return raw if option is None else option.validate(raw)
        if default_value is not None or option is None:
            return default_value
        return option.get()

    @classmethod
    def get_for_option(cls, option: Option[T]) -> T:
        """The value of an option."""
        return option.get()

    @classmethod
    def getboolean(cls, section: str, name: str, default_value: Optional[bool] = None) -> Optional[bool]:
        """A value as a boolean."""
        raw = cls._raw(section, name)
        return default_value if raw is None else is_bool(raw)

    @classmethod
    def set(cls, section: str, name: str, value: str) -> None:
        """Sets a value for this process."""
        parser = cls.get_instance()
        if not parser.has_section(section):
            parser.add_section(section)
        parser.set(section, name, value)


# -- checks of values


def is_int(value: Any) -> int:
    """A number."""
    return int(value)


def is_int_opt(value: Any) -> Optional[int]:
    """A number or nothing."""
    return None if value is None else int(value)


def is_float(value: Any) -> float:
    """A number with a fraction."""
    return float(value)


def is_time(value: Any) -> int:
    """A number of seconds."""
    return int(value)


def is_time_or_cron(value: Any) -> Union[int, str]:
    """A number of seconds or a cron expression."""
    try:
        return int(value)
    except ValueError:
        if len(str(value).split()) not in (5, 6, 7):
            raise ValueError(f"{value} is neither a number of seconds nor a cron expression") from None
        return str(value)


def is_bool(value: Any) -> bool:
    """yes, no, true, false, on, off, 1 or 0."""
    if isinstance(value, bool):
        return value
    states = configparser.RawConfigParser.BOOLEAN_STATES
    if str(value).lower() not in states:
        raise ValueError(f"Not a boolean: {value}")
    return states[str(value).lower()]


def is_list(value: Any) -> list[str]:
    """Texts with commas between them."""
    if isinstance(value, list):
        return value
    return [] if not value else [x.strip() for x in str(value).split(",")]


def is_map(map_in: Any) -> dict[str, str]:
    """Pairs name=text with commas between them."""
    if isinstance(map_in, dict):
        return map_in
    if not map_in:
        return {}
    pairs = (pair.partition("=") for pair in str(map_in).split(","))
    return {k.strip(): v.strip() for k, sign, v in pairs if sign and k.strip()}


def is_str(value: Any) -> str:
    """A text."""
    return str(value)


def is_str_opt(value: Any) -> Optional[str]:
    """A text or nothing."""
    return None if value is None else str(value)


def is_uuid_opt(value: Any) -> Optional[uuid.UUID]:
    """An identifier or nothing."""
    return None if value is None else uuid.UUID(str(value))


class Option(Generic[T]):
    """A known setting."""

    def __init__(
        self,
        section: str,
        name: str,
        default: Any = None,
        documentation: str = "",
        validator: Callable[[Any], T] = is_str,  # type: ignore[assignment]
        predecessor_option: Optional[Option[T]] = None,
    ) -> None:
        self.section = section
        self.name = _name(name)
        self.default = default
        self.documentation = documentation
        self.validator = validator
        self.predecessor_option = predecessor_option
        Config.register_option(self)

    def validate(self, value: Any) -> Any:
        """Checks a value; raises ValueError."""
        return self.validator(value)

    def get(self) -> T:
        """The value."""
        raw = Config._raw(self.section, self.name)
        if raw is None and self.predecessor_option is not None:
            raw = Config._raw(self.predecessor_option.section, self.predecessor_option.name)
        if raw is None:
            raw = self.get_default_value()
        value: T = self.validator(raw)
        return value

    def set(self, value: str) -> None:
        """Sets the value for this process."""
        Config.set(self.section, self.name, value)

    def get_default_value(self) -> Any:
        """What holds when nobody gave a value."""
        return self.default() if callable(self.default) else self.default

    def get_type(self) -> Optional[str]:
        """What the check says of its values."""
        return self.validator.__doc__

    def get_environment_variable(self) -> str:
        """The environment variable that overrides all else."""
        return f"INMANTA_{self.section}_{self.name}".replace("-", "_").upper()
