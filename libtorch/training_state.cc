// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/training_state.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "c10/util/Type.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_call.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "torch/optim/optimizer.h"
#include "torch/serialize/input-archive.h"
#include "torch/serialize/output-archive.h"

namespace rill {
namespace {

constexpr absl::string_view kSave = "SaveTraining";
constexpr absl::string_view kLoad = "LoadTraining";
// Entries of a state.
constexpr absl::string_view kWeights = "weights";        // By name.
constexpr absl::string_view kOptimizers = "optimizers";  // By name.
constexpr absl::string_view kKind = "kind";              // Of one of them.
constexpr absl::string_view kArchive = "archive";
constexpr absl::string_view kGenerator = "generator";

std::string KeyOf(absl::string_view group, absl::string_view name) {
  return absl::StrCat(group, "/", EscapeKeyComponent(name));
}

// Its class and the shapes of its parameters, as JSON.
NonTensor KindOf(const torch::optim::Optimizer& optimizer) {
  std::vector<std::string> groups;
  for (const auto& group : optimizer.param_groups()) {
    groups.push_back(absl::StrJoin(
        group.params(), " ", [](std::string* out, const at::Tensor& parameter) {
          absl::StrAppend(out, "[", absl::StrJoin(parameter.sizes(), ", "),
                          "]");
        }));
  }
  return {absl::StrCat("\"", c10::demangle(typeid(optimizer).name()), " of ",
                       absl::StrJoin(groups, "; "), "\"")};
}

absl::StatusOr<TensorDict> SaveOptimizer(
    const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::string bytes;
  archive.save_to([&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  RILL_ASSIGN_OR_RETURN(
      Tensor tensor,
      Tensor::Empty(DType::kUInt8, {static_cast<int64_t>(bytes.size())}));
  std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
  TensorDict state;
  RILL_RETURN_IF_ERROR(state.Set(kKind, KindOf(optimizer)));
  RILL_RETURN_IF_ERROR(state.Set(kArchive, std::move(tensor)));
  return state;
}

absl::Status LoadOptimizer(const TensorDict& state,
                           torch::optim::Optimizer& optimizer) {
  RILL_ASSIGN_OR_RETURN(const absl::Span<uint8_t> bytes,
                        state.Flat<uint8_t>(kArchive));
  torch::serialize::InputArchive archive;
  archive.load_from(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // Moments that the archive does not have would stay.
  optimizer.state().clear();
  optimizer.load(archive);
  return absl::OkStatus();
}

// That the group holds these names and no others.
template <typename Part>
absl::Status CheckNames(const TensorDict& state, absl::string_view group,
                        const std::map<std::string, Part>& parts) {
  const TensorDict* const saved = state.FindDict(group);
  std::vector<std::string> got, want;
  if (saved != nullptr) got = saved->Keys();
  for (const auto& [name, part] : parts) {
    want.push_back(EscapeKeyComponent(name));
  }
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  if (got == want) return absl::OkStatus();
  return InvalidArgument(kLoad, ": ", group, ": got ", ListKeys(got), ", want ",
                         ListKeys(want));
}

absl::Status CheckNotNull(absl::string_view caller,
                          const TrainingParts& parts) {
  for (const auto& [name, optimizer] : parts.optimizers) {
    if (optimizer == nullptr) {
      return InvalidArgument(caller, ": optimizer \"", name,
                             "\": got null, want one");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOptimizer(const TensorDict& state, const std::string& name,
                            const torch::optim::Optimizer& optimizer) {
  RILL_ASSIGN_OR_RETURN(
      const NonTensor got,
      state.GetNonTensor(absl::StrCat(KeyOf(kOptimizers, name), "/", kKind)));
  const NonTensor want = KindOf(optimizer);
  if (got == want) return absl::OkStatus();
  return InvalidArgument(kLoad, ": optimizer \"", name, "\": got ", got.json,
                         ", want ", want.json);
}

absl::Status Check(const TensorDict& state, const TrainingParts& parts) {
  RILL_RETURN_IF_ERROR(CheckNotNull(kLoad, parts));
  RILL_RETURN_IF_ERROR(CheckNames(state, kWeights, parts.weights));
  RILL_RETURN_IF_ERROR(CheckNames(state, kOptimizers, parts.optimizers));
  for (const auto& [name, weights] : parts.weights) {
    RILL_ASSIGN_OR_RETURN(const TensorDict saved,
                          state.GetDict(KeyOf(kWeights, name)));
    RILL_RETURN_IF_ERROR(weights.CheckLoad(saved))
        << kLoad << ": weights \"" << name << "\"";
  }
  for (const auto& [name, optimizer] : parts.optimizers) {
    RILL_RETURN_IF_ERROR(CheckOptimizer(state, name, *optimizer));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorDict> SaveTraining(const TrainingParts& parts) {
  RILL_RETURN_IF_ERROR(CheckNotNull(kSave, parts));
  TensorDict state;
  for (const auto& [name, weights] : parts.weights) {
    RILL_RETURN_IF_ERROR(weights.WaitForTorch());
    RILL_ASSIGN_OR_RETURN(TensorDict saved, weights.dict().To(Device::Cpu()));
    RILL_RETURN_IF_ERROR(state.Set(KeyOf(kWeights, name), std::move(saved)));
  }
  for (const auto& [name, optimizer] : parts.optimizers) {
    RILL_ASSIGN_OR_RETURN(
        TensorDict saved,
        CallTorch(
            [&, &optimizer = optimizer] { return SaveOptimizer(*optimizer); },
            kSave, ": optimizer \"", name, "\""));
    RILL_RETURN_IF_ERROR(state.Set(KeyOf(kOptimizers, name), std::move(saved)));
  }
  RILL_ASSIGN_OR_RETURN(Tensor generator,
                        CallTorch(
                            [&] {
                              at::Generator cpu =
                                  at::detail::getDefaultCPUGenerator();
                              const std::scoped_lock lock(cpu.mutex());
                              return FromTorch(cpu.get_state());
                            },
                            kSave));
  RILL_RETURN_IF_ERROR(state.Set(kGenerator, std::move(generator)));
  return state;
}

absl::Status LoadTraining(const TensorDict& state, const TrainingParts& parts) {
  RILL_RETURN_IF_ERROR(Check(state, parts));
  RILL_ASSIGN_OR_RETURN(const absl::Span<uint8_t> generator,
                        state.Flat<uint8_t>(kGenerator));
  for (const auto& [name, optimizer] : parts.optimizers) {
    RILL_ASSIGN_OR_RETURN(const TensorDict saved,
                          state.GetDict(KeyOf(kOptimizers, name)));
    RILL_RETURN_IF_ERROR(CallTorch(
        [&, &optimizer = optimizer] {
          return LoadOptimizer(saved, *optimizer);
        },
        kLoad, ": optimizer \"", name, "\""));
  }
  for (const auto& [name, weights] : parts.weights) {
    RILL_ASSIGN_OR_RETURN(const TensorDict saved,
                          state.GetDict(KeyOf(kWeights, name)));
    // Copies share the module's bytes.
    ModuleWeights loaded = weights;
    RILL_RETURN_IF_ERROR(loaded.Load(saved));
  }
  return CallTorch(
      [&]() -> absl::Status {
        at::Generator cpu = at::detail::getDefaultCPUGenerator();
        const std::scoped_lock lock(cpu.mutex());
        at::Tensor bytes = at::empty(static_cast<int64_t>(generator.size()),
                                     at::TensorOptions().dtype(at::kByte));
        std::memcpy(bytes.data_ptr(), generator.data(), generator.size());
        cpu.set_state(bytes);
        return absl::OkStatus();
      },
      kLoad, ": ", kGenerator);
}

}  // namespace rill
