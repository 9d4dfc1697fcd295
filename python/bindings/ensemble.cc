// SPDX-License-Identifier: Apache-2.0
// Batches of several buffers.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/replaceable.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/buffer_part.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/fork.h"
#include "rill/python/bindings/in_call.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/replay/ensemble/replay_buffer_ensemble.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

bool HaveThreads(const nb::list& buffers) {
  for (const nb::handle buffer : buffers) {
    if (nb::cast<BufferPart*>(buffer)->has_threads()) return true;
  }
  return false;
}

// rill::ReplayBufferEnsemble for Python: no lock of the interpreter's while it
// works.
class Ensemble {
 public:
  Ensemble(const nb::list& buffers, const std::vector<double>& shares,
           int64_t batch_size, bool stacked, int64_t buffers_sampled,
           const nb::list& transforms, uint64_t seed, double timeout)
      : fork_guard_(HaveThreads(buffers), "ReplayBufferEnsemble"),
        timeout_(absl::Seconds(timeout)) {
    ReplayBufferEnsemble::Options options = {.batch_size = batch_size,
                                             .stacked = stacked,
                                             .buffers_sampled = buffers_sampled,
                                             .seed = seed};
    for (size_t i = 0; i < shares.size(); ++i) {
      const auto* member = nb::cast<BufferPart*>(buffers[i]);
      has_threads_ = has_threads_ || member->has_threads();
      members_.push_back(member);
      options.members.push_back(
          {.buffer = member->Share(), .share = shares[i]});
    }
    for (const nb::handle transform : transforms) {
      options.transforms.push_back(nb::cast<TransformPart*>(transform)->Take());
    }
    ensemble_ = Value(ReplayBufferEnsemble::Create(std::move(options)));
  }
  ~Ensemble() {
    if (fork_guard_.is_stranded()) {
      new auto(std::move(ensemble_));  // It is left where it lies.
      return;
    }
    Close();
  }
  Ensemble(const Ensemble&) = delete;
  Ensemble& operator=(const Ensemble&) = delete;

  // Waits for rate limiters of members; an interrupt, as of Ctrl-C, ends it.
  nb::object Sample(int64_t batch_size) {
    CheckNotInCall("sample");
    const HeldForCall ensemble(this, Get(), &fork_guard_);
    const std::shared_ptr<OutputBatch> batch = output_.Take();
    const absl::Time deadline = Clock::Steady().Now() + timeout_;
    absl::Status status = SampleOnce(ensemble.get(), batch_size, batch.get());
    // Members have waited a little each.
    while (absl::IsDeadlineExceeded(status) &&
           Clock::Steady().Now() < deadline) {
      CheckPython(PyErr_CheckSignals() == 0);
      if (is_closed()) {
        status = absl::CancelledError(
            "ReplayBufferEnsemble: got one that was closed in a call, want an "
            "open one");
        break;
      }
      status = SampleOnce(ensemble.get(), batch_size, batch.get());
    }
    Check(std::move(status));
    return output_.Make(batch);
  }

  void SetShares(const std::vector<double>& shares) {
    Run("set_p", [&](ReplayBufferEnsemble& ensemble) {
      return ensemble.SetShares(shares);
    });
  }
  int64_t size() const { return Get()->size(); }

  // All but the members, to one file, and back.
  void Save(const std::string& path) {
    Run("dumps", [&](ReplayBufferEnsemble& ensemble) -> absl::Status {
      RILL_ASSIGN_OR_RETURN(const TensorDict state, ensemble.SaveState());
      return SaveConsolidated(state, path);
    });
  }
  void Load(const std::string& path) {
    Run("loads", [&](ReplayBufferEnsemble& ensemble) -> absl::Status {
      RILL_ASSIGN_OR_RETURN(const TensorDict state, LoadConsolidated(path));
      return ensemble.LoadState(state);
    });
  }

  // FAILED_PRECONDITION in a function that a call of this, or of a member, has
  // called. All calls look; who takes a lock or closes this before one asks
  // too.
  void CheckNotInCall(const std::string& call) const {
    constexpr char kWho[] = "ReplayBufferEnsemble";
    python::CheckNotInCall(this, has_threads_, kWho, call);
    for (const void* member : members_) {
      python::CheckNotInCall(member, /*has_threads=*/false, kWho, call);
    }
  }

  void Close() {
    if (ensemble_ == nullptr || fork_guard_.is_stranded()) return;
    DropUnlocked(std::move(ensemble_));
  }
  bool is_closed() const { return ensemble_ == nullptr; }
  // As Buffer's of replay_buffer.cc.
  int64_t calls_in_flight() const {
    return fork_guard_.is_stranded() ? 0 : fork_guard_.calls();
  }

 private:
  // `call(ensemble)` without the interpreter's lock; no function of Python's is
  // in it.
  template <typename Call>
  void Run(const std::string& name, const Call& call) const {
    CheckNotInCall(name);
    const HeldForCall ensemble(this, Get(), &fork_guard_);
    absl::Status status;
    {
      const Unlocked unlocked;
      status = call(*ensemble.get());
    }
    Check(std::move(status));
  }

  absl::Status SampleOnce(ReplayBufferEnsemble* ensemble, int64_t batch_size,
                          OutputBatch* batch) const {
    const InCall in_call(this, members_);
    const Unlocked unlocked;
    return TakeNoted(ensemble->SampleInto(batch_size, &batch->rows));
  }

  std::shared_ptr<ReplayBufferEnsemble> Get() const {
    if (ensemble_ == nullptr) {
      throw StatusError{FailedPrecondition(
          "ReplayBufferEnsemble: got a closed one, want an open one")};
    }
    fork_guard_.Check();
    return ensemble_;
  }

  mutable ForkGuard fork_guard_;
  const absl::Duration timeout_;
  bool has_threads_ = false;          // Of members.
  std::vector<const void*> members_;  // As InCall knows them.
  OutputMaker output_;
  std::shared_ptr<ReplayBufferEnsemble> ensemble_;  // Null: closed.
};

// `write(folder)` makes what is to take the place of the folder `path`, where
// an ensemble's save is, or nothing.
void ReplaceFolder(const std::string& path, const nb::callable& write) {
  constexpr char kDumps[] = "ReplayBufferEnsemble::dumps";
  absl::Status status;
  {
    const Unlocked unlocked;
    status = CheckReplaceable(kDumps, path, "ensemble");
    if (status.ok()) {
      status = ReplaceDirectory(path, [&](const std::string& folder) {
        return CallPython(kDumps, [&] { write(folder); });
      });
    }
  }
  Check(std::move(status));
}

}  // namespace

void BindEnsemble(nb::module_& module) {
  module.def("replace_folder", &ReplaceFolder, "path"_a, "write"_a);
  nb::class_<Ensemble>(module, "Ensemble")
      .def(nb::init<const nb::list&, const std::vector<double>&, int64_t, bool,
                    int64_t, const nb::list&, uint64_t, double>(),
           "buffers"_a, "shares"_a, "batch_size"_a, "stacked"_a,
           "buffers_sampled"_a, "transforms"_a, "seed"_a, "timeout"_a)
      .def("check_not_in_call", &Ensemble::CheckNotInCall, "call"_a)
      .def("sample", &Ensemble::Sample, "batch_size"_a)
      .def("set_shares", &Ensemble::SetShares, "shares"_a)
      .def("save", &Ensemble::Save, "path"_a)
      .def("load", &Ensemble::Load, "path"_a)
      .def("close", &Ensemble::Close)
      .def("__len__", &Ensemble::size)
      .def_prop_ro("is_closed", &Ensemble::is_closed)
      .def_prop_ro("calls_in_flight", &Ensemble::calls_in_flight);
}

}  // namespace rill::python
