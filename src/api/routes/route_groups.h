#pragma once
// The routes of each resource, added to one table (see routes.h).

#include "api/http/router.h"
#include "api/service.h"

namespace berth::api {

void add_cluster_routes(http::Router& router, Service& service);
void add_metrics_routes(http::Router& router, Service& service);
void add_config_routes(http::Router& router, Service& service);
void add_job_routes(http::Router& router, Service& service);
void add_job_log_routes(http::Router& router, Service& service);
void add_shell_routes(http::Router& router, Service& service);
void add_queue_routes(http::Router& router, Service& service);
void add_queue_change_routes(http::Router& router, Service& service);
void add_role_routes(http::Router& router, Service& service);
void add_node_routes(http::Router& router, Service& service);
void add_maintenance_routes(http::Router& router, Service& service);
void add_forecast_routes(http::Router& router, Service& service);
void add_identity_routes(http::Router& router, Service& service);
void add_access_routes(http::Router& router, Service& service);
void add_token_routes(http::Router& router, Service& service);
void add_clock_routes(http::Router& router, Service& service);
void add_capacity_routes(http::Router& router, Service& service);
void add_advice_routes(http::Router& router, Service& service);
void add_diagnosis_routes(http::Router& router, Service& service);
void add_usage_routes(http::Router& router, Service& service);
void add_policy_routes(http::Router& router, Service& service);
void add_billing_routes(http::Router& router, Service& service);
void add_audit_routes(http::Router& router, Service& service);
void add_quantity_routes(http::Router& router, Service& service);
void add_event_routes(http::Router& router, Service& service);
void add_snapshot_routes(http::Router& router, Service& service);

}  // namespace berth::api
