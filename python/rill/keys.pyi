# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence

_Key = str | tuple[str, ...]
_Keys = str | Sequence[_Key]

def key_text(key: _Key) -> str: ...
def key_texts(keys: _Keys | None) -> list[str] | None: ...
