// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/crc/crc32c.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/flow/frames/frame.h"
#include "rill/flow/frames/frame_layout.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using frame_internal::Kind;

// The schema, and the columns in the order of the schema. All sizes are known
// before a byte is written.
class Plan {
 public:
  static absl::StatusOr<Plan> Create(absl::string_view caller,
                                     absl::string_view header,
                                     const TensorDict& batch);

  int64_t size_bytes() const { return size_; }
  absl::Status WriteTo(absl::Span<std::byte> to) const;
  // EncodeFramePieces.
  absl::StatusOr<FramePieces> MakePieces(int64_t min_bytes) const;

 private:
  struct Column {
    Tensor tensor;
    int64_t at;  // From the first column.
    // Its first bytes that are a piece of their own, if there is one.
    int64_t PieceBytes(int64_t min_bytes) const;
  };

  explicit Plan(absl::string_view caller) : caller_(caller) {}

  // The part before the columns, without padding.
  std::string Front() const;
  // All but the columns that are pieces of their own, of which there are none
  // without `pieces`.
  absl::Status Write(const std::shared_ptr<Buffer>& block, int64_t min_bytes,
                     FramePieces* pieces) const;

  void Byte(uint8_t value) { schema_.push_back(static_cast<char>(value)); }
  void Number(int64_t value) {
    schema_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Text(absl::string_view text) {
    Number(static_cast<int64_t>(text.size()));
    schema_.append(text.data(), text.size());
  }
  void Sizes(const Shape& shape) {
    Byte(static_cast<uint8_t>(shape.rank()));
    for (const int64_t size : shape.sizes()) Number(size);
  }

  // `where` is the key of what is added, from the top.
  absl::Status Count(const std::string& where);
  absl::Status AddColumn(const std::string& where, const Tensor& tensor);
  absl::Status AddRows(const std::string& where, const NonTensorStack& rows);
  absl::Status AddEntry(const TensorDict& dict, const std::string& key,
                        const std::string& where, int depth);
  absl::Status AddDict(const TensorDict& dict, const std::string& where,
                       int depth);

  absl::string_view caller_;
  std::string schema_;
  absl::string_view header_;
  std::vector<Column> columns_;
  int64_t entries_ = 0;
  int64_t columns_bytes_ = 0;
  int64_t columns_at_ = 0;
  int64_t size_ = 0;
};

absl::Status Plan::Count(const std::string& where) {
  if (++entries_ <= frame_internal::kMaxEntries) return absl::OkStatus();
  return InvalidArgument(caller_, ": entries and members up to \"", where,
                         "\": got more than ", frame_internal::kMaxEntries,
                         ", want at most that");
}

absl::Status Plan::AddColumn(const std::string& where, const Tensor& tensor) {
  if (!tensor.is_host()) {
    return InvalidArgument(caller_, ": \"", where, "\": got a leaf on ",
                           tensor.device().ToString(),
                           ", want host memory; use To(Device::Cpu())");
  }
  columns_.push_back({tensor, columns_bytes_});
  int64_t bytes;
  if (__builtin_mul_overflow(tensor.num_elements(), DTypeSize(tensor.dtype()),
                             &bytes) ||
      (bytes = frame_internal::RoundUp(bytes)) < 0 ||
      __builtin_add_overflow(columns_bytes_, bytes, &columns_bytes_)) {
    return InvalidArgument(caller_, ": \"", where,
                           "\": bytes of all leaves up to this one do not fit "
                           "in int64");
  }
  return absl::OkStatus();
}

// Each text once, in the order of the rows, and a column of their numbers.
absl::Status Plan::AddRows(const std::string& where,
                           const NonTensorStack& rows) {
  Tensor numbers;
  RILL_RETURN_IF_ERROR(rows.MapIndex([&](const Tensor& index) {
                             numbers = index;
                             return index;
                           })
                           .status());
  RILL_ASSIGN_OR_RETURN(numbers, numbers.Clone());
  absl::flat_hash_map<int64_t, int64_t> known;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    int64_t& number = numbers.data<int64_t>()[i];
    const auto [at, is_new] =
        known.try_emplace(number, static_cast<int64_t>(known.size()));
    if (is_new) {
      RILL_ASSIGN_OR_RETURN(NonTensor value, rows.At(i));
      texts.push_back(std::move(value.json));
    }
    number = at->second;
  }
  Number(static_cast<int64_t>(texts.size()));
  for (const std::string& text : texts) Text(text);
  return AddColumn(where, numbers);
}

absl::Status Plan::AddEntry(const TensorDict& dict, const std::string& key,
                            const std::string& where, int depth) {
  RILL_RETURN_IF_ERROR(Count(where));
  Text(key);
  const auto kind = [this](Kind kind) { Byte(static_cast<uint8_t>(kind)); };
  switch (*dict.Kind(key)) {
    case EntryKind::kTensor: {
      const Tensor& tensor = *dict.Find(key);
      kind(Kind::kTensor);
      Text(DTypeName(tensor.dtype()));
      Sizes(tensor.shape());
      return AddColumn(where, tensor);
    }
    case EntryKind::kDict:
      kind(Kind::kDict);
      return AddDict(*dict.FindDict(key), where, depth + 1);
    case EntryKind::kNonTensor: {
      RILL_ASSIGN_OR_RETURN(const NonTensor value, dict.GetNonTensor(key));
      kind(Kind::kValue);
      Text(value.json);
      return absl::OkStatus();
    }
    case EntryKind::kNonTensorStack: {
      RILL_ASSIGN_OR_RETURN(const NonTensorStack rows,
                            dict.GetNonTensorStack(key));
      kind(Kind::kValuesOfRows);
      return AddRows(where, rows);
    }
    case EntryKind::kRagged: {
      RILL_ASSIGN_OR_RETURN(const RaggedTensor rows, dict.GetRagged(key));
      kind(Kind::kRagged);
      Text(DTypeName(rows.dtype()));
      Byte(static_cast<uint8_t>(rows.row_rank()));
      Number(rows.values().num_elements());
      RILL_RETURN_IF_ERROR(AddColumn(where, rows.shapes()));
      return AddColumn(where, rows.values());
    }
    case EntryKind::kLazyStack:
      break;
  }
  RILL_ASSIGN_OR_RETURN(const LazyStack stack, dict.GetLazyStack(key));
  if (stack.size() == 0) {
    return InvalidArgument(caller_, ": \"", where,
                           "\": got a lazy stack without members, want at "
                           "least 1; Exclude it");
  }
  kind(Kind::kLazyStack);
  Byte(static_cast<uint8_t>(stack.stack_dim()));
  Number(stack.size());
  for (const TensorDict& member : stack.members()) {
    RILL_RETURN_IF_ERROR(Count(where));
    RILL_RETURN_IF_ERROR(AddDict(member, where, depth + 1));
  }
  return absl::OkStatus();
}

absl::Status Plan::AddDict(const TensorDict& dict, const std::string& where,
                           int depth) {
  if (depth > frame_internal::kMaxDepth) {
    return InvalidArgument(caller_, ": \"", where,
                           "\": dictionaries in one another: got more than ",
                           frame_internal::kMaxDepth, ", want at most that");
  }
  Sizes(dict.batch_shape());
  Byte(dict.dim_names().empty() ? 0 : 1);
  for (const std::string& name : dict.dim_names()) Text(name);
  Number(dict.num_entries());
  for (const std::string& key : dict.Keys()) {
    RILL_RETURN_IF_ERROR(AddEntry(
        dict, key, where.empty() ? key : absl::StrCat(where, "/", key), depth));
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> Plan::Create(absl::string_view caller,
                                  absl::string_view header,
                                  const TensorDict& batch) {
  Plan plan(caller);
  plan.header_ = header;
  RILL_RETURN_IF_ERROR(plan.AddDict(batch, "", 1));
  plan.columns_at_ = frame_internal::RoundUp(
      frame_internal::kSchemaAt +
      static_cast<int64_t>(plan.schema_.size() + header.size()));
  if (__builtin_add_overflow(plan.columns_at_, plan.columns_bytes_,
                             &plan.size_)) {
    return InvalidArgument(caller, ": bytes of the frame do not fit in int64");
  }
  return plan;
}

int64_t Plan::Column::PieceBytes(int64_t min_bytes) const {
  const int64_t bytes = tensor.size_bytes();
  if (bytes < min_bytes || !tensor.is_contiguous()) return 0;
  return bytes / kFrameAlignment * kFrameAlignment;
}

std::string Plan::Front() const {
  std::string front(frame_internal::kMagic);
  const auto add = [&front](auto value) {
    front.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  add(frame_internal::kForm);
  add(uint32_t{0});  // The checksum.
  add(size_);
  add(static_cast<int64_t>(schema_.size()));
  add(static_cast<int64_t>(header_.size()));
  absl::StrAppend(&front, schema_, header_);
  const auto sum = static_cast<uint32_t>(absl::ComputeCrc32c(
      absl::string_view(front).substr(frame_internal::kLengthsAt)));
  std::memcpy(&front[frame_internal::kChecksumAt], &sum, sizeof(sum));
  return front;
}

absl::Status Plan::WriteTo(absl::Span<std::byte> to) const {
  const auto address = reinterpret_cast<uintptr_t>(to.data());
  if (static_cast<int64_t>(to.size()) != size_ ||
      address % kFrameAlignment != 0) {
    return InvalidArgument(caller_, ": place of the frame: got ", to.size(),
                           " bytes that begin ", address % kFrameAlignment,
                           " behind a multiple of ", kFrameAlignment, ", want ",
                           size_, " at a multiple");
  }
  return Write(Buffer::Wrap(to.data(), size_, Device::Cpu(),
                            MemoryKind::kPageable, nullptr),
               std::numeric_limits<int64_t>::max(), nullptr);
}

absl::StatusOr<FramePieces> Plan::MakePieces(int64_t min_bytes) const {
  int64_t bytes = size_;
  int columns = 0;
  for (const Column& column : columns_) {
    const int64_t own = column.PieceBytes(min_bytes);
    bytes -= own;
    columns += own > 0 ? 1 : 0;
  }
  if (2 * columns + 1 > kMaxFramePieces) {
    return MakePieces(std::numeric_limits<int64_t>::max());
  }
  RILL_ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> block,
                        Buffer::Allocate(bytes));
  FramePieces pieces;
  RILL_RETURN_IF_ERROR(Write(block, min_bytes, &pieces));
  return pieces;
}

absl::Status Plan::Write(const std::shared_ptr<Buffer>& block,
                         int64_t min_bytes, FramePieces* pieces) const {
  const std::string front = Front();
  std::memcpy(block->data(), front.data(), front.size());
  // Zeros between the columns: a frame shows nothing of other memory.
  auto end = static_cast<int64_t>(front.size());
  const auto pad_to = [&](int64_t at) {
    std::memset(block->data() + end, 0, static_cast<size_t>(at - end));
  };
  int64_t begin = 0;  // Of the piece that is being written.
  const auto end_piece = [&](int64_t at) {
    if (pieces != nullptr && at > begin) {
      pieces->push_back(
          {block, {block->data() + begin, static_cast<size_t>(at - begin)}});
    }
    begin = at;
  };
  int64_t left_out = 0;
  for (const Column& column : columns_) {
    const int64_t at = columns_at_ + column.at - left_out;
    pad_to(at);
    const int64_t own = column.PieceBytes(min_bytes);
    const int64_t rest = column.tensor.size_bytes() - own;
    if (own > 0) {
      end_piece(at);
      const std::byte* const data = column.tensor.raw_data();
      pieces->push_back(
          {column.tensor.buffer(), {data, static_cast<size_t>(own)}});
      std::memcpy(block->data() + at, data + own, static_cast<size_t>(rest));
      left_out += own;
    } else {
      RILL_ASSIGN_OR_RETURN(const Tensor place,
                            Tensor::View(block, column.tensor.dtype(),
                                         column.tensor.shape(), at));
      RILL_RETURN_IF_ERROR(place.CopyFrom(column.tensor));
    }
    end = at + rest;
  }
  pad_to(size_ - left_out);
  end_piece(size_ - left_out);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> FrameBytes(absl::string_view header,
                                   const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const Plan plan,
                        Plan::Create("FrameBytes", header, batch));
  return plan.size_bytes();
}

absl::Status EncodeFrame(absl::string_view header, const TensorDict& batch,
                         absl::Span<std::byte> to) {
  RILL_ASSIGN_OR_RETURN(const Plan plan,
                        Plan::Create("EncodeFrame", header, batch));
  return plan.WriteTo(to);
}

absl::StatusOr<std::shared_ptr<Buffer>> EncodeFrame(absl::string_view header,
                                                    const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const Plan plan,
                        Plan::Create("EncodeFrame", header, batch));
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> bytes,
                        Buffer::Allocate(plan.size_bytes()));
  RILL_RETURN_IF_ERROR(
      plan.WriteTo({bytes->data(), static_cast<size_t>(bytes->size_bytes())}));
  return bytes;
}

absl::StatusOr<FramePieces> EncodeFramePieces(absl::string_view header,
                                              const TensorDict& batch,
                                              int64_t min_bytes) {
  RILL_ASSIGN_OR_RETURN(const Plan plan,
                        Plan::Create("EncodeFramePieces", header, batch));
  return plan.MakePieces(std::max(min_bytes, kFrameAlignment));
}

int64_t FrameBytes(const FramePieces& pieces) {
  int64_t bytes = 0;
  for (const FramePiece& piece : pieces) {
    bytes += static_cast<int64_t>(piece.bytes.size());
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<Buffer>> JoinFrame(const FramePieces& pieces) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> frame,
                        Buffer::Allocate(FrameBytes(pieces)));
  std::byte* at = frame->data();
  for (const FramePiece& piece : pieces) {
    at = std::copy(piece.bytes.begin(), piece.bytes.end(), at);
  }
  return frame;
}

}  // namespace rill
