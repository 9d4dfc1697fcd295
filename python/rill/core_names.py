# SPDX-License-Identifier: Apache-2.0
"""The core's names of the package's classes."""


class Named:
    """`_name` of a class is the core's name for it: the class's own where it gives none. One made from it outside of
    the package is of the same name."""

    _name = None

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__module__.startswith("rill.") and "_name" not in vars(cls):
            cls._name = cls.__name__
