#include "api/http/responder.h"

#include <utility>

namespace berth::http {

struct Responder::Guard {
  explicit Guard(std::shared_ptr<AnswerSlot> target) : slot(std::move(target)) {}
  ~Guard() { slot->answer(problem(500, "internal", "the request was dropped without an answer")); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  std::shared_ptr<AnswerSlot> slot;
};

Responder::Responder(std::shared_ptr<AnswerSlot> slot) : guard_(std::make_shared<Guard>(std::move(slot))) {}

bool Responder::send(Response response) const { return guard_->slot->answer(std::move(response)); }

bool Responder::relay(RelayOffer offer) const { return guard_->slot->answer_with_relay(std::move(offer)); }

Stream Responder::stream(StreamFormat format) const { return {guard_->slot->answer_with_stream(format), format}; }

}  // namespace berth::http
