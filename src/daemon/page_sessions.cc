#include "daemon/page_sessions.h"

#include <algorithm>
#include <utility>

namespace berth::daemon {
namespace {

using Callbacks = std::vector<std::function<void()>>;

void call(const Callbacks& callbacks) {
  for (const auto& callback : callbacks) callback();
}

}  // namespace

bool PageSessions::has_ended(const Session& session, Timestamp now) {
  if (session.begun + kLongestMs <= now || session.used + kIdleMs <= now) return true;
  return session.known.identity.ends <= now && session.refresh_token.empty();
}

void PageSessions::erase(Table::iterator session, Callbacks& waiting) {
  for (auto& callback : session->second.waiting) waiting.push_back(std::move(callback));
  sessions_.erase(session);
}

void PageSessions::make_room(const std::string& user, Timestamp now, Callbacks& waiting) {
  std::erase_if(sessions_, [&](const auto& one) { return has_ended(one.second, now) && !one.second.renewing; });
  const auto drop_oldest = [&](std::size_t most, auto&& counts) {
    while (static_cast<std::size_t>(std::count_if(sessions_.begin(), sessions_.end(), counts)) >= most) {
      auto oldest = sessions_.end();
      for (auto one = sessions_.begin(); one != sessions_.end(); ++one) {
        if (counts(*one) && (oldest == sessions_.end() || one->second.used < oldest->second.used)) oldest = one;
      }
      erase(oldest, waiting);
    }
  };
  drop_oldest(kMostOfUser, [&](const auto& one) { return one.second.known.identity.user == user; });
  drop_oldest(kMost, [](const auto&) { return true; });
}

void PageSessions::begin(const std::string& digest, Known known, std::string refresh_token, Timestamp now) {
  Callbacks waiting;
  {
    const std::lock_guard lock(mutex_);
    make_room(known.identity.user, now, waiting);
    sessions_.insert_or_assign(digest, Session{.known = std::move(known),
                                               .refresh_token = std::move(refresh_token),
                                               .begun = now,
                                               .used = now,
                                               .renew = now + kRenewMs});
  }
  call(waiting);
}

PageSessions::Found PageSessions::find(const std::string& digest, Timestamp now) {
  Callbacks waiting;
  Found found;
  {
    const std::lock_guard lock(mutex_);
    const auto at = sessions_.find(digest);
    if (at == sessions_.end()) return found;
    Session& session = at->second;
    if (has_ended(session, now)) {
      erase(at, waiting);
    } else {
      session.used = now;
      const bool is_good = now < session.known.identity.ends;
      if (!session.refresh_token.empty() && !session.renewing && (!is_good || session.renew <= now)) {
        session.renewing = true;
        found.refresh_token = session.refresh_token;
        found.issuer = session.known.identity.issuer;
      }
      found.renewing = session.renewing;
      if (is_good) found.known = session.known;
    }
  }
  call(waiting);
  return found;
}

void PageSessions::renewed(const std::string& digest, std::optional<identity::Identity> identity,
                           std::string refresh_token, bool refused, Timestamp now) {
  Callbacks waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto at = sessions_.find(digest);
    if (at == sessions_.end()) return;
    Session& session = at->second;
    session.renewing = false;
    session.renew = now + kRenewMs;
    waiting = std::exchange(session.waiting, {});
    // The same person for ever: an issuer that names another one has not renewed this session.
    const bool is_other = identity && identity->user != session.known.identity.user;
    if (identity && !is_other) {
      session.known.identity = std::move(*identity);
      if (!refresh_token.empty()) session.refresh_token = std::move(refresh_token);
    } else if (refused || is_other || session.known.identity.ends <= now) {
      sessions_.erase(at);
    }
  }
  call(waiting);
}

void PageSessions::when_renewed(const std::string& digest, std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = sessions_.find(digest);
    if (at != sessions_.end() && at->second.renewing) {
      at->second.waiting.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

void PageSessions::end(const std::string& digest) {
  Callbacks waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto at = sessions_.find(digest);
    if (at != sessions_.end()) erase(at, waiting);
  }
  call(waiting);
}

std::size_t PageSessions::size() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

}  // namespace berth::daemon
