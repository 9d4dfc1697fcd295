# SPDX-License-Identifier: Apache-2.0
"""Keys of batches as the texts that the core takes."""


def key_text(key):
    """"next/reward" of ("next", "reward"); a text as it is."""
    return key if isinstance(key, str) else "/".join(key_text(part) for part in key)


def key_texts(keys):
    """The texts of a list of keys; of a single one too, if it is a text."""
    if keys is None:
        return None
    return [keys] if isinstance(keys, str) else [key_text(key) for key in keys]
