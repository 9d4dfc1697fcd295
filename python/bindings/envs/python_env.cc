// SPDX-License-Identifier: Apache-2.0
// Environments of Python objects.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/unique_ptr.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/envs/env_part.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/status.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

// One object: reset(seed), and step() -> (reward, terminated, truncated). Both
// read and write arrays that show the rows of the lane.
class PythonLane final : public Lane {
 public:
  PythonLane(nb::object reset, nb::object step)
      : reset_(std::move(reset)), step_(std::move(step)) {}

  absl::Status Reset(const Rng& rng, uint64_t episode) override {
    // As a Gymnasium environment in a process of its own gets one.
    const uint64_t seed = rng.Bits64(episode, 0) >> 33;
    return CallPython("reset", [&] { CallObject(reset_.get(), seed); });
  }

  absl::StatusOr<LaneStep> Step() override {
    LaneStep step;
    RILL_RETURN_IF_ERROR(CallPython("step", [&] {
      const nb::object result = CallObject(step_.get());
      const nb::object reward = result[0];
      const double number = PyFloat_AsDouble(reward.ptr());
      CheckPython(PyErr_Occurred() == nullptr);
      step.reward = static_cast<float>(number);
      step.terminated = IsTrue(result[1]);
      step.truncated = IsTrue(result[2]);
    }));
    return step;
  }

 private:
  static bool IsTrue(const nb::object& flag) {
    const int is_true = PyObject_IsTrue(flag.ptr());
    CheckPython(is_true >= 0);
    return is_true != 0;
  }

  const SharedObject reset_;
  const SharedObject step_;
};

// `make(lane, row)` gives the two functions of a lane, whose leaves `row`
// shows.
std::unique_ptr<EnvPart> Make(const std::string& name, int64_t lanes,
                              const TensorDictSpec& observation,
                              const TensorDictSpec& action,
                              const nb::object& make) {
  const auto make_lane =
      [&](int64_t lane,
          const TensorDict& row) -> absl::StatusOr<std::unique_ptr<Lane>> {
    std::unique_ptr<Lane> made;
    RILL_RETURN_IF_ERROR(CallPython(name, [&] {
      const auto shown = std::make_shared<OutputBatch>();
      shown->rows = row;
      OutputMaker maker;
      const nb::object functions = make(lane, maker.Make(shown));
      made = std::make_unique<PythonLane>(nb::object(functions[0]),
                                          nb::object(functions[1]));
    }));
    return made;
  };
  return std::make_unique<EnvPart>(
      Value(MakeLaneEnv({.name = name,
                         .lanes = lanes,
                         .observation = observation,
                         .action = action},
                        make_lane)),
      /*has_workers=*/false);
}

}  // namespace

void BindPythonEnv(nb::module_& module) {
  module.def("python_env", &Make, "name"_a, "lanes"_a, "observation"_a,
             "action"_a, "make"_a);
}

}  // namespace rill::python
