"""Names and enumerations that modules share with the orchestrator.

All enumerations are texts: a member is equal to its value.
"""

from __future__ import annotations

import datetime
import logging
from enum import Enum
from typing import Dict, List


class ResourceState(str, Enum):
    """The state of a resource."""

    unavailable = "unavailable"
    skipped = "skipped"
    dry = "dry"
    deployed = "deployed"
    failed = "failed"
    deploying = "deploying"
    available = "available"
    cancelled = "cancelled"
    undefined = "undefined"
    skipped_for_undefined = "skipped_for_undefined"
    non_compliant = "non_compliant"


class DeprecatedResourceState(str, Enum):
    """States that only old data has."""

    processing_events = "processing_events"


class NonDeployingResourceState(str, Enum):
    """Every state but deploying."""

    unavailable = "unavailable"
    skipped = "skipped"
    dry = "dry"
    deployed = "deployed"
    failed = "failed"
    available = "available"
    cancelled = "cancelled"
    undefined = "undefined"
    skipped_for_undefined = "skipped_for_undefined"
    non_compliant = "non_compliant"


class HandlerResourceState(str, Enum):
    """What a handler may make of a resource."""

    skipped = "skipped"
    deployed = "deployed"
    failed = "failed"
    dry = "dry"
    skipped_for_dependency = "skipped_for_dependency"
    unavailable = "unavailable"
    non_compliant = "non_compliant"


class Change(str, Enum):
    """What a handler did to a resource."""

    nochange = "nochange"
    created = "created"
    purged = "purged"
    updated = "updated"


class ParameterSource(str, Enum):
    """Where a parameter comes from."""

    fact = "fact"
    plugin = "plugin"
    user = "user"
    report = "report"


class ResourceAction(str, Enum):
    """What is done with a resource."""

    store = "store"
    push = "push"
    pull = "pull"
    deploy = "deploy"
    dryrun = "dryrun"
    getfact = "getfact"
    other = "other"


class AgentStatus(str, Enum):
    """Whether an agent works."""

    paused = "paused"
    up = "up"
    down = "down"


class AgentAction(str, Enum):
    """What can be asked of an agent."""

    pause = "pause"
    unpause = "unpause"
    keep_paused_on_resume = "keep_paused_on_resume"
    unpause_on_resume = "unpause_on_resume"


class AgentTriggerMethod(str, Enum):
    """How a deploy is triggered."""

    push_incremental_deploy = "push_incremental_deploy"
    push_full_deploy = "push_full_deploy"


class Compilestate(str, Enum):
    """How a compile ended."""

    success = "success"
    failed = "failed"


class VersionState(str, Enum):
    """How far a version is deployed."""

    success = "success"
    failed = "failed"
    deploying = "deploying"
    pending = "pending"


class DesiredStateVersionStatus(str, Enum):
    """Which of the versions is in force."""

    active = "active"
    candidate = "candidate"
    retired = "retired"
    skipped_candidate = "skipped_candidate"


class NotificationSeverity(str, Enum):
    """How grave a notification is."""

    message = "message"
    info = "info"
    success = "success"
    warning = "warning"
    error = "error"


class ClientType(str, Enum):
    """Who calls the API."""

    api = "api"
    agent = "agent"
    compiler = "compiler"


class LogLevel(str, Enum):
    """The level of a log line."""

    CRITICAL = "CRITICAL"
    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"
    DEBUG = "DEBUG"
    TRACE = "TRACE"

    @property
    def to_int(self) -> int:
        """The level as the number that the module logging uses."""
        return LOG_LEVEL_AS_INTEGER[self]


LOG_LEVEL_TRACE = 3

LOG_LEVEL_AS_INTEGER: Dict[LogLevel, int] = {
    LogLevel.CRITICAL: logging.CRITICAL,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.TRACE: LOG_LEVEL_TRACE,
}

INTEGER_AS_LOG_LEVEL: Dict[int, LogLevel] = {number: level for level, number in LOG_LEVEL_AS_INTEGER.items()}

UNDEPLOYABLE_STATES: List[ResourceState] = [ResourceState.undefined, ResourceState.skipped_for_undefined]
UNDEPLOYABLE_NAMES: List[str] = [state.value for state in UNDEPLOYABLE_STATES]
INITIAL_STATES: List[ResourceState] = [ResourceState.available]
TERMINAL_STATES: List[ResourceState] = [ResourceState.undefined, ResourceState.skipped_for_undefined]
TRANSIENT_STATES: List[ResourceState] = [ResourceState.available, ResourceState.deploying]
NOT_DONE_STATES: List[ResourceState] = [ResourceState.available, ResourceState.deploying]
DONE_STATES: List[ResourceState] = [
    ResourceState.unavailable,
    ResourceState.skipped,
    ResourceState.deployed,
    ResourceState.failed,
    ResourceState.cancelled,
    ResourceState.non_compliant,
    ResourceState.undefined,
    ResourceState.skipped_for_undefined,
]
VALID_STATES_ON_STATE_UPDATE: List[ResourceState] = [*DONE_STATES, ResourceState.deploying, ResourceState.dry]
STATE_UPDATE: List[ResourceAction] = [ResourceAction.deploy]

PLUGINS_PACKAGE = "inmanta_plugins"
MODULE_PKG_NAME_PREFIX = "inmanta-module-"
EXTENSION_NAMESPACE = "inmanta_ext"
UNKNOWN_STRING = "<<undefined>>"
ENVIRON_FORCE_TTY = "FORCE_TTY"
NAME_RESOURCE_ACTION_LOGGER = "inmanta.resource_action"
LOGGER_NAME_EXECUTOR = "inmanta.executor"
CF_CACHE_DIR = ".cfcache"
ENVELOPE_KEY = "data"
INMANTA_MT_HEADER = "X-Inmanta-tid"
INMANTA_URN = "urn:inmanta:"
EXPORT_META_DATA = "export_metadata"
META_DATA_COMPILE_STATE = "inmanta:compile:state"
TIME_ISOFMT = "%Y-%m-%dT%H:%M:%S.%f"
TIME_LOGFMT = "%Y-%m-%d %H:%M:%S%z"
DATETIME_MIN_UTC = datetime.datetime.min.replace(tzinfo=datetime.timezone.utc)

RESOURCE_ATTRIBUTE_SEND_EVENTS = "send_event"
RESOURCE_ATTRIBUTE_RECEIVE_EVENTS = "receive_events"
RESOURCE_ATTRIBUTE_REFERENCES = "references"
RESOURCE_ATTRIBUTE_MUTATORS = "mutators"
RESOURCE_ATTRIBUTE_REPORT_ONLY = "report_only"
