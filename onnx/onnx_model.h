// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ONNX_ONNX_MODEL_H_
#define RILL_ONNX_ONNX_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {

// A .onnx file as a function of tensors, run by ONNX Runtime on the CPU. An
// OnnxPolicy acts by one.
//
// Copies share the network. Thread-safety: several threads may Run one model.
// Device/Stream: tensors are in host memory.
//
// Example (OnnxModelTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(OnnxModel model, OnnxModel::Load(path));
//   Tensor logits;
//   RILL_RETURN_IF_ERROR(model.Run({observation}, absl::MakeSpan(&logits, 1)));
class OnnxModel {
 public:
  struct Options {
    // That one Run may use. With 1 the model has no threads of its own: a
    // worker's share.
    int threads = 1;
  };
  // An input or output as the file declares it.
  struct Value {
    std::string name;
    DType dtype = DType::kFloat32;
    // -1: any size. Empty: a scalar, or any shape.
    std::vector<int64_t> sizes;

    std::string ToString() const;  // "logits" float32[?, 4], name in quotes.
  };

  OnnxModel() = default;  // is_valid() is false.

  // NOT_FOUND where there is no file. UNIMPLEMENTED where the library lacks an
  // operator or a type of it. INVALID_ARGUMENT: the file is no model, has
  // inputs or outputs that are no tensors of a DType, or threads is below 1.
  // FAILED_PRECONDITION: the library is older than the header it is built with.
  static absl::StatusOr<OnnxModel> Load(const std::string& path,
                                        const Options& options);
  static absl::StatusOr<OnnxModel> Load(const std::string& path);

  bool is_valid() const { return state_ != nullptr; }
  // In the order of the file; none where !is_valid().
  const std::vector<Value>& inputs() const;
  const std::vector<Value>& outputs() const;

  // A tensor for each of inputs() and outputs(). Inputs are read where they
  // lie; those with gaps are copied first. An output that is_valid() is written
  // in place: its shape is the result's, it is contiguous, and it shares no
  // bytes with an input. Another one becomes a new tensor.
  // INVALID_ARGUMENT names the input or output with got and want, or has the
  // library's text. Outputs hold anything after an error.
  // Cost: the library's, and about 1 us for one input and one output.
  absl::Status Run(absl::Span<const Tensor> inputs,
                   absl::Span<Tensor> outputs) const;

 private:
  struct State;
  explicit OnnxModel(std::shared_ptr<const State> state);

  std::shared_ptr<const State> state_;
};

}  // namespace rill

#endif  // RILL_ONNX_ONNX_MODEL_H_
