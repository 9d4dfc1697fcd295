// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_INFERENCE_INFERENCE_LAYOUT_H_
#define RILL_COLLECTORS_INFERENCE_INFERENCE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/flow/channel/shared_calls.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::inference_internal {

// A question begins with this; its leaves come behind.
struct QuestionHead {
  // Of the client's ActContext.
  int64_t frames;
  int64_t step;
  uint64_t seed;
  uint8_t explore;  // 0 or 1.
};
// An answer begins with this; its leaves come behind.
struct AnswerHead {
  static constexpr int64_t kMaxTextBytes = 4000;

  int64_t version;
  int32_t code;  // absl::StatusCode; not OK: a text, and no leaves.
  uint32_t text_bytes;
  char text[kMaxTextBytes];
};

inline void CopyBytes(const std::byte* from, int64_t bytes, std::byte* to) {
  if (bytes > 0) std::memcpy(to, from, bytes);  // Null may be empty.
}

// How a client and its server lay out questions and answers: the leaves of
// [lanes] one behind the other, each row-major.
// Thread-safety: thread-compatible.
class InferenceLayout {
 public:
  struct Leaf {
    std::string key;
    DType dtype;
    Shape shape;     // Of a lane.
    int64_t offset;  // In the question or answer.
    int64_t bytes;   // Of all lanes.
  };

  // `outputs` is Policy::output_spec: its leaves below next stand in the
  // question too, without the prefix. INVALID_ARGUMENT names a key that is
  // there twice, and numbers that cannot be.
  static absl::StatusOr<InferenceLayout> Create(int64_t lanes,
                                                const TensorDictSpec& root,
                                                const TensorDictSpec& action,
                                                const TensorDictSpec& outputs);
  // For another process of this program.
  absl::StatusOr<std::string> ToBytes() const;
  static absl::StatusOr<InferenceLayout> FromBytes(absl::string_view bytes);

  int64_t lanes() const { return lanes_; }
  const TensorDictSpec& outputs() const { return outputs_; }
  // All leaves of a question, and of an answer.
  const TensorDictSpec& asked() const { return asked_; }
  const TensorDictSpec& answered() const { return answered_; }
  const std::vector<Leaf>& question() const { return question_; }
  const std::vector<Leaf>& answer() const { return answer_; }
  channel_internal::SharedCalls::Sizes SizesFor(int64_t clients) const {
    return {clients, question_bytes_, answer_bytes_};
  }

 private:
  // The leaves of `spec` behind a head of `bytes`, which becomes the end.
  absl::StatusOr<std::vector<Leaf>> Place(const TensorDictSpec& spec,
                                          int64_t* bytes) const;

  int64_t lanes_ = 0;
  TensorDictSpec root_;
  TensorDictSpec action_;
  TensorDictSpec outputs_;
  TensorDictSpec asked_;
  TensorDictSpec answered_;
  std::vector<Leaf> question_;
  std::vector<Leaf> answer_;
  int64_t question_bytes_ = 0;
  int64_t answer_bytes_ = 0;
};

}  // namespace rill::inference_internal

#endif  // RILL_COLLECTORS_INFERENCE_INFERENCE_LAYOUT_H_
