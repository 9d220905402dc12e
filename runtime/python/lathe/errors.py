"""Exceptions by status code, as tensorflow.errors has them.

Where TensorFlow is loaded in the same process, what is raised is also an instance of TensorFlow's class of that code, so that
`except tf.errors.OutOfRangeError` goes on working.
"""
from __future__ import annotations

import re
import sys
from typing import Any, Dict, Optional, Type

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


_ABOUT = re.compile(r"node '([^']+)' \(([^)]+)\): ")


class OpError(Exception):
    """A status: `code`, `message`, and the node it is about where that is known.

    `node` is the node's name and `node_op` its op, "" where the status is about no node. `op` and `node_def` are TensorFlow's
    operation and its NodeDef, for sessions on a `tf.Graph`; otherwise None.
    """

    _code: int = UNKNOWN

    def __init__(self, message: str, node: str = "", node_op: str = "", op: Any = None, code: Optional[int] = None) -> None:
        Exception.__init__(self, message)
        self._message = message
        self._op = op
        self._node_def = getattr(op, "node_def", None)
        self._error_code = self._code if code is None else code
        if not node and (about := _ABOUT.match(message)):  # as the compiler begins what it says of a node
            node, node_op = about.groups()
        self.node = node
        self.node_op = node_op

    @property
    def message(self) -> str:
        return self._message

    @property
    def code(self) -> int:
        return self._error_code

    @property
    def error_code(self) -> int:
        return self._error_code

    @property
    def op(self) -> Any:
        return self._op

    @property
    def node_def(self) -> Any:
        return self._node_def

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> Any:
        return _make, (self._error_code, self._message, self.node, self.node_op)


class CancelledError(OpError):
    """The run was cancelled, or the session closed."""
    _code = CANCELLED


class UnknownError(OpError):
    """An error without a code of its own."""
    _code = UNKNOWN


class InvalidArgumentError(OpError):
    """An argument that is wrong whatever the state."""
    _code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A timeout passed."""
    _code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """A file, node, tensor or resource that is not there."""
    _code = NOT_FOUND


class AlreadyExistsError(OpError):
    """Something that should have been made was there."""
    _code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller may not do this."""
    _code = PERMISSION_DENIED


class ResourceExhaustedError(OpError):
    """Memory, or a limit, is used up."""
    _code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The state does not allow it, such as a variable that is not initialised."""
    _code = FAILED_PRECONDITION


class AbortedError(OpError):
    """The operation was given up."""
    _code = ABORTED


class OutOfRangeError(OpError):
    """Past the end of the input; an index out of range."""
    _code = OUT_OF_RANGE


class UnimplementedError(OpError):
    """Lathe does not do this."""
    _code = UNIMPLEMENTED


class InternalError(OpError):
    """A mistake of Lathe's."""
    _code = INTERNAL


class UnavailableError(OpError):
    """Not to be had at present."""
    _code = UNAVAILABLE


class DataLossError(OpError):
    """A file that is damaged."""
    _code = DATA_LOSS


class UnauthenticatedError(OpError):
    """The caller is not known."""
    _code = UNAUTHENTICATED


_CLASSES: Dict[int, Type[OpError]] = {
    c._code: c
    for c in (CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError, AlreadyExistsError,
              PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError, AbortedError, OutOfRangeError,
              UnimplementedError, InternalError, UnavailableError, DataLossError, UnauthenticatedError)
}
_WITH_TENSORFLOW: Dict[int, type] = {}


def exception_type_from_error_code(code: int) -> Type[OpError]:
    """The class of a code; KeyError for numbers that are none."""
    return _CLASSES[code]


def error_code_from_exception_type(cls: Type[OpError]) -> int:
    """The code of a class."""
    return cls._code


def _class_of(code: int) -> Type[OpError]:
    ours = _CLASSES.get(code, UnknownError)
    theirs = getattr(getattr(sys.modules.get("tensorflow"), "errors", None), ours.__name__, None)
    if theirs is None:
        return ours
    both = _WITH_TENSORFLOW.get(code)
    if both is None:
        both = _WITH_TENSORFLOW[code] = type(ours.__name__, (ours, theirs), {"__doc__": ours.__doc__, "__module__": __name__})
    return both


def _make(code: int, message: str, node: str = "", node_op: str = "") -> OpError:
    return _class_of(code)(message, node, node_op, code=code)
