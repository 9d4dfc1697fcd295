// SPDX-License-Identifier: Apache-2.0
#include "absl/log/initialize.h"
#include "nanobind/nanobind.h"
#include "rill/python/bindings/bindings.h"

// Statuses first: what the other parts say goes through them.
NB_MODULE(_rill, module) {
  // A buffer that the interpreter's end finds alive is no leak to tell of.
  nanobind::set_leak_warnings(false);
  absl::InitializeLog();
  rill::python::BindStatus(module);
  rill::python::BindInterpreterLock(module);
  rill::python::BindArray(module);
  rill::python::BindStorages(module);
  rill::python::BindReaders(module);
  rill::python::BindSamplers(module);
  rill::python::BindUnits(module);
  rill::python::BindWriters(module);
  rill::python::BindTransforms(module);
  rill::python::BindFunctionTransform(module);
  rill::python::BindChannel(module);
  rill::python::BindEstimators(module);
  rill::python::BindRateLimiter(module);
  rill::python::BindSpecs(module);
  rill::python::BindEnvs(module);
  rill::python::BindPythonEnv(module);
  rill::python::BindTransformedEnv(module);
  rill::python::BindCollector(module);
  rill::python::BindReplayBuffer(module);
  rill::python::BindEnsemble(module);
}
