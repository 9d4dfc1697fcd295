# SPDX-License-Identifier: Apache-2.0
"""The exceptions of rill: one family, one class a code of absl::Status.

Each is also the built-in exception that Python code expects in its place, so
that `except ValueError` and `except rill.Error` both work. The text is the
status's: "<Class::Method>: <what broke>: got <value>, want <range>".
"""


class Error(Exception):
    """What any call of rill raises."""


class CancelledError(Error):
    pass


class UnknownError(Error):
    pass


class InvalidArgumentError(Error, ValueError):
    pass


class DeadlineExceededError(Error, TimeoutError):
    pass


class NotFoundError(Error, KeyError):
    def __str__(self):
        # KeyError's shows the text in quotes.
        return Exception.__str__(self)


class AlreadyExistsError(Error, FileExistsError):
    pass


class PermissionDeniedError(Error, PermissionError):
    pass


class ResourceExhaustedError(Error, MemoryError):
    pass


class FailedPreconditionError(Error, RuntimeError):
    pass


class AbortedError(Error, RuntimeError):
    pass


class OutOfRangeError(Error, IndexError):
    pass


class UnimplementedError(Error, NotImplementedError):
    pass


class InternalError(Error, RuntimeError):
    pass


class UnavailableError(Error, ConnectionError):
    pass


class DataLossError(Error, OSError):
    pass


class UnauthenticatedError(Error, PermissionError):
    pass


# By the number of absl::StatusCode.
BY_CODE = dict(enumerate((
    CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError,
    AlreadyExistsError, PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError,
    AbortedError, OutOfRangeError, UnimplementedError, InternalError, UnavailableError,
    DataLossError, UnauthenticatedError), start=1))
