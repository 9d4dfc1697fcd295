// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_WRITE_CAPTURE_H_
#define RILL_REPLAY_ROWS_WRITE_CAPTURE_H_

#include <cstdint>
#include <vector>

#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::replay_internal {

// Notes which rows the calling thread writes as long as this lives: a storage
// tells its observers on the thread that writes. One a thread.
//
// Thread-safety: of the thread that made it.
// Cost: none where there is no capture but a look at a variable of the thread.
class WriteCapture {
 public:
  // `observer` is the caller of Note, and nobody else's events count.
  WriteCapture(const WriteObserver* observer, const Sampler* sampler,
               std::vector<Draw>* rows)
      : observer_(observer), sampler_(sampler), rows_(rows) {
    current_ = this;
  }
  ~WriteCapture() { current_ = nullptr; }
  WriteCapture(const WriteCapture&) = delete;
  WriteCapture& operator=(const WriteCapture&) = delete;

  // From OnWrite of `observer`, behind the sampler's own.
  static void Note(const WriteObserver* observer, const WriteEvent& event) {
    if (current_ == nullptr || current_->observer_ != observer) return;
    current_->Add(event);
  }

 private:
  void Add(const WriteEvent& event) {
    slots_.clear();
    for (const SlotRange& range : event.written) {
      for (int64_t i = 0; i < range.count; ++i) {
        slots_.push_back(range.first + i);
      }
    }
    generations_.resize(slots_.size());
    sampler_->GetGenerations(slots_, absl::MakeSpan(generations_));
    for (size_t i = 0; i < slots_.size(); ++i) {
      rows_->push_back({.slot = slots_[i], .generation = generations_[i]});
    }
  }

  static inline thread_local WriteCapture* current_ = nullptr;

  const WriteObserver* const observer_;
  const Sampler* const sampler_;
  std::vector<Draw>* const rows_;
  std::vector<Slot> slots_;
  std::vector<int64_t> generations_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_WRITE_CAPTURE_H_
