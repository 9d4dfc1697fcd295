// SPDX-License-Identifier: Apache-2.0
// A dictionary is its batch shape, the number of its entries, and those. An
// entry is its key, a kind and a value. Kind 0 is a tensor (dtype, shape,
// bytes), 1 a dictionary, 2 a text. Numbers are int64; a shape is a rank and as
// many sizes; a key and a text are a length and its bytes.
#include "rill/collectors/workers/dict_bytes.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::workers_internal {
namespace {

// The reader recurses, so bytes must not choose the depth of the stack.
constexpr int kMaxDepth = 32;

void AppendInt(int64_t value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendText(absl::string_view text, std::string* bytes) {
  AppendInt(static_cast<int64_t>(text.size()), bytes);
  bytes->append(text);
}

void AppendShape(const Shape& shape, std::string* bytes) {
  AppendInt(shape.rank(), bytes);
  for (int i = 0; i < shape.rank(); ++i) AppendInt(shape[i], bytes);
}

absl::Status AppendTensor(const Tensor& tensor, std::string* bytes) {
  RILL_ASSIGN_OR_RETURN(const Tensor dense, tensor.Contiguous());
  AppendInt(static_cast<int64_t>(dense.dtype()), bytes);
  AppendShape(dense.shape(), bytes);
  bytes->append(reinterpret_cast<const char*>(dense.raw_data()),
                static_cast<size_t>(dense.size_bytes()));
  return absl::OkStatus();
}

absl::Status AppendDict(const TensorDict& dict, std::string* bytes) {
  AppendShape(dict.batch_shape(), bytes);
  std::vector<std::pair<std::string, EntryKind>> entries;
  // The number of entries comes before them.
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    entries.emplace_back(key, kind);
  });
  AppendInt(static_cast<int64_t>(entries.size()), bytes);
  for (const auto& [key, kind] : entries) {
    AppendText(key, bytes);
    if (kind == EntryKind::kTensor) {
      AppendInt(0, bytes);
      RILL_RETURN_IF_ERROR(AppendTensor(*dict.Find(key), bytes));
    } else if (kind == EntryKind::kDict) {
      AppendInt(1, bytes);
      RILL_RETURN_IF_ERROR(AppendDict(*dict.FindDict(key), bytes));
    } else if (kind == EntryKind::kNonTensor) {
      RILL_ASSIGN_OR_RETURN(const NonTensor value, dict.GetNonTensor(key));
      AppendInt(2, bytes);
      AppendText(value.json, bytes);
    } else {
      // States of collectors and environments have none.
      return absl::UnimplementedError(
          absl::StrCat("DictToBytes: \"", key,
                       "\": got an entry of another kind, want tensors, "
                       "dictionaries and values for all rows"));
    }
  }
  return absl::OkStatus();
}

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : left_(bytes) {}

  absl::StatusOr<TensorDict> Dict(int depth) {
    if (depth > kMaxDepth) return Broken("depth");
    RILL_ASSIGN_OR_RETURN(const Shape batch_shape, ReadShape());
    TensorDict dict(batch_shape);
    RILL_ASSIGN_OR_RETURN(const int64_t entries, Int());
    for (int64_t i = 0; i < entries; ++i) {
      RILL_ASSIGN_OR_RETURN(const absl::string_view key, Text());
      RILL_ASSIGN_OR_RETURN(const int64_t kind, Int());
      absl::Status set;
      if (kind == 0) {
        RILL_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor());
        set = dict.Set(key, std::move(tensor));
      } else if (kind == 1) {
        RILL_ASSIGN_OR_RETURN(TensorDict nested, Dict(depth + 1));
        set = dict.Set(key, std::move(nested));
      } else if (kind == 2) {
        RILL_ASSIGN_OR_RETURN(const absl::string_view text, Text());
        set = dict.Set(key, NonTensor{std::string(text)});
      } else {
        return Broken("a kind");
      }
      if (!set.ok()) return Broken(set.message());
    }
    return dict;
  }
  bool is_at_end() const { return left_.empty(); }

  static absl::Status Broken(absl::string_view what) {
    return DataLoss("DictFromBytes: ", what, " is not what DictToBytes writes");
  }

 private:
  // The next `size` bytes.
  absl::StatusOr<absl::string_view> Take(int64_t size) {
    // The only place that moves on: nothing is read behind the end.
    if (size < 0 || static_cast<uint64_t>(size) > left_.size()) {
      return Broken(
          absl::StrCat("a part of ", size, " bytes of ", left_.size()));
    }
    const absl::string_view part = left_.substr(0, size);
    left_.remove_prefix(size);
    return part;
  }

  absl::StatusOr<int64_t> Int() {
    RILL_ASSIGN_OR_RETURN(const absl::string_view part, Take(sizeof(int64_t)));
    int64_t value;
    std::memcpy(&value, part.data(), sizeof(value));
    return value;
  }

  absl::StatusOr<absl::string_view> Text() {
    RILL_ASSIGN_OR_RETURN(const int64_t size, Int());
    return Take(size);
  }

  absl::StatusOr<Shape> ReadShape() {
    RILL_ASSIGN_OR_RETURN(const int64_t rank, Int());
    // Bounds the vector below by the bytes that there are.
    if (rank < 0 || rank > static_cast<int64_t>(left_.size())) {
      return Broken("a rank");
    }
    std::vector<int64_t> sizes(rank);
    for (int64_t& size : sizes) {
      RILL_ASSIGN_OR_RETURN(size, Int());
    }
    const absl::StatusOr<Shape> shape = Shape::Create(sizes);
    if (!shape.ok()) return Broken(shape.status().message());
    return shape;
  }

  absl::StatusOr<Tensor> ReadTensor() {
    RILL_ASSIGN_OR_RETURN(const int64_t dtype, Int());
    if (dtype < 0 || dtype >= kNumDTypes) return Broken("a dtype");
    RILL_ASSIGN_OR_RETURN(const Shape shape, ReadShape());
    // Before there is memory for it.
    int64_t bytes;
    if (__builtin_mul_overflow(shape.num_elements(),
                               DTypeSize(static_cast<DType>(dtype)), &bytes)) {
      return Broken("a shape");
    }
    RILL_ASSIGN_OR_RETURN(const absl::string_view part, Take(bytes));
    RILL_ASSIGN_OR_RETURN(Tensor tensor,
                          Tensor::Empty(static_cast<DType>(dtype), shape));
    if (bytes > 0) std::memcpy(tensor.raw_data(), part.data(), part.size());
    return tensor;
  }

  absl::string_view left_;
};

}  // namespace

absl::StatusOr<std::string> DictToBytes(const TensorDict& dict) {
  std::string bytes;
  RILL_RETURN_IF_ERROR(AppendDict(dict, &bytes));
  return bytes;
}

absl::StatusOr<TensorDict> DictFromBytes(absl::string_view bytes) {
  Reader reader(bytes);
  RILL_ASSIGN_OR_RETURN(TensorDict dict, reader.Dict(0));
  if (!reader.is_at_end()) return Reader::Broken("what stands behind the end");
  return dict;
}

}  // namespace rill::workers_internal
