// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_BINDINGS_H_
#define RILL_PYTHON_BINDINGS_BINDINGS_H_

#include "nanobind/nanobind.h"

namespace rill::python {

// The parts of rill._rill, each in the file of its name: a new part adds its
// line here and in module.cc. They are for rill's own Python files, which give
// them TorchRL's names and defaults.
void BindArray(nanobind::module_& module);
void BindChannel(nanobind::module_& module);
void BindCollector(nanobind::module_& module);
void BindEnsemble(nanobind::module_& module);
void BindEnvs(nanobind::module_& module);
void BindEstimators(nanobind::module_& module);
void BindFunctionTransform(nanobind::module_& module);
void BindInterpreterLock(nanobind::module_& module);
void BindPythonEnv(nanobind::module_& module);
void BindRateLimiter(nanobind::module_& module);
void BindReaders(nanobind::module_& module);
void BindReplayBuffer(nanobind::module_& module);
void BindSamplers(nanobind::module_& module);
void BindSpecs(nanobind::module_& module);
void BindStatus(nanobind::module_& module);
void BindStorages(nanobind::module_& module);
void BindTransformedEnv(nanobind::module_& module);
void BindTransforms(nanobind::module_& module);
void BindUnits(nanobind::module_& module);
void BindWriters(nanobind::module_& module);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_BINDINGS_H_
