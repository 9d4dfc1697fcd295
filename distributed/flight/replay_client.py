# SPDX-License-Identifier: Apache-2.0
"""A client of a replay server for Python: copy the file. It needs pyarrow alone.

docs/formats/arrow.md has the protocol, distributed/README.md the calls.
"""

import json

import pyarrow as pa
import pyarrow.flight as flight


class ReplayClient:
    """Writes to and samples one table. Not thread-safe.

    A write is carried out exactly once as long as this client lives: one that
    failed may be called again with the same number.
    """

    def __init__(self, address, table="replay", client="python", token=None):
        self.table, self.client, self.number = table, client, 1
        self.connection = flight.connect(address)
        headers = [(b"authorization", b"Bearer " + token.encode())] if token else []
        self.options = flight.FlightCallOptions(headers=headers)
        self.streams = {}

    def call(self, method, values, batch=None, batch_shape=None):
        """The reply's values and record batch; RuntimeError for an error."""
        values = {"": ["ReplayRequest", 1], "table": self.table, **values}
        message = {"values": values, "timeout_s": 60.0}
        if batch_shape is not None:
            message["batch_shape"] = batch_shape
        metadata = json.dumps(message).encode()
        if method not in self.streams:
            path = flight.FlightDescriptor.for_path(method)
            self.streams[method] = [*self.connection.do_exchange(path, self.options), False]
        writer, reader, has_begun = self.streams[method]
        if batch is None:
            writer.write_metadata(metadata)
        else:
            if not has_begun:
                writer.begin(batch.schema)
                self.streams[method][2] = True
            writer.write_with_metadata(batch, metadata)
        reply = reader.read_chunk()
        answer = json.loads(reply.app_metadata.to_pybytes())
        if "error" in answer:
            raise RuntimeError("{code}: {message}".format(**answer["error"]))
        return answer["values"], reply.data

    def write(self, batch, lanes, steps, **info):
        """A record batch of lanes * steps rows, lane after lane."""
        names = ("producer", "first_lane", "lanes", "policy_version", "sequence", "source")
        values = {name: info.get(name, 0) for name in names}
        values.update(client=self.client, number=self.number, kind=0)
        self.call("replay/operation", values, batch, [lanes, steps])
        self.number += 1

    def sample(self, batch_size=0):
        return self.call("replay/sample", {"batch_size": batch_size})[1]

    def update_priorities(self, batch, priorities):
        """The number of rows that an earlier start of the server drew."""
        origins = batch.select(["index", "index_generation", "index_server"])
        values = {"priorities": [float(value) for value in priorities]}
        return self.call("replay/priorities", values, origins)[0]["stale"]

    def stats(self):
        return self.call("replay/stats", {})[0]

    def close(self):
        for writer, _, _ in self.streams.values():
            writer.close()
