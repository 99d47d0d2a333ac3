#include "daemon/audit_desk.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "policy/audit.h"

namespace berth::daemon {
namespace {

constexpr auto kAuditTick = std::chrono::seconds(1);
constexpr auto kLongestAuditWrite = std::chrono::seconds(5);

}  // namespace

AuditDesk::AuditDesk(Inbox& inbox, ServerClock& clock) : inbox_(inbox), clock_(clock), thread_([this] { run(); }) {}

AuditDesk::~AuditDesk() { stop(); }

void AuditDesk::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  if (!thread_.joinable()) return;
  thread_.join();
  const std::lock_guard lock(mutex_);
  write({}, sign_ins_.take());
  const auto durable = std::make_shared<std::promise<void>>();
  auto written = durable->get_future();
  const bool taken = inbox_.put(
      {NoteDenials{denials_.take_all()}, [durable](const Result<control::Reply>&) { durable->set_value(); }});
  if (taken) written.wait_for(kLongestAuditWrite);
}

void AuditDesk::denied(AccessDenied denied) {
  denied.subject = policy::audit_text(denied.subject);
  const Timestamp now = clock_.now();
  const std::lock_guard lock(mutex_);
  denials_.count(std::move(denied), now);
}

void AuditDesk::unauthenticated(const std::string& address) {
  AccessDenied one;
  one.address = address;
  one.verb = policy::kSignInVerb;
  denied(std::move(one));
}

void AuditDesk::signed_in(SignedIn who, const std::string& session) {
  const Timestamp now = clock_.now();
  const std::lock_guard lock(mutex_);
  sign_ins_.seen(std::move(who), session, now);
}

void AuditDesk::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kAuditTick, [this] { return stopping_; })) {
    std::vector<AccessDenied> rows = denials_.take(clock_.now());
    std::vector<SignedIn> sign_ins = sign_ins_.take();
    lock.unlock();
    write(std::move(rows), std::move(sign_ins));
    lock.lock();
  }
}

void AuditDesk::write(std::vector<AccessDenied> denials, std::vector<SignedIn> sign_ins) {
  if (!denials.empty()) inbox_.put({NoteDenials{std::move(denials)}, {}});
  if (!sign_ins.empty()) inbox_.put({NoteSignIns{std::move(sign_ins)}, {}});
}

}  // namespace berth::daemon
