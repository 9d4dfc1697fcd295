// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"
#include "rill/flow/frames/frame.h"
#include "rill/flow/frames/frame_layout.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using frame_internal::Kind;

template <typename... Parts>
absl::Status Damaged(const Parts&... parts) {
  return DataLoss("DecodeFrame: ", parts...);
}

// Makes the dictionary that a schema describes. The schema does not say where
// columns lie: they follow one another, so they cannot overlap.
class Reader {
 public:
  Reader(absl::string_view schema, std::shared_ptr<Buffer> block,
         int64_t columns_at)
      : rest_(schema), block_(std::move(block)), at_(columns_at) {}

  absl::StatusOr<TensorDict> ReadAll();

 private:
  template <typename... Parts>
  absl::Status Wrong(const Parts&... parts) const {
    return where_.empty() ? Damaged("schema: ", parts...)
                          : Damaged("\"", where_, "\": ", parts...);
  }
  // The error of values that came from the frame.
  absl::Status Fits(const absl::Status& status) const {
    return status.ok() ? status : Wrong(status.message());
  }

  absl::StatusOr<absl::string_view> Bytes(absl::string_view what, int64_t size);
  absl::StatusOr<uint8_t> Byte(absl::string_view what, int limit);
  absl::StatusOr<int64_t> Number(absl::string_view what);
  absl::StatusOr<absl::string_view> Text(absl::string_view what);
  absl::StatusOr<DType> Type();
  absl::StatusOr<Shape> Sizes(absl::string_view what);
  absl::StatusOr<Tensor> Column(DType dtype, const Shape& shape);

  absl::Status Count();
  absl::StatusOr<TensorDict> ReadDict(int depth);
  absl::Status ReadEntry(int depth, TensorDict* dict);
  absl::Status ReadValue(const std::string& key, int depth, TensorDict* dict);
  absl::StatusOr<NonTensorStack> ReadRows(const Shape& shape);
  absl::StatusOr<RaggedTensor> ReadRagged(const Shape& batch_shape);
  absl::StatusOr<LazyStack> ReadLazyStack(int depth);

  absl::string_view rest_;  // Of the schema.
  std::shared_ptr<Buffer> block_;
  int64_t at_;         // Of the next column.
  std::string where_;  // The key that is being read, from the top.
  int64_t entries_ = 0;
};

absl::StatusOr<absl::string_view> Reader::Bytes(absl::string_view what,
                                                int64_t size) {
  if (size > static_cast<int64_t>(rest_.size())) {
    return Wrong(what, ": got ", size, " bytes, want at most the ",
                 rest_.size(), " that are left of the schema");
  }
  const absl::string_view bytes = rest_.substr(0, static_cast<size_t>(size));
  rest_.remove_prefix(bytes.size());
  return bytes;
}

absl::StatusOr<uint8_t> Reader::Byte(absl::string_view what, int limit) {
  RILL_ASSIGN_OR_RETURN(const absl::string_view bytes, Bytes(what, 1));
  const auto value = static_cast<uint8_t>(bytes[0]);
  if (value < limit) return value;
  return Wrong(what, ": got ", static_cast<int>(value), ", want one in [0, ",
               limit, ")");
}

// All numbers of a schema are sizes, and not negative.
absl::StatusOr<int64_t> Reader::Number(absl::string_view what) {
  int64_t value;
  RILL_ASSIGN_OR_RETURN(const absl::string_view bytes,
                        Bytes(what, sizeof(value)));
  std::memcpy(&value, bytes.data(), sizeof(value));
  if (value >= 0) return value;
  return Wrong(what, ": got ", value, ", want >= 0");
}

absl::StatusOr<absl::string_view> Reader::Text(absl::string_view what) {
  RILL_ASSIGN_OR_RETURN(const int64_t size, Number(what));
  return Bytes(what, size);
}

absl::StatusOr<DType> Reader::Type() {
  RILL_ASSIGN_OR_RETURN(const absl::string_view name, Text("dtype"));
  absl::StatusOr<DType> dtype = DTypeFromName(name);
  if (!dtype.ok()) return Fits(dtype.status());
  return dtype;
}

absl::StatusOr<Shape> Reader::Sizes(absl::string_view what) {
  RILL_ASSIGN_OR_RETURN(const uint8_t rank, Byte(what, Shape::kMaxRank + 1));
  int64_t sizes[Shape::kMaxRank];
  for (int d = 0; d < rank; ++d) {
    RILL_ASSIGN_OR_RETURN(sizes[d], Number(what));
  }
  absl::StatusOr<Shape> shape = Shape::Create(absl::MakeSpan(sizes, rank));
  if (!shape.ok()) return Fits(shape.status());
  return shape;
}

absl::StatusOr<Tensor> Reader::Column(DType dtype, const Shape& shape) {
  int64_t bytes;
  if (__builtin_mul_overflow(shape.num_elements(), DTypeSize(dtype), &bytes)) {
    bytes = -1;
  }
  const int64_t padded = bytes < 0 ? bytes : frame_internal::RoundUp(bytes);
  if (padded < 0 || padded > block_->size_bytes() - at_) {
    return Wrong("column ", DTypeName(dtype), shape.ToString(), " at byte ",
                 at_, ": got ",
                 padded < 0 ? "more than fit in int64" : absl::StrCat(padded),
                 " bytes, want at most the ", block_->size_bytes() - at_,
                 " that are left of the frame");
  }
  absl::StatusOr<Tensor> column = Tensor::View(block_, dtype, shape, at_);
  if (!column.ok()) return Fits(column.status());
  at_ += padded;
  return column;
}

absl::Status Reader::Count() {
  if (++entries_ <= frame_internal::kMaxEntries) return absl::OkStatus();
  return Wrong("entries and members: got more than ",
               frame_internal::kMaxEntries, ", want at most that");
}

// Numbers and shapes of rows are copied before they are checked: somebody who
// still writes to the bytes cannot change them between check and use.
absl::StatusOr<NonTensorStack> Reader::ReadRows(const Shape& shape) {
  RILL_ASSIGN_OR_RETURN(const int64_t count, Number("number of texts"));
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(const absl::string_view text, Text("text"));
    texts.emplace_back(text);
  }
  RILL_ASSIGN_OR_RETURN(const Tensor column, Column(DType::kInt64, shape));
  RILL_ASSIGN_OR_RETURN(const NonTensorStack distinct,
                        NonTensorStack::Create({count}, texts));
  // By indices: a text that many rows have stays one.
  return distinct.MapIndex(
      [&](const Tensor& of_text) -> absl::StatusOr<Tensor> {
        RILL_ASSIGN_OR_RETURN(Tensor index, column.Clone());
        for (int64_t i = 0; i < index.num_elements(); ++i) {
          int64_t& number = index.data<int64_t>()[i];
          if (number < 0 || number >= count) {
            return Wrong("text of row ", i, ": got number ", number,
                         ", want one in [0, ", count, ")");
          }
          number = of_text.data<int64_t>()[number];
        }
        return index;
      });
}

absl::StatusOr<RaggedTensor> Reader::ReadRagged(const Shape& batch_shape) {
  RILL_ASSIGN_OR_RETURN(const DType dtype, Type());
  RILL_ASSIGN_OR_RETURN(const uint8_t rank,
                        Byte("rank of a row", Shape::kMaxRank + 1));
  RILL_ASSIGN_OR_RETURN(const int64_t total, Number("elements of all rows"));
  if (batch_shape.rank() != 1) {
    return Wrong("a ragged tensor: got batch shape ", batch_shape.ToString(),
                 ", want one dimension");
  }
  const auto table = Shape::Create({batch_shape[0], rank});
  if (!table.ok()) return Fits(table.status());
  RILL_ASSIGN_OR_RETURN(const Tensor shapes, Column(DType::kInt64, *table));
  RILL_ASSIGN_OR_RETURN(const Tensor values, Column(dtype, {total}));
  absl::StatusOr<RaggedTensor> rows = RaggedTensor::Create(values, shapes);
  if (!rows.ok()) return Fits(rows.status());
  return rows;
}

absl::StatusOr<LazyStack> Reader::ReadLazyStack(int depth) {
  RILL_ASSIGN_OR_RETURN(const uint8_t dim,
                        Byte("dimension of a stack", Shape::kMaxRank));
  RILL_ASSIGN_OR_RETURN(const int64_t count, Number("number of members"));
  std::vector<TensorDict> members;
  for (int64_t i = 0; i < count; ++i) {
    RILL_RETURN_IF_ERROR(Count());
    RILL_ASSIGN_OR_RETURN(TensorDict member, ReadDict(depth + 1));
    members.push_back(std::move(member));
  }
  absl::StatusOr<LazyStack> stack = LazyStack::Create(std::move(members), dim);
  if (!stack.ok()) return Fits(stack.status());
  return stack;
}

absl::Status Reader::ReadValue(const std::string& key, int depth,
                               TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(const uint8_t kind,
                        Byte("kind", static_cast<int>(Kind::kLazyStack) + 1));
  switch (static_cast<Kind>(kind)) {
    case Kind::kTensor: {
      RILL_ASSIGN_OR_RETURN(const DType dtype, Type());
      RILL_ASSIGN_OR_RETURN(const Shape shape, Sizes("shape"));
      RILL_ASSIGN_OR_RETURN(Tensor tensor, Column(dtype, shape));
      return Fits(dict->Set(key, std::move(tensor)));
    }
    case Kind::kDict: {
      RILL_ASSIGN_OR_RETURN(TensorDict nested, ReadDict(depth + 1));
      return Fits(dict->Set(key, std::move(nested)));
    }
    case Kind::kValue: {
      RILL_ASSIGN_OR_RETURN(const absl::string_view text, Text("value"));
      return Fits(dict->Set(key, NonTensor{std::string(text)}));
    }
    case Kind::kValuesOfRows: {
      RILL_ASSIGN_OR_RETURN(NonTensorStack rows, ReadRows(dict->batch_shape()));
      return Fits(dict->Set(key, std::move(rows)));
    }
    case Kind::kRagged: {
      RILL_ASSIGN_OR_RETURN(RaggedTensor rows, ReadRagged(dict->batch_shape()));
      return Fits(dict->Set(key, std::move(rows)));
    }
    case Kind::kLazyStack:
      break;
  }
  RILL_ASSIGN_OR_RETURN(LazyStack stack, ReadLazyStack(depth));
  return Fits(dict->Set(key, std::move(stack)));
}

absl::Status Reader::ReadEntry(int depth, TensorDict* dict) {
  RILL_RETURN_IF_ERROR(Count());
  RILL_ASSIGN_OR_RETURN(const absl::string_view text, Text("key"));
  const std::string key(text);
  RILL_RETURN_IF_ERROR(Fits(CheckKey(key)));
  absl::string_view head, below;
  SplitKeyHead(key, &head, &below);
  if (!below.empty() || dict->Contains(key)) {
    return Wrong("key \"", key, "\": got ",
                 below.empty() ? "it twice" : "several components",
                 ", want one component, once");
  }
  const size_t up = where_.size();
  absl::StrAppend(&where_, up == 0 ? "" : "/", key);
  RILL_RETURN_IF_ERROR(ReadValue(key, depth, dict));
  where_.resize(up);
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> Reader::ReadDict(int depth) {
  if (depth > frame_internal::kMaxDepth) {
    return Wrong("dictionaries in one another: got more than ",
                 frame_internal::kMaxDepth, ", want at most that");
  }
  RILL_ASSIGN_OR_RETURN(const Shape batch_shape, Sizes("batch shape"));
  RILL_ASSIGN_OR_RETURN(const uint8_t has_names,
                        Byte("names of dimensions", 2));
  std::vector<std::string> names;
  for (int d = 0; has_names != 0 && d < batch_shape.rank(); ++d) {
    RILL_ASSIGN_OR_RETURN(const absl::string_view name,
                          Text("name of a dimension"));
    names.emplace_back(name);
  }
  TensorDict dict(batch_shape);
  RILL_ASSIGN_OR_RETURN(const int64_t count, Number("number of entries"));
  for (int64_t i = 0; i < count; ++i) {
    RILL_RETURN_IF_ERROR(ReadEntry(depth, &dict));
  }
  if (!names.empty()) {
    RILL_RETURN_IF_ERROR(Fits(dict.SetDimNames(std::move(names))));
  }
  return dict;
}

absl::StatusOr<TensorDict> Reader::ReadAll() {
  RILL_ASSIGN_OR_RETURN(TensorDict dict, ReadDict(1));
  if (!rest_.empty() || at_ != block_->size_bytes()) {
    return Damaged("end: got ", rest_.size(), " bytes of the schema and ",
                   block_->size_bytes() - at_,
                   " of the columns behind the last one, want none");
  }
  return dict;
}

// Where the parts lie; each was checked.
struct Parts {
  absl::string_view schema;
  absl::string_view header;
  int64_t columns_at;
};

absl::StatusOr<Parts> Split(absl::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (size < frame_internal::kSchemaAt ||
      bytes.substr(0, frame_internal::kMagic.size()) !=
          frame_internal::kMagic) {
    return Damaged("got ", size, " bytes that are no frame, want ",
                   frame_internal::kSchemaAt, " or more that start with ",
                   frame_internal::kMagic);
  }
  const auto load = [&bytes](int64_t at, auto value) {
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  };
  const uint32_t form =
      load(static_cast<int64_t>(frame_internal::kMagic.size()), uint32_t{});
  if (form != frame_internal::kForm) {
    return FailedPrecondition("DecodeFrame: form: got ", form, ", want ",
                              frame_internal::kForm);
  }
  const int64_t length = load(frame_internal::kLengthsAt, int64_t{});
  const int64_t schema = load(frame_internal::kLengthsAt + 8, int64_t{});
  const int64_t header = load(frame_internal::kLengthsAt + 16, int64_t{});
  if (length != size) {
    return Damaged("length: got ", size, " bytes, want the ", length,
                   " that the frame names; it was cut or has others behind");
  }
  const int64_t room = size - frame_internal::kSchemaAt;
  if (schema < 0 || schema > room || header < 0 || header > room - schema) {
    return Damaged("lengths of schema and header: got ", schema, " and ",
                   header, ", want a sum in [0, ", room, "]");
  }
  // Before any value of the schema is believed.
  const int64_t end = frame_internal::kSchemaAt + schema + header;
  const auto got = static_cast<uint32_t>(absl::ComputeCrc32c(
      bytes.substr(frame_internal::kLengthsAt,
                   static_cast<size_t>(end - frame_internal::kLengthsAt))));
  const uint32_t want = load(frame_internal::kChecksumAt, uint32_t{});
  if (got != want) {
    return Damaged("checksum: ",
                   absl::StrFormat("got 0x%08x, want 0x%08x", got, want));
  }
  const int64_t columns_at = frame_internal::RoundUp(end);
  if (columns_at < 0 || columns_at > size) {
    return Damaged("columns: got a first one at ", columns_at,
                   ", want at most ", size);
  }
  return Parts{
      bytes.substr(frame_internal::kSchemaAt, static_cast<size_t>(schema)),
      bytes.substr(static_cast<size_t>(end - header),
                   static_cast<size_t>(header)),
      columns_at};
}

}  // namespace

absl::StatusOr<Frame> DecodeFrame(std::shared_ptr<const void> owner,
                                  absl::Span<const std::byte> bytes) {
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (address % kFrameAlignment != 0) {
    return InvalidArgument("DecodeFrame: bytes begin ",
                           address % kFrameAlignment, " behind a multiple of ",
                           kFrameAlignment,
                           ", want a multiple; copy them to a Buffer");
  }
  RILL_ASSIGN_OR_RETURN(
      const Parts parts,
      Split({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  // The tensors do not let anybody write, so the cast changes nothing.
  Reader reader(parts.schema,
                Buffer::Wrap(const_cast<std::byte*>(bytes.data()),
                             static_cast<int64_t>(bytes.size()), Device::Cpu(),
                             MemoryKind::kPageable, std::move(owner),
                             /*is_writable=*/false),
                parts.columns_at);
  RILL_ASSIGN_OR_RETURN(TensorDict batch, reader.ReadAll());
  return Frame{std::string(parts.header), std::move(batch)};
}

}  // namespace rill
