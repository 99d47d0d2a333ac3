#pragma once
// The right to answer one request, once. A handler answers at once or keeps the Responder and answers later from any
// thread. The first answer wins: what comes after it, or after the server gave up waiting (503), is refused with false.
// If every copy is dropped without an answer, the client gets a 500 problem.

#include <memory>

#include "api/http/message.h"
#include "api/http/problem.h"
#include "api/http/relay_offer.h"
#include "api/http/stream.h"

namespace berth::http {

// Where the answer goes: a connection of the server, or a recorder in a test. All calls from any thread.
class AnswerSlot {
 public:
  virtual ~AnswerSlot() = default;
  virtual bool answer(Response response) = 0;
  virtual std::shared_ptr<StreamSink> answer_with_stream(StreamFormat format) = 0;  // null if already answered
  virtual bool answer_with_relay(RelayOffer offer) = 0;  // false if already answered; then nothing of it is kept
};

class Responder {
 public:
  explicit Responder(std::shared_ptr<AnswerSlot> slot);

  bool send(Response response) const;
  bool fail(const Error& error) const { return send(problem(error)); }
  // Answers 200 and goes on as a stream; a stream that is not open() if the request was answered before.
  Stream stream(StreamFormat format) const;
  // Answers 101 and joins the WebSocket of the client to a stream.
  bool relay(RelayOffer offer) const;

 private:
  struct Guard;  // answers 500 when the last copy of the Responder goes unanswered
  std::shared_ptr<Guard> guard_;
};

}  // namespace berth::http
