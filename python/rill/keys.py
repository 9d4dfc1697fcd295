# SPDX-License-Identifier: Apache-2.0
"""Keys of batches as the texts that the core takes."""
import re


def key_text(key):
    """"next/reward" of ("next", "reward"); a text as it is."""
    return key if isinstance(key, str) else "/".join(key_text(part) for part in key)


def level_text(name):
    """The text of one level, in which a slash goes down none."""
    return str(name).replace("\\", "\\\\").replace("/", "\\/")


def level_name(text):
    """The name of a level, as a dict has it, of its text."""
    return re.sub(r"\\(.)", r"\1", text)


def key_texts(keys):
    """The texts of a list of keys; of a single one too, if it is a text."""
    if keys is None:
        return None
    return [keys] if isinstance(keys, str) else [key_text(key) for key in keys]
