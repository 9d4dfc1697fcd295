# SPDX-License-Identifier: Apache-2.0
"""Compiles the module of torch_package_test.cc with AOTInductor.

usage: make_package.py PACKAGE

The last line is the version of torch, as 2.15.0.
"""
import sys

import torch


class Recurrent(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(3, 2)
        with torch.no_grad():
            self.body.weight.copy_(torch.arange(6).reshape(2, 3) / 10)
            self.body.bias.copy_(torch.tensor([0.5, -1.0]))

    def forward(self, observation, hidden):
        logits = torch.tanh(self.body(observation)) + hidden
        return logits, hidden + 1


def main(path):
    lanes = torch.export.Dim("lanes", max=4096)
    program = torch.export.export(
        Recurrent().eval(), (torch.zeros(8, 3), torch.zeros(8, 2)), dynamic_shapes=({0: lanes}, {0: lanes}))
    torch._inductor.aoti_compile_and_package(
        program, package_path=path, inductor_configs={"cpp.threads": 1})
    print(torch.__version__.split("+")[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
