"""optional_part: a package of the build that is off unless its setting is on."""

load("@bazel_skylib//rules:common_settings.bzl", "bool_flag")

def optional_part(is_there, is_off):
    """Makes "enable", "enabled", and what nobody has.

    Args:
      is_there: whether the part's repository is set up, which is the default
        of the flag "enable".
      is_off: the name of a constraint that no platform has. A target that asks
        for it is skipped by wildcards and refused by name; Bazel's message is
        this name.
    """
    bool_flag(
        name = "enable",
        build_setting_default = is_there,
    )
    native.config_setting(
        name = "enabled",
        flag_values = {":enable": "True"},
    )
    native.constraint_setting(name = "part")
    native.constraint_value(
        name = is_off,
        constraint_setting = ":part",
    )
