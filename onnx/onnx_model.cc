// SPDX-License-Identifier: Apache-2.0
#include "rill/onnx/onnx_model.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "onnxruntime_c_api.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// All models of the process share one, which is never freed.
struct Library {
  const OrtApi* api = nullptr;
  OrtEnv* env = nullptr;
  OrtMemoryInfo* host = nullptr;
};

// The status of a call, which it frees.
template <typename... Who>
absl::Status StatusOf(const OrtApi& api, OrtStatus* status, const Who&... who) {
  if (status == nullptr) return absl::OkStatus();
  const std::string text = absl::StrCat(who..., api.GetErrorMessage(status));
  const OrtErrorCode code = api.GetErrorCode(status);
  api.ReleaseStatus(status);
  if (code == ORT_NO_SUCHFILE) return absl::NotFoundError(text);
  if (code == ORT_NOT_IMPLEMENTED) return absl::UnimplementedError(text);
  return absl::InvalidArgumentError(text);
}

absl::StatusOr<Library> OpenLibrary() {
  const OrtApiBase* const base = OrtGetApiBase();
  Library library = {.api = base->GetApi(ORT_API_VERSION)};
  if (library.api == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("OnnxModel: got ONNX Runtime ", base->GetVersionString(),
                     ", want one that has version ", ORT_API_VERSION,
                     " of its interface: that of the header it is built with"));
  }
  const OrtApi& api = *library.api;
  // Errors are statuses: nothing is printed beside them.
  RILL_RETURN_IF_ERROR(StatusOf(
      api, api.CreateEnv(ORT_LOGGING_LEVEL_FATAL, "rill", &library.env),
      "OnnxModel: "));
  // Releases from 1.29 on would report their use to Microsoft.
  RILL_RETURN_IF_ERROR(
      StatusOf(api, api.DisableTelemetryEvents(library.env), "OnnxModel: "));
  RILL_RETURN_IF_ERROR(
      StatusOf(api,
               api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault,
                                       &library.host),
               "OnnxModel: "));
  return library;
}

absl::StatusOr<Library> TheLibrary() {
  static const auto& library = *new absl::StatusOr<Library>(OpenLibrary());
  return library;
}

constexpr std::pair<ONNXTensorElementDataType, DType> kDTypes[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, DType::kBool},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, DType::kUInt8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, DType::kInt8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, DType::kInt16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, DType::kInt32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, DType::kInt64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, DType::kFloat16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, DType::kBFloat16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, DType::kFloat32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, DType::kFloat64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, DType::kUInt16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, DType::kUInt32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, DType::kUInt64},
};

std::optional<DType> FromElementType(ONNXTensorElementDataType type) {
  for (const auto& [theirs, ours] : kDTypes) {
    if (theirs == type) return ours;
  }
  return std::nullopt;
}

// Only for dtypes of the table.
ONNXTensorElementDataType ToElementType(DType dtype) {
  for (const auto& [theirs, ours] : kDTypes) {
    if (ours == dtype) return theirs;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

// Frees an object of the library with the function that is for it.
template <typename T>
struct Release {
  void (*release)(T*);
  void operator()(T* object) const { release(object); }
};
template <typename T>
using Owned = std::unique_ptr<T, Release<T>>;

// A tensor's sizes, -1 for those that vary.
absl::StatusOr<std::vector<int64_t>> SizesOf(
    const OrtApi& api, const OrtTensorTypeAndShapeInfo* info) {
  size_t rank = 0;
  RILL_RETURN_IF_ERROR(
      StatusOf(api, api.GetDimensionsCount(info, &rank), "OnnxModel: "));
  std::vector<int64_t> sizes(rank);
  RILL_RETURN_IF_ERROR(StatusOf(
      api, api.GetDimensions(info, sizes.data(), rank), "OnnxModel: "));
  return sizes;
}

// Dtype and sizes of an input or output.
absl::Status ReadType(const OrtApi& api, const OrtTypeInfo* type,
                      OnnxModel::Value* value) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;  // Of `type`.
  RILL_RETURN_IF_ERROR(StatusOf(
      api, api.CastTypeInfoToTensorInfo(type, &tensor), "OnnxModel::Load: "));
  auto element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (tensor != nullptr) {
    RILL_RETURN_IF_ERROR(StatusOf(
        api, api.GetTensorElementType(tensor, &element), "OnnxModel::Load: "));
  }
  const std::optional<DType> dtype = FromElementType(element);
  if (!dtype.has_value()) {
    return InvalidArgument("OnnxModel::Load: \"", value->name, "\": got ",
                           tensor == nullptr ? "no tensor" : "a tensor",
                           " of element type ", static_cast<int>(element),
                           ", want a tensor of numbers or bool");
  }
  value->dtype = *dtype;
  RILL_ASSIGN_OR_RETURN(value->sizes, SizesOf(api, tensor));
  return absl::OkStatus();
}

using GetCount = decltype(OrtApi::SessionGetInputCount);
using GetName = decltype(OrtApi::SessionGetInputName);
using GetType = decltype(OrtApi::SessionGetInputTypeInfo);

// The inputs or outputs, whichever the functions are for.
absl::StatusOr<std::vector<OnnxModel::Value>> ReadValues(
    const OrtApi& api, const OrtSession* session, GetCount get_count,
    GetName get_name, GetType get_type) {
  size_t count = 0;
  OrtAllocator* allocator = nullptr;  // The library's own.
  RILL_RETURN_IF_ERROR(
      StatusOf(api, get_count(session, &count), "OnnxModel::Load: "));
  RILL_RETURN_IF_ERROR(StatusOf(
      api, api.GetAllocatorWithDefaultOptions(&allocator), "OnnxModel: "));
  std::vector<OnnxModel::Value> values(count);
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    RILL_RETURN_IF_ERROR(StatusOf(api, get_name(session, i, allocator, &name),
                                  "OnnxModel::Load: "));
    values[i].name = name;
    allocator->Free(allocator, name);
    OrtTypeInfo* type = nullptr;
    RILL_RETURN_IF_ERROR(
        StatusOf(api, get_type(session, i, &type), "OnnxModel::Load: "));
    const Owned<OrtTypeInfo> owned(type, {api.ReleaseTypeInfo});
    RILL_RETURN_IF_ERROR(ReadType(api, type, &values[i]));
  }
  return values;
}

// Whether a tensor of `shape` may be one of these declared sizes.
bool Fits(const Shape& shape, absl::Span<const int64_t> sizes) {
  if (sizes.empty()) return true;
  if (shape.rank() != static_cast<int>(sizes.size())) return false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (sizes[d] >= 0 && sizes[d] != shape[d]) return false;
  }
  return true;
}

std::string TextOf(const Tensor& tensor) {
  if (!tensor.is_valid()) return "an empty tensor";
  return absl::StrCat(DTypeName(tensor.dtype()), tensor.shape().ToString(),
                      " on ", tensor.device().ToString());
}

absl::Status CheckTensor(const Tensor& tensor, const OnnxModel::Value& value) {
  if (tensor.is_valid() && tensor.is_host() && tensor.dtype() == value.dtype &&
      Fits(tensor.shape(), value.sizes)) {
    return absl::OkStatus();
  }
  return InvalidArgument("OnnxModel::Run: got ", TextOf(tensor), ", want ",
                         value.ToString(), " in host memory");
}

// The tensor's bytes as the library's; `tensor` is contiguous and stays.
absl::StatusOr<OrtValue*> ValueOf(const Library& library,
                                  const Tensor& tensor) {
  OrtValue* value = nullptr;
  RILL_RETURN_IF_ERROR(
      StatusOf(*library.api,
               library.api->CreateTensorWithDataAsOrtValue(
                   library.host, tensor.raw_data(),
                   static_cast<size_t>(tensor.size_bytes()),
                   tensor.shape().sizes().data(), tensor.shape().sizes().size(),
                   ToElementType(tensor.dtype()), &value),
               "OnnxModel::Run: "));
  return value;
}

// A tensor over the bytes of the library's, which it keeps.
absl::StatusOr<Tensor> TensorOf(const OrtApi& api,
                                std::shared_ptr<OrtValue> value, DType dtype) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  RILL_RETURN_IF_ERROR(StatusOf(
      api, api.GetTensorTypeAndShape(value.get(), &info), "OnnxModel::Run: "));
  const Owned<OrtTensorTypeAndShapeInfo> owned(
      info, {api.ReleaseTensorTypeAndShapeInfo});
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(api, info));
  RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  void* data = nullptr;
  RILL_RETURN_IF_ERROR(StatusOf(
      api, api.GetTensorMutableData(value.get(), &data), "OnnxModel::Run: "));
  return Tensor::View(
      Buffer::Wrap(data, shape.num_elements() * DTypeSize(dtype), Device::Cpu(),
                   MemoryKind::kPageable, std::move(value)),
      dtype, shape, /*offset_bytes=*/0);
}

}  // namespace

struct OnnxModel::State {
  Library library;
  Owned<OrtSession> session;
  std::vector<Value> inputs = {}, outputs = {};
  std::vector<const char*> input_names = {}, output_names = {};  // Of those.
};

std::string OnnxModel::Value::ToString() const {
  return absl::StrCat(
      "\"", name, "\" ", DTypeName(dtype), "[",
      absl::StrJoin(sizes, ", ",
                    [](std::string* out, int64_t size) {
                      absl::StrAppend(out, size < 0 ? "?" : absl::StrCat(size));
                    }),
      "]");
}

OnnxModel::OnnxModel(std::shared_ptr<const State> state)
    : state_(std::move(state)) {}

absl::StatusOr<OnnxModel> OnnxModel::Load(const std::string& path) {
  return Load(path, Options());
}

absl::StatusOr<OnnxModel> OnnxModel::Load(const std::string& path,
                                          const Options& options) {
  if (options.threads < 1) {
    return InvalidArgument("OnnxModel::Load: threads: got ", options.threads,
                           ", want at least 1");
  }
  RILL_ASSIGN_OR_RETURN(const Library library, TheLibrary());
  const OrtApi& api = *library.api;
  OrtSessionOptions* session_options = nullptr;
  RILL_RETURN_IF_ERROR(StatusOf(api, api.CreateSessionOptions(&session_options),
                                "OnnxModel::Load: "));
  const Owned<OrtSessionOptions> owned(session_options,
                                       {api.ReleaseSessionOptions});
  RILL_RETURN_IF_ERROR(
      StatusOf(api, api.SetIntraOpNumThreads(session_options, options.threads),
               "OnnxModel::Load: "));
  RILL_RETURN_IF_ERROR(
      StatusOf(api,
               // Threads that wait for work leave the core to Rill's.
               api.AddSessionConfigEntry(
                   session_options, "session.intra_op.allow_spinning", "0"),
               "OnnxModel::Load: "));
  OrtSession* session = nullptr;
  RILL_RETURN_IF_ERROR(StatusOf(
      api,
      api.CreateSession(library.env, path.c_str(), session_options, &session),
      "OnnxModel::Load: ", path, ": "));
  auto state = std::make_shared<State>(
      State{.library = library, .session = {session, {api.ReleaseSession}}});
  RILL_ASSIGN_OR_RETURN(
      state->inputs,
      ReadValues(api, session, api.SessionGetInputCount,
                 api.SessionGetInputName, api.SessionGetInputTypeInfo));
  RILL_ASSIGN_OR_RETURN(
      state->outputs,
      ReadValues(api, session, api.SessionGetOutputCount,
                 api.SessionGetOutputName, api.SessionGetOutputTypeInfo));
  for (const Value& value : state->inputs) {
    state->input_names.push_back(value.name.c_str());
  }
  for (const Value& value : state->outputs) {
    state->output_names.push_back(value.name.c_str());
  }
  return OnnxModel(std::move(state));
}

const std::vector<OnnxModel::Value>& OnnxModel::inputs() const {
  static const auto& none = *new std::vector<Value>;
  return is_valid() ? state_->inputs : none;
}

const std::vector<OnnxModel::Value>& OnnxModel::outputs() const {
  static const auto& none = *new std::vector<Value>;
  return is_valid() ? state_->outputs : none;
}

absl::Status OnnxModel::Run(absl::Span<const Tensor> inputs,
                            absl::Span<Tensor> outputs) const {
  if (!is_valid()) return InvalidArgument("OnnxModel::Run: no model is loaded");
  const Library& library = state_->library;
  const OrtApi& api = *library.api;
  if (inputs.size() != state_->inputs.size() ||
      outputs.size() != state_->outputs.size()) {
    return InvalidArgument("OnnxModel::Run: got ", inputs.size(),
                           " inputs and ", outputs.size(), " outputs, want ",
                           state_->inputs.size(), " and ",
                           state_->outputs.size());
  }
  // Freed whatever comes: those of inputs, then those of outputs.
  struct Values {
    const OrtApi& api;
    std::vector<OrtValue*> all;
    ~Values() {
      for (OrtValue* value : all) api.ReleaseValue(value);
    }
  } values = {.api = api, .all = {}};
  values.all.resize(inputs.size() + outputs.size());
  OrtValue** const results = values.all.data() + inputs.size();
  std::vector<Tensor> copies;  // Of inputs with gaps.
  for (size_t i = 0; i < inputs.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckTensor(inputs[i], state_->inputs[i]));
    const Tensor* input = &inputs[i];
    if (!input->is_contiguous()) {
      copies.reserve(inputs.size());
      RILL_ASSIGN_OR_RETURN(copies.emplace_back(), input->Contiguous());
      input = &copies.back();
    }
    RILL_ASSIGN_OR_RETURN(values.all[i], ValueOf(library, *input));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_valid()) continue;
    RILL_RETURN_IF_ERROR(CheckTensor(outputs[i], state_->outputs[i]));
    if (!outputs[i].is_contiguous() || !outputs[i].is_writable()) {
      return InvalidArgument("OnnxModel::Run: \"", state_->outputs[i].name,
                             "\": got a tensor with gaps or read-only, want a "
                             "contiguous one, or an empty one");
    }
    RILL_ASSIGN_OR_RETURN(results[i], ValueOf(library, outputs[i]));
  }
  RILL_RETURN_IF_ERROR(StatusOf(
      api,
      api.Run(state_->session.get(), /*run_options=*/nullptr,
              state_->input_names.data(), values.all.data(), inputs.size(),
              state_->output_names.data(), outputs.size(), results),
      "OnnxModel::Run: "));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_valid()) continue;
    // The model stays as long as what it has made.
    std::shared_ptr<OrtValue> value(std::exchange(results[i], nullptr),
                                    [state = state_](OrtValue* result) {
                                      state->library.api->ReleaseValue(result);
                                    });
    RILL_ASSIGN_OR_RETURN(
        outputs[i], TensorOf(api, std::move(value), state_->outputs[i].dtype));
  }
  return absl::OkStatus();
}

}  // namespace rill
