# SPDX-License-Identifier: Apache-2.0
"""The files of the image, with the real programs: they run from there alone, have
every flag of the manifests, and take the manifests' tables.

usage: image_test.py IMAGE_FILES REPLAY_SERVER DISTRIBUTED_DQN SHARDS
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import manifests
import yaml_subset

IMAGE_FILES, SERVER, RUN, SHARDS = sys.argv[1:]


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.image = pathlib.Path(cls.folder.name, "image_files")
        subprocess.run(["bash", IMAGE_FILES, cls.image, SERVER, RUN], check=True)

    def command(self, program, *words):
        """Of a shell that finds libraries as the image does, and knows no folder of a build."""
        return subprocess.Popen([self.image / program, *words], cwd="/", stdout=subprocess.PIPE, text=True,
                                env={"LD_LIBRARY_PATH": str(self.image)})

    def test_the_image_has_programs_and_libraries(self):
        names = sorted(path.name for path in self.image.iterdir())
        self.assertEqual([name for name in names if not name.startswith("libarrow")],
                         ["distributed_dqn", "replay_server"])
        self.assertTrue(any(name.startswith("libarrow_flight.so") for name in names))
        self.assertTrue(all(os.path.isfile(path) and not path.is_symlink() for path in self.image.iterdir()))

    def test_help_lists_the_flags(self):
        for program, flags in {"replay_server": ["config", "token_file", "grace", "health"],
                               "distributed_dqn": ["role", "address", "shards", "learner", "number", "checkpoint",
                                                   "token_file"]}.items():
            out, _ = self.command(program, "--helpfull").communicate()
            for flag in flags:
                self.assertRegex(out, rf"(?m)^ *--{flag} ")

    def test_a_shard_of_the_manifests_serves_and_is_healthy(self):
        config = manifests.config_of(yaml_subset.parse(pathlib.Path(SHARDS).read_text()), "rill-tables", "tables.json")
        config["listen"] = "grpc://127.0.0.1:0"
        config["checkpoint"]["directory"] = os.path.join(self.folder.name, "shard")
        path = pathlib.Path(self.folder.name, "tables.json")
        path.write_text(json.dumps(config))
        token = pathlib.Path(self.folder.name, "token")
        token.write_text("secret")
        server = self.command("replay_server", f"--config={path}", f"--token_file={token}")
        address = re.search(r"serving at (\S+)", server.stdout.readline())[1]
        probe = self.command("replay_server", f"--health={address}", f"--token_file={token}")
        self.assertEqual(probe.communicate()[0], "SERVING, 0 checkpoints failed\n")
        self.assertEqual(probe.returncode, 0)
        server.terminate()
        server.communicate()
        self.assertEqual(server.returncode, 0)
