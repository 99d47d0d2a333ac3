// Schemas of the audit; the objects are made in audit_routes.cc.

#include "api/routes/schema.h"
#include "api/routes/schemas.h"

namespace berth::api {

void add_audit_schemas(boost::json::object& schemas) {
  using namespace schema;
  const Schema change = object(
      "A value that was changed.",
      {{"key", text("Which.")}, {"before", nullable(text("Null: not known."))}, {"after", text("What it is now.")}});
  schemas["AuditEntry"] =
      object("A change, a read of the log of another user's job, a sign-in, or requests that were denied.",
             {{"seq", integer("Of the event in the log.")},
              {"time", time("When it was written.")},
              {"kind", text("Of the event.")},
              {"verb", text("What was asked for (docs/roles.md), or sign-in; empty: several.")},
              {"denied", boolean("It was denied.")},
              {"subject", text("Who asked; empty: nobody was proved.")},
              {"proof", text("How that was proved: token, certificate, socket, session, issuer.")},
              {"address", text("From where; unix: by the Unix socket.")},
              {"request", text("The id of the request; empty: counted requests.")},
              {"queue", text("Where; empty: the whole cluster.")},
              {"job", nullable(integer("The job."))},
              {"object", text("What else it is about: node:n1, token:ci, user:ada, month:2026-11.")},
              {"count", integer("Requests, of what was denied.")},
              {"first", time("The first of them.")},
              {"last", time("The last of them.")},
              {"others", boolean("They are of several objects, or without a subject of several subjects.")},
              {"changes", list("What it changed.", change)},
              {"reason", text("What was stated; may be empty.")}});
  schemas["AuditList"] =
      object("A page of the audit.", {{"items", list("The entries, in order.", reference("AuditEntry"))},
                                      {"next_from", integer("Where to go on.")},
                                      {"seq", integer("The last event there is.")}});
}

}  // namespace berth::api
