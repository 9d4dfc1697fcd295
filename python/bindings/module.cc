// SPDX-License-Identifier: Apache-2.0
#include "absl/log/initialize.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "nanobind/nanobind.h"
#include "rill/python/bindings/bindings.h"

namespace {

// Abseil measures a clock at a process's first wait. A child that is forked in
// the middle of that would wait for its end for ever.
void WaitOnce() {
  bool never = false;
  absl::Mutex mutex;
  mutex.LockWhenWithTimeout(absl::Condition(&never), absl::ZeroDuration());
  mutex.Unlock();
}

}  // namespace

// Statuses first: what the other parts say goes through them.
NB_MODULE(_rill, module) {
  // A buffer that the interpreter's end finds alive is no leak to tell of.
  nanobind::set_leak_warnings(false);
  absl::InitializeLog();
  WaitOnce();
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
